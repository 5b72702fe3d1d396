"""Simulated annealing: where good configurations are many flips apart, kicks do not get there."""

import numpy as np

from clampz.map_inference.components import Component
from clampz.map_inference.problem import Done, Improving
from clampz.runtime.budget import Budget

# Sweeps of the first annealing of a component, which double each time; and the share of the time left that one may
# take.
FIRST_SWEEPS, ANNEALING_SHARE = 100, 0.1


class Annealing(Improving):
    """Cools down from a temperature at which all is possible, twice as slowly each time."""

    name = "annealing"
    share = 0.1

    def is_for(self, part: Component, budget: Budget) -> bool:
        """Whether local search has begun, and the first annealing would end in time."""
        return part.terms is not None and FIRST_SWEEPS * part.terms.sweep_seconds <= budget.left(ANNEALING_SHARE)

    def search(self, part: Component, rng: np.random.Generator, budget: Budget) -> Done:
        """Return the configuration that one annealing ends with."""
        terms = part.terms
        assert terms is not None
        num_sweeps = int(min(FIRST_SWEEPS * 2**part.num_anneals, budget.left(ANNEALING_SHARE) / terms.sweep_seconds))
        part.num_anneals += 1
        return Done(num_sweeps * terms.sweep_seconds, [terms.anneal(part.begin, num_sweeps, rng, budget)])
