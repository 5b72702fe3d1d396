"""Disjoint sets of configurations, each summed exactly: a lower bound on log Z, and when none is left, log Z itself."""

import math
from abc import ABC, abstractmethod

import numpy as np

from clampz.numerics import log_sum_exp, summing_error
from clampz.runtime.budget import Budget


class Conditioning(ABC):
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
        """Sets that were summed."""
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


def sum_sets(sets: Conditioning, seconds: float, within: Budget) -> tuple[float, float]:
    """Sum sets for this many seconds; return the ends of log Z."""
    budget = Budget(seconds, within=within)
    while not sets.is_over and not budget.must_stop():
        sets.step(budget)
    return sets.ends
