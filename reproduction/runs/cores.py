"""Make runs on the cores of this machine, in processes of their own.

Not an executor of the standard library: those give up all runs when one worker dies, and leave their workers behind
when they are killed themselves.  Here a worker that is lost costs the run it was making, which is made again.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from reproduction.runs.experiments import Finished, Outcome, Task, perform

Perform = Callable[[Task], Finished]

# Seconds without news after which a generator yields None: progress moves on, and Ctrl-C is noticed.
TICK_SECONDS = 0.2
# A run whose worker dies is made again this often: the second time it may have the memory to itself.
MAX_RETRIES = 2
# Kernels and linear algebra of a worker stay on its own core.
ONE_THREAD = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"),
)


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: "Connection[Any, Any]"


def num_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_cores(tasks: Sequence[Task], jobs: int, perform: Perform = perform) -> Iterator[Outcome | None]:
    """Make runs in `jobs` processes.  The first run is made alone: what it compiles, the others find on disk."""
    waiting, deaths, warm = deque(tasks), Counter[Task](), False
    idle = [_start(perform) for _ in range(min(jobs, len(tasks)))]
    busy: dict[Any, tuple[_Worker, Task]] = {}
    try:
        while waiting or busy:
            while waiting and idle and (warm or not busy):
                worker, task = idle.pop(), waiting.popleft()
                busy[worker.pipe] = worker, task
                _send(worker.pipe, task)
            ready = wait(list(busy), TICK_SECONDS)
            if not ready:
                yield None
            for pipe in ready:
                worker, task = busy.pop(pipe)
                try:
                    outcome = worker.pipe.recv()
                except (EOFError, OSError):
                    _end(worker)
                    deaths[task] += 1
                    idle.append(_start(perform))
                    if deaths[task] <= MAX_RETRIES:
                        waiting.appendleft(task)
                        continue
                    code = worker.process.exitcode
                    why = f"exit code {code}{': out of memory?' if code == -9 else ''}"
                    outcome = Outcome(task, None, f"its process died {deaths[task]} times ({why})")
                else:
                    idle.append(worker)
                    warm = True
                yield outcome
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            _end(worker)


def _start(perform: Perform) -> _Worker:
    """Start a worker in a new interpreter, as threads and compiled code do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(perform, there), daemon=True)
    with _for_workers():
        process.start()
    there.close()
    return _Worker(process, here)


def _send(pipe: "Connection[Any, Any]", task: Task) -> None:
    with suppress(OSError):  # its worker has died: the pipe is at its end, which is noticed where outcomes are read
        pipe.send(task)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


@contextmanager
def _for_workers() -> Iterator[None]:
    """Give processes started meanwhile one thread, and have them ignore Ctrl-C from their first moment on."""
    previous = {name: os.environ.get(name) for name in ONE_THREAD}
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if main:
            signal.signal(signal.SIGINT, handler)


def _work(perform: Perform, pipe: "Connection[Any, Any]") -> None:
    """Perform the tasks that come through the pipe until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            task = pipe.recv()
            try:
                outcome = Outcome(task, perform(task))
            except Exception as error:
                outcome = Outcome.failed(task, error)
            pipe.send(outcome)
    except (EOFError, OSError):
        pass


def _end_with_parent() -> None:
    """End the worker with the process that started it, even if that was killed: it would keep a core from the next."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
