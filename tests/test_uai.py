"""The UAI format: what is read, that writing and reading is the identity, and that every error names its place."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from clampz import generators, io
from clampz.errors import FormatError, ModelError
from clampz.io import uai
from clampz.model import Model
from strategies import EXACT, close, configurations, finite_or_hard, models

pytestmark = pytest.mark.nojit

REFERENCE = Path(__file__).parent / "data" / "reference"

GOOD = """MARKOV
2
2 3
3
1 0
2 0 1
0

2
 1.0 0.5
6
 1 2 3
 4 0 6
1 2.0
"""


@pytest.fixture
def read(tmp_path):
    """Write a text to model.uai and read it."""

    def read_text(text):
        (tmp_path / "model.uai").write_text(text)
        return uai.read(tmp_path / "model.uai")

    return read_text


# -- reading -------------------------------------------------------------------------------------------------------------------


def test_values_are_potentials_with_the_last_variable_fastest(read):
    model = read(GOOD)
    assert model.num_states.tolist() == [2, 3]
    assert np.exp(model.unary[0]).tolist() == pytest.approx([1.0, 0.5])
    assert model.unary[1].tolist() == [0, 0, 0]
    assert np.exp(model.pairwise[0, 1]) == pytest.approx(np.array([[1, 2, 3], [4, 0, 6]]))
    assert model.pairwise[0, 1][1, 1] == -np.inf
    assert model.constant == pytest.approx(np.log(2.0))


def test_lines_mean_nothing(read):
    assert read(GOOD.replace("\n", " ")) == read(GOOD) == read(GOOD.replace(" ", "\n")) == read(GOOD.replace("\n", "\r\n\t"))


def test_scopes_in_either_direction_and_factors_over_the_same_variables_are_multiplied(read):
    text = "MARKOV 2 2 3 6  2 1 0  2 0 1  1 1  1 1  0  0   6 1 2 3 4 5 6   6 1 1 1 2 2 2   3 1 2 3   3 2 2 0.5  1 3  1 5"
    model = read(text)
    assert np.exp(model.pairwise[1, 0]) == pytest.approx(np.array([[1, 4], [3, 8], [5, 12]]))
    assert np.exp(model.unary[1]) == pytest.approx([2, 4, 1.5])
    assert model.constant == pytest.approx(np.log(15))


@pytest.mark.parametrize("text", ["MARKOV 0 0", "MARKOV 0\n\n0\n", "MARKOV 0 1 0 1 1.0"])
def test_a_file_without_variables(read, text):
    assert read(text) == Model([])


def test_the_reference_models_are_all_there():
    results = json.loads((REFERENCE / "libdai.json").read_text())
    assert len(results) == 44
    for name, log_z in results.items():
        model = io.read(REFERENCE / f"{name}.uai")
        assert model.binary is not None
        assert log_z["MF"] <= log_z["JTREE"] + 1e-6 <= log_z["TRWBP"] + 2e-6
        assert (model.kind == "attractive") == ("Wm" not in name)


def test_a_reference_model_has_the_log_z_that_libdai_found():
    """By eliminating nothing: K10 has 1024 configurations."""
    for name, log_z in json.loads((REFERENCE / "libdai.json").read_text()).items():
        if name.startswith("K10"):
            model = io.read(REFERENCE / f"{name}.uai")
            scores = np.array([model.score(x) for x in configurations(model)])
            assert np.logaddexp.reduce(scores) == pytest.approx(log_z["JTREE"], abs=1e-8)


def test_missing_files_and_other_suffixes(tmp_path):
    with pytest.raises(FileNotFoundError):
        io.read(tmp_path / "missing.uai")
    with pytest.raises(FormatError, match=r"model\.txt: expected a file name that ends in \.uai \(\.uai\.gz\), found '\.txt'"):
        io.read(tmp_path / "model.txt")
    with pytest.raises(FormatError, match=r"found 'no suffix'"):
        io.write(Model([]), tmp_path / "model")


# -- writing -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.uai", "model.uai.gz"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=models(elements=finite_or_hard))
def test_write_then_read_is_the_identity(tmp_path, name, model):
    io.write(model, tmp_path / name)
    again = io.read(tmp_path / name)
    assert np.array_equal(again.num_states, model.num_states)
    assert np.array_equal(again.edges, model.edges)
    for ours, theirs in [(model.unary.flat, again.unary.flat), (model.pairwise.flat, again.pairwise.flat)]:
        assert np.array_equal(np.isinf(ours), np.isinf(theirs))
        assert np.allclose(ours, theirs, rtol=0, atol=EXACT)
    assert close(again.constant, model.constant)
    assert [path.name for path in tmp_path.iterdir() if path.name == name or path.suffix == ".tmp"] == [name]


def test_compressed_files_are_compressed_and_always_the_same(tmp_path):
    model = generators.grid(3, 3, rng=0)
    io.write(model, tmp_path / "a.uai")
    io.write(model, tmp_path / "a.uai.gz")
    assert gzip.decompress((tmp_path / "a.uai.gz").read_bytes()) == (tmp_path / "a.uai").read_bytes()
    first = (tmp_path / "a.uai.gz").read_bytes()
    io.write(model, tmp_path / "a.uai.gz")
    assert (tmp_path / "a.uai.gz").read_bytes() == first


@pytest.mark.parametrize("shift", [800.0, -5000.0])
def test_tables_beyond_the_range_of_floats_are_shifted_into_it(tmp_path, shift):
    model = Model([[shift, shift + 1, -np.inf], [-np.inf, -np.inf], [0.0, 2.0]], {(0, 2): np.full((3, 2), 2 * shift)}, constant=shift)
    io.write(model, tmp_path / "model.uai")
    again = io.read(tmp_path / "model.uai")
    for x in configurations(model):
        assert again.score(x) == pytest.approx(model.score(x), rel=1e-12)


def test_a_table_too_wide_for_floats_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "model.uai"
    io.write(Model([[0.0, 1.0]]), path)
    before = path.read_bytes()
    with pytest.raises(ModelError, match=r"potentials of \[0, 1\]: expected a spread of at most 1400 nats in a UAI file, found 2000"):
        io.write(Model([[0.0], [0.0, 0.0]], {(0, 1): [[-1000, 1000]]}), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "model.uai").mkdir()
    with pytest.raises(OSError, match=r"model\.uai"):
        io.write(Model([[0.0, 1.0]]), tmp_path / "model.uai")
    assert [path.name for path in tmp_path.iterdir()] == ["model.uai"]


# -- errors --------------------------------------------------------------------------------------------------------------------


def test_every_truncation_is_an_error_that_names_the_line(read):
    tokens = GOOD.split()
    for length in range(len(tokens)):
        with pytest.raises(FormatError, match=r"model\.uai, line \d+(, factor \d+)?: expected .*, found"):
            read(" ".join(tokens[:length]))


def test_every_token_replaced_by_a_word_is_an_error_that_shows_it(read):
    tokens = GOOD.split()
    for k in range(len(tokens)):
        with pytest.raises(FormatError, match=rf"model\.uai, line {k + 1}(, factor \d+)?: .*'spam'"):
            read("\n".join([*tokens[:k], "spam", *tokens[k + 1 :]]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "BAYES", r"line 1: not supported yet: BAYES networks; expected MARKOV, found BAYES"),
        ("MARKOV", "markov", r"line 1: expected MARKOV, found 'markov'"),
        ("MARKOV\n2", "MARKOV\n-2", r"line 2: expected the number of variables, found -2"),
        ("2 3\n", "2 0\n", r"line 3: expected the number of states of a variable, found 0"),
        ("2 3\n", "2 2.5\n", r"line 3: expected the number of states of a variable, found 2.5"),
        ("2 0 1\n", "3 0 1 1\n", r"line 6, factor 1: not supported yet: factors of three or more variables; expected at most 2, found 3"),
        ("2 0 1\n", "1.5 0 1\n", r"line 6, factor 1: expected its number of variables, found 1.5"),
        ("2 0 1\n", "2 0 2\n", r"line 6, factor 1: expected a variable from 0 to 1, found 2"),
        ("2 0 1\n", "2 1 1\n", r"line 6, factor 1: expected two different variables, found 1 twice"),
        ("6\n", "5\n", r"line 11, factor 1: expected 6 values, found 5"),
        (" 4 0 6\n", " 4 0\n", r"line 14, factor 2: expected 1 value, found 2.0 \(or factor 1 has too few or too many\)"),
        ("4 0 6", "4 -1 6", r"line 13, factor 1: expected a potential, finite and not negative, found -1"),
        ("4 0 6", "4 nan 6", r"line 13, factor 1: expected a potential, finite and not negative, found nan"),
        ("4 0 6", "4 inf 6", r"line 13, factor 1: expected a potential, finite and not negative, found inf"),
        ("4 0 6", "4 1_0 6", r"line 13, factor 1: expected 6 values, found 4 and then '1_0'"),
        ("1 2.0\n", "1\n", r"line 14, factor 2: expected 1 value, found 0"),
        ("1 2.0\n", "1 0\n", r"line 14, factor 2: expected a constant above 0, found 0: every configuration would have probability zero"),
        ("1 2.0\n", "1 2.0\n\n7", r"line 16: expected the end of the file after 3 factors, found 7"),
        ("1 2.0\n", "1 2.0\nend", r"line 15: expected the end of the file after 3 factors, found 'end'"),
        ("3\n1 0", "300000000\n1 0", r"line 10, factor 3: expected a variable from 0 to 1, found 0.5"),
    ],
)
def test_errors_name_line_and_factor(read, old, new, message):
    assert old in GOOD
    with pytest.raises(FormatError, match=r"model\.uai, " + message):
        read(GOOD.replace(old, new, 1))


def test_sizes_that_no_file_could_hold(read):
    with pytest.raises(FormatError, match=r"line 2, factor 0: expected 4000000000000000000 values, found 2"):
        read("MARKOV 3 2000000000 2000000000 2000000000 3 2 0 1 2 0 1 2 0 1\n2 3")


def test_broken_gzip_files(tmp_path):
    path = tmp_path / "model.uai.gz"
    path.write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(FormatError, match=r"model\.uai\.gz: expected a whole gzip file, found a broken one"):
        io.read(path)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "model.uai"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FormatError, match=r"line 1: expected MARKOV, found"):
        io.read(path)
