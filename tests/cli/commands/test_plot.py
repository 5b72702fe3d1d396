"""`clampz plot`: a picture, whole or none."""

import time
from pathlib import Path
from typing import Any

import pytest
from running import PNG, press_ctrl_c, run

import clampz as cz
from clampz.cli.commands import plot


@pytest.mark.parametrize("options", [[], ["--clamp", "2"], ["--shade", "marginals"], ["--shade", "maxW", "--names"]])
def test_plot(options, folder, capsys):
    assert run("plot", "grid.uai", "-o", "grid.png", *options) == 0
    assert Path("grid.png").read_bytes().startswith(PNG)
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_on_a_picture_leaves_none(folder, capsys, monkeypatch):
    def slow(model: cz.Model, *args: Any) -> None:
        time.sleep(0.5)

    monkeypatch.setattr(plot, "draw", slow)
    press_ctrl_c(0.2)
    assert run("plot", "grid.uai", "-o", "grid.png") == 130
    assert not Path("grid.png").exists()
    assert capsys.readouterr() == ("", "")
