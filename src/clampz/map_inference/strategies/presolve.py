"""Presolve: a smaller model with the same largest score."""

import numpy as np

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget

# The share of the time that it may take.
SHARE = 0.4


class Presolve(MapStrategy):
    """Reduces the model, once and before all else."""

    name = "presolve"
    is_first = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for it; what it takes out may be where several configurations differ."""
        self.is_done = self.is_done or self.problem.limits.num_best > 1
        return None if self.is_done else self.ask(self._simplify, budget=budget.share(SHARE), num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Go on with the reduced model."""
        self.problem.reduce(*found.found)
        self.is_done = True

    def _simplify(self, budget: Budget) -> Done:
        model, limits = self.problem.model, self.problem.limits
        found = simplify(model, operation="max", memory=int(limits.num_bytes), budget=budget)
        return Done(0.0, (found, Component.of(found.model, np.arange(found.model.num_variables), limits)))
