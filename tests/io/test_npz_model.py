"""Files of arrays: what is in them, and where an error is."""

from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest
from lossless_files import lawn, zipped

import clampz as cz
from clampz import generators
from clampz.errors import FormatError
from clampz.io import files, npz_model


def test_numpy_opens_the_file(tmp_path):
    cz.write(lawn(), tmp_path / "lawn.npz")
    with np.load(tmp_path / "lawn.npz") as found:
        assert found["num_states"].tolist() == [2, 2, 3] and found["arity"].tolist() == [1, 1, 1, 2, 3]
        assert found["variables"].tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
        assert found["values"][:4].tolist() == [0.0, -1.0, 0.0, 1 / 3]
        assert b'"names": ["rain", "sprinkler", "grass"]' in found["model.json"]


def test_large_models_are_compact():
    model = generators.grid(60, 60, rng=0)
    assert len(npz_model.encode(model)) < 0.3 * len(cz.io.uai.encode(model))


def test_what_shrinks_too_far_to_be_believed_is_stored_as_it_is(monkeypatch):
    model = cz.Model([np.zeros(500_000)])
    assert len(npz_model.encode(model)) < 100_000
    monkeypatch.setattr(files, "FREE_BYTES", 2**16)
    data = npz_model.encode(model)
    assert len(data) > 4_000_000 and npz_model.parse("x", data) == model
    monkeypatch.undo()
    monkeypatch.setattr(files, "MAX_RATIO", 1)
    monkeypatch.setattr(files, "FREE_BYTES", 2**16)
    with pytest.raises(FormatError, match=r"expected at most \d+ bytes out of \d+ compressed"):
        npz_model.parse("x", PACKED)


PACKED = npz_model.encode(cz.Model([np.zeros(500_000)]))
OBJECTS = np.array([0.0, print, None], dtype=object)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": OBJECTS}, r"values: expected numbers, found Python objects, which would have to be unpickled"),
        ({"num_states": OBJECTS}, r"num_states: expected numbers, found Python objects"),
        ({"values": np.zeros(22)}, r"values: expected 23 values, as the factors say, found 22"),
        ({"values": np.zeros((2, 11))}, r"values: expected numbers in an array of one axis, found .*\(2, 11\)"),
        ({"values": np.zeros(22, dtype=int)}, r"values: expected floats, found int64"),
        ({"values": np.full(23, np.nan)}, r"factor 0, entry 0: expected a log potential, .* found nan"),
        ({"values": np.append(np.zeros(22), np.inf)}, r"factor 4, entry 11: expected a log potential, .* found inf"),
        ({"values": np.append(np.zeros(22), 1e21)}, r"factor 4, entry 11: .* at most 1e\+20 in size, .* found 1e\+21"),
        ({"values": np.zeros(23, dtype=complex)}, r"values: expected numbers in an array of one axis"),
        (
            {"num_states": np.array([2, 0, 3])},
            r"num_states\[1\]: expected a whole number from 1 to 2147483647, found 0",
        ),
        ({"num_states": np.array([2, 2**40, 3])}, r"num_states\[1\]: expected a whole number from 1 to"),
        ({"num_states": np.array([2, 2, 2**30])}, r"num_states: expected at most \d+ states in all"),
        ({"num_states": np.array([2.0, 2.0, 3.0])}, r"num_states: expected whole numbers, found float64"),
        ({"arity": np.array([1, 1, 1, 2, 2])}, r"variables: expected 7, as arity says, found 8"),
        ({"arity": np.array([1, 1, 1, 2, -3])}, r"arity\[4\]: expected a whole number from 0"),
        ({"variables": np.array([0, 1, 2, 0, 1, 0, 1, 3])}, r"factor 4: expected a variable from 0 to 2, found 3"),
        ({"variables": np.array([0, 1, 2, 1, 1, 0, 1, 2])}, r"factor 3: expected distinct variables, found 1 twice"),
        ({"without": ["arity.npy"]}, r"expected model.json, num_states.npy, .*, found model.json"),
        ({"more.npy": b"x"}, r"expected model.json, .*, found model.json, .*, more.npy"),
        ({"head": b"{}"}, r"model.json: expected 'format', found nothing"),
        ({"head": b"\xff"}, r"model.json: expected UTF-8, found the byte 0xff"),
        ({"head": b"{"}, r"model.json: expected JSON"),
        ({"head": b'{"format": "clampz model", "version": 3}'}, r"model.json: expected version 1, found 3"),
        (
            {"head": b'{"format": "clampz model", "version": 1, "names": [1]}'},
            r"names: expected a list of strings, found \[1\]",
        ),
        ({"head": b'{"format": "clampz model", "version": 1, "names": ["a"]}'}, r"names: expected 3 distinct strings"),
    ],
)
def test_errors_name_the_place(changed, message):
    with pytest.raises(FormatError, match=rf"^model\.npz(, |: ){message}"):
        npz_model.parse("model.npz", zipped(lawn(), **changed))


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': '<f8'}",
        b"print('run')",
        b"((((((((((",
    ],
)
def test_headers_are_not_believed(header):
    data = b"\x93NUMPY\x01\x00" + len(header + b"\n").to_bytes(2, "little") + header + b"\n" + bytes(8)
    out = BytesIO()
    with ZipFile(BytesIO(npz_model.encode(lawn()))) as file, ZipFile(out, "w") as other:
        for name in file.namelist():
            other.writestr(name, data if name == "values.npy" else file.read(name))
    with pytest.raises(FormatError, match=r"^x, values: expected"):
        npz_model.parse("x", out.getvalue())


def test_module_functions_read_and_write_any_name(tmp_path):
    npz_model.write(lawn(), tmp_path / "lawn.bin")
    assert npz_model.read(tmp_path / "lawn.bin") == lawn()
    for suffix in (".uai", ".fg"):  # what is none of it
        cz.write(lawn(), tmp_path / f"lawn{suffix}")
        with pytest.raises(FormatError, match=r"expected a whole \.npz file, found a broken one \(File is not a zip"):
            npz_model.read(tmp_path / f"lawn{suffix}")
