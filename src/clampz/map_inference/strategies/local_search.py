"""Local search: kicks from the best configuration so far, and annealing."""

from contextlib import suppress

import numpy as np

from clampz.map_inference.components import Component
from clampz.map_inference.local_search import SECONDS_PER_BYTE, Terms, num_bytes
from clampz.map_inference.problem import Done, MapProblem, MapStrategy
from clampz.portfolio.strategy import Quantum
from clampz.runtime.budget import Budget, Cancelled

# Sweeps of the first annealing of a component, which double each time; and the share of the time left that one may
# take.
FIRST_SWEEPS, ANNEALING_SHARE = 100, 0.1
# Variables that a kick visits, about.
VISITS = 20
# The share of the time that it has in any case; and of the time left and of the memory that its terms may take.
SHARE, TERMS_SHARE, TERMS_MEMORY = 0.15, 0.5, 0.5


class LocalSearch(MapStrategy):
    """Searches from the best so far and from where annealing leads, twice as long each time."""

    name = "local search"
    share = SHARE

    def __init__(self, problem: MapProblem) -> None:
        super().__init__(problem)
        self._has_gained = self.is_midway = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for a search in the component of the largest gap."""
        part = self.problem.widest(lambda each: each.terms is not None or not each.num_searches)
        if part is None:
            return None
        part.num_searches += 1
        return self.ask(self._search, part, budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Take the configurations."""
        part, lower = quantum.label, quantum.label.lower
        self.problem.lacks_memory |= part.terms is None and not self._has_room(part)
        part.take(*found.found)
        self._has_gained = part.lower > lower

    def expected(self, seconds: float) -> float | None:
        """Expect nothing where the last search found nothing better: then it has its share."""
        return None if self._has_gained else 0.0

    def _search(self, part: Component, budget: Budget) -> Done:
        size = num_bytes(part.model)
        if part.terms is None and self._has_room(part) and SECONDS_PER_BYTE * size <= budget.left(TERMS_SHARE):
            with suppress(Cancelled):
                part.terms = Terms.of(part.model, budget)
        if part.terms is None:
            return Done(0.0, ())
        terms, begin, number = part.terms, part.begin, part.num_searches - 1
        num_sweeps = int(min(FIRST_SWEEPS * 2**number, budget.left(ANNEALING_SHARE) / terms.sweep_seconds))
        rng = np.random.default_rng([part.limits.seed, number])
        found = [terms.climb(begin, num_sweeps * len(begin) // VISITS, rng, budget)]
        if num_sweeps >= FIRST_SWEEPS and not budget.must_stop():
            found.append(terms.anneal(begin, num_sweeps, rng, budget))
        return Done(2 * num_sweeps * terms.sweep_seconds, found)

    def _has_room(self, part: Component) -> bool:
        return num_bytes(part.model) <= TERMS_MEMORY * part.limits.num_bytes
