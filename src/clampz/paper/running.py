"""Make runs, on the cores of this machine or on a Dask cluster, and keep each as soon as it is made.

Runs are independent of each other, so both places are generators of outcomes: `on_cores` and `on_cluster` hand out
tasks and yield what comes back, and None whenever nothing did for a moment.  `make_runs` takes what they yield, and is
the only one that writes.  A worker that is lost costs the run it was making, which is made again; a run that fails is
reported, and the others go on.
"""

import asyncio
import logging
import math
import multiprocessing
import os
import signal
import sqlite3
import statistics
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

import clampz
from clampz.errors import ClampzError
from clampz.paper.families import family_named
from clampz.paper.runs import Finished, Task, perform
from clampz.paper.store import Store

Perform = Callable[[Task], Finished]

# Seconds without news after which a generator yields None: progress moves on, and Ctrl-C is noticed.
TICK_SECONDS = 0.2
# A run whose worker dies is made again so often: the second time it may have the memory to itself.
MAX_RETRIES = 2
# Failed runs after which it is no use to go on.
MAX_FAILURES = 10
# A scheduler that has not answered by then does not.
ANSWER_SECONDS = 10.0
GONE = "the scheduler has gone, or has forgotten its tasks; every finished run is kept: run the same command again"
# Kernels and linear algebra of a worker stay on its own core.
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
}


class ClusterError(ClampzError, RuntimeError):
    """A cluster that cannot be used: its scheduler does not answer or has gone, or its workers have another version of
    clampz."""


class Outcome(NamedTuple):
    """What has become of a task: a run, or in one line why there is none."""

    task: Task
    finished: Finished | None
    error: str = ""


class Summary(NamedTuple):
    """How making runs has ended."""

    num_made: int
    failures: list[Outcome]
    interrupted: bool
    seconds: float

    @property
    def gave_up(self) -> bool:
        return len(self.failures) >= MAX_FAILURES


class Display(Protocol):
    """Shows how far the runs are."""

    def begin(self, tasks: Sequence[Task]) -> None: ...
    def show(self, outcome: Outcome | None) -> None: ...
    def end(self) -> None: ...


def make_runs(outcomes: Iterator[Outcome | None], tasks: Sequence[Task], store: Store, display: Display) -> Summary:
    """Keep each run that comes, until all have, Ctrl-C is pressed, or too many have failed."""
    started, num_made, failures = time.monotonic(), 0, list[Outcome]()
    with ctrl_c_asks() as asked:
        display.begin(tasks)
        try:
            for outcome in outcomes:
                if outcome is not None and outcome.finished is not None:
                    try:
                        num_made += store.add(outcome.finished)
                    except sqlite3.IntegrityError as error:  # a value that is not a number
                        outcome = Outcome(outcome.task, None, str(error))
                if outcome is not None and outcome.finished is None:
                    failures.append(outcome)
                display.show(outcome)
                if asked.is_set() or len(failures) >= MAX_FAILURES:
                    break
        finally:
            display.end()
            outcomes.close()  # type: ignore[attr-defined]  # ends the workers
        return Summary(num_made, failures, asked.is_set(), time.monotonic() - started)


@contextmanager
def ctrl_c_asks() -> Iterator[threading.Event]:
    """Ctrl-C only sets the event: nothing that is being written is cut short."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    previous = signal.signal(signal.SIGINT, lambda signum, frame: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


# -- the order ------------------------------------------------------------------------------------------------------------------


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """First a short one, which compiles the kernels if they are not; then round by round, in each the long ones first.

    So every family has about as many runs as any other at any time, and the last runs are short: the cores end
    together.  Times come last, by themselves.
    """
    rounds = sorted(tasks, key=lambda task: (task.part == "times", task.run, -cost(task), task))
    others = [task for task in rounds if task.part != "times"] or rounds
    if others:
        shortest = min(others, key=lambda task: (cost(task), task))
        rounds.remove(shortest)
        rounds.insert(0, shortest)
    return rounds


def cost(task: Task) -> float:
    """About how many seconds a run takes on one core, fitted to measured ones; they differ by a factor of three within
    a family."""
    family = family_named(task.family)
    dense = family.graph == "complete"
    size = 0.4 * math.pow(family.size / 10, 6.5) if dense else 5.0 * math.pow(family.size / 81, 2.5)
    if task.part == "optimal":  # on attractive models Bethe judges by itself, whatever their weights
        return (
            size
            * 1.4
            * family.size
            * ((1.5 if dense else 4.0) if family.weights[1] > 6 else 1.0 if family.mixed else 1.3)
        )
    sweeps = {2.0: 0.3, 6.0: 1.0, 12.0: 1.5 if dense else 4.0}[family.weights[1]]
    return size * sweeps * (1.5 if task.part == "times" else 1.0)


# -- on this machine --------------------------------------------------------------------------------------------------------------


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: "Connection[Any, Any]"


def num_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_cores(tasks: Sequence[Task], jobs: int, perform: Perform = perform) -> Iterator[Outcome | None]:
    """Make runs in `jobs` processes.  The first run is made alone: what it compiles, the others find on disk.

    Not an executor of the standard library: those give up all runs when one worker dies, and leave their workers behind
    when they are killed themselves.
    """
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
                    outcome = Outcome(
                        task,
                        None,
                        f"its process died {deaths[task]} times (exit code {code}{': out of memory?' if code == -9 else ''})",
                    )
                else:
                    idle.append(worker)
                    warm = True
                yield outcome
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            _end(worker)


def _start(perform: Perform) -> _Worker:
    """A worker of its own: a new interpreter, as threads and compiled code do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(perform, there), daemon=True)
    with _ctrl_c_ignored(), _environment(ONE_THREAD):
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
def _ctrl_c_ignored() -> Iterator[None]:
    """A process started meanwhile ignores Ctrl-C from its first moment on, and prints no traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """A process started meanwhile has these environment variables."""
    previous = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
                outcome = Outcome(task, None, _in_one_line(error))
            pipe.send(outcome)
    except (EOFError, OSError):
        pass


def _end_with_parent() -> None:
    """A worker does not outlive who started it, not even one that was killed: it would keep a core from the next."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _in_one_line(error: BaseException) -> str:
    """An error, and where in the code it was raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = "" if frame is None else f" ({os.path.basename(frame.tb_frame.f_code.co_filename)}, line {frame.tb_lineno})"  # noqa: PTH119
    return " ".join(f"{type(error).__name__}: {error}".split()) + place


# -- on a cluster -----------------------------------------------------------------------------------------------------------------


@contextmanager
def connected(address: str, seconds: float = ANSWER_SECONDS) -> Iterator[Any]:
    """A client of the Dask scheduler at this address."""
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError:
        raise ClusterError(
            "a cluster needs Dask, and distributed is not installed: pip install 'clampz[cluster]'"
        ) from None
    quiet = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Dask logs tracebacks; what goes wrong is said below, in one line
    try:
        try:
            asyncio.run(
                _answered(address, seconds)
            )  # a client that fails would complain for itself, when it is collected
            client = distributed.Client(address, timeout=seconds, set_as_default=False)
        except Exception as error:  # whatever comes of reading what somebody else says as Dask's protocol; a web server's answer is a MemoryError
            reason = "" if isinstance(error, MemoryError) else " ".join(str(error).split())
            raise ClusterError(
                f"--scheduler {address}: no Dask scheduler answers there within {seconds:g} s{f' ({reason})' if reason else ''}"
            ) from None
        try:
            yield client
        finally:
            client.close(timeout=seconds)
    finally:
        logging.disable(quiet)


async def _answered(address: str, seconds: float) -> None:
    """Return once somebody who speaks Dask's protocol has answered; Dask itself would wait for ever for one who listens
    and says nothing."""
    comm = await asyncio.wait_for(import_module("distributed.comm").connect(address, timeout=seconds), 1.1 * seconds)
    await comm.close()


def on_cluster(client: Any, tasks: Sequence[Task], perform: Perform = perform) -> Iterator[Outcome | None]:
    """Make runs on the workers of a Dask cluster, which may come and go."""
    distributed: Any = import_module("distributed")
    name = f"clampz-paper-{uuid.uuid4().hex[:8]}"
    futures = {
        client.submit(
            _perform_there, perform, task, key=f"{name}-{number}", priority=-number, retries=MAX_RETRIES, pure=False
        ): task
        for number, task in enumerate(tasks)
    }
    completed = distributed.as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
    silent_since: float | None = None
    try:
        while futures:
            batch = list(completed.next_batch(block=False)) if completed.has_ready() else []
            if not batch:
                silent_since = None if client.status == "running" else silent_since or time.monotonic()
                if silent_since is not None and time.monotonic() - silent_since > ANSWER_SECONDS:
                    raise ClusterError(GONE)
                time.sleep(TICK_SECONDS / 4)
                yield None
            for future, result in batch:
                if future.status in ("cancelled", "lost"):
                    raise ClusterError(GONE)
                task = futures.pop(future)
                if future.status == "error":
                    yield Outcome(task, None, _in_one_line(result[1]))
                    continue
                version, finished = result
                if version != clampz.__version__:
                    raise ClusterError(
                        f"the workers have clampz {version}, and this is {clampz.__version__}: two versions would be mixed"
                    )
                yield Outcome(task, finished)
                future.release()
    finally:
        if client.status == "running":
            client.cancel(list(futures), force=True)


def _perform_there(perform: Perform, task: Task) -> tuple[str, Finished]:
    """On a worker: a run, and the version that made it."""
    return clampz.__version__, perform(task)


# -- progress -----------------------------------------------------------------------------------------------------------------------


class Pace:
    """How quickly runs are made, and how long the rest will take.

    A family's runs take about the time of those before; of families not yet seen, what their costs say.  Seconds of
    work are made into seconds of waiting by how many of the former have come per second of the latter, so that it does
    not matter who works.
    """

    def __init__(self, tasks: Sequence[Task], now: Callable[[], float] = time.monotonic) -> None:
        self.num_tasks, self.num_done, self._now = len(tasks), 0, now
        self.started, self._first = now(), 0.0
        self._left = Counter(map(_kind, tasks))
        self._seconds: dict[Task, list[float]] = defaultdict(list)
        self._work = 0.0

    def add(self, outcome: Outcome) -> None:
        self.num_done += 1
        self._left[_kind(outcome.task)] -= 1
        if self.num_done == 1:  # it may have compiled the kernels
            self._first = self._now()
        elif outcome.finished is not None:
            self._seconds[_kind(outcome.task)].append(outcome.finished.seconds)
            self._work += outcome.finished.seconds

    def rate(self) -> str:
        """Runs per second or minute; nothing as long as there are too few."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0:
            return ""
        rate = (self.num_done - 1) / waited
        return f"{rate:.1f} runs/s" if rate >= 1 else f"{60 * rate:.1f} runs/min"

    def left(self) -> str:
        """Time left; nothing as long as there is too little to tell it from."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0 or self._work <= 0:
            return ""
        usual = {kind: statistics.median(seconds) for kind, seconds in self._seconds.items()}
        unit = sum(usual.values()) / sum(map(cost, usual))
        work = sum(count * usual.get(kind, unit * cost(kind)) for kind, count in self._left.items())
        return f"{as_clock(work * waited / self._work)} left"

    def elapsed(self) -> float:
        return self._now() - self.started


def _kind(task: Task) -> Task:
    return Task(task.settings, task.part, task.family, 0)


def as_clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> as_clock(4000.2), as_clock(7)
    ('1:06:40', '0:07')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class Lines:
    """Progress as lines on stderr, at the beginning and every now and then: for logs."""

    SECONDS = 30.0

    def begin(self, tasks: Sequence[Task]) -> None:
        self.pace, self.last = Pace(tasks), time.monotonic()

    def show(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.pace.add(outcome)
        if time.monotonic() - self.last >= self.SECONDS:
            self.last = time.monotonic()
            parts = (f"{self.pace.num_done} of {self.pace.num_tasks} runs", self.pace.rate(), self.pace.left())
            print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class Bar:
    """Progress as a bar on the terminal."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed}/{task.total} runs"),
            TextColumn("[dim]{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
            expand=True,
            transient=True,
            refresh_per_second=4,
        )

    def begin(self, tasks: Sequence[Task]) -> None:
        self.pace = Pace(tasks)
        self.bar = self.progress.add_task("starting", total=len(tasks), rate="", left="")
        self.progress.start()

    def show(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.pace.add(outcome)
        self.progress.update(
            self.bar,
            completed=self.pace.num_done,
            description=as_clock(self.pace.elapsed()) if self.pace.num_done else "starting, compiling kernels once",
            rate=self.pace.rate(),
            left=self.pace.left(),
        )

    def end(self) -> None:
        self.progress.stop()
