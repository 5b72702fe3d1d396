"""First marginals, and bounds and an estimate with them: mean field, Bethe and TRW on the user's model."""

import math
from typing import Any

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import BETHE_TOL
from clampz.approximations.trw import trw
from clampz.method import Method
from clampz.model.batch import Batch
from clampz.model.lane_memory import bytes_of_lanes
from clampz.model.results import Estimate, stopped_estimates
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.solving.estimates import is_settled
from clampz.solving.problem import SolveProblem

METHODS = mean_field, bethe, trw


class FirstMarginals(Strategy[SolveProblem]):
    """Runs mean field and, but for dense and strong models, Bethe, each from where it was, until both have settled.

    TRW is run where neither has found any marginals.
    """

    name = "first marginals"
    share = 0.05
    is_first = True
    closes_gap = False

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for some more sweeps."""
        return Quantum(self._solve, (seconds,), budget.share())

    def take(self, quantum: Quantum, found: tuple[Estimate, Estimate | None, Estimate | None]) -> None:
        """Take marginals and bounds."""
        problem = self.problem
        problem.below, problem.first, problem.above = found
        for each in found:
            if each is not None and each.stopped_by != "memory":
                problem.tighten_log_z(each.lower, each.upper)
        self.is_done = is_over(problem.below) and (problem.first is None or is_over(problem.first))

    def _solve(self, seconds: float, budget: Budget) -> tuple[Estimate, Estimate | None, Estimate | None]:
        """Run all methods that have not settled, in turn."""
        problem = self.problem
        below, first, above = problem.below, problem.first, problem.above
        if below is None or not is_over(below):
            below = self._run(mean_field, below, seconds, budget)
        if not problem.is_strong and (first is None or not is_over(first)):
            first = self._run(bethe, first, seconds, budget, tol=BETHE_TOL)
        if below.lower == -math.inf and (first is None or not is_settled(first)) and self._fits(trw):
            above = self._run(trw, above, seconds, budget)
        return below, first, above

    def bytes_needed(self) -> float:
        """Return the memory of the largest of these methods that fits at all."""
        model = self.problem.user_model
        fitting = [bytes_of_lanes(model, 1, as_factors=each.takes_factors) for each in METHODS if self._fits(each)]
        return float(max(fitting, default=0))

    def _fits(self, method: Method[Any]) -> bool:
        return method.fits(self.problem.user_model, self.problem.ledger.total)

    def _run(
        self, method: Method[Any], before: Estimate | None, seconds: float, budget: Budget, **own: Any
    ) -> Estimate:
        """Run a method on from where it was; without memory for it, return a result that says nothing."""
        problem = self.problem
        model = problem.user_model
        options = method.options(None, method.with_rng({"time": seconds, "threads": 1} | own, problem.options.seed))
        if not self._fits(method):
            return stopped_estimates(method.name, model, 1, options, "memory")[0]
        start = None if before is None or np.isnan(before.marginals.flat).any() else before
        if start is not None and method is not trw:
            again = {"num_starts": 0} | ({"from_mean_field": False} if method is bethe else {})
            options = method.options(options, again)
        return method.solve(Batch.of(model), options, start, within=budget)[0]


def is_over(found: Estimate) -> bool:
    """Whether a method has nothing left to do that is worth its time."""
    return found.stopped_by == "memory" or found.converged or (found.method == "bethe" and is_settled(found))
