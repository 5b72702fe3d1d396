"""What is done about a model as a whole beside a search: its sum, in slices, and methods that have more to gain."""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from clampz.bounding.leaves.evaluate import solve_by_methods
from clampz.bounding.options import WHOLE_MEMORY, BoundOptions
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.running import sum_ends
from clampz.exact_inference.slices import Slices, SliceSums, sum_slices
from clampz.model import Model
from clampz.model.lane_memory import lanes_that_fit
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.workers import Crew, Job

# Share of the time that summing the whole model may take: where it has threads of its own, and where everything else
# waits for it.
WHOLE_TIME, WHOLE_TIME_ALONE = 0.75, 0.5
# The share that it is expected to take at most where all threads are given to it.
SOON = 0.7
# Slices that bounds are looked for on at most, and the share of the time, and of what the sum takes, for each of two
# methods.
MOST_BOUNDED, BOUNDS_SHARE = 256, 1 / 16


WholeBy = Literal["method", "plan", "sum", "slices", "bounds", "count", "sets", "draws"]


class WholeModel(NamedTuple):
    """The ends of log Z are asked for: by a method on all of the model, by a sum in one go, by summing some slices, by
    bounds on slices, by sums over disjoint sets, or by counting; or a plan of that sum is, or an estimate by draws."""

    by: WholeBy

    @property
    def num_more(self) -> int:
        return 0


class WholeWork:
    """Work on the whole that waits or is under way: bounds on the slices of its sum first, then slices, as many as may
    be at once, and methods, each begun when a worker has time for it.  `summed`: all of it is known."""

    def __init__(self) -> None:
        self.slices: Slices | None = None
        self.summed = False
        self._error = 0.0
        self._until, self._at_once, self._under_way = Budget(), 0, 0
        self._first: list[tuple[Callable[[], Job[Any]], WholeModel]] = []
        self._later: list[tuple[Callable[[], Job[Any]], WholeModel]] = []

    @property
    def is_summing(self) -> bool:
        """Whether slices are being summed."""
        return self.slices is not None and not self._until.must_stop()

    def add(self, begin: Callable[[], Job[Any]], by: WholeBy = "method") -> None:
        """Have something done, which this begins: methods when a worker has time for them, all else at once."""
        (self._later if by == "method" else self._first).append((begin, WholeModel(by)))

    def add_sum(self, whole: ExactPlan, options: BoundOptions, crew: Crew, budget: Budget) -> None:
        """Have a sum done: in slices by all if it is done soon, else so that one is left for bounds.  Cancelled
        where the budget ends first."""
        if whole.slices is None:
            memory = WHOLE_MEMORY * options.num_bytes
            until = budget.share(WHOLE_TIME_ALONE if crew.num_threads == 1 else 1.0)
            self.add(lambda: crew.submit(sum_ends, whole, memory, local_args=(until,)), "sum")
            return
        slices = self.slices = Slices(whole.batch.model, whole.batch.unary[:, 0], whole.slices)
        if whole.slices.fixed:  # a single sum is laid out by who does it
            slices.begin(budget)
        self._error = whole.error
        soon = slices.plan.duration <= budget.left(SOON)
        self._at_once = min(crew.num_at_once if soon else max(1, crew.num_at_once - 1), slices.plan.num_workers)
        share = WHOLE_TIME_ALONE if crew.num_threads == 1 else WHOLE_TIME if soon else 1.0
        self._until = budget.share(share)
        some = slices.waiting
        if 1 < len(some) <= min(MOST_BOUNDED, lanes_that_fit(slices.model, options.worker_bytes)):
            seconds = BOUNDS_SHARE * min(budget.left(), slices.plan.duration)
            work = (slices.model, slices.lanes(some), options, seconds, some)
            self.add(lambda: crew.submit(bound_slices, *work, local_args=(budget,)), "bounds")

    def next(self, crew: Crew, num_pending: int) -> tuple[Job[Any], WholeModel] | None:
        """What should be under way now, begun; None if that is all."""
        slices = self.slices
        if self._first:
            begin, whole = self._first.pop(0)
            return begin(), whole
        if slices is not None and self._under_way < self._at_once and not self._until.must_stop():
            some = slices.next()
            if some.size:
                self._under_way += 1
                return crew.submit(sum_slices, *slices.work(some), local_args=(self._until,)), WholeModel("slices")
        if self._later and num_pending < crew.num_at_once:
            begin, whole = self._later.pop(0)
            return begin(), whole
        return None

    def take(self, whole: WholeModel, found: Any) -> tuple[float, float]:
        """What came of it, as ends of log Z."""
        if whole.by in ("method", "sum"):
            lower, upper = found
            self.summed = self.summed or (whole.by == "sum" and upper < math.inf)
            return lower, upper
        assert self.slices is not None
        if whole.by == "slices":
            self._under_way -= 1
            sums: SliceSums = found
            self.slices.take(sums)
        else:
            self.slices.bound(*found)
        self.summed = self.summed or self.slices.complete
        lower, upper = self.slices.ends
        return lower - self._error, upper + self._error


def bound_slices(
    model: Model, lanes: Floats, options: BoundOptions, seconds: float, some: Integers, within: Budget = UNLIMITED
) -> tuple[Integers, Floats, Floats]:
    """Which slices, and bounds on their log Z by mean field and TRW."""
    found = solve_by_methods(model, lanes, options, seconds, 1, Budget(2 * seconds) if within is UNLIMITED else within)
    return some, found.lower, found.upper
