"""Mini-buckets: a bound from above that branch and bound goes by, with larger tables each time."""

from functools import partial

from clampz.errors import TooWideError
from clampz.map_inference.components import TABLES_SHARE, Component
from clampz.map_inference.heuristics import Heuristic, bound_seconds, heuristic
from clampz.map_inference.problem import Done, MapProblem, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.workers import Workers

# Entries of the first tables, how many times more the next ones have, and at most.
FIRST_TABLE, GROWTH, LARGEST_TABLE = 2**8, 8, 2**26
# The part of the usual evaluations that larger tables are worth while for.
LEAST_PART = 0.5
# Structures of each table size, of which the best is taken.
NUM_STRUCTURES = 2


class MiniBuckets(MapStrategy):
    """Bounds the component of the largest gap anew, as long as time and memory allow larger tables."""

    name = "mini-buckets"
    share = 1 / GROWTH  # in any case: so the next bound takes about as long as everything before

    def __init__(self, problem: MapProblem) -> None:
        super().__init__(problem)
        self.is_midway = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for bounds by the next larger tables."""
        part = self.problem.widest(lambda each: each.max_table < LARGEST_TABLE and not each.is_exact)
        if part is None:
            return None
        part.max_table = GROWTH * part.max_table or FIRST_TABLE
        return self.ask(self._bound, part, num_workers, budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Have the search go by the new bound if that is better; where there is none, there are no larger tables."""
        part, bound = quantum.label, found.found
        if not isinstance(bound, Heuristic):
            part.max_table = LARGEST_TABLE
        self.problem.lacks_memory |= isinstance(bound, TooWideError)
        if isinstance(bound, Heuristic) and (part.search is None or bound.upper < part.search.heuristic.upper):
            part.search_by(bound)

    def _bound(self, part: Component, num_workers: int, budget: Budget) -> Done:
        max_table = part.max_table
        try:
            structures = [part.structure(max_table, k, NUM_STRUCTURES, budget) for k in range(NUM_STRUCTURES)]
            seconds = sum(bound_seconds(each) for each in structures)
            share = min(1.0, budget.left(TABLES_SHARE) / seconds)
            if max_table > FIRST_TABLE and share < LEAST_PART:
                return Done(0.0, None)
            with Workers(num_workers) as workers:
                bounds = workers.map(partial(heuristic, part.model, budget, share), structures)
        except (TooWideError, Cancelled) as error:
            return Done(0.0, error)
        return Done(share * seconds, min(bounds, key=lambda each: each.upper))
