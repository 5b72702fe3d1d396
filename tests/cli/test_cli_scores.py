"""`clampz scores`: the best variables of each selector."""

from running import answer, run

import clampz as cz


def test_scores(folder, capsys):
    assert run("scores", "grid.uai") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in cz.selectors())
    ranked = answer(capsys, "scores", "grid.uai", "--select", "maxW", "--json")["scores"]["maxW"]
    assert int(ranked[0][0]) == cz.scores(cz.read("grid.uai"), "maxW").argmax()
    assert run("scores", "labels.fg") == 0
    assert "Not defined for this model" in capsys.readouterr().out
    assert run("scores", "labels.fg", "--select", "frustCycles") == 2
