"""Disjoint sets of configurations, each summed exactly: a lower bound on log Z, and when none is left, log Z itself."""

import math
from typing import Protocol

import numpy as np

from clampz.numerics import log_sum_exp, summing_error
from clampz.runtime.budget import Budget


class ConditionedSums:
    """Sums over sets of configurations that have none in common, added up."""

    def __init__(self) -> None:
        self._lower, self._upper = list[float](), list[float]()
        self._best = -math.inf

    def __len__(self) -> int:
        return len(self._lower)

    def add(self, lower: float, upper: float) -> None:
        """One more, by its ends."""
        self._lower.append(lower)
        self._upper.append(upper)

    @property
    def lower(self) -> float:
        """A lower bound on log Z: never below what it was."""
        lower = log_sum_exp(np.array(self._lower))
        self._best = max(self._best, lower - summing_error(len(self), lower))
        return self._best

    def ends(self, complete: bool) -> tuple[float, float]:
        """Lower and upper end of log Z: apart by rounding only where all of it is summed; until then the upper one is
        inf."""
        upper = log_sum_exp(np.array(self._upper))
        return self.lower, upper + summing_error(len(self), upper) if complete else math.inf


class DisjointSets(Protocol):
    """Whoever finds such sets, likeliest first, and sums them: `is_over` where none is left that it knows of,
    `complete` where all of Z is summed."""

    @property
    def is_over(self) -> bool: ...
    @property
    def complete(self) -> bool: ...
    @property
    def ends(self) -> tuple[float, float]: ...
    def expected(self, seconds: float) -> float: ...
    def go_on(self, budget: Budget) -> float: ...


def sum_sets(sets: DisjointSets, seconds: float, within: Budget) -> tuple[float, float]:
    """Ends of log Z after sums of so many seconds."""
    budget = Budget(seconds, within=within)
    while not sets.is_over and not budget.must_stop():
        sets.go_on(budget)
    return sets.ends
