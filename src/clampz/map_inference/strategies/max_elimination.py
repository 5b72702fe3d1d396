"""Max-elimination: the maximum of all that is left, where no bucket need be split."""

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget


class MaxElimination(MapStrategy):
    """Eliminates all variables, once, if that takes a share of the time."""

    name = "max-elimination"

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for it."""
        return self.ask(self._eliminate, self.problem.parts[0], budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Take the maximum, by which a search finds the configurations."""
        self.is_done = True
        if found.found is not None:
            quantum.label.search_by(found.found)

    def _eliminate(self, whole: Component, budget: Budget) -> Done:
        return Done(0.0, whole.eliminate(budget))
