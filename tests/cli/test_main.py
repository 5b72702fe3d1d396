"""The command line as a whole: help, exit codes, errors of one line, and what is imported."""

import os
import signal
import subprocess
import sys

import pytest
from running import run

import clampz as cz
from clampz import cli
from clampz.cli import exit_codes
from clampz.cli.commands import demo

COMMANDS = (
    "solve",
    "bound",
    "sample",
    "sweep",
    "info",
    "scores",
    "plot",
    "convert",
    "generate",
    "uai",
    "demo",
    "completion",
)
# Those that can be held to some memory.
MEASURED = ("solve grid.uai", "bound grid.uai", "info grid.uai", "uai grid.uai - - PR")


def test_errors_of_the_library_are_one_line(tmp_path, monkeypatch, capsys):
    def broken() -> None:
        raise cz.errors.FormatError("model.uai, line 3: expected a number")

    monkeypatch.setattr(demo, "demo_model", broken)
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 2
    assert capsys.readouterr().err == "clampz demo: model.uai, line 3: expected a number\n"


def test_version_and_help(capsys):
    for arguments in (["--version"], ["--help"], ["demo", "--help"]):
        assert run(*arguments) == 0
    assert capsys.readouterr().out.startswith(f"clampz {cz.__version__}\n")


def test_no_command_and_an_unknown_one_are_bad_input(capsys):
    assert run() == 2
    assert "demo" in capsys.readouterr().err
    assert run("dmo") == 2


def test_where_the_reproduction_went_is_said_in_one_line(capsys):
    assert run("paper", "--quick") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and "python -m reproduction" in err
    run("--help")
    assert "\n    paper" not in capsys.readouterr().out


def test_extras_are_imported_only_when_used():
    code = (
        "import sys, clampz.cli, clampz.plotting; clampz.cli.make_parser(); "
        "print({'rich', 'matplotlib', 'shtab'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_output_without_unicode(folder):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "clampz", "info", "grid.uai"], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [True, False])
def test_ctrl_c_while_it_is_still_imported_ends_the_command_quietly(command, tmp_path):
    slow = "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"
    (tmp_path / "numba.py").write_text(slow)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    arguments = ["-m", "clampz", "info", "grid.uai"] if command else ["-c", "import clampz"]
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    # programs that import clampz hear Ctrl-C as ever
    assert (process.returncode == exit_codes.INTERRUPTED, err == "", "KeyboardInterrupt" in err) == (
        command,
        command,
        not command,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    assert run(command, "--help") == 0
    out = capsys.readouterr().out
    assert f"examples:\n  {'eval' if command == 'completion' else f'clampz {command}'}" in out


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_help_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(*command, "--help") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_exit_codes_are_in_the_help(capsys):
    assert run("--help") == 0
    out = capsys.readouterr().out
    for code in (exit_codes.OK, exit_codes.CUT_OFF, exit_codes.BAD_INPUT, exit_codes.TOO_LARGE, exit_codes.INTERRUPTED):
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
        *(
            (
                f"{command} --memory {wrong}",
                f"argument --memory: expected a size such as 2GB or 500MB, or a number of bytes, found '{wrong}'",
            )
            for command in MEASURED
            for wrong in ("much", "1.5.GB", "-1", "nan")
        ),
        ("solve grid.uai --method nope", "invalid choice: 'nope'"),
        ("solve", "required: MODEL"),
        ("nope", "invalid choice: 'nope'"),
        ("info nowhere.uai", "clampz info: nowhere.uai: no such file"),
        ("scores nowhere.uai", "clampz scores: nowhere.uai: no such file"),
        ("plot grid.uai -o x.docx", "expected a name that ends in .png, .svg, .pdf"),
        ("convert grid.uai x.docx", "expected a name that ends in .uai, .fg, .json, .npz, found '.docx'"),
        ("convert grid.uai nowhere/x.uai", "there is no directory nowhere"),
        ("generate grid -o x.uai", "--size: expected how large the grid is to be"),
        ("generate grid --size 0 -o x.uai", "--size: expected a whole number >= 1"),
        ("generate cycle --size 4x4 -o x.uai", "--size: expected a whole number >= 1, found '4x4'"),
        ("generate lamp --size 3 -o x.uai", "--size: lamp has no such option"),
        ("generate grid --size 3 --weights 6,-6 -o x.uai", "weights: expected"),
        ("generate grid --size 3 --weights a -o x.uai", "expected a number or two, as in -6,6"),
        ("generate barbell --weights 1,2 -o x.uai", "barbell has one weight"),
        ("generate regular --size 5 --degree 3 -o x.uai", "expected n * degree to be even"),
        ("uai grid.uai - - MMAP", "invalid choice: 'MMAP'"),
        ("uai grid.uai bad.evid - PR", "bad.evid, line 1"),
        ("completion csh", "invalid choice: 'csh'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, message, folder, capsys):
    (folder / "cut.uai").write_bytes((folder / "grid.uai").read_bytes()[:60])
    (folder / "negative.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 -3 4\n")
    (folder / "empty.uai").touch()
    (folder / "binary.uai").write_bytes(bytes(range(256)))
    (folder / "bad.evid").write_text("1 99 0")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert run(*arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("clampz")
    assert err.count("\n") == 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
