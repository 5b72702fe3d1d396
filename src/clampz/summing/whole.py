"""The sum over all of a model at once, without marginals: how, what it takes, and its ends."""

import math
from typing import NamedTuple

from clampz.elimination.plans import NO_LIMIT
from clampz.elimination.slice_plans import SlicedPlan, Slicer
from clampz.elimination.slices import sum_lane
from clampz.model import Model
from clampz.model_counting.count import Counted, count
from clampz.planar.ising import Unfit
from clampz.planar.plans import PlanarPlan
from clampz.planar.sums import sum_by_plan
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled

# Share of the memory that programs which count may have.
COUNTING_MEMORY = 0.3

UNKNOWN = -math.inf, math.inf


class WholeSum(NamedTuple):
    """How to sum a model.

    Attributes
    ----------
    model, error
        What is summed, the model itself or what simplifying leaves of it, and how far off log Z of that may be.
    how
        By elimination, or as a planar graph.
    memory
        Bytes that a planar sum may take; plans of elimination carry theirs.
    """

    model: Model
    error: float
    how: SlicedPlan | PlanarPlan
    memory: float = NO_LIMIT

    @property
    def seconds(self) -> float:
        """What it takes one worker."""
        return self.how.seconds() if isinstance(self.how, PlanarPlan) else self.how.seconds

    @property
    def duration(self) -> float:
        """Seconds until all workers are done."""
        return self.how.seconds() if isinstance(self.how, PlanarPlan) else self.how.duration

    def ends(self, budget: Budget | None = None) -> tuple[float, float]:
        """Lower and upper end of log Z: apart by rounding only, unless the watch was over first, or rounding could not
        be bounded."""
        if isinstance(self.how, SlicedPlan):
            lower, upper = sum_lane(self.model, self.model.unary.flat, self.how, budget)
            return lower - self.error, upper + self.error
        try:
            found = sum_by_plan(
                self.model, self.how, budget=budget, memory=None if math.isinf(self.memory) else int(self.memory)
            )
        except Cancelled:
            return UNKNOWN
        if isinstance(found, Unfit):
            return UNKNOWN
        off = found.error + self.error
        return found.log_z - off, found.log_z + off


def quick_sum(model: Model, most_seconds: float, memory: float, budget: Budget) -> WholeSum | None:
    """A model as it is, if that takes a moment: by elimination, or as a planar graph however wide."""
    plan = Slicer(model).plan(model.unary.flat, most_seconds, memory, budget=budget)
    if plan is not None:
        return WholeSum(model, 0.0, plan)
    found = planar_whole(model, memory, budget)
    return found if found is not None and found.seconds <= most_seconds else None


def planar_whole(model: Model, memory: float, budget: Budget) -> WholeSum | None:
    """A model as a planar graph, if it is one."""
    try:
        plan = PlanarPlan.of(model, budget=budget, memory=int(memory))
    except Cancelled:
        return None
    return None if isinstance(plan, Unfit) else WholeSum(model, 0.0, plan, memory)


def plan_whole(
    model: Model,
    rest: Model,
    error: float,
    most_seconds: float,
    memory: float,
    thorough: bool,
    num_workers: int,
    budget: Budget,
) -> WholeSum | None:
    """The quickest way found to get ends of log Z of the `rest`, which simplifying for other methods left of a model
    within an error, by a sum that takes so many seconds at most: over what more simplifying leaves of that, or over the
    model as a planar graph."""
    found = planar_whole(model, memory, budget)
    ways = [] if found is None else [found._replace(error=error)]
    least = simplify(rest, marginals=False, memory=int(memory), budget=budget)
    plan = Slicer(least.model).plan(
        least.model.unary.flat, most_seconds, memory, thorough=thorough, num_workers=num_workers, budget=budget
    )
    if plan is not None:
        ways.append(WholeSum(least.model, least.error, plan))
    may = [each for each in ways if each.duration <= most_seconds]
    return min(may, key=lambda each: each.duration, default=None)


def count_on(model: Model, memory: float, budget: Budget) -> Counted:
    """What counting makes of a model in a share of the memory."""
    return count(model, budget=budget, memory=int(COUNTING_MEMORY * memory))
