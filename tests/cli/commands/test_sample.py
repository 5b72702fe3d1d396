"""`clampz sample`: what it prints, writes and draws, and what it refuses."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from running import PNG, answer, extras_imported_by, run

import clampz as cz
from clampz.cli.exit_codes import as_flags


def test_sample_prints_what_the_samples_are(folder, capsys):
    assert run("sample", "grid.uai", "--num", "200") == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in ("200, exact", "by elimination", "9 variables", "log Z"):
        assert text in out
    assert run("sample", "grid.uai", "--method", "gibbs", "--num", "32") == 0
    assert "not exact" in capsys.readouterr().out


def test_sample_as_json(folder, capsys):
    data = answer(capsys, "sample", "grid.uai", "--num", "500", "--evidence", "some.evid", "--json", "--seed", "4")
    found = cz.sample(cz.read("grid.uai", "some.evid"), 500, rng=4)
    assert (data["kind"], data["num_samples"], data["interrupted"]) == ("exact", 500, False)
    assert data["log_z"] == pytest.approx(found.log_z)
    np.testing.assert_allclose(data["marginals"], np.asarray(found.marginals))
    np.testing.assert_allclose(data["standard_errors"], np.asarray(found.standard_errors))


def test_sample_writes_files(folder, capsys):
    found = cz.sample(cz.read("grid.uai"), 30, method="weighted", max_table=4)
    for name in ("s.csv", "s.json", "s.npz"):
        options = ("--method", "weighted", "--max-table", "4", "--num", "30", "--out", name)
        assert run("sample", "grid.uai", *options) == 0
    head, *rows = csv.reader(Path("s.csv").read_text().splitlines())
    assert head == [*map(str, range(9)), "log_weight"]
    assert [[int(x) for x in row[:-1]] for row in rows] == found.states.tolist()
    assert [float(row[-1]) for row in rows] == found.log_weights.tolist()
    data = json.loads(Path("s.json").read_text())
    assert data["states"] == found.states.tolist() and data["log_weights"] == found.log_weights.tolist()
    with np.load("s.npz") as arrays:
        assert np.array_equal(arrays["states"], found.states)


def test_sample_draws(folder, capsys):
    assert run("sample", "grid.uai", "--num", "50", "--plot", "s.png") == 0
    assert Path("s.png").read_bytes().startswith(PNG)


def test_sample_refuses(folder, capsys):
    for options, message in (
        (("--out", "s.txt"), "expected a name that ends in .csv, .json, .npz"),
        (("--plot", "s.csv"), "expected a name that ends in .png"),
        (("--num", "0"), "expected a whole number >= 1"),
    ):
        assert run("sample", "grid.uai", *options) == 2
        assert message in capsys.readouterr().err
    assert run("sample", "none.uai") == 2
    assert "Z = 0" in capsys.readouterr().err
    assert run("sample", "wide.uai", "--num", "9", "--method", "exact", "--memory", "2MB") == 3
    assert "exact samples need" in capsys.readouterr().err


def test_json_needs_no_extras(folder):
    assert extras_imported_by("sample", "grid.uai", "--num", "5", "--json").strip() == "set()"


def test_remedies_are_options_of_the_command(folder, capsys):
    assert run("sample", "grid.uai", "--num", str(10**12)) == 2
    assert "allow more with --memory, or" in capsys.readouterr().err
    assert run("solve", "grid.uai", "--task", "MPE", "--num-best", str(10**12), "--memory", "1MB") == 3
    assert "lower --num-best, or allow more with --memory" in capsys.readouterr().err
    said = 'raise max_table=, allow more memory=, or take method="weighted"; {"time=5"} stays'
    assert as_flags(said) == 'raise --max-table, allow more --memory, or take --method weighted; {"time=5"} stays'
