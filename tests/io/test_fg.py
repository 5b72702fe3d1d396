"""libDAI's .fg format: what is read, labels, and that every error names its place."""

import numpy as np
import pytest
from model_files import FG

import clampz as cz
from clampz.errors import FormatError

pytestmark = pytest.mark.nojit


def test_the_first_variable_varies_fastest_and_what_is_not_listed_is_zero(read):
    model = read(FG)
    assert model.num_states.tolist() == [2, 3] and model.names is None
    assert np.exp(model.unary[0]) == pytest.approx([1.0, 0.5])
    assert np.exp(model.pairwise[1, 0]) == pytest.approx(np.array([[1, 0], [3.5, 0], [0, 2]]))


def test_larger_factors(read):
    values = np.arange(1.0, 13.0)
    model = read("1 3 2 0 1 2 2 3 12 " + " ".join(f"{k} {value}" for k, value in enumerate(values)))
    ((scope, table),) = model.factors
    assert scope == (0, 1, 2)
    assert np.exp(table) == pytest.approx(values.reshape(2, 2, 3, order="F").transpose(1, 2, 0))


def test_labels_that_are_not_0_1_2_become_names_in_their_order(read, tmp_path):
    model = read(FG.replace("1 0\n", "7 12345678901\n").replace("\n0\n2\n", "\n12345678901\n2\n"))
    assert model.names == ("7", "12345678901")
    assert model.num_states.tolist() == [3, 2]
    assert np.exp(model.unary["7" == "12345678901"]) == pytest.approx([1, 1, 1])
    assert np.exp(model.pairwise[0, 1]) == pytest.approx(np.array([[1, 0], [3.5, 0], [0, 2]]))
    cz.write(model, tmp_path / "again.fg")
    assert cz.read(tmp_path / "again.fg").names == model.names


@pytest.mark.parametrize("names", [["b", "a"], ["2", "1"], ["01", "2"], ["1", "2.5"], ["1", "9" * 30]])
def test_other_names_are_lost(tmp_path, names):
    cz.write(cz.Model([[0.0, 1.0], [0.0]], names=names), tmp_path / "model.fg")
    assert cz.read(tmp_path / "model.fg").names is None


def test_what_is_written(tmp_path):
    cz.write(
        cz.Model([[0.0, -np.inf], [0.0, 0.0, 0.0]], {(0, 1): np.log([[1, 2, 3], [4, 5, 6]])}), tmp_path / "model.fg"
    )
    lines = (tmp_path / "model.fg").read_text().splitlines()
    assert lines[:7] == ["3", "", "1", "0", "2", "1", "0 1.0"]
    assert lines[-11:-6] == ["", "2", "0 1", "2 3", "6"]
    assert [float(line.split()[1]) for line in lines[-6:]] == pytest.approx([1, 4, 2, 5, 3, 6])


@pytest.mark.parametrize("text", ["0", "0\n", "1 0 1 0 1.0"])
def test_a_file_without_variables(read, text):
    assert read(text) == cz.Model([])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2\n\n1", "-2\n\n1", r"line 2: expected the number of factors, found -2"),
        ("2\n\n1", "3\n\n1", r"line 18, factor 2: expected its number of variables, found the end of the file"),
        ("2\n\n1", "1\n\n1", r"line 11: expected the end of the file after 1 factor, found 2"),
        ("\n1\n0\n", "\n1\n-1\n", r"line 5, factor 0: expected the label of a variable, found -1"),
        ("\n1\n0\n", "\n1\n1e300\n", r"line 5, factor 0: expected the label of a variable, found 1e300"),
        ("\n0\n2\n", "\n0\n0\n", r"line 6, factor 0: expected the number of states of a variable, found 0"),
        ("3 2\n", "3 4\n", r"line 13, factor 1: expected 2 states of variable 0 as before, found 4"),
        ("1 0\n", "1 1\n", r"line 12, factor 1: expected two different variables, found 1 twice"),
        ("3\n#", "4\n#", r"line 18, factor 1: expected 4 entries with a value each, found the end of the file"),
        ("3\n#", "2\n#", r"line 18: expected the end of the file after 2 factors, found 1"),
        ("3\n#", "2.5\n#", r"line 14, factor 1: expected its number of entries, found 2.5"),
        ("5   2e0", "6   2e0", r"line 17, factor 1: expected an entry from 0 to 5, found 6"),
        ("5   2e0", "0.5   2e0", r"line 17, factor 1: expected an entry from 0 to 5, found 0.5"),
        ("5   2e0", "0   2e0", r"line 16, factor 1: expected every entry once, found 0 twice"),
        ("5   2e0", "5   -1", r"line 17, factor 1: expected a potential, finite and not negative, found -1"),
        ("5   2e0", "5   nan", r"line 17, factor 1: expected a potential, finite and not negative, found nan"),
        ("5   2e0", "5   inf", r"line 17, factor 1: expected a potential, finite and not negative, found inf"),
    ],
)
def test_errors_name_line_and_factor(read, old, new, message):
    assert old in FG
    with pytest.raises(FormatError, match=r"model\.fg, " + message):
        read(FG.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 0", r"line 1, factor 0: expected a constant above 0, found 0"),
        (
            "1 2 0 1 30000 30000 0",
            r"line 1, factor 0: expected tables of at most 10485\d\d entries in all in a file of this size, "
            r"found 900000000",
        ),
        ("1 1 0 2000000000 0", r"line 1: expected at most 65541 states in all"),
        (
            "1 100000000000 1",
            r"line 1, factor 0: expected 100000000000 variables, their numbers of states and the number of entries, "
            r"found the end",
        ),
        (
            "1 1 0 2 100000000000 0 1",
            r"line 1, factor 0: expected 100000000000 entries with a value each, found the end of the file",
        ),
        ("MARKOV 1 2 0", r"line 1: expected the number of factors, found 'MARKOV'"),
    ],
)
def test_sizes_that_no_file_could_hold(read, text, message):
    with pytest.raises(FormatError, match=message):
        read(text)
