"""What simplifying leaves around variables whose marginals are asked for, and what exact inference says of them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clampz.bounding.options import BoundOptions
from clampz.exact_inference.running import PLANNING_SHARE
from clampz.model import Model
from clampz.model.results import Estimates
from clampz.model.tables import ranges
from clampz.numerics import Floats, Integers
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget

# Beyond the rounding of log Z, what a computed probability may be off by.
PROBABILITY_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class RelevantModel:
    """Variables that are asked for, and what simplifying leaves around them.

    Attributes
    ----------
    model, asked
        As the user has them.
    rest, error
        What is left, and what its log Z may be off by.
    within
        Which variables of the rest are asked for, all of their states.
    is_impossible
        Whether Z = 0 was found on the way.
    """

    model: Model
    asked: Integers
    rest: Model
    error: float
    within: Integers
    is_impossible: bool = False

    @classmethod
    def of(cls, model: Model, asked: Integers, options: BoundOptions, budget: Budget) -> "RelevantModel":
        """Without exact sums, or where there is no time, the model as it is."""
        if options.exact:
            found = simplify(
                model,
                asked.tolist(),
                marginals=False,
                pairwise=not model.factors,
                memory=options.num_bytes,
                budget=budget.share(PLANNING_SHARE),
            )
            if found.infeasibility:
                return cls(model, asked, model, 0.0, asked, is_impossible=True)
            if found.is_complete:
                within = np.searchsorted(found.variables, asked)
                return cls(model, asked, found.model, found.error, within)
        return cls(model, asked, model, 0.0, asked)

    @property
    def rows(self) -> Integers:
        """Rows of the states asked for, among those of the reduced model."""
        return ranges(self.rest.unary.start[self.within], self.rest.num_states[self.within])


class Known(NamedTuple):
    """Ends of the probabilities of all states that are asked for, end to end; nan where there are none yet, unless they
    are `of_all`: then Z = 0, and there are no probabilities."""

    lower: Floats
    upper: Floats
    of_all: bool

    @classmethod
    def nothing(cls, around: RelevantModel) -> "Known":
        none = np.full(len(around.rows), np.nan)
        return cls(none, none, not len(none))


def known_exactly(around: RelevantModel, sums: Estimates) -> Known:
    """Return what an exact sum of the reduced model says, as far as it came."""
    found = sums[0]
    if found.bound != "exact":
        return Known.nothing(around)  # time was too short
    marginals = found.marginals.flat[around.rows]
    off = PROBABILITY_ROUNDING + 4 * (found.upper - found.lower + around.error) if found.log_z > -math.inf else math.nan
    of_all = found.log_z == -math.inf or not np.isnan(marginals).any()
    return Known(np.maximum(marginals - off, 0.0), np.minimum(marginals + off, 1.0), of_all)
