"""`clampz uai`: the competitions' calling convention."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from running import EXACT, run

import clampz as cz
from clampz.io import results
from clampz.solving import solve as solving


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


def test_a_marginal_that_there_was_no_time_for_is_even(folder, capsys, monkeypatch):
    """A result file has a number for every state, the possible ones alone."""
    solve = solving.solve

    def most_of_it(model, **limits):
        found = solve(model, **limits)
        flat = found.marginals.flat.copy()
        flat[:4] = np.nan
        return replace(found, marginals=model.unary.with_flat(flat))

    monkeypatch.setattr(solving, "solve", most_of_it)
    assert run("uai", "grid.uai", "some.evid", "-", "MAR") == 0
    rows, truth = results.read_mar("grid.uai.MAR"), cz.exact(cz.read("grid.uai"), evidence={0: 1})
    assert rows[0].tolist() == [0.0, 1.0] and rows[1].tolist() == [0.5, 0.5]
    np.testing.assert_allclose(np.concatenate(rows[2:]), truth.marginals.flat[4:], atol=EXACT)
    assert "marginals: some: exact was stopped before there were all" in capsys.readouterr().out
