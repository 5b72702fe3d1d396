"""What proposals of a model are made of: regions, and where their upper bound has got to."""

import math
from typing import NamedTuple

from clampz.bracketing.ladder import fitting_limit
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.regions import Regions, Shape
from clampz.errors import TooWideError
from clampz.mini_buckets.descent import State, optimise
from clampz.mini_buckets.proposals import Proposal
from clampz.model import Model
from clampz.numerics import Floats
from clampz.watch import Overdue, Watch

# Evaluations that the bound of a proposal of its own has.
EVALUATIONS = 40


class Origin(NamedTuple):
    """Regions, and where their upper bound has got to, or how many evaluations it is to have."""

    regions: Regions
    x: Floats | None
    num_evaluations: int = 0

    @classmethod
    def own(cls, model: Model, options: BoundOptions, seconds: float, most: int) -> "Origin":
        """New regions, of a limit at most, whose bound takes so many seconds, about."""
        shape = Shape(fitting_limit(model, options, seconds / EVALUATIONS, most), options.seed)
        return cls(Regions(model, shape, shape, options.worker_bytes), None, EVALUATIONS)

    def proposal(self, bounding: Watch, watch: Watch, most_entries: float = math.inf) -> Proposal | None:
        """The proposal, its bound found by the first watch, of so many table entries at most; None where time or memory
        are too short for that or for a block of draws, and where Z = 0."""
        unary = self.regions.model.unary.flat
        try:
            tables = self.regions.tables_above(bounding)
            if tables.structure.num_entries > most_entries:
                return None
            state = State.upper(tables, unary, self.x, bounding)
            optimise(state, self.num_evaluations, bounding)
            found = Proposal.of(state, unary, watch)
        except (Overdue, TooWideError):
            return None
        # a block cannot be stopped half way
        return None if found is None or found.block_size * found.seconds_per_draw > watch.left() else found
