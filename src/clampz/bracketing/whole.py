"""What is done about a model as a whole beside a search: its sum, in slices, and methods that have more to gain."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from clampz.bracketing.leaves import solve_by_methods
from clampz.bracketing.options import BoundOptions
from clampz.clamping.branches import bytes_per_lane
from clampz.elimination.slices import Slices, SliceSums, sum_slices
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.watch import Watch
from clampz.workers import Crew, Job

# Share of the time that summing the whole model may take: where it has threads of its own, and where everything else
# waits for it.
WHOLE_TIME, WHOLE_TIME_ALONE = 0.75, 0.5
# The share that it is expected to take at most where all threads are given to it.
SOON = 0.7
# Slices that bounds are looked for on at most, and the share of the time, and of what the sum takes, for each of two
# methods.
MOST_BOUNDED, BOUNDS_SHARE = 256, 1 / 16


class Whole(NamedTuple):
    """The ends of log Z are asked for: by a method on all of the model, by summing some slices of it, or by bounds on
    slices."""

    by: Literal["method", "slices", "bounds"]

    @property
    def num_more(self) -> int:
        return 0


class WholeWork:
    """Work on the whole that waits or is under way: bounds on the slices of its sum first, then slices, as many as may
    be at once, and methods, each begun when a worker has time for it."""

    def __init__(self) -> None:
        self.slices: Slices | None = None
        self._until, self._at_once, self._under_way = Watch(), 0, 0
        self._bounds: list[Callable[[], Job[Any]]] = []
        self._methods: list[Callable[[], Job[Any]]] = []

    def add_method(self, begin: Callable[[], Job[Any]]) -> None:
        """Have a method run, which this begins."""
        self._methods.append(begin)

    def add_slices(self, slices: Slices, options: BoundOptions, crew: Crew, watch: Watch) -> None:
        """Have a sum done: by all if it is done soon, else so that somebody is left for bounds."""
        self.slices = slices
        soon = slices.plan.duration <= watch.left(SOON)
        self._at_once = min(crew.num_at_once if soon else max(1, crew.num_at_once - 1), slices.plan.num_workers)
        share = WHOLE_TIME_ALONE if crew.num_threads == 1 else WHOLE_TIME if soon else 1.0
        self._until = watch.share(share)
        some = slices.waiting
        if 1 < len(some) <= min(MOST_BOUNDED, options.worker_bytes / bytes_per_lane(slices.model)):
            seconds = BOUNDS_SHARE * min(watch.left(), slices.plan.duration)
            work = (slices.model, slices.lanes(some), options, seconds, some)
            self._bounds.append(lambda: crew.submit(bound_slices, *work, here=(watch,)))

    def next(self, crew: Crew, num_pending: int) -> tuple[Job[Any], Whole] | None:
        """What should be under way now, begun; None if that is all."""
        slices = self.slices
        if self._bounds:
            return self._bounds.pop()(), Whole("bounds")
        if slices is not None and self._under_way < self._at_once and not self._until.must_stop():
            some = slices.next()
            if some.size:
                self._under_way += 1
                return crew.submit(sum_slices, *slices.work(some), here=(self._until,)), Whole("slices")
        if self._methods and num_pending < crew.num_at_once:
            return self._methods.pop(0)(), Whole("method")
        return None

    def take(self, whole: Whole, found: Any) -> tuple[float, float]:
        """What came of it, as ends of log Z."""
        if whole.by == "method":
            lower, upper = found
            return lower, upper
        assert self.slices is not None
        if whole.by == "slices":
            self._under_way -= 1
            sums: SliceSums = found
            self.slices.take(sums)
        else:
            self.slices.bound(*found)
        return self.slices.ends

    @property
    def summed(self) -> bool:
        """Whether all of the sum is done."""
        return self.slices is not None and self.slices.complete


def bound_slices(
    model: Model, lanes: Floats, options: BoundOptions, seconds: float, some: Integers, within: Watch | None = None
) -> tuple[Integers, Floats, Floats]:
    """Which slices, and bounds on their log Z by mean field and TRW."""
    found = solve_by_methods(model, lanes, options, seconds, 1, within or Watch(2 * seconds))
    return some, found.lower, found.upper
