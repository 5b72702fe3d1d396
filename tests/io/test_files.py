"""Files: what is none, what cannot be written, how large they may grow, and any bytes at all."""

import contextlib
import gzip
import os
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import SPRINKLER

import clampz as cz
from clampz import io
from clampz.errors import ClampzError, FormatError
from clampz.io import evidence as evidence_files
from clampz.io import fg, files, json_model, npz_model, results, uai
from clampz.io.tokens import PIECE

READERS = [
    uai.read,
    fg.read,
    json_model.read,
    npz_model.read,
    results.read_pr,
    results.read_mar,
    results.read_mpe,
    lambda path: evidence_files.read(path, cz.Model([[0.0, 0.0]])),
]


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_is_an_error_of_one_line(tmp_path, read):
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"MARKOV" * 100)[:-12])
    (tmp_path / "checksum.gz").write_bytes(gzip.compress(b"MARKOV" * 100)[:-8] + b"12345678")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    cases = [
        ("missing", "no such file"),
        ("folder", "expected a file, found a directory"),
        ("folder/x/y", "no such file"),
        ("binary/x", "cannot be read: Not a directory"),
        ("broken.gz", r"expected a whole gzip file, found a broken one \(Compressed file ended before"),
        ("checksum.gz", "expected a whole gzip file, found a broken one"),
        ("binary", r"binary(, line \d+)?: expected"),
        ("n" * 300, "cannot be read: File name too long"),
        ("zero\0byte", r"cannot be read: .*embedded null (byte|character)"),
    ]
    for name, message in cases:
        with pytest.raises(FormatError, match=message) as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value) and "\0" not in str(caught.value)


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.uai")
        with pytest.raises(FormatError, match="expected a file, found a device or a pipe"):
            io.read(tmp_path / "pipe.uai")
        with pytest.raises(FormatError, match="expected a file to write, found a device or a pipe"):
            io.write(cz.Model([]), tmp_path / "pipe.uai")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is closed to root")
def test_files_that_are_closed(tmp_path):
    (tmp_path / "model.uai").write_text(SPRINKLER)
    (tmp_path / "model.uai").chmod(0)
    with pytest.raises(FormatError, match="cannot be read: Permission denied"):
        io.read(tmp_path / "model.uai")
    tmp_path.chmod(0o500)
    with pytest.raises(FormatError, match="cannot be written: Permission denied"):
        io.write(cz.Model([]), tmp_path / "other.uai")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder.uai", "expected a file to write, found a directory"),
        ("missing/model.uai", "no such directory to write it to"),
        ("file/model.fg", "cannot be written: Not a directory"),
        ("n" * 300 + ".uai", "cannot be written: File name too long"),
        ("zero\0byte.uai", "cannot be written: .*null"),
    ],
)
def test_files_that_cannot_be_written(tmp_path, name, message):
    (tmp_path / "folder.uai").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match=message) as caught:
        io.write(cz.Model([[0.0, 1.0]]), tmp_path / name)
    assert "\n" not in str(caught.value) and "\0" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.uai"]


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.uai.gz"
    io.write(cz.Model([[0.0, 1.0]]), path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.gzip, "compress", full)
    with pytest.raises(FormatError, match=r"model\.uai\.gz: cannot be written: No space left on device"):
        io.write(cz.Model([[0.0, 2.0]]), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_links_stay_links(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link.uai").symlink_to(tmp_path / "there" / "model.uai")
    for _ in range(2):
        io.write(cz.Model([[0.0, 1.0]]), tmp_path / "link.uai")
        assert (tmp_path / "link.uai").is_symlink() and (tmp_path / "there" / "model.uai").is_file()
    (tmp_path / "circle.uai").symlink_to(tmp_path / "circle.uai")
    for call in (lambda path: io.write(cz.Model([]), path), io.read):
        with pytest.raises(FormatError, match=r"circle\.uai: "):
            call(tmp_path / "circle.uai")


def test_compressed_by_content_in_several_members_and_padded(tmp_path):
    half = len(SPRINKLER) // 2
    members = gzip.compress(SPRINKLER[:half].encode()) + gzip.compress(SPRINKLER[half:].encode()) + b"\0" * 5000
    (tmp_path / "model.uai").write_bytes(members)
    (tmp_path / "plain.uai.gz").write_text(SPRINKLER)
    assert io.read(tmp_path / "model.uai") == io.read(tmp_path / "plain.uai.gz")
    (tmp_path / "model.uai").write_bytes(members + b"more")
    with pytest.raises(FormatError, match="expected a whole gzip file"):
        io.read(tmp_path / "model.uai")


def test_gzip_bombs(tmp_path):
    """200 MB in 200 kB are refused on the way."""
    packer = zlib.compressobj(wbits=31)
    blanks = b" " * 2**20
    (tmp_path / "model.uai").write_bytes(b"".join([*(packer.compress(blanks) for _ in range(200)), packer.flush()]))
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"expected at most 67108864 bytes out of \d+ compressed ones, found more"):
        io.read(tmp_path / "model.uai")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * files.FREE_BYTES


# -- size and speed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("MARKOV 2 500 500 1 2 0 1 250000 " + "0.1234567 " * 250_000, 6),
        (
            "MARKOV 20000 "
            + "2 " * 20_000
            + "20000 "
            + " ".join(f"1 {i}" for i in range(20_000))
            + " 2 0.25 0.75" * 20_000,
            10,
        ),
        ("x" * 2_000_000, 3),
        ("MARKOV " + "9" * 2_000_000, 3),
        ("MARKOV " + "\n" * 2_000_000, 3),
        ("MARKOV 10000 " + "-1 " * 500_000, 10),
        # two bytes of file are eight of a number before there is a model
        ("MARKOV 2 500 500 1 2 0 1 250000 " + "1 " * 250_000, 14),
        ("MARKOV 1 2 1000000 " + "1 1 " * 250_000, 15),
    ],
    ids=["usual", "factors", "word", "digits", "lines", "negative", "short", "scopes"],
)
def test_memory_is_in_proportion_to_the_file(tmp_path, text, times):
    (tmp_path / "model.uai").write_text(text)
    tracemalloc.start()
    with contextlib.suppress(FormatError):
        uai.read(tmp_path / "model.uai")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < times * len(text) + 30 * PIECE


def test_reading_is_linear(tmp_path):
    """Ten times the factors and values take ten times the calls, and no more."""
    num_calls = []
    for size in (1000, 10_000):
        scopes, tables = " ".join(f"1 {i}" for i in range(size)), " 2 0.25 0.75" * size
        (tmp_path / "model.uai").write_text(f"MARKOV {size} {'2 ' * size} {size} {scopes} {tables}")
        num_calls.append(0)

        def tally(frame, event, arg):
            num_calls[-1] += event in ("call", "c_call")

        sys.setprofile(tally)
        try:
            assert uai.read(tmp_path / "model.uai").num_variables == size
        finally:
            sys.setprofile(None)
    assert num_calls[1] < 11 * num_calls[0]


# -- fuzzing -----------------------------------------------------------------------------------------------------------

VALID = [
    SPRINKLER.encode(),
    b"MARKOV 3 2 1 3 4  1 0  2 2 0  3 1 0 2  0   2 1 0.5  6 1 2 3 4 0 6  6 1 1 1 1e-3 2 2  1 2",
    b"2\n\n1\n0\n2\n2\n0 1.0\n1 0.5\n\n2\n1 0\n3 2\n3\n0 1\n5 2\n1 3.5\n",
    b"1\n2 0 1 0 0\n",
    b"PR\n1\n-0.5\n",
    b"MAR\n2 2 0.5 0.5 1 1\n-BEGIN-\n1 1 1 1",
    gzip.compress(SPRINKLER.encode(), mtime=0),
]
PIECES = [
    b"0",
    b"1",
    b"2",
    b"-1",
    b"3",
    b"1e9",
    b"2147483647",
    b"9" * 25,
    b"1e308",
    b"nan",
    b"inf",
    b"-BEGIN-",
    b"#",
    b"\n",
    b" ",
    b"BAYES",
    b"MARKOV",
    b"_",
    b"\0",
]


@st.composite
def mutated(draw):
    """A valid file with a few tokens or bytes changed, taken away, doubled or moved in from another one."""
    data = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(0, 4))):
        tokens = data.split(b" ") if draw(st.booleans()) else [data[k : k + 1] for k in range(len(data))]
        at = draw(st.integers(0, max(len(tokens) - 1, 0)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            tokens[at : at + 1] = [draw(st.sampled_from(PIECES) | st.binary(max_size=3))]
        elif kind == 1:
            del tokens[at : at + draw(st.integers(1, 5))]
        elif kind == 2:
            tokens[at:at] = tokens[at : at + draw(st.integers(1, 5))]
        else:
            tokens[at:] = draw(st.sampled_from(VALID)).split(b" ")[at:]
        data = b" ".join(tokens) if tokens and len(tokens[0]) != 1 else b"".join(tokens)
    return data


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=2000)
@given(
    data=st.binary(max_size=300)
    | st.lists(st.sampled_from([*PIECES, b" ", b" "]), max_size=60).map(b" ".join)
    | mutated()
)
def test_whatever_the_bytes_an_answer_or_a_format_error(tmp_path, data):
    path = tmp_path / "file"
    path.write_bytes(data)
    for read in READERS:
        try:
            found = read(path)
        except FormatError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
        else:
            if isinstance(found, cz.Model):
                assert not np.isnan(found.unary.flat).any() and np.isfinite(found.constant)
                io.write(found, tmp_path / "again.uai")
                assert np.array_equal(uai.read(tmp_path / "again.uai").num_states, found.num_states)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=2000)
@given(model=mutated(), evidence=mutated())
def test_whatever_the_evidence_an_answer_or_an_error(tmp_path, model, evidence):
    (tmp_path / "model.uai").write_bytes(model)
    (tmp_path / "model.evid").write_bytes(evidence)
    try:
        io.read(tmp_path / "model.uai", evidence=tmp_path / "model.evid")
    except ClampzError as error:
        assert "\n" not in str(error)


# -- marks of encodings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_byte_order_mark_is_no_error_in_any_text(tmp_path, encoding):
    """As editors and shells of Windows write it."""
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    model = cz.Model([[0.0, 1.0], [0.5, -1.0]], {(0, 1): [[1, 0], [0, 1]]})
    for suffix in (".uai", ".fg", ".json"):
        text = io.FORMATS[suffix].encode(model).decode().replace("\n", "\r\n")
        (tmp_path / f"model{suffix}").write_bytes((mark + text).encode(encoding))
        found = io.read(tmp_path / f"model{suffix}")
        np.testing.assert_allclose(found.unary.flat, model.unary.flat, atol=1e-12)
    (tmp_path / "some.evid").write_bytes((mark + "1 0 1").encode(encoding))
    assert evidence_files.read(tmp_path / "some.evid", model) == {0: 1}
    (tmp_path / "some.PR").write_bytes((mark + "PR\r\n-0.5\r\n").encode(encoding))
    assert results.read_pr(tmp_path / "some.PR") == pytest.approx(-0.5 * np.log(10))
    with pytest.raises(FormatError, match=r"broken\.uai(: expected text in utf|, line 1: expected MARKOV)"):
        (tmp_path / "broken.uai").write_bytes((mark + "MARKO").encode(encoding)[:-1])
        io.read(tmp_path / "broken.uai")
