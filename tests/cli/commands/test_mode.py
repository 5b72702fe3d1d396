"""`clampz solve --task MPE` and `clampz uai ... MPE`: the best configuration."""

from pathlib import Path

import numpy as np
import pytest
from running import PNG, answer, run

import clampz as cz
from clampz.io import results


def test_the_best_configuration_is_printed_and_written(folder, capsys):
    found = cz.mode(cz.read("grid.uai", "some.evid"))
    assert found.states is not None and found.states[0] == 1
    assert run("solve", "grid.uai", "--task", "MPE", "--evidence", "some.evid", "--out", "grid.MPE") == 0
    out = capsys.readouterr().out
    for text in (f"{found.score:.6f}", "nothing is better", "9 variables"):
        assert text in out
    rows = [line.split() for line in out.splitlines()]
    assert all([str(i), str(a)] in rows for i, a in enumerate(found.states.tolist()))
    assert results.read_mpe("grid.MPE").tolist() == found.states.tolist()


def test_as_json(folder, capsys):
    data = answer(capsys, "solve", "grid.uai", "--json", "--task", "MAP", "--num-best", "3")
    found = cz.mode(cz.read("grid.uai"), num_best=3)
    assert found.states is not None
    assert data["task"] == "MAP" and data["optimal"] and data["stopped_by"] == "optimal"
    assert data["score"] == data["lower"] == found.score <= data["upper"]
    assert data["states"] == found.states.tolist() == list(data["configuration"].values())
    assert [each["score"] for each in data["best"]] == [each.score for each in found.best]
    assert "best" not in answer(capsys, "solve", "grid.uai", "--json", "--task", "MPE")
    assert run("solve", "grid.uai", "--task", "MPE", "--num-best", "2") == 0
    assert "2 configurations" in capsys.readouterr().out


def test_as_a_picture(folder, capsys):
    pytest.importorskip("matplotlib")
    assert run("solve", "grid.uai", "--task", "MPE", "--plot", "best.png", "--json") == 0
    assert Path("best.png").read_bytes().startswith(PNG)
    assert run("solve", "grid.uai", "--task", "MPE", "--plot", "best.docx") == 2
    assert "--plot best.docx: expected a name that ends in .png" in capsys.readouterr().err


def test_what_it_refuses(folder, capsys):
    for option in (["--method", "trw"], ["--clamp", "2"], ["--num-best", "0"]):
        assert run("solve", "grid.uai", "--task", "MPE", *option) == 2
        assert option[0] in capsys.readouterr().err
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    cz.write(cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ}), "odd.uai")
    assert run("solve", "odd.uai", "--task", "MPE", "--out", "odd.MPE") == 2
    assert "Z = 0" in capsys.readouterr().err
    data = answer(capsys, "solve", "odd.uai", "--task", "MPE", "--json")
    assert data["states"] is None and data["score"] == data["upper"] == "-inf"


@pytest.mark.parametrize("task", ["MPE", "MAP"])
def test_the_competitions_calling_convention(folder, capsys, task):
    assert run("uai", "grid.uai", "some.evid", "-", task) == 0
    assert "(optimal)" in capsys.readouterr().out
    found = cz.mode(cz.read("grid.uai"), evidence={0: 1})
    assert found.states is not None
    assert results.read_mpe(f"grid.uai.{task}", task).tolist() == found.states.tolist()
