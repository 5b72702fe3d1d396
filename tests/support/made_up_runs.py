"""Runs of made-up numbers, which take no time, and workers that die or fail."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import reproduction
from reproduction.runs.experiments import Finished, Row, Task

# Where `python -m reproduction` is run.
ROOT = Path(reproduction.__file__).parent.parent
TASK = Task("paper", "errors", "complete10[0,2]", 0)
TASKS = [replace(TASK, run=run) for run in range(6)]
# Where the workers of these tests leave traces.
TRACES = "CLAMPZ_TEST_TRACES"


def stand_in(task: Task) -> Finished:
    """A run of made-up numbers."""
    return Finished(
        task,
        seed=task.run,
        num_variables=10,
        num_edges=45,
        exact=1.0,
        seconds=0.01,
        rows=(Row("trw", "none", 0, None, 1.0 + task.run, True, 1),),
    )


def finished(task: Task = TASK, num_rows: int = 3) -> Finished:
    """A run of made-up numbers."""
    rows = [Row("trw", "none", 0, None, 7.5, True, 1)]
    rows += [
        Row("trw", "maxW", clamps, 4, 7.5 - clamps / 3, clamps % 2 == 0, min(2**clamps, 32), None, "maxW,Mpower")
        for clamps in range(1, num_rows)
    ]
    return Finished(
        task,
        seed=2**47 + task.run,
        num_variables=10,
        num_edges=45,
        exact=5.0 + task.run / 7,
        seconds=0.25,
        rows=tuple(rows),
    )


def leave_trace(task: Task) -> int:
    """How often this has been called for a task, this time included."""
    traces = list(Path(os.environ[TRACES]).glob(f"{task.run}-*"))
    (Path(os.environ[TRACES]) / f"{task.run}-{len(traces)}").touch()
    return len(traces) + 1


def unlucky(task: Task) -> Finished:
    """Two runs whose worker is killed the first time, one that kills it every time, and one that fails."""
    count = leave_trace(task)
    if task.run in (0, 3) and count == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.run == 2:
        os._exit(7)
    if task.run == 4:
        raise ValueError("no such\nluck")
    return stand_in(task)


def always_fails(task: Task) -> Finished:
    raise ValueError("never")


def takes_long(task: Task) -> Finished:
    leave_trace(task)
    time.sleep(60)
    return stand_in(task)


def says_how_it_runs(task: Task) -> Finished:
    threads, ignored = os.environ["OPENBLAS_NUM_THREADS"], signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    raise RuntimeError(
        f"{threads} thread, ignored {ignored}, main {threading.current_thread() is threading.main_thread()}"
    )
