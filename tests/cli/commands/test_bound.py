"""`clampz bound`: what it prints, writes and draws, what it refuses, and how it stops."""

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import EXACT, PNG, answer, extras_imported_by, press_ctrl_c, run, table

import clampz as cz
from clampz.bounding.tree.branch_and_bound import BranchAndBound
from clampz.cli import live_progress
from clampz.cli.commands.bound import parse_variables

# A run that ends at once with a bracket that is open, and one that would go on for long.
OPEN = ("--no-exact", "--leaves", "6", "--gap", "1e-9", "--max-table", "4")
LONG = ("--no-exact", "--gap", "0", "--time", "60")


def test_a_table_of_the_bracket_and_nothing_else(folder, capsys):
    assert run("bound", "strong.uai", *OPEN) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = table(out)
    assert list(found) == [
        "model",
        "lower",
        "upper",
        "gap",
        "estimate",
        "95% interval",
        "leaves",
        "seconds",
        "stopped by",
    ]
    exact = cz.exact(cz.read("strong.uai")).log_z
    assert float(found["lower"]) <= exact <= float(found["upper"])
    assert found["stopped by"].strip() == "leaves"
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_narrow_model_is_closed_at_once(folder, capsys):
    data = answer(capsys, "bound", "grid.uai", "--json", "--evidence", "some.evid")
    exact = cz.exact(cz.read("grid.uai"), evidence={0: 1}).log_z
    assert data["lower"] <= exact <= data["upper"]
    assert data["gap"] < EXACT
    assert (data["stopped_by"], data["interrupted"]) == ("exact", False)


def test_json_has_the_trace_and_goes_to_a_file(folder, capsys):
    data = answer(capsys, "bound", "strong.uai", "--json", *OPEN)
    assert [data["trace"][-1][end] for end in ("lower", "upper", "leaves")] == [
        data["lower"],
        data["upper"],
        data["leaves"],
    ]
    assert data["lower"] <= data["estimate"] <= data["upper"]
    for arguments, printed in (([], True), (["--json"], False)):
        assert run("bound", "strong.uai", "--out", "r.json", *OPEN, *arguments) == 0
        assert bool(capsys.readouterr().out) == printed
        assert json.loads(Path("r.json").read_text())["trace"]


def test_without_an_estimate_there_is_a_null_and_the_reason(folder, capsys):
    assert answer(capsys, "bound", "strong.uai", "--json")["why_no_estimate"] == ""
    data = answer(capsys, "bound", "strong.uai", "--json", "--time", "0")
    assert data["estimate"] is None
    assert "no time" in data["why_no_estimate"]
    assert run("bound", "strong.uai", "--time", "0") == 0
    assert table(capsys.readouterr().out)["estimate"] == f"none. {data['why_no_estimate']}"


def test_limits_reach_the_search(folder, capsys):
    data = answer(capsys, "bound", "wide.uai", "--json", "--time", "0.3", "--memory", "50MB", "--threads", "1")
    assert data["stopped_by"] == "time"
    assert answer(capsys, "bound", "strong.uai", "--json", "--no-exact", "--gap", "5")["stopped_by"] == "gap"
    assert answer(capsys, "bound", "strong.uai", "--json", "--no-exact", "--time", "0")["stopped_by"] == "time"


def test_z_of_zero(folder, capsys):
    data = answer(capsys, "bound", "none.uai", "--json")
    assert (data["lower"], data["upper"], data["gap"]) == ("-inf", "-inf", 0.0)
    assert run("bound", "none.uai", "--plot", "none.png") == 0
    assert "Z = 0" in capsys.readouterr().out
    assert Path("none.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["closed.png", "open.svg"])
def test_the_plot(name, folder, capsys):
    assert run("bound", "strong.uai", "--plot", name, *(OPEN if name == "open.svg" else ())) == 0
    assert Path(name).stat().st_size > 1000
    assert capsys.readouterr().err == ""


def test_json_needs_neither_matplotlib_nor_rich(folder):
    assert extras_imported_by("bound", "grid.uai", "--json") == "set()\n"


def test_a_checkpoint_is_gone_on_from(folder, capsys):
    first = answer(capsys, "bound", "strong.uai", "--json", "--checkpoint", "c", *OPEN)
    second = answer(
        capsys,
        "bound",
        "strong.uai",
        "--json",
        "--checkpoint",
        "c",
        "--no-exact",
        "--leaves",
        "12",
        "--gap",
        "1e-9",
        "--max-table",
        "4",
    )
    assert second["trace"][: len(first["trace"])] == first["trace"]
    assert second["leaves"] > first["leaves"]
    assert (
        first["lower"] <= second["lower"] <= cz.exact(cz.read("strong.uai")).log_z <= second["upper"] <= first["upper"]
    )


def test_a_checkpoint_that_fails_at_the_end_does_not_lose_the_result(folder, capsys, monkeypatch):
    def full(search: BranchAndBound, path: Path) -> None:
        raise cz.errors.OptionError("checkpoint c: No space left on device")

    monkeypatch.setattr("clampz.bounding.bound.save", full)
    assert run("bound", "grid.uai", "--checkpoint", "c") == 2
    out, err = capsys.readouterr()
    assert "lower" in out
    assert err == "clampz bound: checkpoint c: No space left on device\n"


@pytest.mark.parametrize("options", [(), ("--no-exact", "--gap", "0.3", "--time", "5")])
def test_intervals_for_marginals(options, folder, capsys):
    data = answer(capsys, "bound", "grid.uai", "--json", "--marginals", "3,7", *options)
    exact = cz.exact(cz.read("grid.uai"))
    assert list(data["marginals"]) == ["3", "7"]
    for name, ends in data["marginals"].items():
        assert (np.array(ends["lower"]) <= exact.marginals[int(name)] + EXACT).all()
        assert (np.array(ends["upper"]) >= exact.marginals[int(name)] - EXACT).all()
    assert run("bound", "grid.uai", "--marginals", "3,7", *options) == 0
    out = capsys.readouterr().out
    assert "variable   state" in out
    assert "widest" in out


def test_variables_by_number_name_or_all():
    model = cz.Model([[0.0, 0.0]] * 3, {}, names=["a", "b", "2"])
    assert parse_variables(model, "a, b") == [0, 1]
    assert parse_variables(model, "2,1,a,a") == [2, 1, 0]
    assert parse_variables(model, "all") == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("grid.uai --gap -1", "argument --gap: expected a number >= 0, found '-1'"),
        ("grid.uai --gap nan", "expected a number >= 0, found 'nan'"),
        ("grid.uai --time -1", "argument --time: expected a number >= 0, found '-1'"),
        ("grid.uai --leaves 0", "expected a whole number >= 1, found '0'"),
        ("grid.uai --threads 0", "expected a whole number >= 1, found '0'"),
        ("grid.uai --memory 100B", "memory: expected at least"),
        ("grid.uai --checkpoint other", "checkpoint other: expected one of this model"),
        ("grid.uai --checkpoint some.evid", "checkpoint some.evid: expected a file that bound() left"),
        ("grid.uai --checkpoint nowhere/c", "--checkpoint nowhere/c: there is no directory nowhere"),
        ("grid.uai --checkpoint .", "--checkpoint .: expected a file, found a directory"),
        ("grid.uai --plot nowhere/b.png", "--plot nowhere/b.png: there is no directory nowhere"),
        ("grid.uai --plot b.docx", "--plot b.docx: expected a name that ends in .png, .svg, .pdf"),
        ("grid.uai --out nowhere/r.json", "--out nowhere/r.json: there is no directory nowhere"),
        ("grid.uai --marginals 9", "--marginals 9: unknown variable 9: expected an index from 0 to 8"),
        ("grid.uai --marginals 1,", "--marginals 1,: variable ''"),
        ("grid.uai --marginals 1 --plot b.png", "--plot: expected none with --marginals, found b.png"),
        ("nowhere.uai", "nowhere.uai: no such file"),
        ("grid.uai --evidence nowhere.evid", "nowhere.evid"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, message, folder, capsys):
    cz.bound(cz.read("strong.uai"), checkpoint="other", leaves=2)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert run("bound", *arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("clampz bound: ")
    assert err.count("\n") == 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_ctrl_c_gives_the_bracket_the_checkpoint_and_the_plot(folder, capsys):
    press_ctrl_c(2.0)
    data = answer(capsys, "bound", "wide.uai", "--json", "--checkpoint", "c", "--plot", "b.png", *LONG, code=130)
    assert (data["stopped_by"], data["interrupted"]) == ("interrupt", True)
    assert -math.inf < data["lower"] <= data["upper"] < math.inf
    assert data["why_no_estimate"] if data["estimate"] is None else data["lower"] <= data["estimate"] <= data["upper"]
    assert Path("b.png").read_bytes().startswith(PNG)
    assert answer(capsys, "bound", "wide.uai", "--json", "--checkpoint", "c", "--time", "0")["upper"] <= data["upper"]


def test_ctrl_c_in_the_middle_of_an_exact_sum_gives_the_bracket_before(folder, capsys, monkeypatch):
    def endless(search: BranchAndBound, crew: Any, budget: Any) -> Any:
        search.budget = budget
        search._quick_bounds(1.0, None)
        yield search._bracket("left")
        time.sleep(3)
        yield search._bracket("exact")

    monkeypatch.setattr(BranchAndBound, "run", endless)
    monkeypatch.setattr(live_progress, "GRACE", 0.1)
    press_ctrl_c(0.7)
    data = answer(capsys, "bound", "strong.uai", "--json", code=130)
    assert data["interrupted"]
    assert data["lower"] <= cz.exact(cz.read("strong.uai")).log_z <= data["upper"]


def test_ctrl_c_before_there_is_anything(folder, capsys, monkeypatch):
    def endless(search: BranchAndBound, crew: Any, budget: Any) -> Any:
        time.sleep(2)
        yield

    monkeypatch.setattr(BranchAndBound, "run", endless)
    monkeypatch.setattr(live_progress, "GRACE", 0.1)
    press_ctrl_c(0.4)
    assert run("bound", "strong.uai") == 130
    assert capsys.readouterr() == ("", "clampz bound: stopped before there was anything to show\n")
