"""`clampz bound` and the bracket in `clampz solve`: what they print, write and draw, what they refuse, and how they
stop."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clampz as cz
from clampz import choosing, cli
from clampz.bracketing.search import Search
from clampz.cli import bound, common
from clampz.cli.bound import Closing, digits_for, named, rounded_up
from clampz.cli.common import Listener

EXACT = 1e-9
PNG = b"\x89PNG\r\n\x1a\n"
# A run that ends at once with a bracket that is open, and one that would go on for long.
OPEN = ("--no-exact", "--leaves", "6", "--gap", "1e-9")
LONG = ("--no-exact", "--gap", "0", "--time", "60")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a few models."""
    monkeypatch.chdir(tmp_path)
    cz.write(cz.generators.grid(3, 3, rng=0), "grid.uai")
    cz.write(cz.generators.complete(9, weights=(-8, 8), rng=0), "strong.uai")
    cz.write(cz.generators.grid(14, 14, weights=(-6, 6), rng=0), "wide.uai")
    Path("some.evid").write_text("1 0 1\n")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run(*arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def table(text: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in text.splitlines() if line[:12].strip()}


def press_ctrl_c(after: float) -> None:
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


# -- what comes out -----------------------------------------------------------------------------------------------------------------


def test_a_table_of_the_bracket_and_nothing_else(folder, capsys):
    assert run("bound", "strong.uai", *OPEN) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = table(out)
    assert list(found) == ["model", "lower", "upper", "gap", "estimate", "leaves", "seconds", "stopped by"]
    exact = cz.exact(cz.read("strong.uai")).log_z
    assert float(found["lower"]) <= exact <= float(found["upper"])
    assert found["stopped by"] == "leaves"
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


def test_limits_reach_the_search(folder, capsys):
    data = answer(capsys, "bound", "wide.uai", "--json", "--time", "0.3", "--memory", "50MB", "--threads", "1")
    assert data["stopped_by"] == "time"
    assert data["seconds"] < 0.3 * 1.1 + 0.5
    assert answer(capsys, "bound", "strong.uai", "--json", "--no-exact", "--gap", "5")["stopped_by"] == "gap"
    assert answer(capsys, "bound", "strong.uai", "--json", "--no-exact", "--time", "0")["stopped_by"] == "time"


def test_z_of_zero(folder, capsys):
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    cz.write(cz.Model([np.zeros(2)] * 3, {(0, 1): differ, (1, 2): differ, (0, 2): differ}), "none.uai")
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
    code = "import sys; from clampz.cli import main; main(['bound', 'grid.uai', '--json']); print({'rich', 'matplotlib'} & set(sys.modules), file=sys.stderr)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == "set()\n"


def test_a_checkpoint_is_gone_on_from(folder, capsys):
    first = answer(capsys, "bound", "strong.uai", "--json", "--checkpoint", "c", *OPEN)
    second = answer(
        capsys, "bound", "strong.uai", "--json", "--checkpoint", "c", "--no-exact", "--leaves", "12", "--gap", "1e-9"
    )
    assert second["trace"][: len(first["trace"])] == first["trace"]
    assert second["leaves"] > first["leaves"]
    assert (
        first["lower"] <= second["lower"] <= cz.exact(cz.read("strong.uai")).log_z <= second["upper"] <= first["upper"]
    )


def test_a_checkpoint_that_fails_at_the_end_does_not_lose_the_result(folder, capsys, monkeypatch):
    def full(search: Search, path: Path) -> None:
        raise cz.OptionError("checkpoint c: No space left on device")

    monkeypatch.setattr("clampz.bracketing.checkpoints.save", full)
    assert run("bound", "grid.uai", "--checkpoint", "c") == 2
    out, err = capsys.readouterr()
    assert "lower" in out
    assert err == "clampz bound: checkpoint c: No space left on device\n"


# -- marginals ----------------------------------------------------------------------------------------------------------------------


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
    assert named(model, "a, b") == [0, 1]
    assert named(model, "2,1,a,a") == [2, 1, 0]
    assert named(model, "all") == [0, 1, 2]


# -- numbers ------------------------------------------------------------------------------------------------------------------------


def a_bracket(lower: float, upper: float) -> cz.Bracket:
    found = cz.bound(cz.generators.cycle(3, rng=0))
    return replace(found, lower=lower, upper=upper, estimate=(lower + upper) / 2)


def test_printed_bounds_hold():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower = float(rng.normal() * 10.0 ** rng.integers(0, 6))
        bracket = a_bracket(lower, lower + float(10.0 ** rng.uniform(-11, 3)))
        rows = dict(bound.ends(bracket))
        assert float(rows["lower"]) <= bracket.lower <= bracket.upper <= float(rows["upper"])
        assert float(rows["gap"].removesuffix(" nats")) >= bracket.gap * (1 - 1e-9)


def test_decimals_grow_as_the_gap_closes():
    assert [digits_for(a_bracket(500.0, 500.0 + gap)) for gap in (0.0, 10.0, 2e-6, 2e-9, 2e-12)] == [6, 6, 7, 10, 11]
    assert digits_for(a_bracket(-math.inf, 0.0)) == 6
    assert [rounded_up(gap) for gap in (0.0, math.inf, 1.0, 0.0123401, 99.91)] == ["0", "inf", "1", "0.0124", "100"]


def test_the_live_display():
    from io import StringIO

    from rich.console import Console

    closing = Closing(cz.BoundOptions(gap=0.01, time=60))
    closing._began -= 3
    texts = []
    for bracket in (None, cz.bound(cz.generators.complete(8, weights=(-8, 8), rng=0), exact=False, leaves=4)):
        closing.latest = bracket
        text = StringIO()
        Console(file=text, width=60).print(closing)
        texts.append(text.getvalue())
    assert "3 of 60, Ctrl-C stops" in texts[0]
    for name in ("lower", "upper", "gap", "estimate", "closed", "leaves", "seconds"):
        assert name in texts[1]
    first, last = replace(bracket, trace=bracket.trace[:1]), replace(bracket, lower=bracket.upper)
    assert 0 <= closing.share_closed(first) <= closing.share_closed(bracket) < closing.share_closed(last) == 1
    closing.ask_to_stop()
    assert closing.stop


# -- bad input ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("grid.uai --gap -1", "argument --gap: expected a number >= 0, found '-1'"),
        ("grid.uai --gap nan", "expected a number >= 0, found 'nan'"),
        ("grid.uai --time -1", "argument --time: expected a number >= 0, found '-1'"),
        ("grid.uai --leaves 0", "expected a whole number >= 1, found '0'"),
        ("grid.uai --threads 0", "expected a whole number >= 1, found '0'"),
        ("grid.uai --memory much", "memory: expected bytes, or text such as"),
        ("grid.uai --memory 100B", "memory: expected at least"),
        ("grid.uai --checkpoint other", "checkpoint other: expected one of this model"),
        ("grid.uai --checkpoint some.evid", "checkpoint some.evid: expected a file that bound() left"),
        ("grid.uai --checkpoint nowhere/c", "--checkpoint nowhere/c: there is no directory nowhere"),
        ("grid.uai --checkpoint .", "--checkpoint .: expected a file, found a directory"),
        ("grid.uai --plot nowhere/b.png", "--plot nowhere/b.png: there is no directory nowhere"),
        ("grid.uai --plot b.docx", "--plot b.docx: expected a name that ends in .png, .svg, .pdf"),
        ("grid.uai --out nowhere/r.json", "--out nowhere/r.json: there is no directory nowhere"),
        ("grid.uai --marginals 9", "--marginals 9: expected variables from 0 to 8 or their names, found '9'"),
        ("grid.uai --marginals 1,", "found ''"),
        ("grid.uai --marginals 1 --plot b.png", "--plot: expected none with --marginals, found b.png"),
        ("nowhere.uai", "nowhere.uai: no such file"),
        ("grid.uai --evidence nowhere.evid", "nowhere.evid"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, message, folder, capsys):
    cz.bound(cz.read("strong.uai"), checkpoint="other", leaves=2)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    try:
        code = run("bound", *arguments.split())
    except SystemExit as ending:
        code = ending.code  # type: ignore[assignment]
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("clampz bound: ")
    assert err.count("\n") == 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


# -- Ctrl-C ---------------------------------------------------------------------------------------------------------------------------


def test_ctrl_c_gives_the_bracket_the_checkpoint_and_the_plot(folder, capsys):
    press_ctrl_c(2.0)
    data = answer(capsys, "bound", "wide.uai", "--json", "--checkpoint", "c", "--plot", "b.png", *LONG, code=130)
    assert (data["stopped_by"], data["interrupted"]) == ("interrupt", True)
    assert -math.inf < data["lower"] <= data["estimate"] <= data["upper"] < math.inf
    assert data["seconds"] < 10
    assert Path("b.png").read_bytes().startswith(PNG)
    assert answer(capsys, "bound", "wide.uai", "--json", "--checkpoint", "c", "--time", "0")["upper"] <= data["upper"]


def test_ctrl_c_in_the_middle_of_an_exact_sum_gives_the_bracket_before(folder, capsys, monkeypatch):
    def endless(search: Search, crew: Any, watch: Any) -> Any:
        search.watch = watch
        search._quick_bounds()
        yield search._bracket("left")
        time.sleep(3)
        yield search._bracket("exact")

    monkeypatch.setattr(Search, "run", endless)
    monkeypatch.setattr(common, "GRACE", 0.1)
    press_ctrl_c(0.7)
    data = answer(capsys, "bound", "strong.uai", "--json", code=130)
    assert data["interrupted"]
    assert data["lower"] <= cz.exact(cz.read("strong.uai")).log_z <= data["upper"]


def test_ctrl_c_before_there_is_anything(folder, capsys, monkeypatch):
    def endless(search: Search, crew: Any, watch: Any) -> Any:
        time.sleep(2)
        yield

    monkeypatch.setattr(Search, "run", endless)
    monkeypatch.setattr(common, "GRACE", 0.1)
    press_ctrl_c(0.4)
    assert run("bound", "strong.uai") == 130
    assert capsys.readouterr() == ("", "clampz bound: stopped before there was anything to show\n")


# -- solve ------------------------------------------------------------------------------------------------------------------------------


def test_solve_gives_an_estimate_inside_the_bracket(folder, capsys):
    data = answer(capsys, "solve", "wide.uai", "--json", "--time", "1")
    assert data["lower"] <= data["log_z"] <= data["upper"]
    assert data["leaves"] >= 1
    assert "clamping brackets log Z" in data["reason"]
    assert answer(capsys, "solve", "grid.uai", "--json")["leaves"] is None


def test_progress_of_a_bracket_is_a_line_of_words():
    listener = Listener()
    listener(replace(a_bracket(1.0001, 3.5), num_leaves=1200))
    assert (
        listener.text("solving", 3.2)
        == "solving · log Z in [1.000, 3.500] · gap 2.5 nats · 1,200 leaves · 3 s, Ctrl-C stops"
    )


def test_solve_given_up_keeps_the_bracket_that_there_was(folder, capsys, monkeypatch):
    real, model = choosing.solve, cz.read("strong.uai")
    before = cz.bound(model, exact=False, leaves=40, gap=1e-9)

    def endless(model: cz.Model, **options: Any) -> choosing.Solution:
        if options.get("memory") is None:
            options["progress"](before)
            time.sleep(3)
        return real(model, **options)

    monkeypatch.setattr(choosing, "solve", endless)
    monkeypatch.setattr(common, "GRACE", 0.1)
    press_ctrl_c(0.3)
    data = answer(capsys, "solve", "strong.uai", "--json", code=130)
    assert before.lower <= data["lower"] <= data["log_z"] <= data["upper"] <= before.upper
    assert data["leaves"] == before.num_leaves
    assert data["seconds"] > 0.3
    assert "stopped while it closed the bracket" in data["reason"]
