"""Best-first branch and bound, by the best bound that there is."""

import math

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, MapProblem, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget

# Nodes at a time, beside one for each state on the way to a configuration; and seconds of each.
NODES_AT_A_TIME, NODE_SECONDS = 2**15, 3e-7


class BestFirstSearch(MapStrategy):
    """Goes on with the search of the component of the largest gap."""

    name = "branch and bound"

    def __init__(self, problem: MapProblem) -> None:
        super().__init__(problem)
        self.is_midway = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for more nodes."""
        part = self.problem.widest(lambda each: each.search is not None)
        return None if part is None else self.ask(self._search, part, budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Take both ends."""
        quantum.label.take_search()

    def seconds_left(self, num_workers: int) -> float:
        """Return a moment where every bound is the maximum, so that the search goes straight to what attains it."""
        left = [part for part in self.problem.parts if not part.is_done]
        is_straight = bool(left) and all(part.is_exact for part in left)
        return NODE_SECONDS * sum(part.model.num_variables for part in left) if is_straight else math.inf

    def _search(self, part: Component, budget: Budget) -> Done:
        num_nodes = NODES_AT_A_TIME + 2 * part.model.num_variables
        part.search_on(num_nodes, budget)
        return Done(num_nodes * NODE_SECONDS, None)
