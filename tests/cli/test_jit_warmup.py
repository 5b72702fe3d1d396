"""The first command after an installation: the same answers from kernels that are not compiled, or none."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import clampz as cz
from clampz import cli
from clampz.cli import exit_codes, jit_warmup

EXACT = 1e-9


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is there a limit of time, unless a test sets one."""
    monkeypatch.setattr(jit_warmup, "start_compiling", lambda: None)
    monkeypatch.setattr(jit_warmup, "PATIENCE", None)


def answer(capfd: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert jit_warmup.run_first([*arguments, "--json"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return json.loads(out)


@pytest.mark.parametrize("file", ["grid.uai", "labels.fg", "strong.uai"])
def test_bounds_are_the_same(folder, capfd, file):
    found, log_z = answer(capfd, "bound", file), cz.exact(cz.read(file)).log_z
    assert log_z - EXACT < found["lower"] <= log_z + EXACT and log_z - EXACT <= found["upper"] < log_z + EXACT


def test_no_time_passes_meanwhile(folder, capfd):
    """Limits are those of compiled kernels."""
    assert answer(capfd, "bound", "strong.uai", "--time", "0.05")["stopped_by"] == "exact"


def test_what_takes_long_is_given_up_without_a_word(folder, capfd, monkeypatch):
    monkeypatch.setattr(jit_warmup, "PATIENCE", 0.2)
    assert jit_warmup.run_first(["bound", "wide.uai", "--no-exact"]) is None
    assert capfd.readouterr() == ("", "")


def test_bad_input_is_said_once(folder, capfd):
    Path("bad.uai").write_text("MARKOV\nmany\n")
    assert jit_warmup.run_first(["solve", "bad.uai"]) == exit_codes.BAD_INPUT
    assert "bad.uai, line 2" in capfd.readouterr().err


def test_only_the_first_command_is_the_first(tmp_path, monkeypatch):
    folder = tmp_path / "kernels-0"
    monkeypatch.setattr(jit_warmup, "CACHE_FOLDER", str(folder))
    (folder / "sources").mkdir(parents=True)
    assert jit_warmup.nothing_is_compiled()
    (folder / "sources" / "graph.py.nbi").touch()
    assert not jit_warmup.nothing_is_compiled()
    monkeypatch.setattr(jit_warmup, "CACHE_FOLDER", str(tmp_path / "for-this-process"))  # nobody would find them
    assert not jit_warmup.nothing_is_compiled()


@pytest.mark.parametrize(("first", "code"), [(3, 3), (None, 0)])
def test_what_it_has_not_done_is_begun_anew(folder, capsys, monkeypatch, first, code):
    monkeypatch.setattr(jit_warmup, "nothing_is_compiled", lambda: True)
    monkeypatch.setattr(jit_warmup, "run_first", lambda arguments: first)
    monkeypatch.setattr(sys, "argv", ["clampz", "bound", "grid.uai"])
    assert cli.main() == code
    assert ("lower" in capsys.readouterr().out) == (first is None)


def test_a_model_from_standard_input_is_read_once(folder, capsys, monkeypatch):
    monkeypatch.setattr(jit_warmup, "nothing_is_compiled", lambda: True)
    monkeypatch.setattr(jit_warmup, "run_first", lambda arguments: pytest.fail("read twice"))
    monkeypatch.setattr(sys, "argv", ["clampz", "info", "-"])
    cli.main()
