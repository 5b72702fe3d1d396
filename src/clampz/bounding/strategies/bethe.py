"""Bethe on all of the model: the estimate with a few variables clamped, and a lower bound where it is one."""

import math
from typing import Any

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.method_choice import BETHE_TOL
from clampz.bounding.bracket import PointEstimate
from clampz.bounding.problem import Problem
from clampz.clamping.branches import clamps_that_fit
from clampz.clamping.clamp import clamp_on
from clampz.model.batch import Batch
from clampz.model.results import Estimate
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget

# Variables that the estimate is clamped at, the branches they may make, and the seconds and the share of the time that
# it may take.
MOST_CLAMPS, MOST_BRANCHES, SECONDS, SHARE = 3, 64.0, 2.0, 0.05
SELECT = "maxW+TRE"
# Seconds for each edge, and for each entry of its table, that it takes to begin, about: where there are no more, Bethe
# is not asked.
SECONDS_PER_EDGE, SECONDS_PER_ENTRY = 2e-6, 3e-8
NO_MEMORY = "There was not memory enough for Bethe."


class Bethe(Strategy[Problem]):
    """Runs Bethe once for the estimate; on balanced models on from there, or from mean field, as a lower bound."""

    name = "Bethe"
    _is_asked = False
    _found: Estimate | None = None

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the estimate, and then for sweeps as long as they are a bound."""
        problem = self.problem
        num_bytes = problem.worker_bytes
        if self._is_asked and not bethe.fits(problem.rest, num_bytes):
            self.is_done = True
            return None
        if self._is_asked:
            return Quantum(self._go_on, (seconds,), budget.share())
        self._is_asked = True
        seconds = min(SECONDS, budget.left(SHARE))
        return Quantum(self._estimate, (seconds, num_bytes), budget.share(), label="estimate")

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the estimate, or a lower bound."""
        problem = self.problem
        if quantum.label != "estimate":
            self._found = found if not np.isnan(found.marginals.flat).any() else self._found
            problem.tighten(found.lower, math.inf)
            self.is_done = found.converged
            return
        point, lower = found
        problem.facts.is_estimated = True
        if problem.estimate.by == "Bethe":
            problem.estimate = point
        problem.tighten(lower, math.inf)
        self.is_done = problem.options.in_order or not problem.rest.is_balanced

    def end(self) -> None:
        """Say that there will be no more of an estimate."""
        super().end()
        self.problem.facts.is_estimated = True

    def _estimate(self, seconds: float, num_bytes: float, budget: Budget) -> tuple[PointEstimate, float]:
        """Return Bethe's value with a few variables clamped, and a lower bound on log Z.

        There is no value where Bethe does not converge in time, or lacks memory; the bound is -inf unless the model is
        attractive or balanced.
        """
        model = self.problem.rest
        if seconds <= SECONDS_PER_EDGE * model.num_edges + SECONDS_PER_ENTRY * len(model.pairwise.flat):
            return PointEstimate(None, "There was no time for Bethe."), -math.inf
        largest = np.sort(model.num_states)[::-1][:MOST_CLAMPS].astype(np.float64)
        wanted = int(np.count_nonzero(np.cumprod(largest) <= MOST_BRANCHES))
        num_clamps = clamps_that_fit(model, wanted, limit=int(num_bytes))
        if num_clamps < 0:
            return PointEstimate(None, NO_MEMORY), -math.inf
        limits: dict[str, Any] = {"time": seconds, "tol": BETHE_TOL, "threads": 1}
        first = bethe.solve(Batch.of(model), bethe.options(None, limits), within=budget)[0]
        found = clamp_on(first, k=num_clamps, select=SELECT, within=budget, memory=int(num_bytes), **limits)
        converged = [step.log_z for step in found.steps if step.converged]
        value = (
            PointEstimate(converged[-1])
            if converged
            else PointEstimate(None, "Bethe did not converge in its share of the time.")
        )
        return value, found.lower if found.bound == "lower" else -math.inf

    def _go_on(self, seconds: float, budget: Budget) -> Estimate:
        """Run Bethe from where it ended, or from mean field."""
        problem = self.problem
        start = self._found if self._found is not None else problem.facts.marginals
        limits = {"time": seconds, "threads": 1, "seed": problem.options.seed}
        own = {} if start is None else {"num_starts": 0, "from_mean_field": False}
        return bethe.solve(Batch.of(problem.rest), bethe.options(None, limits | own), start, within=budget)[0]
