"""What proposals of a model are made of: mini-buckets, and where their upper bound has got to."""

import math
from typing import NamedTuple

from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape
from clampz.bounding.leaves.successive_halving import SMALLEST_TABLE, max_table_in_time
from clampz.bounding.options import BoundOptions
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.numerics import Floats
from clampz.runtime.budget import Budget, Cancelled

# Evaluations that the bound of a proposal of its own has.
EVALUATIONS = 40
# The share of a worker's memory that a proposal may keep, and bytes of that for each entry of its tables, about.
KEPT_SHARE, KEPT_BYTES = 0.5, 24
# The factor from one table size to the next smaller one.
SMALLER = 8
# Bits of the caller's seed: whatever is drawn beside a search has numbers of its own beyond them.
SEED_BITS = 62


class ProposalSource(NamedTuple):
    """Mini-buckets, and where their upper bound has got to, or how many evaluations it is to have."""

    mini_buckets: MiniBucketBounds
    x: Floats | None
    num_evaluations: int = 0

    @classmethod
    def own(cls, model: Model, options: BoundOptions, seconds: float, largest: int) -> "ProposalSource":
        """Make mini-buckets of at most `largest` table entries whose bound takes about this many seconds."""
        shape = Shape(max_table_in_time(model, options, seconds / EVALUATIONS, largest), options.seed)
        return cls(MiniBucketBounds(model, shape, shape, options.worker_bytes), None, EVALUATIONS)

    @property
    def smaller(self) -> "ProposalSource | None":
        """Smaller mini-buckets, where time or memory are too short for these; None where there are none."""
        model, (max_table, seed) = self.mini_buckets.model, self.mini_buckets.above
        if self.x is not None or max_table <= SMALLEST_TABLE:
            return None
        shape = Shape(max_table // SMALLER, seed)
        return self._replace(mini_buckets=MiniBucketBounds(model, shape, shape, self.mini_buckets.most_bytes))

    def proposal(self, bounding: Budget, budget: Budget, memory: float = math.inf) -> Proposal | None:
        """Return the proposal, its bound optimised within the first budget.

        None where time or memory do not suffice for it or for a block of draws, and where Z = 0.
        """
        unary = self.mini_buckets.model.unary.flat
        try:
            tables = self.mini_buckets.tables_above(bounding)
            if tables.structure.num_entries > KEPT_SHARE * memory / KEPT_BYTES:
                return None
            state = BoundState.upper(tables, unary, self.x, budget=bounding)
            optimise(state, self.num_evaluations, bounding)
            found = Proposal.of(state, unary, budget)
        except (Cancelled, TooWideError):
            return None
        # a block cannot be stopped half way
        return None if found is None or found.block_size * found.seconds_per_draw > budget.left() else found
