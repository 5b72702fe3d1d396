"""Components: what is left comes apart, and each of them may be narrow."""

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget


class Components(MapStrategy):
    """Splits the model into components, once, and eliminates those that are narrow."""

    name = "components"

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for it; several configurations are those of the whole."""
        whole = self.problem.parts[0]
        self.is_done = self.is_done or self.problem.limits.num_best > 1 or whole.is_exact
        return None if self.is_done else self.ask(self._split, whole, budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Go on with the components."""
        self.is_done = True
        if found.found is not None:
            self.problem.take_apart(found.found)

    def _split(self, whole: Component, budget: Budget) -> Done:
        parts = whole.split(budget)
        left = whole.model.num_variables
        for part in parts or ():
            own = budget.share(part.model.num_variables / left)
            left -= part.model.num_variables
            if not part.is_done and (bound := part.eliminate(own)) is not None:
                part.search_by(bound)
        return Done(0.0, parts)
