"""The loop that mean field, Bethe and TRW share: sweep, look, let finished lanes go, until none is left or a limit is
reached.

Every decision about a lane (when to look, whether it is done, how much to damp it) follows from that lane's own
history, so a lane ends up with the same numbers in any batch.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.approximations.messages_binary import FULL_LANES
from clampz.model.tables import columns
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled, Progress, StoppedBy
from clampz.runtime.options import Options
from clampz.runtime.workers import MIN_RANGE, Workers, cut, lane_blocks, padded, sum_blocks

NO_CONFIGURATION = "Z = 0: no configuration is possible"
# The lanes are looked at after 1, 2, 4, 7, 11, ... sweeps, each time half as many later again, and at the latest after
# so many: a look costs as much as five to ten sweeps.
MAX_INTERVAL = 50
# Seconds of sweeps between two questions to the watch whether to stop.
PACE = 0.05
# Values (messages or probabilities, or table entries by the eight, times lanes) that are updated between two such
# questions where one sweep takes longer: some milliseconds' worth.
PART = 1 << 18
# Seconds from which on a look is slow: time is kept for the last one, and for what follows from it, half as long again;
# and a run that is told to stop ends with what its last look has shown.
SLOW_LOOK = 0.05
LOOK_AND_RESULT = 1.5
# Values that several starts may have together: beyond that they are tried one group after another, and as many as there
# is time for.
STARTS_AT_ONCE = 1 << 20
# Starts that lead to the same optimum differ in their last digits, and which of them is highest should not depend on
# rounding.
TIE = 1e-11


class Evaluation(NamedTuple):
    """What a look at the lanes shows, one entry per lane.

    value is the approximation's log Z if the point is a fixed point; value + slack is an upper bound for any messages
    if the edge weights are TRW's; drift is the largest disagreement between a pairwise belief's marginal and the belief
    itself, in probability; rounding bounds the error made.
    """

    value: Floats
    slack: Floats
    drift: Floats
    rounding: Floats

    @classmethod
    def summed(cls, parts: list[Floats], constant: Floats, magnitude: Floats) -> "Evaluation":
        """From the kernels' (value, slack, drift, magnitude, carries) of all nodes and edges, part by part; `magnitude`
        is what went into the constant."""
        together = np.stack([np.zeros((6, len(constant))), *parts])
        value, slack, _, size, value_carry, slack_carry = together.sum(axis=0)
        rounding = (ROUNDINGS + len(parts)) * EPS * (size + magnitude)
        return cls(value + value_carry + constant, slack + slack_carry, together[:, 2].max(axis=0), rounding)


class Lanes(ABC):
    """A block of lanes that can be swept.

    Attributes
    ----------
    kernels
        Those of this kind of lanes: all kinds have them under the same names.
    layout
        What is solved.
    point
        (rows, B) what the sweeps update: messages, or mean-field probabilities.
    keep
        (B,) 1 - damping of each lane.
    workers
        Threads for a block that is alone.
    """

    kernels: ModuleType
    layout: Any
    point: Floats
    keep: Floats
    workers: Workers

    @property
    def num_lanes(self) -> int:
        return int(self.point.shape[1])

    def take(self, lanes: Integers, workers: Workers | None = None) -> Self:
        """Some of the lanes, as a block of its own with copies of their points."""
        taken = copy(self)
        taken.layout, taken.workers = self.layout.take(lanes), workers or self.workers
        taken.point, taken.keep = columns(self.point, lanes), self.keep[lanes]
        return taken

    @abstractmethod
    def _arrays(self) -> tuple[Any, ...]:
        """What the kernels of a sweep take."""

    @cached_property
    def ranges(self) -> Integers:
        """(k, 3) what a sweep updates, as the kernels have it."""
        return in_classes(self.layout.topology.class_start)

    @property
    def table_entries(self) -> int:
        """Entries of tables that a sweep goes through for each lane, beyond the values it updates."""
        return 0

    @property
    def work(self) -> int:
        """How much there is to do in a sweep, in the unit of PART."""
        return int(self.point.size) + self.table_entries * self.num_lanes // 8

    def sweep(self, num_sweeps: int, budget: Budget = UNLIMITED) -> None:
        """Update everything in the core once, colour class by colour class, so many times; where that takes long the
        watch may end it anywhere, as any point will do."""
        classes, arrays = self.layout.topology.class_start, self._arrays()
        threads = self.workers.num_threads if self.point.size >= MIN_RANGE else 1
        if threads == 1 and self.work < PART:
            self.kernels.sweep(self.ranges, num_sweeps, *arrays)
            return

        def update(part: tuple[int, int]) -> None:
            if budget.must_stop():
                return
            first, last = part  # of one class, where threads share it
            inner = classes[(classes > first) & (classes < last)]
            self.kernels.sweep(in_classes(np.concatenate([[first], inner, [last]])), 1, *arrays)

        together = pairwise(classes.tolist()) if threads > 1 else [(0, int(classes[-1]))]
        stretches = [self._stretches(first, last, threads) for first, last in together]
        for _ in range(num_sweeps):
            for parts in stretches:
                if threads > 1:
                    self.workers.map(update, parts)
                else:  # parts of all classes: neighbours must not be updated at once
                    for part in parts:
                        update(part)
            self._sweep_pendants(budget)

    def _stretches(self, first: int, last: int, least: int = 1) -> list[tuple[int, int]]:
        """Slots first..last-1 in pieces of PART, or at least so many."""
        share = self.work * (last - first) / max(1, self.layout.topology.num_variables)
        return cut(first, last, max(least, 1 + int(share / PART)))

    def _sweep_pendants(self, budget: Budget) -> None:  # noqa: B027 (messages away from the core wait until looked at)
        """Update what is away from the core, where a sweep does."""

    def _terms(
        self, kernel: Callable[..., None], size: int, *arrays: Any, budget: Budget = UNLIMITED, entries: int = 1
    ) -> list[Floats]:
        """What a kernel adds up over 0..size-1, block by block: (6, B) each; each of the terms has so many table
        `entries` to go through.  Raises Overdue."""

        def run(block: tuple[int, int]) -> Floats:
            budget.check_cancelled()
            out = np.zeros((6, self.num_lanes))
            kernel(*block, *arrays, out)
            return out

        return self.workers.map(run, sum_blocks(size, max(1, entries)))

    def rebase(self) -> None:  # noqa: B027 (most methods have no outer loop)
        """The outer step of a double loop."""

    @abstractmethod
    def evaluate(self, budget: Budget = UNLIMITED) -> Evaluation:
        """Look at the lanes.  Raises Overdue where that takes too long."""


def in_classes(start: Integers) -> Integers:
    """Ranges of slots as kernels have them (first, last, step), one for each colour class, all of it at a time."""
    return np.stack([start[:-1], start[1:], np.diff(start)], axis=1)


@dataclass
class Endings:
    """How each lane of a run ended; filled in as lanes finish.  `upper` is the lowest value + slack seen on the way;
    `value` is nan where a lane was never looked at."""

    value: Floats
    rounding: Floats
    upper: Floats
    residual: Floats
    num_iter: Integers
    stopped_by: NDArray[np.object_]
    point: Floats

    @classmethod
    def pending(cls, lanes: Lanes) -> "Endings":
        """No lane has ended yet; each is where it stands."""
        value, rounding, upper, residual = np.full((4, lanes.num_lanes), np.inf)
        value[:] = np.nan
        num_iter = np.zeros(lanes.num_lanes, dtype=np.int64)
        return cls(
            value, rounding, upper, residual, num_iter, np.full(lanes.num_lanes, None, dtype=object), lanes.point.copy()
        )

    def put(self, where: Integers, other: "Endings", taken: Integers | None = None) -> None:
        """Copy lanes of another ending (all, or those `taken`) to lanes `where` of this one."""
        chosen = slice(None) if taken is None else taken
        for name, mine in vars(self).items():
            mine[..., where] = getattr(other, name)[..., chosen]

    def take(self, lanes: Integers) -> "Endings":
        """Those of some of the lanes."""
        return Endings(**{name: np.take(mine, lanes, axis=-1) for name, mine in vars(self).items()})

    def beside(self, other: "Endings") -> "Endings":
        """Each lane of this ending, followed by the same one of another."""
        pairs = {name: np.stack([mine, getattr(other, name)], axis=-1) for name, mine in vars(self).items()}
        return Endings(**{name: pair.reshape(*pair.shape[:-2], 2 * len(self.value)) for name, pair in pairs.items()})

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(B,) the lanes that were never looked at."""
        return np.isnan(self.value)

    def because(self, reason: StoppedBy | None) -> NDArray[np.bool_]:
        """(B,) the lanes that ended for this reason; None: those that a policy gave up on."""
        return np.array([found == reason for found in self.stopped_by], dtype=np.bool_)

    @property
    def converged(self) -> NDArray[np.bool_]:
        return self.because("tol")


# Called after each look with the block, the numbers of the lanes still running in it, their residuals and the sweep
# count: may damp them, and says which of them to give up on; those end with `stopped_by` None.
Policy = Callable[[Any, Integers, Floats, int], NDArray[np.bool_]]


class Stagnation:
    """How long each lane has made no progress: its residual has not fallen to `share` of its best."""

    def __init__(self, num_lanes: int, share: float) -> None:
        self.share = share
        self.best = np.full(num_lanes, np.inf)
        self.since = np.zeros(num_lanes, dtype=np.int64)

    def waited(self, running: Integers, residual: Floats, num_iter: int) -> Integers:
        """Sweeps since the last progress of the lanes running."""
        better = residual <= self.share * self.best[running]
        self.best[running[better]] = residual[better]
        self.since[running[better]] = num_iter
        return num_iter - self.since[running]


def solve_in_blocks(
    lanes: Lanes, solve: Callable[[Any, Integers], Endings], budget: Budget, max_block: int | None = None
) -> Endings:
    """Cut lanes into blocks and solve them side by side; `solve` takes a block and the numbers of its lanes.

    A single block has all threads to itself.  Lanes with Z = 0 are left out: their ending stays pending; and so are
    those that there is no time for.
    """
    workers = lanes.workers
    possible = np.flatnonzero(lanes.layout.constant > -np.inf)
    num_threads = workers.num_threads if lanes.point.size >= MIN_RANGE else 1
    blocks = [possible[block] for block in lane_blocks(len(possible), num_threads, max_block)]
    if len(blocks) == 1 and len(possible) == lanes.num_lanes:
        return solve(lanes, possible)
    inside = workers if len(blocks) == 1 else Workers(1)
    ending = Endings.pending(lanes)

    def run(block: Integers) -> None:
        if budget.is_cancelled():
            ending.stopped_by[block] = budget.stopped_by
        else:
            ending.put(block, solve(lanes.take(block, inside), block))

    if len(blocks) == 1:
        run(blocks[0])
    else:
        workers.map(run, blocks)
    return ending


def best_of_starts(
    starts: Sequence[Callable[[], Floats]],
    num_lanes: int,
    num_rows: int,
    solve: Callable[[Floats], Endings],
    merit: Callable[[Endings], Floats],
    budget: Budget,
    at_once: int | None = None,
) -> Endings:
    """Of each lane the ending with the highest merit of all that come of several starts, each of which makes a point
    (rows, lanes); `solve` is given every lane several times in a row.

    Starts are solved one group after another, until time is up: so many `at_once`, or else as many as are not too large
    together.
    """
    at_once = at_once or max(1, STARTS_AT_ONCE // max(1, num_lanes * num_rows))
    best: Endings | None = None
    for first in range(0, len(starts), at_once):
        if best is not None and budget.must_stop():
            break
        points: list[Floats] = []
        for start in starts[first : first + at_once]:
            if points and num_lanes * num_rows >= PART and budget.must_stop():
                break
            points.append(np.broadcast_to(start(), (num_rows, num_lanes)))
        ending = solve(np.stack(points, axis=2).reshape(num_rows, num_lanes * len(points)))
        found = ending.take(best_of(merit(ending), num_lanes)) if len(points) > 1 else ending
        if best is not None:
            found = best.beside(found)
            found = found.take(best_of(merit(found), num_lanes))
        best = found
    assert best is not None, "there is a start"
    return best


def best_of(values: Floats, num_lanes: int) -> Integers:
    """For lanes that each ran from several starts, in a row: which of all of them is the best of each lane; the first
    of those that tie."""
    starts = values.reshape(num_lanes, -1)
    top = starts.max(axis=1, keepdims=True)
    near = starts >= np.where(np.isfinite(top), top - TIE * (1 + np.abs(top)), top)
    best: Integers = np.arange(num_lanes) * starts.shape[1] + np.argmax(near, axis=1)
    return best


def iterate(
    lanes: Lanes,
    options: Options,
    budget: Budget,
    *,
    method: str,
    residual_of: Callable[[Evaluation], Floats],
    policy: Policy | None = None,
    upper: bool = False,
    inner: int | None = None,
    begun: Integers | None = None,
    max_iter: int | None = None,
    full: bool | None = None,
) -> Endings:
    """Run lanes until the residual of each is within `options.tol`, or a limit stops them all.  The lanes given are
    used up.

    Parameters
    ----------
    upper
        What the progress callback is told is the bound value + slack, not the value.
    inner
        Sweeps between two outer steps (`rebase`), for Bethe's double loop.
    begun
        (B,) sweeps that each lane has made before, which count towards the limit; it then stops at the last look that
        is within.
    max_iter
        A limit other than that of the options.
    full
        Whether these are lanes of a block that fills the vector registers, where their own number does not tell:
        kernels round differently for few lanes.
    """
    ending = Endings.pending(lanes)
    num_lanes = lanes.num_lanes
    full = num_lanes >= FULL_LANES if full is None else full
    running = np.arange(num_lanes)
    most = options.max_iter if max_iter is None else max_iter
    before = np.zeros(num_lanes, dtype=np.int64) if begun is None else begun
    block = lanes if len(padded(running, full)) == num_lanes else lanes.take(padded(running, full))
    num_iter, pace = 0, 1
    look: Evaluation | None = None
    reserve = 0.0  # seconds to be kept for the last look
    while running.size:
        num_iter, pace = _advance(block, num_iter, min(next_look(num_iter), most), inner, pace, budget, reserve)
        if look is None or not reserve or not budget.must_stop():
            began = budget.used
            try:
                look = block.evaluate(budget)
            except Cancelled:
                if look is None:
                    ending.stopped_by[running] = budget.stopped_by
                    break
            took = budget.used - began
            reserve = LOOK_AND_RESULT * took if took > SLOW_LOOK else 0.0
        residual = residual_of(look)[: running.size]
        ending.upper[running] = np.fmin(
            ending.upper[running], (look.value + look.slack + look.rounding)[: running.size]
        )
        done = residual <= options.tol
        leaving = done if policy is None else done | policy(block, running, residual, num_iter)
        stop = budget.stopped_by if budget.must_stop() else "time" if budget.left() < reserve else None
        spent = num_iter >= most if begun is None else before[running] + next_look(num_iter) > most
        out = np.flatnonzero(leaving | spent | (stop is not None))
        if out.size:
            where = running[out]
            ending.value[where], ending.rounding[where], ending.residual[where] = (
                look.value[out],
                look.rounding[out],
                residual[out],
            )
            ending.num_iter[where] = before[where] + num_iter
            ending.stopped_by[where] = stop
            if stop is None:
                ending.stopped_by[running[np.broadcast_to(spent, running.shape)]] = "max_iter"
            ending.stopped_by[running[done]] = "tol"
            ending.point[:, where] = block.point[:, out]
        if budget.listening:
            worst = int(np.argmax(residual))
            budget.report(
                Progress(
                    method=method,
                    num_iter=int(before[running[worst]]) + num_iter,
                    residual=float(residual[worst]),
                    log_z=float(ending.upper[running[worst]] if upper else look.value[worst]),
                    num_lanes=num_lanes,
                    num_finished=num_lanes - running.size + out.size,
                    seconds=budget.seconds,
                )
            )
        if out.size:
            kept = np.delete(np.arange(running.size), out)
            running = running[kept]
            if running.size:
                kept = padded(kept, full)
                block, look = block.take(kept), Evaluation(*(part[kept] for part in look))
    return ending


def next_look(num_iter: int) -> int:
    """The sweep after which the lanes are looked at next."""
    return num_iter + min(MAX_INTERVAL, 1 + num_iter // 2)


def _advance(
    block: Lanes, num_iter: int, target: int, inner: int | None, pace: int, budget: Budget, reserve: float
) -> tuple[int, int]:
    """Sweep up to `target` sweeps in all, or until the watch says stop or has only so many seconds left; returns how
    many it is now, and how many to make before asking it again."""
    while num_iter < target:
        step = min(pace if inner is None else inner, target - num_iter)
        began = time.perf_counter()
        block.sweep(step, budget)
        num_iter += step
        if inner is not None:
            block.rebase()
        elif step == pace and (time.perf_counter() - began) * 2 < PACE:
            pace *= 2
        if budget.must_stop() or budget.left() < reserve:
            break
    return num_iter, pace
