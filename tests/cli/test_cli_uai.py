"""`clampz uai`: the competitions' calling convention."""

import shutil

import numpy as np
import pytest
from running import EXACT, run

import clampz as cz
from clampz.io import results


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
    assert run("uai", "nets/grid.uai", "-", "-", "PR", "--memory", "1") == 0
    assert "grid.uai.PR: Bethe, " in capsys.readouterr().out
    monkeypatch.setenv("INF_TIME", "soon")
    assert run("uai", "nets/grid.uai", "-", "-", "PR") == 2
    assert "INF_TIME: expected seconds > 0" in capsys.readouterr().err
