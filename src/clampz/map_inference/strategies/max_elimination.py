"""Max-elimination: the maximum of what is narrow enough that no bucket need be split."""

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget


class MaxElimination(MapStrategy):
    """Eliminates all variables, once, if that takes a share of the time; else those of components, one by one."""

    name = "max-elimination"

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for it."""
        return self.ask(self._eliminate, self.problem.parts[0], budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Take the maximum, by which a search finds the configurations, or go on with components."""
        self.is_done = True
        bound, parts = found.found
        if bound is not None:
            quantum.label.search_by(bound)
        elif parts is not None:
            self.problem.take_apart(parts)

    def _eliminate(self, whole: Component, budget: Budget) -> Done:
        bound = whole.eliminate(budget)
        if bound is not None or whole.limits.num_best > 1:  # several configurations are those of the whole
            return Done(0.0, (bound, None))
        parts, left = whole.split(budget), whole.model.num_variables
        for part in parts or ():
            own = budget.share(part.model.num_variables / left)
            left -= part.model.num_variables
            if not part.is_done and (maximum := part.eliminate(own)) is not None:
                part.search_by(maximum)
        return Done(0.0, (None, parts))
