"""`clampz demo`: what it prints and draws, what it refuses, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import PNG

import clampz as cz
from clampz import cli
from clampz.cli.commands import demo

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

    def exact(model: cz.Model) -> cz.results.Estimate:
        presses = iter([signal.SIGINT])
        return cz.mean_field(
            model, threads=1, progress=lambda progress: [os.kill(os.getpid(), number) for number in presses]
        )

    monkeypatch.setattr(cz, "exact", exact)
    assert cli.main(["demo", "--out", str(tmp_path / "picture.png")]) == 130
