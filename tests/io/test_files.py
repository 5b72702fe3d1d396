"""Files around models: evidence, results, everything that is no proper file, and readers under fire."""

import contextlib
import gzip
import os
import time
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clampz as cz
from clampz import io
from clampz.errors import ClampzError, EvidenceError, FormatError
from clampz.io import evidence as evidence_files
from clampz.io import fg, files, results, uai
from clampz.io.tokens import PIECE
from clampz.model import fixing

CLOSE = 1e-9

# A sprinkler: season, rain given season, sprinkler given season, wet given rain and sprinkler.
SPRINKLER = """BAYES
4
2 2 2 2
4
1 0
2 0 1
2 0 2
3 1 2 3
2 0.6 0.4
4 0.8 0.2 0.3 0.7
4 0.5 0.5 0.9 0.1
8 1 0 0.1 0.9 0.2 0.8 0.01 0.99
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.uai").write_text(SPRINKLER)
    return tmp_path


def read_with(folder, text):
    (folder / "model.evid").write_text(text)
    return io.read(folder / "model.uai", evidence=folder / "model.evid")


# -- evidence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["2 3 1 1 0", "2\n3 1\n1 0\n", "1\n2 3 1 1 0", "1 2 3 1 1 0\n", "# wet, no rain\n2 3 1  1 0"]
)
def test_both_dialects(folder, text):
    wet_without_rain = 0.6 * 0.8 * 0.5 * 0.9 + 0.4 * 0.3 * 0.1 * 0.9
    estimate = cz.exact(read_with(folder, text))
    assert estimate.log_z == pytest.approx(np.log(wet_without_rain), abs=CLOSE)
    assert estimate.marginals[3].tolist() == [0, 1] and estimate.marginals[1].tolist() == [1, 0]
    assert estimate.marginals[2] == pytest.approx([0, 1])
    assert estimate.marginals[0] == pytest.approx(
        [0.6 * 0.8 * 0.5 * 0.9 / wet_without_rain, 0.4 * 0.3 * 0.1 * 0.9 / wet_without_rain]
    )


@pytest.mark.parametrize("text", ["", " \n", "0", "0\n", "1\n0", "1 0\n", "# nothing\n"])
def test_no_evidence(folder, text):
    assert read_with(folder, text) == io.read(folder / "model.uai")


def test_evidence_by_mapping_and_compressed(folder):
    model = io.read(folder / "model.uai", evidence={3: 1})
    (folder / "e.gz").write_bytes(gzip.compress(b"1 3 1"))
    assert io.read(folder / "model.uai", evidence=folder / "e.gz") == model
    assert cz.exact(model).log_z == pytest.approx(
        np.log(sum(cz.exact(io.read(folder / "model.uai")).marginals[3][1:])), abs=CLOSE
    )


def test_two_sets_that_read_as_one_are_one(folder):
    """It could be two samples as well, of no variable and of one."""
    assert evidence_files.read(_file(folder, "2 0 1 3 1"), io.read(folder / "model.uai")) == {0: 1, 3: 1}


def _file(folder, text):
    (folder / "model.evid").write_text(text)
    return folder / "model.evid"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 4 0", r"line 1: expected a variable from 0 to 3, found 4"),
        ("2 0 1\n3 2", r"line 2: expected a state of variable 3 from 0 to 1, found 2"),
        ("2 3 1 3 0", r"line 1: expected one state of variable 3, found 1 and 0"),
        ("2 3 1", r"line 1: expected 2 variables with a state each, 4 numbers, found 2 to follow"),
        ("0 3 1", r"line 1: expected 0 variables with a state each, 0 numbers, found 2 to follow"),
        ("2\n1 3 1\n1 2 0", r"line 1: expected one sample of evidence, found 2"),
        ("1 3 -1", r"line 1: expected whole numbers, found -1"),
        ("1 3 0.5", r"line 1: expected whole numbers, found 0.5"),
        ("1 3 nan", r"line 1: expected whole numbers, found nan"),
        ("1 3 yes", r"line 1: expected numbers only, found 'yes'"),
        ("99999999999999 3 1", r"line 1: expected 99999999999999 variables with a state each"),
        (SPRINKLER, r"line 1: expected numbers only, found 'BAYES'"),
    ],
)
def test_evidence_that_is_none(folder, text, message):
    with pytest.raises(FormatError, match=r"model\.evid, " + message):
        read_with(folder, text)


def test_impossible_evidence(folder):
    with pytest.raises(EvidenceError, match=r"model\.evid: evidence \{1: 0, 2: 0, 3: 1\} is impossible"):
        read_with(folder, "3 1 0 2 0 3 1")
    with pytest.raises(EvidenceError, match="impossible: it leaves no state for variable 0"):
        fixing.given(cz.Model([[0, 0], [0, 0]], {(0, 1): [[0, -np.inf], [0, -np.inf]]}), {1: 1})
    with pytest.raises(EvidenceError, match=r"unknown variable|no variable|variable"):
        io.read(folder / "model.uai", evidence={"rain": 1})


def test_labels_of_factor_graphs_name_their_evidence(tmp_path):
    (tmp_path / "model.fg").write_text("1 2 30 10 2 2 3 0 1 1 2 3 4")
    model = io.read(tmp_path / "model.fg", evidence=_file(tmp_path, "1 30 1"))
    assert model.names == ("10", "30")
    assert cz.exact(model).log_z == pytest.approx(np.log(6), abs=CLOSE)
    with pytest.raises(FormatError, match="expected a variable of the model, found 1"):
        io.read(tmp_path / "model.fg", evidence=_file(tmp_path, "1 1 1"))


@pytest.mark.parametrize("seed", range(20))
def test_given_keeps_every_variable_in_its_place(seed):
    rng = np.random.default_rng(seed)
    num_states = rng.integers(2, 4, size=6)
    scopes = [rng.permutation(6)[: rng.integers(1, 5)] for _ in range(7)]
    model = cz.Model.from_factors(
        num_states, [(s, rng.normal(size=num_states[s])) for s in scopes], names=list("abcdef"), constant=1.0
    )
    known = {int(i): int(rng.integers(num_states[i])) for i in rng.permutation(6)[:3]}
    model_given = fixing.given(model, known)
    assert model_given.names == model.names and np.array_equal(model_given.num_states, model.num_states)
    assert not any(set(edge) & set(known) for edge in model_given.edges.tolist())
    assert not any(set(scope) & set(known) for scope, _ in model_given.factors)
    for _ in range(20):
        x = [known.get(i, int(rng.integers(size))) for i, size in enumerate(num_states)]
        assert model_given.score(x) == pytest.approx(model.score(x), abs=CLOSE)
    rest = cz.exact(model.condition(known))
    estimates = [cz.exact(model_given), cz.mean_field(model_given), cz.bethe(model_given), cz.trw(model_given)]
    assert estimates[0].log_z == pytest.approx(rest.log_z, abs=CLOSE)
    assert estimates[1].lower - CLOSE <= rest.log_z <= estimates[3].upper + CLOSE
    for estimate in estimates:
        assert all(estimate.marginals[i][a] == pytest.approx(1, abs=CLOSE) for i, a in known.items())
    free = [i for i in range(6) if i not in known]
    for i, row in zip(free, rest.marginals, strict=True):
        np.testing.assert_allclose(estimates[0].marginals[i], row, atol=CLOSE)


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_are_written_as_the_competitions_have_them(tmp_path):
    results.write_pr(np.log(1000.0), tmp_path / "model.PR")
    results.write_mar([[0.1, 0.9], [0.3, 0.7], [0.2, 0.2, 0.6]], tmp_path / "model.MAR")
    task, value = (tmp_path / "model.PR").read_text().splitlines()
    assert task == "PR" and float(value) == pytest.approx(3)
    assert (tmp_path / "model.MAR").read_text() == "MAR\n3 2 0.1 0.9 2 0.3 0.7 3 0.2 0.2 0.6\n"


def test_results_are_read_back(folder):
    estimate = cz.exact(io.read(folder / "model.uai", evidence={3: 1}))
    for log_z in (estimate.log_z, -np.inf, 0.0):
        results.write_pr(log_z, folder / "model.PR")
        assert results.read_pr(folder / "model.PR") == pytest.approx(log_z, rel=1e-15)
    results.write_mar(estimate.marginals, folder / "model.MAR")
    for ours, theirs in zip(estimate.marginals, results.read_mar(folder / "model.MAR"), strict=True):
        assert np.array_equal(ours, theirs)
    results.write_mar([], folder / "model.MAR")
    assert results.read_mar(folder / "model.MAR") == []


@pytest.mark.parametrize(
    "text", ["PR\n-0.2008", "PR\n1\n-0.2008\n", "PR\n5.5\n-BEGIN-\n-0.2008", "PR\n1 2.5\n-BEGIN-\n1\n-0.2008\n"]
)
def test_dialects_of_pr(tmp_path, text):
    (tmp_path / "model.PR").write_text(text)
    assert results.read_pr(tmp_path / "model.PR") == pytest.approx(-0.2008 * np.log(10))


@pytest.mark.parametrize(
    "text",
    [
        "MAR\n2 1 1.0 2 0.3 0.7",
        "MAR\n1\n2 1 1 2 0.3 0.7",
        "MAR\n1 1 1\n-BEGIN-\n2 1 1.0 2 0.3 0.7",
        "MAR 1 1 1 1 -BEGIN- 1 2 1 1 2 3e-1 7e-1",
    ],
)
def test_dialects_of_mar(tmp_path, text):
    (tmp_path / "model.MAR").write_text(text)
    assert [row.tolist() for row in results.read_mar(tmp_path / "model.MAR")] == [[1.0], [0.3, 0.7]]


@pytest.mark.parametrize("text", ["MAR\n1 1 1", "MAR\n1 1 1 1"])
def test_one_variable_of_one_state(tmp_path, text):
    (tmp_path / "model.MAR").write_text(text)
    assert [row.tolist() for row in results.read_mar(tmp_path / "model.MAR")] == [[1.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: expected PR, found the end of the file"),
        ("MAR\n0", r"line 1: expected PR, found 'MAR'"),
        ("PR", r"line 1: expected log10 Z, found the end of the file"),
        ("PR\nnan", r"line 2: expected log10 Z, found nan"),
        ("PR\ninf", r"line 2: expected log10 Z, found inf"),
        ("PR\n2\n3", r"line 3: expected the end of the file after log10 Z, found 3"),
        ("PR\n1 2\n-BEGIN-\n3 4", r"line 4: expected the end of the file after log10 Z, found 4"),
        ("PR\n1 spam", r"line 2: expected the end of the file after log10 Z, found 'spam'"),
    ],
)
def test_results_that_are_no_pr(tmp_path, text, message):
    (tmp_path / "model.PR").write_text(text)
    with pytest.raises(FormatError, match=r"model\.PR, " + message):
        results.read_pr(tmp_path / "model.PR")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAR", r"line 1: expected the number of variables, found the end of the file"),
        ("MAR\n2 2 0.5 0.5", r"line 2: expected the number of states of variable 1, found the end of the file"),
        ("MAR\n1 3 0.5 0.5", r"line 2: expected 3 probabilities of variable 0, found the end of the file"),
        ("MAR\n1 2 0.5 -0.5", r"line 2: expected a probability of variable 0, found -0.5"),
        ("MAR\n1 2 0.5 nan", r"line 2: expected a probability of variable 0, found nan"),
        ("MAR\n1 2 0.5 0.6", r"line 2: expected probabilities of variable 0 that add up to 1, found 1.1"),
        ("MAR\n1 2 0.5 0.5\n7", r"line 3: expected the end of the file after 1 variable, found 7"),
        (
            "MAR\n1000000000 2 0.5 0.5",
            r"line 2: expected the number of states of variable 1, found the end of the file",
        ),
    ],
)
def test_results_that_are_no_mar(tmp_path, text, message):
    (tmp_path / "model.MAR").write_text(text)
    with pytest.raises(FormatError, match=r"model\.MAR, " + message):
        results.read_mar(tmp_path / "model.MAR")


def test_results_that_are_no_numbers(tmp_path):
    with pytest.raises(cz.ModelError, match="log Z: expected a number"):
        results.write_pr(np.nan, tmp_path / "model.PR")
    with pytest.raises(cz.ModelError, match="marginals of variable 1: expected a probability per state"):
        results.write_mar([[1.0], [0.5, 1.5]], tmp_path / "model.MAR")
    assert list(tmp_path.iterdir()) == []


# -- what is no file ---------------------------------------------------------------------------------------------------

READERS = [
    uai.read,
    fg.read,
    results.read_pr,
    results.read_mar,
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
        ("broken.gz", r"expected a whole gzip file, found a broken one \(it ends too early\)"),
        ("checksum.gz", "expected a whole gzip file, found a broken one"),
        ("binary", "line 1: expected"),
        ("n" * 300, "cannot be read: File name too long"),
        ("zero\0byte", "cannot be read: embedded null byte"),
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
    """A million values in about a second; the time allowed here is for machines that are slow or busy."""
    for size in (100, 1000):
        (tmp_path / f"{size}.uai").write_text(
            f"MARKOV 2 {size} {size} 1 2 0 1 {size * size} " + "0.12345678901 " * (size * size)
        )
    began = time.process_time()
    assert uai.read(tmp_path / "1000.uai").num_edges == 1
    assert time.process_time() - began < 5


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
