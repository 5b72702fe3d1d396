"""The UAI format: what is read and written, and that every error names its place."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from model_files import UAI
from strategies import EXACT, configurations

from clampz import generators, io
from clampz.errors import FormatError, ModelError
from clampz.model import Model

pytestmark = pytest.mark.nojit

REFERENCE = Path(__file__).parents[1] / "data" / "reference"

# -- reading -----------------------------------------------------------------------------------------------------------


def test_values_are_potentials_with_the_last_variable_fastest(read):
    model = read(UAI)
    assert model.num_states.tolist() == [2, 3]
    assert np.exp(model.unary[0]).tolist() == pytest.approx([1.0, 0.5])
    assert model.unary[1].tolist() == [0, 0, 0]
    assert np.exp(model.pairwise[0, 1]) == pytest.approx(np.array([[1, 2, 3], [4, 0, 6]]))
    assert model.pairwise[0, 1][1, 1] == -np.inf
    assert model.constant == pytest.approx(np.log(2.0))


def test_lines_mean_nothing(read):
    assert (
        read(UAI.replace("\n", " ")) == read(UAI) == read(UAI.replace(" ", "\n")) == read(UAI.replace("\n", "\r\n\t"))
    )


def test_comments_end_with_the_line(read):
    assert read(UAI.replace("\n", " # 1 2 spam\n#\n")) == read("# a comment\n" + UAI) == read(UAI)
    with pytest.raises(FormatError, match=r"line 3: expected the number of variables, found 'spam'"):
        read("#\nMARKOV # 2\nspam")
    with pytest.raises(FormatError, match=r"line 1: expected MARKOV or BAYES, found 'c'"):
        read("c comment\n" + UAI)


def test_numbers_in_every_notation(read):
    model = read("MARKOV 1 +4 1 1 0 4. 1e-3 +2.5E+01 .5 1E2")
    assert np.exp(model.unary[0]) == pytest.approx([1e-3, 25, 0.5, 100])


def test_factors_of_any_size_in_any_order(read):
    values = np.arange(1, 25.0)
    model = read(f"MARKOV 4 2 3 2 2 1 4 3 1 0 2 24 {' '.join(map(str, values))}")
    table = values.reshape(2, 3, 2, 2)
    ((scope, logs),) = model.factors
    assert scope == (0, 1, 2, 3)
    assert np.exp(logs) == pytest.approx(table.transpose(2, 1, 3, 0))


BAYES = """BAYES
3
2 2 3
3
1 0
2 0 1
3 1 0 2
2 0.25 0.75
4 0.1 0.9 1 0
12 0.2 0.3 0.5  1 0 0  0.333 0.333 0.333  0.1 0.1 0.8
"""


def test_bayesian_networks_have_z_1(read):
    model = read(BAYES.replace("0.333 0.333 0.333", "0.25 0.25 0.5"))
    assert np.logaddexp.reduce([model.score(x) for x in configurations(model)]) == pytest.approx(0, abs=EXACT)
    assert np.exp(model.score([1, 0, 2])) == pytest.approx(0.75 * 1.0 * 0.0)
    assert np.exp(model.score([0, 1, 1])) == pytest.approx(0.25 * 0.9 * 0.25)
    assert read(BAYES.replace("BAYES", "MARKOV")) == read(BAYES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "0.1 0.9 1 0",
            "0.1 1 0.9 0",
            r"line 9, factor 1: expected probabilities of variable 1 that add up to 1, found 1.1 \(write MARKOV if",
        ),
        (
            "1 0 0  0.333",
            "0 0 0  0.333",
            r"line 10, factor 2: expected probabilities of variable 2 that add up to 1, found 0 ",
        ),
        ("2 0 1\n", "2 1 0\n", r"line 6, factor 1: expected one table for variable 0, found another in factor 0"),
        (
            "3\n1 0",
            "2\n1 0",
            r"line 7, factor 0: expected 2 values, found 3",
        ),
    ],
)
def test_bayesian_networks_that_are_none(read, old, new, message):
    with pytest.raises(FormatError, match=message):
        read(BAYES.replace(old, new, 1))


def test_bayesian_networks_with_a_variable_without_a_table(read):
    with pytest.raises(
        FormatError, match=r"line 1: expected a table for each of 2 variables, found none for variable 1"
    ):
        read("BAYES 2 2 2 1 1 0 2 0.5 0.5")
    with pytest.raises(
        FormatError, match=r"line 1, factor 0: expected a variable to have these probabilities, found none"
    ):
        read("BAYES 0 1 0 1 1")


def test_scopes_in_either_direction_and_factors_over_the_same_variables_are_multiplied(read):
    text = (
        "MARKOV 2 2 3 6  2 1 0  2 0 1  1 1  1 1  0  0   6 1 2 3 4 5 6   6 1 1 1 2 2 2   3 1 2 3   3 2 2 0.5  1 3  1 5"
    )
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
    with pytest.raises(FormatError, match=r"missing\.uai: no such file$"):
        io.read(tmp_path / "missing.uai")
    with pytest.raises(
        FormatError,
        match=r"model\.txt: expected a file name that ends in \.uai \(\.uai\.gz\) or \.fg \(\.fg\.gz\) or .* '\.txt'",
    ):
        io.read(tmp_path / "model.txt")
    with pytest.raises(FormatError, match=r"found 'no suffix'"):
        io.write(Model([]), tmp_path / "model")


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("constant", "num_factors"), [(600.0, 1), (-650.0, 1), (2000.0, 4), (-1e5, 144)])
def test_constants_go_to_the_first_variable_or_to_factors_of_their_own(tmp_path, constant, num_factors):
    model = Model([[0.0, 1.0, -np.inf]], constant=constant)
    io.write(model, tmp_path / "model.uai")
    assert int((tmp_path / "model.uai").read_text().split()[3]) == num_factors
    again = io.read(tmp_path / "model.uai")
    assert again.score([1]) == pytest.approx(constant + 1, rel=1e-12)
    io.write(Model([], constant=constant), tmp_path / "model.uai")
    assert io.read(tmp_path / "model.uai").constant == pytest.approx(constant, rel=1e-12)


def test_constants_that_no_file_should_hold(tmp_path):
    with pytest.raises(ModelError, match=r"constant: expected at most 7e\+07 in size in a UAI file, found 1e\+15"):
        io.write(Model([[0.0]], constant=1e15), tmp_path / "model.uai")


def test_values_have_no_exponent_unless_they_are_extreme(tmp_path):
    """Not every reader knows 1e-05."""
    logs = np.log([1e-40, 1.2345678901234567e-29, 1e-5, 0.5, 123456789.0, 1e20, 1e40])
    io.write(Model([logs]), tmp_path / "model.uai")
    text = (tmp_path / "model.uai").read_text()
    assert text.count("e") == 2
    assert np.allclose(io.read(tmp_path / "model.uai").unary[0], logs, rtol=1e-15)


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
    model = Model(
        [[shift, shift + 1, -np.inf], [-np.inf, -np.inf], [0.0, 2.0]],
        {(0, 2): np.full((3, 2), 2 * shift)},
        constant=shift,
    )
    io.write(model, tmp_path / "model.uai")
    again = io.read(tmp_path / "model.uai")
    for x in configurations(model):
        assert again.score(x) == pytest.approx(model.score(x), rel=1e-12)


def test_a_table_too_wide_for_floats_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "model.uai"
    io.write(Model([[0.0, 1.0]]), path)
    before = path.read_bytes()
    with pytest.raises(
        ModelError, match=r"potentials of \[0, 1\]: expected a spread of at most 1400 nats in a UAI file, found 2000"
    ):
        io.write(Model([[0.0], [0.0, 0.0]], {(0, 1): [[-1000, 1000]]}), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "markov", r"line 1: expected MARKOV or BAYES, found 'markov'"),
        ("MARKOV\n2", "MARKOV\n-2", r"line 2: expected the number of variables, found -2"),
        ("2 3\n", "2 0\n", r"line 3: expected the number of states of a variable, found 0"),
        ("2 3\n", "2 2.5\n", r"line 3: expected the number of states of a variable, found 2.5"),
        ("2 0 1\n", "3 0 1 1\n", r"line 6, factor 1: expected its number of variables, at most 2, found 3"),
        ("2 0 1\n", "-1 0 1\n", r"line 6, factor 1: expected its number of variables, found -1"),
        ("2 0 1\n", "nan 0 1\n", r"line 6, factor 1: expected its number of variables, found nan"),
        ("2 0 1\n", "1.5 0 1\n", r"line 6, factor 1: expected its number of variables, found 1.5"),
        ("2 0 1\n", "2 0 2\n", r"line 6, factor 1: expected a variable from 0 to 1, found 2"),
        ("2 0 1\n", "2 1 1\n", r"line 6, factor 1: expected two different variables, found 1 twice"),
        ("6\n", "5\n", r"line 11, factor 1: expected 6 values, found 5"),
        (
            " 4 0 6\n",
            " 4 0\n",
            r"line 14, factor 2: expected 1 value, found 2.0 \(or factor 1 has too few or too many\)",
        ),
        ("4 0 6", "4 -1 6", r"line 13, factor 1: expected a potential, finite and not negative, found -1"),
        ("4 0 6", "4 nan 6", r"line 13, factor 1: expected a potential, finite and not negative, found nan"),
        ("4 0 6", "4 inf 6", r"line 13, factor 1: expected a potential, finite and not negative, found inf"),
        ("4 0 6", "4 1_0 6", r"line 13, factor 1: expected 6 values, found 4 and then '1_0'"),
        ("1 2.0\n", "1\n", r"line 14, factor 2: expected 1 value, found 0"),
        (
            "1 2.0\n",
            "1 0\n",
            r"line 14, factor 2: expected a constant above 0, found 0: every configuration would have probability zero",
        ),
        ("1 2.0\n", "1 2.0\n\n7", r"line 16: expected the end of the file after 3 factors, found 7"),
        ("1 2.0\n", "1 2.0\nend", r"line 15: expected the end of the file after 3 factors, found 'end'"),
        ("3\n1 0", "300000000\n1 0", r"line 10, factor 3: expected a variable from 0 to 1, found 0.5"),
    ],
)
def test_errors_name_line_and_factor(read, old, new, message):
    assert old in UAI
    with pytest.raises(FormatError, match=r"model\.uai, " + message):
        read(UAI.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "MARKOV 3 40000 40000 40000 3 2 0 1 2 0 1 2 0 1\n2 3",
            r"line 1: expected at most 65552 states in all in a file of this size, found 120000",
        ),
        (
            "MARKOV 1 2000000000 0",
            r"line 1: expected at most 65539 states in all in a file of this size, found 2000000000 "
            r"\(variable 0 has 2000000000\)",
        ),
        (
            "MARKOV 40" + " 1000" * 40 + " 1 40 " + " ".join(map(str, range(40))) + "\n2 3",
            r"line 2, factor 0: expected 1e\+120 values, found 2",
        ),
        ("MARKOV 2000000000 2 2", r"line 1: expected the number of states of a variable, found the end of the file"),
        ("MARKOV 1 2 2000000000 0 0", r"line 1, factor 2: expected its number of variables, found the end of the file"),
        ("MARKOV 1 2 99999999999 0 0", r"line 1: expected the number of factors, found 99999999999"),
    ],
)
def test_sizes_that_no_file_could_hold(read, text, message):
    with pytest.raises(FormatError, match=message):
        read(text)


def test_scopes_of_many_variables_of_one_state(read):
    """More than an array has axes."""
    n = 70
    text = f"MARKOV {n} 2 2 2 {'1 ' * (n - 3)} 1 {n} {' '.join(map(str, reversed(range(n))))} 8 1 2 3 4 5 6 7 8"
    model = read(text)
    assert model.score([1, 0, 0] + [0] * (n - 3)) == pytest.approx(np.log(2))
    assert [factor.scope for factor in model.factors] == [(0, 1, 2)]


def test_broken_gzip_files(tmp_path):
    path = tmp_path / "model.uai.gz"
    path.write_bytes(gzip.compress(UAI.encode())[:-12])
    with pytest.raises(FormatError, match=r"model\.uai\.gz: expected a whole gzip file, found a broken one"):
        io.read(path)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "model.uai"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FormatError, match=r"line 1: expected MARKOV or BAYES, found"):
        io.read(path)
