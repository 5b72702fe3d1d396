"""`clampz sweep`: a table, JSON, CSV and a picture over inverse temperatures."""

import csv
import math
from pathlib import Path

import pytest
from running import EXACT, PNG, answer, extras_imported_by, run

import clampz as cz


def test_json_csv_and_table_say_the_same(folder, capsys):
    data = answer(capsys, "sweep", "grid.uai", "--beta", "0:2:3", "--json", "--out", "sweep.csv")
    truth = cz.sweep(cz.read("grid.uai"), [0.0, 1.0, 2.0])
    assert data["beta"] == [0.0, 1.0, 2.0]
    for name in ("lower", "upper", "log_z", "energy", "entropy", "heat_capacity"):
        assert data[name] == pytest.approx(getattr(truth, name).tolist(), abs=EXACT)
    assert data["by"] == ["exact"] * 3
    assert data["interrupted"] is False
    with Path("sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["heat_capacity"]) for row in rows] == data["heat_capacity"]
    assert [row["by"] for row in rows] == data["by"]
    assert run("sweep", "grid.uai", "--beta", "0,0.5", "--out", "sweep.json") == 0
    out = capsys.readouterr().out
    assert "heat capacity" in out and f"{cz.exact(cz.read('grid.uai')).model.num_variables * math.log(2):.6f}" in out
    assert (folder / "sweep.json").read_text().startswith('{"model": "grid.uai", "beta": [0.0, 0.5]')


def test_what_is_not_known_is_null_and_empty(folder, capsys):
    data = answer(capsys, "sweep", "grid.uai", "--beta", "1", "--method", "trw", "--json", "--out", "trw.csv")
    assert data["lower"] == ["-inf"]
    assert data["by"] == ["trw"]
    with Path("trw.csv").open() as file:
        assert next(csv.DictReader(file))["lower"] == "-inf"


def test_a_picture(folder, capsys):
    assert run("sweep", "grid.uai", "--beta", "0:2:3", "--plot", "sweep.png") == 0
    assert (folder / "sweep.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--beta -1,2", "expected numbers >= 0"),
        ("--beta 0:2", "expected numbers >= 0"),
        ("--beta 0:2:0", "expected numbers >= 0"),
        ("--beta 0:inf:3", "expected numbers >= 0"),
        ("--beta warm", "expected numbers >= 0"),
        ("", "--beta"),
        ("--beta 1 --out sweep.txt", "expected a name that ends in .csv, .json"),
        ("--beta 1 --out nowhere/sweep.csv", "there is no directory"),
        ("--beta 1 --plot sweep.txt", "--plot sweep.txt: expected a name that ends in"),
        ("--beta 1 --method magic", "magic"),
        ("--beta 1e30", "beta: expected at most"),
    ],
)
def test_bad_input_in_a_line(folder, capsys, arguments, message):
    assert run("sweep", "grid.uai", *arguments.split()) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_json_needs_no_extras(folder):
    assert extras_imported_by("sweep", "grid.uai", "--beta", "1", "--json") == "set()\n"
