"""Local search: kicks from the best configuration so far."""

import numpy as np

from clampz.map_inference.components import Component
from clampz.map_inference.local_search import Terms
from clampz.map_inference.problem import Done, Improving
from clampz.runtime.budget import Budget

# Kicks take as long as this many sweeps over all variables.
SWEEPS = 100


class LocalSearch(Improving):
    """Changes a few variables near each other at a time, and goes on from what is no worse."""

    name = "local search"
    share = 0.1

    def improve(self, part: Component, terms: Terms, rng: np.random.Generator, budget: Budget) -> Done:
        """Return the configuration after some kicks."""
        seconds = SWEEPS * terms.sweep_seconds
        return Done(seconds, [terms.climb(part.begin, int(seconds / terms.kick_seconds), rng, budget)])
