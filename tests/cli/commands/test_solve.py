"""`clampz solve`: what it prints and writes, what it refuses, and how it stops."""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading_pages import Page
from running import EXACT, answer, extras_imported_by, press_ctrl_c, run

import clampz as cz
from clampz.cli import exit_codes, live_progress
from clampz.cli.commands import solve
from clampz.io import results
from clampz.solving import solve as solving


def test_solve_draws_what_it_found(folder, capsys):
    pytest.importorskip("matplotlib")
    assert run("solve", "grid.uai", "--plot", "solved.svg", "--json") == 0
    assert "log Z" in Path("solved.svg").read_text(encoding="utf-8")
    capsys.readouterr()
    assert run("solve", "grid.uai", "--event", "0=1", "--plot", "event.png") == 2
    assert "--plot: expected none with --event, found event.png" in capsys.readouterr().err


def test_solve_prints_what_it_found_and_why(folder, capsys):
    assert run("solve", "grid.uai") == 0
    out, err = capsys.readouterr()
    assert err == ""
    exact = cz.exact(cz.read("grid.uai"))
    for text in (f"{exact.log_z:.6f}", "exact", "<= log Z <=", "narrow enough", "9 variables"):
        assert text in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_solve_as_json(folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--task", "MAR", "--evidence", "some.evid")
    exact = cz.exact(cz.read("grid.uai"), evidence={0: 1})
    assert data["log_z"] == pytest.approx(exact.log_z, abs=EXACT)
    assert data["lower"] <= data["log_z"] <= data["upper"]
    assert (data["method"], data["converged"], data["clamped"]) == ("exact", True, [])
    assert data["seconds"] > 0
    np.testing.assert_allclose(data["marginals"], [exact.marginals[i] for i in range(9)], atol=EXACT)
    assert data["marginals_by"] == data["marginals_are"] == "exact"
    assert not {"marginals", "marginals_by"} & set(answer(capsys, "solve", "grid.uai", "--json"))


def test_marginals_say_whose_they_are(folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--task", "MAR", "--method", "bethe", "--clamp", "1")
    assert (data["marginals_by"], data["marginals_are"]) == ("bethe", "Bethe's with 1 variable clamped, converged")
    assert run("solve", "grid.uai", "--task", "MAR", "--method", "mf") == 0
    assert "\nmarginals  mean field's, converged\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "lower", "upper"),
    [("mf", None, "inf"), ("bethe", "-inf", "inf"), ("trw", "-inf", None), ("mini_buckets", None, None)],
)
def test_infinities_are_strings_that_float_understands(method, lower, upper, folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--method", method)
    assert (lower is None) == isinstance(data["lower"], float)
    assert (upper is None) == isinstance(data["upper"], float)
    assert float(data["lower"]) <= data["log_z"] <= float(data["upper"])


def test_z_of_zero_is_valid_json(folder, capsys):
    data = answer(capsys, "solve", "none.uai", "--json", "--task", "MAR")
    assert data["log_z"] == "-inf"
    assert data["marginals"] == [[None, None]] * 3
    assert run("solve", "none.uai", "--out", "none.PR") == 0
    assert results.read_pr("none.PR") == -math.inf
    capsys.readouterr()
    assert run("solve", "none.uai", "--task", "MAR", "--out", "none.MAR") == 2
    assert "Z = 0" in capsys.readouterr().err
    assert not Path("none.MAR").exists()


def test_solve_clamps_as_asked(folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--method", "trw", "--clamp", "2", "--select", "maxW")
    assert (len(data["clamped"]), data["select"], data["bound"]) == (2, "maxW", "upper")
    assert data["log_z"] <= cz.trw(cz.read("grid.uai")).log_z
    assert run("solve", "grid.uai", "--method", "mf", "--clamp", "1") == 0
    assert "1 clamped by maxW+TRE" in capsys.readouterr().out


def test_results_go_to_files(folder, capsys):
    exact = cz.exact(cz.read("grid.uai"))
    for arguments in (
        ["--out", "r.PR"],
        ["--task", "MAR", "--out", "r.MAR"],
        ["--out", "r.json"],
        ["--json", "--out", "r.txt", "--format", "json"],
    ):
        assert run("solve", "grid.uai", *arguments) == 0
        assert bool(capsys.readouterr().out) == ("--json" not in arguments)
    assert results.read_pr("r.PR") == pytest.approx(exact.log_z)
    np.testing.assert_allclose(np.concatenate(results.read_mar("r.MAR")), exact.marginals.flat, atol=EXACT)
    assert (
        json.loads(Path("r.json").read_text())["log_z"]
        == json.loads(Path("r.txt").read_text())["log_z"]
        == pytest.approx(exact.log_z)
    )


def test_marginals_of_many_states_and_names(folder, capsys):
    assert run("solve", "labels.fg", "--task", "MAR") == 0
    out = capsys.readouterr().out
    exact = cz.exact(cz.read("labels.fg"))
    for i in range(5):
        assert "   ".join(f"{p:.6f}" for p in exact.marginals[i]) in out


def test_a_model_too_wide_for_the_memory(folder, capsys):
    assert run("solve", "grid.uai", "--method", "exact", "--memory", "1") == exit_codes.TOO_LARGE
    assert capsys.readouterr().err.startswith("clampz solve: exact inference needs ")
    assert answer(capsys, "solve", "grid.uai", "--memory", "1GB", "--json")["method"] == "exact"
    assert answer(capsys, "solve", "grid.uai", "--memory", "1", "--json")["method"] == "bethe"


def test_solve_needs_neither_matplotlib_nor_rich_for_json(folder):
    assert extras_imported_by("solve", "grid.uai", "--json") == "set()\n"


def test_solve_gives_an_estimate_inside_the_bracket(folder, capsys):
    data = answer(capsys, "solve", "wide.uai", "--json", "--time", "1")
    assert data["lower"] <= data["log_z"] <= data["upper"]
    assert data["leaves"] >= 1
    assert "clamping brackets log Z" in data["reason"]
    assert answer(capsys, "solve", "grid.uai", "--json")["leaves"] is None


def test_ctrl_c_on_solve_gives_what_there_is(folder, capsys, monkeypatch):
    real = solving.solve

    def slow(model: cz.Model, **options: Any) -> cz.results.Solution:
        def wait(progress: cz.results.Progress) -> None:
            time.sleep(0.05)
            options["progress"](progress)

        return real(model, **{**options, "memory": 0, "progress": wait})

    monkeypatch.setattr(solving, "solve", slow)
    press_ctrl_c(0.2)
    assert run("solve", "grid.uai", "--json") == 130
    data = json.loads(capsys.readouterr().out)
    assert data["interrupted"] is True
    assert float(data["lower"]) <= cz.exact(cz.read("grid.uai")).log_z <= float(data["upper"])


def test_ctrl_c_in_the_middle_of_an_exact_sum_gives_bounds(folder, capsys, monkeypatch):
    real = solving.solve

    def endless(model: cz.Model, **options: Any) -> cz.results.Solution:
        if options.get("memory") is None:
            time.sleep(3)
        return real(model, **options)

    monkeypatch.setattr(solving, "solve", endless)
    monkeypatch.setattr(live_progress, "GRACE", 0.1)
    press_ctrl_c(0.2)
    assert run("solve", "grid.uai") == 130
    out = capsys.readouterr().out
    assert "Exact inference was stopped" in out
    assert "stopped by Ctrl-C" in out


def test_solve_given_up_keeps_the_bracket_that_there_was(folder, capsys, monkeypatch):
    real, model = solving.solve, cz.read("strong.uai")
    before = cz.bound(model, exact=False, leaves=40, gap=1e-9)

    def endless(model: cz.Model, **options: Any) -> cz.results.Solution:
        if options.get("memory") is None:
            options["progress"](before)
            time.sleep(3)
        return real(model, **options)

    monkeypatch.setattr(solving, "solve", endless)
    monkeypatch.setattr(live_progress, "GRACE", 0.1)
    press_ctrl_c(0.3)
    data = answer(capsys, "solve", "strong.uai", "--json", code=130)
    assert before.lower <= data["lower"] <= data["log_z"] <= data["upper"] <= before.upper
    assert data["leaves"] == before.num_leaves
    assert data["seconds"] > 0.3
    assert "stopped while it closed the bracket" in data["reason"]


def test_marginals_fit_the_terminal(folder, capsys, monkeypatch):
    for width, columns in ((30, ["P(0)", "..."]), (40, ["P(0)", "P(1)", "..."]), (80, ["P(0)", "P(1)", "P(2)"])):
        monkeypatch.setattr(solve, "terminal_width", lambda width=width: width)
        assert run("solve", "labels.fg", "--task", "MAR") == 0
        (head,) = (line for line in capsys.readouterr().out.splitlines() if "variable " in line and "P(0)" in line)
        assert head.split() == ["variable", *columns]
        assert len(head) <= width


def test_a_report_is_written_with_marginals_and_the_graph(folder, capsys):
    assert run("solve", "grid.uai", "--report", "grid.html") == 0
    assert "log Z" in capsys.readouterr().out
    page = Page(Path("grid.html").read_text(encoding="utf-8"))
    page.check()
    assert page.text.strip().startswith("log Z of grid.uai")
    assert "Exact." in page.text.split("Marginals")[-1]
    assert len(page.images) == 1
    data = answer(capsys, "solve", "grid.uai", "--report", "grid.html", "--json")
    assert "marginals" not in data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "nowhere/r.html"], "--report nowhere/r.html: there is no directory nowhere"),
        (["--report", "r.txt"], "--report r.txt: expected a name that ends in .html, .htm, found '.txt'"),
        (["--report", "."], "--report .: expected a file, found a directory"),
        (["--report", "r.html", "--task", "MPE"], "it is about log Z and marginals, and there is none with --task MPE"),
        (["--report", "r.html", "--event", "0=1"], "there is none with --event"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_work_begins(options, message, folder, capsys, monkeypatch):
    monkeypatch.setattr("clampz.cli.arguments.read_model", lambda args: pytest.fail("work has begun"))
    assert run("solve", "grid.uai", *options) == 2
    assert message in capsys.readouterr().err


def test_a_report_needs_matplotlib(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("solve", "grid.uai", "--report", "r.html") == 2
    assert "matplotlib is not installed: pip install 'clampz[cli]'" in capsys.readouterr().err
    assert not Path("r.html").exists()


def test_a_disk_that_is_full_leaves_the_report_that_was_there(folder, capsys, monkeypatch):
    Path("r.html").write_text("before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run("solve", "grid.uai", "--report", "r.html") == 2
    assert "r.html: cannot be written: No space left on device" in capsys.readouterr().err
    assert Path("r.html").read_text() == "before"
