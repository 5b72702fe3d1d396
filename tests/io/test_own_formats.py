"""clampz's own formats: all of a model comes back to the last bit, and whatever the bytes, a model or a FormatError."""

import gzip

import numpy as np
import pytest
from enumerated import random_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lossless_files import LAWN, SUFFIXES, lawn, zipped
from strategies import models

import clampz as cz
from clampz import generators
from clampz.errors import FormatError, ModelError
from clampz.io import json_model, npz_model, own_formats

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.floats(-1e19, 1e19) | st.just(-np.inf) | st.sampled_from([5e-324, -0.0, 0.1, 1e19, 1 / 3, 2.0**-1000])


def same(model, again):
    """Every bit of every number, and every name."""
    pairs = zip(model.contents, again.contents, strict=True)
    assert model == again and (model.names, model.state_names) == (again.names, again.state_names)
    for one, other in pairs:
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and (one + 0.0).tobytes() == (other + 0.0).tobytes()
    assert (np.float64(model.constant) + 0.0).tobytes() == (np.float64(again.constant) + 0.0).tobytes()


@st.composite
def named(draw):
    """A model with names of any kind, some of them strange."""
    model = draw(models(elements=NUMBERS))
    contents = model.contents._replace(constant=draw(st.floats(-1e20, 1e20)))
    if draw(st.booleans()):
        n = model.num_variables
        contents = contents._replace(names=draw(st.lists(NAMES, min_size=n, max_size=n, unique=True)))
    if draw(st.booleans()):
        sizes = model.num_states.tolist()
        states = [draw(st.lists(NAMES, min_size=k, max_size=k, unique=True)) for k in sizes]
        contents = contents._replace(state_names=states)
    return cz.Model.from_contents(contents)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=named())
def test_all_of_a_model_comes_back(tmp_path, model):
    for suffix in SUFFIXES:
        cz.write(model, tmp_path / f"model{suffix}")
        same(model, cz.read(tmp_path / f"model{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(8))
def test_larger_factors_come_back(tmp_path, suffix, seed):
    model = random_model(np.random.default_rng(seed))
    for each in (model, model.at(0.0)):  # at 0 tables are constant
        cz.write(each, tmp_path / f"model{suffix}")
        same(each, cz.read(tmp_path / f"model{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "model",
    [
        cz.Model([]),
        cz.Model([], constant=-0.1),
        cz.Model([[0.0]], names=['\U0001f327 "\\\n\0é']),
        cz.Model([np.zeros(100_000)]),
        cz.Model(np.zeros((3, 2)), constant=1e20),
        generators.grid(5, 5, labels=3, rng=0),
    ],
    ids=["empty", "constant", "name", "states", "large", "grid"],
)
def test_odd_models_come_back(tmp_path, suffix, model):
    cz.write(model, tmp_path / f"model{suffix}")
    same(model, cz.read(tmp_path / f"model{suffix}"))


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for suffix in SUFFIXES:
        for name in ("a", "b"):
            cz.write(lawn(), tmp_path / f"{name}{suffix}")
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()


def test_evidence_by_name_and_results_by_name(tmp_path):
    cz.write(lawn(), tmp_path / "lawn.json")
    known = cz.read(tmp_path / "lawn.json", evidence={"grass": "wet"})
    assert cz.exact(known).log_z == pytest.approx(cz.exact(lawn(), evidence={"grass": "wet"}).log_z)
    assert cz.mode(known).configuration["grass"] == "wet"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_no_file_should_hold_is_refused_and_the_old_file_stays(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    cz.write(cz.Model([[0.0]]), path)
    before = path.read_bytes()
    beyond = cz.Model([[1e20, 0.0]], factors=[((0,), [1e20, 0.0])])  # added up
    with pytest.raises(ModelError, match=r"potentials: expected at most 1e\+20 in size in a file, found 2e\+20"):
        cz.write(beyond, path)
    with pytest.raises(ModelError, match=r"names: expected characters that text can have, found '\\ud800'"):
        cz.write(cz.Model([[0.0]], names=["half \ud800"]), path)
    assert path.read_bytes() == before


# -- whatever the bytes ------------------------------------------------------------------------------------------------


def refused_or_a_model(path, data, parse):
    """A model, or a FormatError of one line that begins with the path."""
    try:
        found = parse(path, data)
    except FormatError as error:
        assert str(error).startswith(path) and "\n" not in str(error) and len(str(error)) < 1000
        return None
    assert not np.isnan(found.unary.flat).any() and np.isfinite(found.constant)
    again = json_model.parse(path, json_model.encode(found))
    assert again == found
    return found


@pytest.mark.parametrize("parse", [json_model.parse, npz_model.parse])
def test_every_truncation_is_refused(parse):
    data = LAWN.encode() if parse is json_model.parse else npz_model.encode(lawn())
    whole = len(data.rstrip())
    for end in range(whole):
        assert refused_or_a_model("file", data[:end], parse) is None, end
    assert parse("file", data[:whole]) == lawn()


def test_every_flipped_byte_of_an_npz_is_refused_or_changes_nothing():
    data, model = npz_model.encode(lawn()), lawn()
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        assert refused_or_a_model("file", flipped, npz_model.parse) in (None, model), at


PIECES = [
    b"0",
    b"-1",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b",",
    b":",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"[]",
]
PIECES += [b"9" * 30, b"9" * 5000, b'"-inf"', b'"rain"', b"[0,1]", b"2.5", b"\\ud800", b"\xff", b"\0", b"[" * 3000]


@st.composite
def mutated(draw):
    """The file with a few pieces put in, taken away or doubled."""
    data = LAWN.encode()
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 12))
        middle = draw(st.sampled_from(PIECES) | st.binary(max_size=3) | st.just(data[at : at + 2 * length]))
        data = data[:at] + middle + data[at + length :]
    return data


@settings(max_examples=150)
@given(data=st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join) | mutated())
def test_any_bytes_as_json(data):
    refused_or_a_model("file", data, json_model.parse)


ARRAYS = [np.array([2, 2, 3]), np.array([-1]), np.array([2**40]), np.array([0.5]), np.zeros((2, 2)), np.array(["a"])]
ARRAYS += [np.array([], dtype=int), np.array([1e300, np.nan]), np.array([1 + 2j]), np.array([True, False])]
ARRAYS += [np.arange(7, dtype=">i2"), np.array([2**64 - 1], dtype=np.uint64), np.zeros(16, dtype=np.float16)]


@settings(max_examples=100)
@given(
    changed=st.dictionaries(
        st.sampled_from(["num_states", "arity", "variables", "values"]), st.sampled_from(ARRAYS), min_size=1, max_size=3
    )
)
def test_any_arrays_as_npz(changed):
    refused_or_a_model("file", zipped(lawn(), **changed), npz_model.parse)


def test_files_are_recognised_by_what_they_are():
    model = generators.grid(3, 3, rng=0)
    for suffix, known in cz.io.FORMATS.items():
        data = known.encode(model)
        for bytes_of_it in (data, gzip.compress(data)):
            found = cz.io.parse("standard input", bytes_of_it)
            assert found == model if suffix in (".json", ".npz") else found.num_edges == model.num_edges
    assert cz.io.parse("x", b"# a comment\n\n  # another\nMARKOV 1 2 0").num_variables == 1
    assert cz.io.parse("x", b"# a comment\n1\n\n1\n0\n2\n0\n").num_variables == 1
    for data, message in (
        (b"", "MARKOV or BAYES, found the end"),
        (b"[1]", "expected an object"),
        (b"PK", ".npz file"),
    ):
        with pytest.raises(FormatError, match=message):
            cz.io.parse("x", data)


def test_a_later_version_is_refused():
    assert own_formats.VERSION == 1
    with pytest.raises(FormatError, match="file: expected version 1, found 2"):
        json_model.parse("file", LAWN.replace('"version": 1', '"version": 2').encode())
