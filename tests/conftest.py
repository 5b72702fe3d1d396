"""Settings of all tests: no deadlines, as the first call of a kernel compiles it, and the same examples in every run.
And a folder with models for the commands to read."""

import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import clampz as cz

settings.register_profile("clampz", deadline=None, derandomize=True)
settings.load_profile("clampz")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a few models, one of them with Z = 0."""
    monkeypatch.chdir(tmp_path)
    cz.write(cz.generators.grid(3, 3, rng=0), "grid.uai")
    cz.write(cz.generators.cycle(5, labels=3, potentials="table", rng=0), "labels.fg")
    cz.write(cz.generators.complete(9, weights=(-8, 8), rng=0), "strong.uai")
    cz.write(cz.generators.grid(14, 14, weights=(-6, 6), rng=0), "wide.uai")
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    cz.write(cz.Model([np.zeros(2)] * 3, {(0, 1): differ, (1, 2): differ, (0, 2): differ}), "none.uai")
    Path("some.evid").write_text("1 0 1\n")
    return tmp_path


# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them are about.
signal.signal(signal.SIGINT, signal.default_int_handler)
