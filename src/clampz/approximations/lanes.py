"""Lanes: a block of a batch that mean field or message passing sweeps, and what an evaluation of it shows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from clampz.model.tables import take_lanes
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers
from clampz.runtime.budget import Budget
from clampz.runtime.workers import MIN_RANGE, Workers, cut, sum_blocks

# Values (messages or probabilities, or table entries by the eight, times lanes) that are updated between two such
# questions where one sweep takes longer: some milliseconds' worth.
PART = 1 << 18


class Evaluation(NamedTuple):
    """The result of evaluating the lanes, one entry per lane. value is the approximation's log Z if the point is a
    fixed point. value + slack is an upper bound for any messages if the edge weights are TRW's. drift is the largest
    disagreement between a pairwise belief's marginal and the belief itself, in probability. rounding bounds the error
    made."""

    value: Floats
    slack: Floats
    drift: Floats
    rounding: Floats

    @classmethod
    def summed(cls, parts: list[Floats], constant: Floats, magnitude: Floats) -> "Evaluation":
        """Add up the kernels' (value, slack, drift, magnitude, carries) of all parts; `magnitude` went into the
        constant."""
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
        """Select lanes as a block of its own, with copies of their points."""
        taken = copy(self)
        taken.layout, taken.workers = self.layout.take(lanes), workers or self.workers
        taken.point, taken.keep = take_lanes(self.point, lanes), self.keep[lanes]
        return taken

    @abstractmethod
    def _arrays(self) -> tuple[Any, ...]:
        """Return the arguments of the sweep kernels."""

    @cached_property
    def ranges(self) -> Integers:
        """(k, 3) return the ranges of slots that a sweep updates."""
        return in_classes(self.layout.topology.class_start)

    @property
    def table_entries(self) -> int:
        """Count the table entries that a sweep touches for each lane, beyond the values it updates."""
        return 0

    @property
    def work(self) -> int:
        """Measure the work of a sweep, in the unit of PART."""
        return int(self.point.size) + self.table_entries * self.num_lanes // 8

    def sweep(self, num_sweeps: int, budget: Budget) -> None:
        """Update everything in the core `num_sweeps` times, colour class by colour class. Where that takes long the
        budget may end it anywhere, as any point will do."""
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
        """Cut slots first..last-1 into pieces of PART, or at least `least` pieces."""
        share = self.work * (last - first) / max(1, self.layout.topology.num_variables)
        return cut(first, last, max(least, 1 + int(share / PART)))

    def _sweep_pendants(self, budget: Budget) -> None:  # noqa: B027 (messages away from the core wait until looked at)
        """Update the pendant trees, for methods whose sweeps do."""

    def _terms(
        self, kernel: Callable[..., None], size: int, *arrays: Any, budget: Budget, entries: int = 1
    ) -> list[Floats]:
        """Run a summing kernel over 0..size-1, block by block: (6, B) each. `entries` is the table entries of a term.
        Raises Cancelled."""

        def run(block: tuple[int, int]) -> Floats:
            budget.check_cancelled()
            out = np.zeros((6, self.num_lanes))
            kernel(*block, *arrays, out)
            return out

        return self.workers.map(run, sum_blocks(size, max(1, entries)))

    def rebase(self) -> None:  # noqa: B027 (most methods have no outer loop)
        """Make the outer step of a double loop."""

    @abstractmethod
    def evaluate(self, budget: Budget) -> Evaluation:
        """Evaluate the lanes where they stand; raises Cancelled where that takes too long."""


def in_classes(start: Integers) -> Integers:
    """List ranges of slots (first, last, step), one for each colour class, all of it at a time."""
    return np.stack([start[:-1], start[1:], np.diff(start)], axis=1)
