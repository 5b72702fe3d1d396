"""The best configuration: of a model that is all but certain it is nearly all of Z."""

import math
from typing import Any, NamedTuple

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import bethe_leads
from clampz.bounding.problem import Problem
from clampz.errors import TooWideError
from clampz.map_inference.mode import best_found
from clampz.model.batch import Batch
from clampz.numerics import EPS
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget

# The share of all workers' time, as what chance finds late is not foretold by what it found; and that of a quantum that
# the configuration is looked for, where mean field goes on from it.
SHARE, LOOKING_SHARE = 0.05, 0.8


class Lowest(NamedTuple):
    """A lower end by a configuration, and whether none is possible or no better one is."""

    lower: float
    is_impossible: bool
    is_best: bool


class BestConfiguration(Strategy[Problem]):
    """Looks for the best configuration, with other chances and for longer each time; mean field goes on from it."""

    name = "best configuration"
    share = SHARE
    keeps_going = is_in_order = False
    _num_quanta = 0

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for a search."""
        self.is_done = self.is_done or bethe_leads(self.problem.rest)
        if self.is_done:
            return None
        self._num_quanta += 1
        return Quantum(self._search, (seconds, self.problem.worker_bytes, self._num_quanta), budget.share())

    def take(self, quantum: Quantum, found: Lowest) -> None:
        """Take the lower end; where no configuration is possible, Z = 0."""
        self.problem.tighten(found.lower, -math.inf if found.is_impossible else math.inf)
        self.is_done = found.is_best

    def _search(self, seconds: float, num_bytes: float, number: int, within: Budget) -> Lowest:
        model, budget = self.problem.rest, Budget(seconds, within=within)
        has_room = mean_field.fits(model, num_bytes)
        try:
            looking = budget.share(LOOKING_SHARE if has_room else 1.0)
            found = best_found(model, num_bytes, number + self.problem.options.seed, looking)
        except TooWideError:
            return Lowest(-math.inf, False, True)
        if found.states is None:
            return Lowest(-math.inf, found.upper == -math.inf, False)
        lower = found.score - EPS * abs(found.score)
        if has_room and not budget.must_stop():
            start = np.zeros(len(model.unary.flat))
            start[model.unary.start[:-1] + found.states] = 1.0
            limits: dict[str, Any] = {"threads": 1, "num_starts": 0, "time": budget.left()}
            fields = mean_field.solve(Batch.of(model), mean_field.options(None, limits), start, within=budget)
            lower = max(lower, float(fields.lower[0]))
        return Lowest(lower, False, found.upper <= found.score)
