"""What proposals of a model are made of: regions, and where their upper bound has got to."""

import math
from typing import NamedTuple

from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies.successive_halving import fitting_limit
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.numerics import Floats
from clampz.runtime.budget import Budget, Cancelled

# Evaluations that the bound of a proposal of its own has.
EVALUATIONS = 40


class ProposalSource(NamedTuple):
    """Regions, and where their upper bound has got to, or how many evaluations it is to have."""

    mini_buckets: MiniBucketBounds
    x: Floats | None
    num_evaluations: int = 0

    @classmethod
    def own(cls, model: Model, options: BoundOptions, seconds: float, most: int) -> "ProposalSource":
        """New regions, of a limit at most, whose bound takes so many seconds, about."""
        shape = Shape(fitting_limit(model, options, seconds / EVALUATIONS, most), options.seed)
        return cls(MiniBucketBounds(model, shape, shape, options.worker_bytes), None, EVALUATIONS)

    def proposal(self, bounding: Budget, budget: Budget, most_entries: float = math.inf) -> Proposal | None:
        """The proposal, its bound found by the first watch, of so many table entries at most; None where time or memory
        are too short for that or for a block of draws, and where Z = 0."""
        unary = self.mini_buckets.model.unary.flat
        try:
            tables = self.mini_buckets.tables_above(bounding)
            if tables.structure.num_entries > most_entries:
                return None
            state = BoundState.upper(tables, unary, self.x, budget=bounding)
            optimise(state, self.num_evaluations, bounding)
            found = Proposal.of(state, unary, budget)
        except (Cancelled, TooWideError):
            return None
        # a block cannot be stopped half way
        return None if found is None or found.block_size * found.seconds_per_draw > budget.left() else found
