"""Result files of the UAI competitions: PR and MAR, written and read."""

import numpy as np
import pytest

import clampz as cz
from clampz import io
from clampz.errors import FormatError, ModelError
from clampz.io import results

CLOSE = 1e-9


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
    with pytest.raises(cz.errors.ModelError, match="log Z: expected a number"):
        results.write_pr(np.nan, tmp_path / "model.PR")
    with pytest.raises(cz.errors.ModelError, match="marginals of variable 1: expected a probability per state"):
        results.write_mar([[1.0], [0.5, 1.5]], tmp_path / "model.MAR")
    assert list(tmp_path.iterdir()) == []


def test_states_of_the_best_configuration(tmp_path):
    path = tmp_path / "model.MPE"
    for states in ([], [2], [1, 0, 3]):
        results.write_mpe(np.array(states, dtype=np.int32), path)
        assert path.read_text() == f"MPE\n{' '.join(map(str, [len(states), *states]))}\n"
        assert results.read_mpe(path).tolist() == states
    for text in ("MPE\n1\n3 1 0 3\n", "MPE\n-BEGIN-\n2 0 0\n-BEGIN-\n3 1 0 3\n"):  # of 2010, and of several
        path.write_text(text)
        assert results.read_mpe(path).tolist() == [1, 0, 3]


@pytest.mark.parametrize("text", ["PR\n1\n", "MPE\n", "MPE\n3 1 0\n", "MPE\n2 1 0 1\n", "MPE\n1 0.5\n", "MPE\n1 -1\n"])
def test_files_that_hold_no_configuration(tmp_path, text):
    (tmp_path / "model.MPE").write_text(text)
    with pytest.raises(FormatError, match=r"model\.MPE"):
        results.read_mpe(tmp_path / "model.MPE")


def test_states_that_are_none(tmp_path):
    for states in ([-1], [0.5], [[0]]):
        with pytest.raises(ModelError, match="states"):
            results.write_mpe(states, tmp_path / "model.MPE")
