"""Mean field on all of the model: a lower bound, and marginals that others go on from."""

import math

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.bounding.problem import Problem
from clampz.model.batch import Batch
from clampz.model.results import Estimate
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class MeanField(Strategy[Problem]):
    """Runs mean field until it converges, each quantum from where the last one ended."""

    name = "mean field"
    _found: Estimate | None = None

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for some more sweeps."""
        problem = self.problem
        if not mean_field.fits(problem.rest, problem.worker_bytes):
            return None
        return Quantum(self._solve, (seconds,), budget.share())

    def take(self, quantum: Quantum, found: Estimate) -> None:
        """Take the lower bound, and marginals if there are any."""
        problem = self.problem
        problem.tighten(found.lower, math.inf)
        if not np.isnan(found.marginals.flat).any():
            self._found, problem.facts.marginals = found, found.marginals.flat
        self.is_done = found.converged or problem.options.in_order

    def _solve(self, seconds: float, budget: Budget) -> Estimate:
        options = self.problem.options
        limits = {"time": seconds, "threads": 1, "seed": options.seed, "max_iter": options.max_iter}
        again = {} if self._found is None else {"num_starts": 0}
        chosen = mean_field.options(None, limits | again)
        return mean_field.solve(Batch.of(self.problem.rest), chosen, self._found, within=budget)[0]
