"""Conditioning: exact sums over disjoint sets of configurations.

They are a lower bound on log Z, and when no set is left, log Z itself.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from clampz.bounding.problem import Problem
from clampz.numerics import log_sum_exp, summing_error
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class DisjointSums(ABC):
    """Sums over sets of configurations that have none in common, likeliest sets first, added up.

    Attributes
    ----------
    is_over
        Whether no set that it knows of is left.
    complete
        Whether all of Z is summed.
    """

    def __init__(self) -> None:
        self.is_over = self.complete = False
        self._lower, self._upper = list[float](), list[float]()
        self._best = -math.inf

    @abstractmethod
    def expected(self, seconds: float) -> float:
        """Return the lower end that this much more time is expected to bring; inf while nothing is known."""

    @abstractmethod
    def step(self, budget: Budget) -> float:
        """Find some sets, or sum some, within the budget; return the lower end of log Z."""

    @property
    def num_sums(self) -> int:
        """How many sets were summed."""
        return len(self._lower)

    def add(self, lower: float, upper: float) -> None:
        """Add the sum over one more set, by its ends."""
        self._lower.append(lower)
        self._upper.append(upper)

    @property
    def lower(self) -> float:
        """A lower bound on log Z that never falls."""
        lower = log_sum_exp(np.array(self._lower))
        self._best = max(self._best, lower - summing_error(self.num_sums, lower))
        return self._best

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of log Z: the upper one is inf until all of Z is summed, then they differ by rounding alone."""
        upper = log_sum_exp(np.array(self._upper))
        return self.lower, upper + summing_error(self.num_sums, upper) if self.complete else math.inf


class Conditioning(Strategy[Problem]):
    """Sums sets of configurations, likeliest first; what to sum is found out in the first quantum."""

    is_in_order = False
    _sets: DisjointSums | None = None

    @abstractmethod
    def choose(self, budget: Budget) -> DisjointSums | None:
        """Choose the kind of sets, as soon as there are beliefs of an upper bound to go by."""

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for sums."""
        if self.is_done:
            return None
        self._sets = self._sets or self.choose(budget)
        if self._sets is None:
            return None
        return Quantum(sum_sets, (self._sets, seconds), budget.share())

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the ends of log Z by all sums so far."""
        assert self._sets is not None
        self.problem.tighten(*found, close=self._sets.complete)
        self.is_done = self._sets.is_over
        self.is_midway = not (self._sets.num_sums or self.is_done)

    def expected(self, seconds: float) -> float | None:
        """Return the nats by which sums in this time are expected to raise the lower end, if that is known."""
        lower = -math.inf if self._sets is None else self._sets.expected(seconds)
        return max(0.0, lower - self.problem.frontier.root.lower) if math.isfinite(lower) else None


def sum_sets(sets: DisjointSums, seconds: float, within: Budget) -> tuple[float, float]:
    """Sum sets for this many seconds; return the ends of log Z."""
    budget = Budget(seconds, within=within)
    while not sets.is_over and not budget.must_stop():
        sets.step(budget)
    return sets.ends
