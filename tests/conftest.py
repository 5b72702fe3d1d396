"""Settings of all tests: no deadlines, as the first call of a kernel compiles it, and the same examples in every run.
And a folder with models for the commands to read."""

import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numba import config, types
from numba.np import arrayobj

import clampz as cz
from clampz.cli.jit_warmup import compile_kernels

settings.register_profile("clampz", deadline=None, derandomize=True)
# Others each time, and many: `python -m pytest tests/presolve --hypothesis-profile=thorough`.
settings.register_profile("thorough", settings.get_profile("clampz"), max_examples=20_000, derandomize=False)
settings.load_profile("clampz")

# Of a few, most would be done before all kernels are compiled.
MANY_TESTS = 1000


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Several processes with many tests do not compile the same kernels."""
    process = getattr(session.config, "workerinput", None)
    if process is not None and session.testscollected > MANY_TESTS:
        compile_kernels(int(process["workerid"].removeprefix("gw")), process["workercount"])


# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them are about.
signal.signal(signal.SIGINT, signal.default_int_handler)


# With NUMBA_BOUNDSCHECK=1 kernels look at every index.  Python's -1 is the last entry and would pass, but in a kernel
# it is "none": there it is an error as well.
if config.BOUNDSCHECK:

    def as_it_is(context, builder, kind, index, size):
        return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)

    arrayobj.fix_integer_index = as_it_is
