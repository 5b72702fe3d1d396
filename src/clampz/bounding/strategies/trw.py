"""TRW on all of the model: an upper bound, at even edge weights first and at optimized ones from then on."""

import math

import numpy as np

from clampz.approximations.trw import trw
from clampz.bounding.problem import Problem
from clampz.method import ForestWeights
from clampz.model.batch import Batch
from clampz.model.results import Estimate
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class Trw(Strategy[Problem]):
    """Runs TRW until its edge weights are optimal, each quantum from the messages and weights of the last one."""

    name = "TRW"
    _found: Estimate | None = None

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for some more sweeps."""
        problem = self.problem
        if not trw.fits(problem.rest, problem.worker_bytes):
            return None
        return Quantum(self._solve, (seconds,), budget.share())

    def take(self, quantum: Quantum, found: Estimate) -> None:
        """Take the upper bound, and beliefs for branches."""
        problem = self.problem
        problem.tighten(-math.inf, found.upper)
        is_optimized = self._found is not None and found.converged
        if not np.isnan(found.marginals.flat).any():
            self._found = found
            problem.believe(found.marginals.flat)
        self.is_done = is_optimized or problem.options.in_order

    def _solve(self, seconds: float, budget: Budget) -> Estimate:
        options, before = self.problem.options, self._found
        limits = {"time": seconds, "threads": 1, "max_iter": options.max_iter}
        if before is None:
            return trw.solve(Batch.of(self.problem.rest), trw.options(None, limits), within=budget)[0]
        chosen = trw.options(None, limits | {"edge_weights": "optimized"})
        weights = ForestWeights.of(before.state, optimize=True)
        return trw.solve(Batch.of(self.problem.rest), chosen, before, weights=weights, within=budget)[0]
