"""`clampz info`: what a model is like, and what methods would cost."""

import numpy as np
from running import answer, run

import clampz as cz


def test_info(folder, capsys):
    assert run("info", "grid.uai") == 0
    out = capsys.readouterr().out
    for text in ("9 variables on or between cycles", "mixed", "mean field", "table entries", "sweeps"):
        assert text in out
    data = answer(capsys, "info", "grid.uai", "--json")
    assert (data["variables"], data["labels"], data["edges"], data["components"], data["core"], data["kind"]) == (
        9,
        [2, 2],
        18,
        1,
        9,
        "mixed",
    )
    assert data["zeros"] == 0
    assert set(data["cost"]) == {"exact", "mean_field", "bethe", "trw"}
    assert answer(capsys, "info", "grid.uai", "--json", "--evidence", "some.evid")["fixed"] == 1
    assert answer(capsys, "info", "labels.fg", "--json")["kind"] is None


def test_whether_exact_inference_fits_the_memory(folder, capsys):
    for memory, fits in (("1", False), ("1kB", False), ("1GB", True)):
        assert answer(capsys, "info", "strong.uai", "--json", "--memory", memory)["cost"]["exact"]["fits"] is fits
    assert run("info", "strong.uai", "--memory", "1kB") == 0
    assert "more than there is memory for" in capsys.readouterr().out


def test_info_on_larger_factors(folder, capsys):
    table = np.log([[[1, 0.5], [1, 1]], [[1, 1], [1, 1.5]]])
    cz.write(cz.Model.from_factors([2] * 4, [((0, 1, 2), table), ((2, 3), [[0, -np.inf], [0, 0]])]), "factors.uai")
    data = answer(capsys, "info", "factors.uai", "--json")
    assert (data["larger_factors"], data["zeros"], data["core"], data["components"]) == ({"3": 1}, 1, 3, 1)
    assert run("info", "factors.uai") == 0
    assert "1 of 3 variables" in capsys.readouterr().out
