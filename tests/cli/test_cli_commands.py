"""The commands as people and programs use them: what they print and write, what they refuse, and how they stop."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clampz as cz
from clampz import choosing, cli
from clampz.cli import common, plot
from clampz.cli.common import GivenUpError, Listener, watched, with_negative_values
from clampz.cli.solve import SELECTORS
from clampz.io import results

EXACT = 1e-9
COMMANDS = ("solve", "bound", "info", "scores", "plot", "convert", "generate", "uai", "demo", "paper", "completion")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a few models."""
    monkeypatch.chdir(tmp_path)
    cz.write(cz.generators.grid(3, 3, rng=0), "grid.uai")
    cz.write(cz.generators.cycle(5, labels=3, potentials="table", rng=0), "labels.fg")
    Path("some.evid").write_text("1 0 1\n")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(*arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


# -- solve ------------------------------------------------------------------------------------------------------------------------


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
    assert "marginals" not in answer(capsys, "solve", "grid.uai", "--json")


@pytest.mark.parametrize(
    ("method", "lower", "upper"), [("mf", None, "inf"), ("bethe", "-inf", "inf"), ("trw", "-inf", None)]
)
def test_infinities_are_strings_that_float_understands(method, lower, upper, folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--method", method)
    assert (lower is None) == isinstance(data["lower"], float)
    assert (upper is None) == isinstance(data["upper"], float)
    assert float(data["lower"]) <= data["log_z"] <= float(data["upper"])


def test_z_of_zero_is_valid_json(folder, capsys):
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    cz.write(cz.Model([np.zeros(2)] * 3, {(0, 1): differ, (1, 2): differ, (0, 2): differ}), "none.uai")
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
        ["--json", "--out", "r.txt"],
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
    assert run("solve", "grid.uai", "--method", "exact", "--memory", "1e-9") == common.TOO_LARGE
    assert capsys.readouterr().err.startswith("clampz solve: exact inference needs ")
    assert answer(capsys, "solve", "grid.uai", "--memory", "1e-9", "--json")["method"] == "bethe"


def test_solve_needs_neither_matplotlib_nor_rich_for_json(folder):
    code = "import sys; from clampz.cli import main; main(['solve', 'grid.uai', '--json']); print({'rich', 'matplotlib'} & set(sys.modules), file=sys.stderr)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == "set()\n"


# -- the other commands -----------------------------------------------------------------------------------------------------------


def test_info(folder, capsys):
    assert run("info", "grid.uai") == 0
    out = capsys.readouterr().out
    for text in ("9 variables on or between cycles", "mixed", "mean field", "table entries", "sweeps"):
        assert text in out
    data = answer(capsys, "info", "grid.uai", "--json")
    assert (data["variables"], data["labels"], data["edges"], data["components"], data["core"], data["kind"]) == (
        9,
        [2, 2],
        18,
        1,
        9,
        "mixed",
    )
    assert data["zeros"] == 0
    assert set(data["cost"]) == {"exact", "mean_field", "bethe", "trw"}
    assert answer(capsys, "info", "grid.uai", "--json", "--evidence", "some.evid")["fixed"] == 1
    assert answer(capsys, "info", "labels.fg", "--json")["kind"] is None


def test_info_on_larger_factors(folder, capsys):
    table = np.log([[[1, 0.5], [1, 1]], [[1, 1], [1, 1.5]]])
    cz.write(cz.Model.from_factors([2] * 4, [((0, 1, 2), table), ((2, 3), [[0, -np.inf], [0, 0]])]), "factors.uai")
    data = answer(capsys, "info", "factors.uai", "--json")
    assert (data["larger_factors"], data["zeros"], data["core"], data["components"]) == ({"3": 1}, 1, 3, 1)
    assert run("info", "factors.uai") == 0
    assert "1 of 3 variables" in capsys.readouterr().out


def test_scores(folder, capsys):
    assert run("scores", "grid.uai") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in cz.selectors())
    ranked = answer(capsys, "scores", "grid.uai", "--select", "maxW", "--json")["scores"]["maxW"]
    assert int(ranked[0][0]) == cz.scores(cz.read("grid.uai"), "maxW").argmax()
    assert run("scores", "labels.fg") == 0
    assert "Not defined for this model" in capsys.readouterr().out
    assert run("scores", "labels.fg", "--select", "frustCycles") == 2


@pytest.mark.parametrize("options", [[], ["--clamp", "2"], ["--shade", "marginals"], ["--shade", "maxW", "--names"]])
def test_plot(options, folder, capsys):
    assert run("plot", "grid.uai", "-o", "grid.png", *options) == 0
    assert Path("grid.png").read_bytes().startswith(PNG)
    assert capsys.readouterr() == ("", "")


def test_convert_there_and_back(folder):
    assert run("convert", "grid.uai", "grid.fg.gz") == 0
    assert run("convert", "grid.fg.gz", "again.uai") == 0
    assert cz.exact(cz.read("again.uai")).log_z == pytest.approx(cz.exact(cz.read("grid.uai")).log_z)
    assert run("convert", "grid.uai", "known.uai", "--evidence", "some.evid") == 0
    assert cz.exact(cz.read("known.uai")).log_z == pytest.approx(cz.exact(cz.read("grid.uai"), evidence={0: 1}).log_z)


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ("grid --size 4 --weights -6,6 --theta -2,2", lambda: cz.generators.grid(4, 4, rng=1)),
        (
            "grid --size=3x5 --planar --weights=-1,2",
            lambda: cz.generators.grid(3, 5, toroidal=False, weights=(-1, 2), rng=1),
        ),
        ("er --size 12 --degree 3", lambda: cz.generators.erdos_renyi(12, 3, rng=1)),
        ("regular --size 10 --degree 3", lambda: cz.generators.regular(10, 3, rng=1)),
        (
            "complete --size 5 --labels 3 --potentials table",
            lambda: cz.generators.complete(5, labels=3, potentials="table", rng=1),
        ),
        ("cycle --size 5 --weights -3 --theta 0", lambda: cz.generators.cycle(5, theta=0, weights=-3.0, rng=1)),
        ("lamp", lambda: cz.generators.lamp(rng=1)),
        ("barbell --weights 4", lambda: cz.generators.barbell(4.0, rng=1)),
    ],
)
def test_generate(arguments, made, folder):
    assert run("generate", *arguments.split(), "--seed", "1", "-o", "made.uai") == 0
    np.testing.assert_array_equal(cz.read("made.uai").edges, made().edges)
    assert cz.exact(cz.read("made.uai")).log_z == pytest.approx(cz.exact(made()).log_z)


def test_negative_values_need_no_equals_sign():
    assert with_negative_values(["--weights", "-6,6", "--size", "3", "-o", "-6"]) == [
        "--weights=-6,6",
        "--size",
        "3",
        "-o",
        "-6",
    ]
    assert with_negative_values(["--weights=-6,6", "-1"]) == ["--weights=-6,6", "-1"]
    assert with_negative_values(["--json", "--out", "-.5", "--", "-5"]) == ["--json", "--out=-.5", "--", "-5"]


def test_the_competitions_calling_convention(folder, capsys, monkeypatch):
    (folder / "nets").mkdir()
    shutil.move("grid.uai", "nets/grid.uai")
    assert run("uai", "nets/grid.uai", "some.evid", "no.query", "PR") == 0
    model = cz.read("nets/grid.uai")
    assert results.read_pr("grid.uai.PR") == pytest.approx(cz.exact(model, evidence={0: 1}).log_z)
    monkeypatch.setenv("INF_TIME", "10")
    monkeypatch.setenv("INF_MEMORY", "1")
    assert run("uai", "nets/grid.uai", "-", "-", "MAR") == 0
    np.testing.assert_allclose(
        np.concatenate(results.read_mar("grid.uai.MAR")), cz.exact(model).marginals.flat, atol=EXACT
    )
    assert capsys.readouterr().out.count("\n") == 2
    monkeypatch.setenv("INF_TIME", "soon")
    assert run("uai", "nets/grid.uai", "-", "-", "PR") == 2
    assert "INF_TIME: expected seconds > 0" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_option_and_selector(shell, capsys, tmp_path):
    assert run("completion", shell) == 0
    script = capsys.readouterr().out
    for text in (*COMMANDS, *SELECTORS, "evidence", "pseudo-greedy"):
        assert text in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["clampz", "sol"], {"solve"}),
        (["clampz", "solve", "--met"], {"--method"}),
        (["clampz", "solve", "--method", "b"], {"bethe"}),
        (["clampz", "generate", "gr"], {"grid"}),
        (["clampz", "solve", "--evidence", ""], set()),  # files: left to the shell
    ],
)
def test_bash_completes(words, expected, capsys):
    run("completion", "bash")
    quoted = " ".join(f"'{word}'" for word in words)
    script = f'{capsys.readouterr().out}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _clampz; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_output_without_unicode(folder):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "clampz", "info", "grid.uai"], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- help and errors ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as ending:
        run(command, "--help")
    assert ending.value.code == 0
    out = capsys.readouterr().out
    assert f"examples:\n  {'eval' if command == 'completion' else f'clampz {command}'}" in out


def test_exit_codes_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    out = capsys.readouterr().out
    for code in (common.OK, common.CUT_OFF, common.BAD_INPUT, common.TOO_LARGE, common.INTERRUPTED):
        assert f"\n  {code}  " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("solve cut.uai", "clampz solve: cut.uai, line "),
        ("solve negative.uai", "negative.uai, line 7, factor 0: expected"),
        ("solve empty.uai", "empty.uai, line 1: expected"),
        ("solve binary.uai", "binary.uai, line 1: expected"),
        ("solve .", "clampz solve: .: "),
        ("solve nowhere.uai", "nowhere.uai: no such file"),
        ("solve some.evid", "expected a file name that ends in .uai"),
        ("solve grid.uai --evidence bad.evid", "bad.evid, line 1: expected a variable from 0 to 8, found 99"),
        ("solve grid.uai --out nowhere/r.json", "--out nowhere/r.json: there is no directory nowhere"),
        ("solve grid.uai --out .", "--out .: expected a file, found a directory"),
        ("solve grid.uai --clamp 10", "--clamp 10: expected at most 9"),
        ("solve grid.uai --clamp -1", "expected a whole number >= 0, found '-1'"),
        ("solve grid.uai --time 0", "expected a number > 0, found '0'"),
        ("solve grid.uai --method nope", "invalid choice: 'nope'"),
        ("solve", "required: MODEL"),
        ("nope", "invalid choice: 'nope'"),
        ("info nowhere.uai", "clampz info: nowhere.uai: no such file"),
        ("scores nowhere.uai", "clampz scores: nowhere.uai: no such file"),
        ("plot grid.uai -o x.docx", "expected a name that ends in .png, .svg, .pdf"),
        ("convert grid.uai x.docx", "expected a file name that ends in .uai"),
        ("convert grid.uai nowhere/x.uai", "there is no directory nowhere"),
        ("generate grid -o x.uai", "--size: expected how large the grid is to be"),
        ("generate grid --size 0 -o x.uai", "--size: expected a whole number >= 1"),
        ("generate cycle --size 4x4 -o x.uai", "--size: expected a whole number >= 1, found '4x4'"),
        ("generate lamp --size 3 -o x.uai", "--size: lamp has no such option"),
        ("generate grid --size 3 --weights 6,-6 -o x.uai", "weights: expected"),
        ("generate grid --size 3 --weights a -o x.uai", "expected a number or two, as in -6,6"),
        ("generate barbell --weights 1,2 -o x.uai", "barbell has one weight"),
        ("generate regular --size 5 --degree 3 -o x.uai", "expected n * degree to be even"),
        ("uai grid.uai - - MPE", "invalid choice: 'MPE'"),
        ("uai grid.uai bad.evid - PR", "bad.evid, line 1"),
        ("completion tcsh", "invalid choice: 'tcsh'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, message, folder, capsys):
    (folder / "cut.uai").write_bytes((folder / "grid.uai").read_bytes()[:60])
    (folder / "negative.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 -3 4\n")
    (folder / "empty.uai").touch()
    (folder / "binary.uai").write_bytes(bytes(range(256)))
    (folder / "bad.evid").write_text("1 99 0")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    try:
        code = run(*arguments.split())
    except SystemExit as ending:
        code = ending.code  # type: ignore[assignment]
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("clampz")
    assert err.count("\n") == 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_an_unwritable_folder_is_refused_before_computing(folder, capsys, monkeypatch):
    (folder / "closed").mkdir(mode=0o500)
    monkeypatch.setattr(choosing, "solve", lambda *args, **options: pytest.fail("computed"))
    assert run("solve", "grid.uai", "--out", "closed/r.json") == 2
    assert "no permission to write there" in capsys.readouterr().err


# -- Ctrl-C ---------------------------------------------------------------------------------------------------------------------------


def press_ctrl_c(after: float) -> None:
    import threading

    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_work_with_what_it_has():
    def work(listener: Listener) -> int:
        progress = cz.Progress(
            method="trw", num_iter=1, residual=1.0, log_z=0.0, num_lanes=2, num_finished=0, seconds=0.0
        )
        for step in range(1000):
            try:
                listener(progress)
            except StopIteration:
                return step
            time.sleep(0.01)
        return -1

    press_ctrl_c(0.3)
    steps, interrupted = watched(work, "working")
    assert interrupted
    assert 0 < steps < 1000


def test_work_that_does_not_stop_is_given_up(monkeypatch):
    monkeypatch.setattr(common, "GRACE", 0.2)
    press_ctrl_c(0.2)
    began = time.perf_counter()
    with pytest.raises(GivenUpError):
        watched(lambda listener: time.sleep(3), "sleeping")
    assert time.perf_counter() - began < 2


def test_ctrl_c_on_a_picture_leaves_none(folder, capsys, monkeypatch):
    def slow(model: cz.Model, *args: Any) -> None:
        time.sleep(0.5)

    monkeypatch.setattr(plot, "draw", slow)
    press_ctrl_c(0.2)
    assert run("plot", "grid.uai", "-o", "grid.png") == 130
    assert not Path("grid.png").exists()
    assert capsys.readouterr() == ("", "")


def test_errors_of_work_are_raised():
    def broken(listener: Listener) -> None:
        raise cz.ModelError("no good")

    with pytest.raises(cz.ModelError, match="no good"):
        watched(broken, "working")


def test_ctrl_c_on_solve_gives_what_there_is(folder, capsys, monkeypatch):
    real = choosing.solve

    def slow(model: cz.Model, **options: Any) -> choosing.Solution:
        def wait(progress: cz.Progress) -> None:
            time.sleep(0.05)
            options["progress"](progress)

        return real(model, **{**options, "memory": 0, "progress": wait})

    monkeypatch.setattr(choosing, "solve", slow)
    press_ctrl_c(0.2)
    assert run("solve", "grid.uai", "--json") == 130
    data = json.loads(capsys.readouterr().out)
    assert data["interrupted"] is True
    assert float(data["lower"]) <= cz.exact(cz.read("grid.uai")).log_z <= float(data["upper"])


def test_ctrl_c_in_the_middle_of_an_exact_sum_gives_bounds(folder, capsys, monkeypatch):
    real = choosing.solve

    def endless(model: cz.Model, **options: Any) -> choosing.Solution:
        if options.get("memory") is None:
            time.sleep(3)
        return real(model, **options)

    monkeypatch.setattr(choosing, "solve", endless)
    monkeypatch.setattr(common, "GRACE", 0.1)
    press_ctrl_c(0.2)
    assert run("solve", "grid.uai") == 130
    out = capsys.readouterr().out
    assert "Exact inference was stopped" in out
    assert "stopped by Ctrl-C" in out


def test_progress_is_a_line_of_words():
    listener = Listener()
    assert listener.text("solving", 3.2) == "solving · 3 s, Ctrl-C stops"
    listener(
        cz.Progress(
            method="mean_field", num_iter=1200, residual=0.25, log_z=1.0, num_lanes=8, num_finished=3, seconds=1.0
        )
    )
    assert (
        listener.text("solving", 3.2)
        == "solving · mean field, 1,200 sweeps · 3 of 8 lanes done · 0.25 nats left to settle · 3 s, Ctrl-C stops"
    )
