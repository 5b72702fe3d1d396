"""Local search: kicks from the best configuration so far."""

import numpy as np

from clampz.map_inference.components import Component
from clampz.map_inference.local_search import Terms
from clampz.map_inference.problem import Done, Improving
from clampz.runtime.budget import Budget, Cancelled

# Kicks take as long as this many sweeps over all variables.
SWEEPS = 100


class LocalSearch(Improving):
    """Changes a few variables near each other at a time, and goes on from what is no worse."""

    name = "local search"
    share = 0.1

    def is_for(self, part: Component, budget: Budget) -> bool:
        """Whether there is memory for it."""
        return part.has_room

    def search(self, part: Component, rng: np.random.Generator, budget: Budget) -> Done:
        """Return the configuration after some kicks."""
        try:
            terms = part.terms = part.terms or Terms.of(part.model, budget)
        except Cancelled:
            return Done(0.0, ())
        seconds = SWEEPS * terms.sweep_seconds
        return Done(seconds, [terms.climb(part.begin, int(seconds / terms.kick_seconds), rng, budget)])
