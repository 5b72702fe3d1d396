"""`clampz scores`: the best variables of each selector."""

import csv
import json
from pathlib import Path

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


def test_all_scores_in_a_file(folder, capsys):
    found = cz.scores(cz.read("grid.uai"), ["maxW", "Mpower"])
    assert run("scores", "grid.uai", "--out", "scores.csv") == 0
    with Path("scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["variable", *cz.selectors()] and [row["variable"] for row in rows] == list("012345678")
    for name, values in found.items():
        assert [float(row[name]) for row in rows] == values.tolist()
    assert run("scores", "grid.uai", "--out", "scores.json", "--select", "maxW") == 0
    assert list(json.loads(Path("scores.json").read_text())["scores"]) == ["maxW"]
