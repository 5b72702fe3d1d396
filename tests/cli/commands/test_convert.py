"""`clampz convert`: the same model in another format."""

import pytest
from running import run

import clampz as cz


def test_convert_there_and_back(folder):
    assert run("convert", "grid.uai", "grid.fg.gz") == 0
    assert run("convert", "grid.fg.gz", "again.uai") == 0
    assert cz.exact(cz.read("again.uai")).log_z == pytest.approx(cz.exact(cz.read("grid.uai")).log_z)
    assert run("convert", "grid.uai", "known.uai", "--evidence", "some.evid") == 0
    assert cz.exact(cz.read("known.uai")).log_z == pytest.approx(cz.exact(cz.read("grid.uai"), evidence={0: 1}).log_z)
