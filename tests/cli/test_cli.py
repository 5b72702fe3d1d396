"""The command line: what it prints, what it writes, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clampz as cz
from clampz import cli
from clampz.cli import demo

PNG = b"\x89PNG\r\n\x1a\n"
ROUNDING = 1e-12


@pytest.fixture(scope="module")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, str, Path]:
    """One demo with its output to a pipe, over a file that is there already: (exit code, stdout, stderr, picture)."""
    picture = tmp_path_factory.mktemp("demo") / "picture.png"
    picture.write_text("old")
    done = subprocess.run(
        [sys.executable, "-m", "clampz", "demo", "--out", str(picture)], capture_output=True, text=True, timeout=600
    )
    return done.returncode, done.stdout, done.stderr, picture


def test_demo_prints_plain_text_to_a_pipe(finished_demo):
    code, out, err, picture = finished_demo
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80 or len(str(picture)) > 60
    for label in (
        "exact",
        "mean field",
        "Bethe",
        "TRW optimized",
        "TRW uniform",
        "lower bound",
        "upper bound",
        "estimate",
    ):
        assert label in out
    assert out.endswith(f"Picture: {picture}\n")


def test_demo_bracket_holds(finished_demo):
    line = next(line for line in finished_demo[1].splitlines() if "<= log Z <=" in line)
    lower, upper = line.split(",")[0].split(" <= log Z <= ")
    assert float(lower) < cz.exact(demo.demo_model()).log_z < float(upper)


def test_demo_writes_the_picture_over_the_old_one(finished_demo):
    picture = finished_demo[3]
    assert picture.read_bytes().startswith(PNG)
    assert list(picture.parent.iterdir()) == [picture]


def test_the_demo_model_is_what_the_comment_says():
    made, bundled = cz.generators.grid(7, 7, toroidal=False, rng=0).binary, demo.demo_model().binary
    np.testing.assert_allclose(bundled.theta, made.theta, atol=ROUNDING)
    np.testing.assert_allclose(bundled.W, made.W, atol=ROUNDING)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere/picture.png", "there is no directory"),
        (".", "found a directory"),
        ("picture.docx", "expected a name that ends in .png, .svg, .pdf, found '.docx'"),
        ("picture", "found 'no suffix'"),
    ],
)
def test_a_bad_place_is_refused_before_computing(path, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "demo_model", lambda: pytest.fail("computed"))
    assert cli.main(["demo", "--out", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    class Unwritable:
        def savefig(self, path: Path) -> None:
            path.write_text("half of it")
            raise OSError(28, "No space left on device")

    (tmp_path / "picture.png").write_text("old")
    with pytest.raises(cli.CommandError, match="No space left on device"):
        cli.save_picture(Unwritable(), tmp_path / "picture.png")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("missing", ["rich", "matplotlib"])
def test_a_missing_extra_is_named(missing, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 2
    assert f"{missing} is not installed: pip install 'clampz[cli]'" in capsys.readouterr().err


def test_ctrl_c_ends_quietly(tmp_path, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(demo, "demo_model", lambda: os.kill(os.getpid(), signal.SIGINT))
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 130
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before
    assert not any(tmp_path.iterdir())


def test_ctrl_c_ends_a_method_too(tmp_path, monkeypatch):
    """A method left to itself would stop early and return what it has."""

    def exact(model: cz.Model) -> cz.Estimate:
        presses = iter([signal.SIGINT])
        return cz.mean_field(
            model, threads=1, progress=lambda progress: [os.kill(os.getpid(), number) for number in presses]
        )

    monkeypatch.setattr(cz, "exact", exact)
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 130


def test_errors_of_the_library_are_one_line(tmp_path, monkeypatch, capsys):
    def broken() -> None:
        raise cz.FormatError("model.uai, line 3: expected a number")

    monkeypatch.setattr(demo, "demo_model", broken)
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 2
    assert capsys.readouterr().err == "clampz demo: model.uai, line 3: expected a number\n"


def test_version_and_help(capsys):
    for arguments in (["--version"], ["--help"], ["demo", "--help"]):
        with pytest.raises(SystemExit) as ending:
            cli.main(arguments)
        assert ending.value.code == 0
    assert capsys.readouterr().out.startswith(f"clampz {cz.__version__}\n")


def test_no_command_and_an_unknown_one_are_bad_input(capsys):
    assert cli.main([]) == 2
    assert "demo" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ending:
        cli.main(["dmo"])
    assert ending.value.code == 2


def test_extras_are_imported_only_when_used():
    code = "import sys, clampz.cli, clampz.plotting; clampz.cli.make_parser(); print({'rich', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
