"""Threads for the lanes of a batch, and crews, which submit jobs to an executor and redo what a broken one loses.

A batch is cut into blocks of lanes, and a single large model into ranges of slots.  The kernels release the GIL, so
threads run them side by side.  No result depends on who does the work: lanes do not touch each other, and a range is
cut where the arithmetic is equal on both sides.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Generic, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from clampz._kernels.approximations.message_passing.binary import FULL_LANES
from clampz.errors import OptionError
from clampz.numerics import Integers
from clampz.runtime.budget import Budget

S = TypeVar("S")
T = TypeVar("T")

# Lanes per block at most: the messages of a hundred-variable model times 64 lanes still fit in a second-level cache.
MAX_BLOCK = 64
# Values (messages times lanes) below which a range is not worth cutting: handing it to another thread costs about 20
# microseconds.  Nor are whole blocks of lanes: their kernels end after a fraction of a millisecond there, and between
# them is Python, one thread at a time (16 to 64 branches of a 9 x 9 torus: 5% faster at best, a fifth slower at worst).
MIN_RANGE = 50_000
# Sums over ranges are taken in blocks of this size whatever the number of threads, so that rounding is the same.
SUM_BLOCK = 1 << 16
# Seconds after which a waiting thread wakes: an endless wait would not end for a Ctrl-C of another thread, nor
# for any on Windows.
LOOK_UP = 0.05


@runtime_checkable
class HasExecutor(Protocol):
    """A Dask `distributed.Client`, of which nothing more is known here, so that nothing is imported."""

    def get_executor(self, *, pure: bool) -> Executor: ...


AnyExecutor: TypeAlias = Executor | HasExecutor


class Workers:
    """A pool of threads for the length of a `with`; with one thread, no pool."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None

    def map(self, function: Callable[[S], T], items: list[S]) -> list[T]:
        """Return the function of each item, in order."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        futures = [self._pool.submit(function, item) for item in items]
        try:
            return [_awaited(future) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class Job(Generic[T]):
    """A call that a crew was given; where an executor loses it, the crew's own threads make it again."""

    def __init__(
        self,
        crew: "Crew",
        function: Callable[..., T],
        args: tuple[object, ...],
        local_args: tuple[object, ...],
        executor: Executor | None,
    ) -> None:
        self._crew, self._function, self._args, self._here = crew, function, args, local_args
        self.future = self._given_to(executor)

    def done(self) -> bool:
        if self.future.done() and self._lost():
            self.future = self._given_to(None)
        return self.future.done()

    def result(self) -> T:
        """Wait for the call, and return its result or raise its exception."""
        while not self.done():
            wait([self.future], LOOK_UP)
        return self.future.result()

    def is_done_within(self, budget: Budget) -> bool:
        """Wait until the call is done or the budget must stop; return whether it is done."""
        while not self.done() and not budget.must_stop():
            wait([self.future], min(LOOK_UP, budget.left()))
        return self.done()

    def _given_to(self, executor: Executor | None) -> Future[T]:
        self._executor = executor
        args = (*self._args, *self._here) if in_this_process(executor) else self._args
        try:
            return (executor or self._crew.home).submit(self._function, *args)
        except RuntimeError:  # it is broken, or shut down
            if executor is None:
                raise
            self._crew.executor = None
            return self._given_to(None)

    def _lost(self) -> bool:
        """Return whether the executor lost the call: it broke, or the call failed in another process."""
        if self._executor is None:
            return False
        if self.future.cancelled():
            return True
        error = self.future.exception()
        if isinstance(error, BrokenExecutor):
            self._crew.executor = None
        return error is not None and (isinstance(error, BrokenExecutor) or not in_this_process(self._executor))


class Crew:
    """Workers of a run: the caller's executor of threads, processes or machines, or else threads of its own.

    A Dask client is as good as its executor.  A broken executor is not used again, and the crew's own threads do the
    work that it lost.  At the end of a `with` these threads are shut down; the executor is left to its owner.
    """

    def __init__(self, executor: AnyExecutor | None, num_threads: int) -> None:
        self.executor = as_executor(executor)
        self.num_threads = num_threads
        self._home: ThreadPoolExecutor | None = None
        self._beside: ThreadPoolExecutor | None = None

    @property
    def num_at_once(self) -> int:
        """Jobs that keep all workers busy: those of other processes should find the next one there already."""
        return self.num_threads if in_this_process(self.executor) else 2 * self.num_threads

    @property
    def home(self) -> ThreadPoolExecutor:
        """The crew's own threads, started when first asked for."""
        if self._home is None:
            self._home = ThreadPoolExecutor(self.num_threads)
        return self._home

    def beside(self, function: Callable[..., T], *args: object) -> Job[T]:
        """Submit a call to an extra thread of this process, for work that mostly waits or has to be done here."""
        self._beside = self._beside or ThreadPoolExecutor()
        return Job(self, function, args, (), self._beside)

    def at_home(self, function: Callable[..., T], *args: object) -> Job[T]:
        """Submit a call to the crew's own threads: for arguments too large to send to another process."""
        return Job(self, function, args, (), None)

    def submit(self, function: Callable[..., T], *args: object, local_args: tuple[object, ...] = ()) -> Job[T]:
        """Submit function(*args) to the executor, or function(*args, *local_args) where it runs in this process."""
        return Job(self, function, args, local_args, self.executor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for own in (self._home, self._beside):
            if own is not None:
                own.shutdown(wait=False, cancel_futures=True)


def as_executor(executor: AnyExecutor | None) -> Executor | None:
    """Return an executor as it is, and that of a Dask client, which does a call again whenever it is made again."""
    if executor is None or isinstance(executor, Executor):
        return executor
    if isinstance(executor, HasExecutor):
        return executor.get_executor(pure=False)  # what comes of a call depends on the time that it had
    raise OptionError(f"executor: expected a concurrent.futures.Executor or a Dask Client, found {executor!r:.80}")


def _awaited(future: Future[T]) -> T:
    """Wait for a future, and return its result or raise its exception."""
    while not future.done():
        wait([future], LOOK_UP)
    return future.result()


def in_this_process(executor: Executor | None) -> bool:
    """Return whether an executor's workers share the memory and clocks of this process."""
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def finished(jobs: Iterable[Job[T]], timeout: float = LOOK_UP) -> list[Job[T]]:
    """Wait until a job is done or time is up, and return the jobs that are done."""
    jobs = list(jobs)
    wait([job.future for job in jobs], timeout, FIRST_COMPLETED)
    return [job for job in jobs if job.done()]


def run_jobs(jobs: Iterator[tuple[S, Job[T]]], budget: Budget, num_at_once: float) -> Iterator[tuple[S, T]]:
    """Keep a number of jobs under way, and yield each one's label and result as soon as it is done.

    `jobs` submits the next job when it is asked for one, which ends where the budget must stop.  A cancelled budget, or
    a caller that leaves early, cancels the jobs under way.
    """
    pending: dict[Job[T], S] = {}
    try:
        while not budget.is_cancelled():
            while len(pending) < num_at_once and not budget.must_stop() and (submitted := next(jobs, None)) is not None:
                label, job = submitted
                pending[job] = label
            if not pending:
                return
            for job in finished(pending):
                yield pending.pop(job), job.result()
    finally:
        for job in pending:
            job.future.cancel()


def lane_blocks(num_lanes: int, num_threads: int, max_block: int | None = None) -> list[Integers]:
    """Cut lanes into blocks that keep the threads busy and fill the vector registers, unless `max_block` is less."""
    size = max(1, -(-num_lanes // num_threads))
    size = min(MAX_BLOCK if max_block is None else max_block, -(-size // FULL_LANES) * FULL_LANES)
    begin = np.arange(0, num_lanes, size)
    if len(begin) > 1 and size >= FULL_LANES > num_lanes - begin[-1]:
        # a remainder joins the last block: alone it would be too few lanes for the kernels of full ones, which round
        # differently
        begin = begin[:-1]
    return np.split(np.arange(num_lanes), begin[1:]) if num_lanes else []


def padded(lanes: Integers, enough: bool) -> Integers:
    """Repeat the last lane up to a multiple of the vector width, if `enough`: remainders run at scalar speed."""
    if not enough or len(lanes) % FULL_LANES == 0:
        return lanes
    return np.concatenate([lanes, np.repeat(lanes[-1:], -len(lanes) % FULL_LANES)])


def cut(first: int, last: int, num_parts: int) -> list[tuple[int, int]]:
    """Cut a range into about equal parts."""
    bounds = np.linspace(first, last, num_parts + 1).astype(np.int64)
    return [(int(a), int(b)) for a, b in pairwise(bounds) if a < b]


def sum_blocks(size: int, weight: int = 1) -> list[tuple[int, int]]:
    """Cut a range into blocks that do not depend on the number of threads, smaller where items weigh more."""
    block = max(1, SUM_BLOCK // weight)
    return [(begin, min(begin + block, size)) for begin in range(0, size, block)]
