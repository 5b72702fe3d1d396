"""What exact sums cost: the one model of their time, for whoever has to choose.

Time goes by the table entries that the pass forwards visits (`Order.total`).  Measured with one thread on a machine
that others used too, on binary tori of 81 and 144 variables, complete graphs, and tori of three and five labels:
forwards an entry takes 0.5 to 4 ns, and both passes together 2 to 15 ns, mostly 2.4 to 4 times as long as the one.
Earlier, both passes took 1.1 to 1.4 ns a byte on binary grids and 2.9 with five labels, which is about 10 ns an entry
for either: entries tell more than bytes.  The rates have room to spare, so that what is promised in some seconds is
done in them.
"""

import math
from typing import NamedTuple

from clampz.elimination.plans import NO_LIMIT, Elimination, ExactPlan
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.watch import Watch

# Table entries of a sum that stays in a processor's cache, and seconds per entry there and beyond twice as many.
CACHED_ENTRIES = 2.0**20
SECONDS_PER_ENTRY, SECONDS_BEYOND = 6e-9, 10e-9
# Both passes take so many times as long as the one forwards.
WITH_MARGINALS = 3.0
# Of a sum of whatever size, and of each variable however small its tables.
SECONDS_PER_SUM, SECONDS_PER_VARIABLE = 1e-4, 2e-7


def seconds(entries: float, *, marginals: bool = False, at_once: float | None = None, variables: int = 0) -> float:
    """What a sum takes that visits so many table entries forwards; or several sums, of so many entries `at_once`."""
    rate = SECONDS_PER_ENTRY if (at_once or entries) <= 2 * CACHED_ENTRIES else SECONDS_BEYOND
    visits = entries * rate + variables * SECONDS_PER_VARIABLE
    return SECONDS_PER_SUM + visits * (WITH_MARGINALS if marginals else 1.0)


def elimination_seconds(elimination: Elimination, *, marginals: bool) -> float:
    """What a sum by this plan takes."""
    order = elimination.order
    return seconds(order.total, marginals=marginals, variables=len(order.variables))


class ExactCost(NamedTuple):
    """What exact inference on a model takes, and the plan that takes it; where no order was completed there is none,
    and it takes `at_least` that."""

    width: int
    num_bytes: int
    seconds: float
    plan: ExactPlan | None

    @property
    def at_least(self) -> bool:
        return self.plan is None


def exact_cost(model: Model, *, marginals: bool = True, watch: Watch | None = None) -> ExactCost:
    """The width of the best elimination order found, and the memory and time that it takes; nothing is run.  Where a
    watch is over before there is any order, all that is known is that it takes longer.

    >>> from clampz import generators
    >>> exact_cost(generators.cycle(100, rng=0)).width
    2
    """
    try:
        plan = ExactPlan.within(watch, Batch.of(model), NO_LIMIT, marginals=marginals)
    except TooWideError as error:
        return ExactCost(error.width, error.num_bytes, seconds(error.num_bytes / 8, marginals=marginals), None)
    if plan is None:
        return ExactCost(0, 0, math.inf, None)
    found = plan.elimination
    return ExactCost(found.width, found.num_bytes(marginals), elimination_seconds(found, marginals=marginals), plan)
