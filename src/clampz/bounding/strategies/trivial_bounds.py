"""Ends of log Z in one pass over the tables: what a bracket has before any method had time for more."""

import math
from typing import Any

import numpy as np

from clampz.bounding.problem import Problem
from clampz.map_inference.local_search import added_once, first_states, score_of
from clampz.model import Model
from clampz.numerics import EPS, ROUNDINGS
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class TrivialBounds(Strategy[Problem]):
    """Bounds that are there before any other, at once."""

    name = "trivial bounds"

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Bound the user's model."""
        if not self.problem.is_resumed:
            self.problem.tighten(*trivial_bounds(self.problem.rest))
        self.is_done = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """There is nothing left to do."""
        return None

    def take(self, quantum: Quantum, found: Any) -> None:
        """Nothing was asked for."""


def trivial_bounds(model: Model) -> tuple[float, float]:
    """Bound log Z by the score of a configuration, and by tables that have their largest entry everywhere.

    The configuration is that whose unary potentials are highest; the unary tables are summed as they are.

    >>> lower, upper = trivial_bounds(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)]))
    >>> round(lower, 6), round(upper, 6)
    (1.0, 2.386294)
    """
    if not model.num_variables:
        return -math.inf, math.inf
    unary, first = model.unary.flat, model.unary.start[:-1]
    highest = np.maximum.reduceat(unary, first)
    if (highest == -np.inf).any():
        return -math.inf, -math.inf
    masses = np.log(np.add.reduceat(np.exp(unary - np.repeat(highest, model.num_states)), first))
    tops = [np.maximum.reduceat(each.flat, each.start[:-1]) for each in (model.pairwise, model.factors) if len(each)]
    lower, upper = score_of(model, first_states(model)), added_once([model.constant], highest, masses, *tops)
    if upper > -math.inf:
        upper += EPS * (abs(upper) + len(unary) + ROUNDINGS * len(highest))
    return lower - EPS * abs(lower) if lower > -math.inf else lower, upper
