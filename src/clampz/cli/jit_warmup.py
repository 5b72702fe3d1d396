"""Answer the first command after an installation while kernels are compiled, which takes minutes for all of them.

Kernels are Python: on small models they give their answer before the first of them would be compiled.  So the command
is first run without compiling, for a few seconds, while processes beside it compile what is likely to be needed; if it
is not done by then it begins anew, with what they have compiled so far.  They go on when it has ended, so that the next
command finds all kernels in place.
"""

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np

import clampz
from clampz import generators
from clampz._kernels.jit import CACHE_FOLDER, COMPILES, compiling, compiling_anew
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import on_ctrl_c

# Seconds that a command has without compiled kernels, and then to leave the terminal as it was.
PATIENCE, LEAVING = 10.0, 1.0
# The exit code of a run without compiled kernels that gave up.
GAVE_UP = 75
# Processes that compile beside the command, at most, and how far they step back for others.
MOST_PROCESSES, NICENESS = 3, 10


# -- what is compiled --------------------------------------------------------------------------------------------------


def _approximate(model: clampz.Model) -> None:
    for method in (clampz.trw, clampz.bethe, clampz.mean_field):
        method(model, max_iter=2).pairwise_marginals  # noqa: B018 (computed when asked for)


def _presolve() -> None:
    """Run the rules of the presolve, with pairwise marginals and for maxima."""
    rng = np.random.default_rng(0)
    triples = [((i, i + 1, i + 2), rng.normal(size=(2, 2, 2))) for i in range(3)]
    found = simplify(clampz.Model(np.zeros((6, 2)), {(4, 5): np.eye(2)}, factors=triples), pairwise=True)
    rest = found.model
    found.marginals(np.ones(rest.num_entries))
    simplify(rest, operation="max").states(np.zeros((1, 0), dtype=np.int64), rng=0)


def _sum_exactly(side: int) -> None:
    for weights in ((-2, 2), (-900, 900)):  # as numbers and as logarithms
        clampz.exact(generators.grid(side, side, weights=weights, rng=0), engine="elimination")


# What is likely to be needed first comes first; narrow grids are summed by elimination, and wide ones by contractions.
TASKS: tuple[Callable[[], object], ...] = (
    lambda: _approximate(generators.grid(3, 3, rng=0)),
    lambda: _sum_exactly(3),
    lambda: clampz.bound(generators.complete(9, rng=0), exact=False, time=0.3),
    _presolve,
    lambda: _sum_exactly(9),
    lambda: clampz.exact(generators.grid(4, 4, theta=(0, 0), toroidal=False, rng=0), engine="planar"),
    lambda: _approximate(generators.cycle(5, labels=3, potentials="table", rng=0)),
)


def compile_kernels(process: int, num_processes: int) -> None:
    """Compile the share of the kernels that one of several processes has."""
    for task in TASKS[process::num_processes]:
        with suppress(Exception):  # a call that needs the kernel will say what is wrong
            task()


# -- the first command -------------------------------------------------------------------------------------------------


def nothing_is_compiled() -> bool:
    """Return whether kernels are to be compiled and kept, and none is there yet."""
    folder = Path(CACHE_FOLDER)
    return COMPILES and folder.name.startswith("kernels-") and next(folder.rglob("*.nbi"), None) is None


def run_first(arguments: Sequence[str]) -> int | None:
    """Run a command without compiled kernels, and return its exit code; None if it has not ended in time."""
    start_compiling()
    with on_ctrl_c(lambda: None):  # (the other hears it too)
        first = subprocess.Popen(
            _command("run_without_compiling", *arguments), env={**os.environ, "NUMBA_DISABLE_JIT": "1"}
        )
        try:
            code = first.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            first.terminate()
            with suppress(subprocess.TimeoutExpired):
                first.wait(LEAVING)
            first.kill()
            code = first.wait()
    return code if code >= 0 and code != GAVE_UP else None


def start_compiling() -> None:
    """Start processes that compile all kernels, and that outlive this one."""
    num_processes = min(max(1, (os.cpu_count() or 1) - 1), MOST_PROCESSES)
    nothing = subprocess.DEVNULL
    for process in range(num_processes):
        command = _command("compile_beside", str(process), str(num_processes))
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def _command(function: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", f"from {__name__} import {function} as call; call()", *arguments]


def compile_beside() -> None:
    """Be the process that compiles its share, at low priority."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    process, num_processes = map(int, sys.argv[1:])
    compile_kernels(process, num_processes)


def run_without_compiling() -> NoReturn:
    """Be the process that runs the command without compiled kernels, and that ends at once when it is told to."""
    from clampz.cli import main

    for clock in (compiling, compiling_anew):  # no time limit is kept by kernels that are a hundred times as slow
        clock.on_start(None)
    # divisions by zero are right; int32s that overflow are not: compiled kernels take them as int64s
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", r"overflow encountered in scalar (add|subtract|multiply)", RuntimeWarning)
    warnings.filterwarnings("ignore", module=r"clampz\._kernels\.(bits|random_numbers)$")
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(GAVE_UP))
    code = GAVE_UP
    with suppress(BaseException):
        code = main(sys.argv[1:])
        sys.stdout.flush()
    os._exit(code)
