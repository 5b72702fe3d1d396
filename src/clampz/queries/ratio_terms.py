"""Two log Z, closed together, whose difference is the answer.

Where both are lanes of one model that is narrow enough, they are summed by one plan.  Else both are bounded as lanes of
that model's mini-buckets, which is soon done, and then searched for in turn.  The first has half of the time, the
second what is left, and that with more to gain is searched again if it is given more time than it had.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from clampz.bounding.bracket import NEAR
from clampz.bounding.marginals.bound_marginals import bound_lanes
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import STRATEGIES
from clampz.bounding.tree.frontier import check_room
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.running import PLANNING_SHARE, exact_if_it_fits
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.tables import has_hard_zeros, take_lanes
from clampz.numerics import EPS, Floats, Integers
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget
from clampz.runtime.progress import ProgressText, says_stop
from clampz.runtime.workers import Crew

T = TypeVar("T", bound=ProgressText)
AskedStop = Literal["gap", "exact", "time", "memory", "interrupt", "callback", "left"]
# The share of the time for bounds on both as lanes.
LANES_SHARE = 0.2
# Seconds that it takes per table entry of both to lay them out for a plan, about.
SECONDS_PER_ENTRY = 3e-7
# Seconds that the beginning of a search takes per table entry, about, before it looks at the clock.
SEARCH_SECONDS_PER_ENTRY = 1e-7


@dataclass
class RatioTerm:
    """One of two log Z that an answer is made of, as far as it is known."""

    model: Model
    lower: float = -math.inf
    upper: float = math.inf
    point: float | None = None
    is_closed: bool = False
    seconds: float = field(default=0.0, repr=False)  # of the longest search for it

    @classmethod
    def of(cls, model: Model) -> "RatioTerm":
        """Begin with nothing known, unless Z = 0 is plain to see."""
        seen = (states_left(model.unary.flat > -np.inf, model.unary.start) == 0).any()
        return cls.impossible(model) if seen else cls(model)

    @classmethod
    def impossible(cls, model: Model) -> "RatioTerm":
        """Begin with Z = 0."""
        return cls(model, upper=-math.inf, is_closed=True)

    @property
    def is_impossible(self) -> bool:
        """Whether Z = 0 is certain."""
        return self.upper == -math.inf

    @property
    def is_possible(self) -> bool:
        """Whether Z > 0 is certain: by what is known of it, or because nothing but states is ruled out."""
        return self.lower > -math.inf or (not self.is_impossible and self._has_no_hard_zeros)

    @cached_property
    def _has_no_hard_zeros(self) -> bool:
        return not (has_hard_zeros(self.model.pairwise.flat) or has_hard_zeros(self.model.factors.flat))

    def tighten(self, lower: float, upper: float) -> None:
        self.lower, self.upper = max(self.lower, lower), min(self.upper, upper)
        self.is_closed = self.is_closed or self.lower == self.upper or self.is_impossible

    def close(self, lower: float, upper: float) -> None:
        """Take ends after which nothing is left to do."""
        self.tighten(lower, upper)
        self.is_closed = True

    @property
    def width(self) -> float:
        return 0.0 if self.is_closed else self.upper - self.lower

    @property
    def values(self) -> tuple[float, float, float, float]:
        """What log Z may be taken for, best first and nan or infinite where there is none.

        The estimate, unless the ends have refuted it since, or the middle of closed ends; the middle; the ends.
        """
        middle = self.lower + (self.upper - self.lower) / 2
        estimate = middle if self.is_closed else math.nan
        if self.point is not None and self.lower - NEAR <= self.point <= self.upper + NEAR:
            estimate = min(max(self.point, self.lower), self.upper)
        return estimate, middle, self.lower, self.upper


class Interval(NamedTuple):
    """Ends of a number, rounded outwards, and an estimate inside; nan where nothing is known."""

    lower: float
    upper: float
    estimate: float

    @classmethod
    def of_difference(cls, one: RatioTerm, other: RatioTerm) -> "Interval":
        """Return one log Z less another; -inf where the first is impossible, inf where the other is."""
        if one.is_impossible or other.is_impossible:
            end = -math.inf if one.is_impossible else math.inf
            return cls(end, end, end)
        lower = _less(one.lower, other.upper, -1.0)
        upper = _less(one.upper, other.lower, 1.0)
        # of the same kind: the estimate of one and an end of the other say nothing together
        differences = (a - b for a, b in zip(one.values, other.values, strict=True))
        estimate = next((value for value in differences if math.isfinite(value)), math.nan)
        return cls(lower, upper, min(max(estimate, lower), upper))


def _less(a: float, b: float, sense: float) -> float:
    """Return a - b, moved by what rounding may have changed: up (sense 1) or down."""
    difference = a - b
    return difference + sense * 2 * EPS * abs(difference) if math.isfinite(difference) else sense * math.inf


def telling(progress: Callable[[T], object] | None, found: Callable[[], T], budget: Budget) -> Callable[[], None]:
    """What tells the caller's callback of what is found so far; StopIteration from it stops the run."""

    def tell() -> None:
        if progress is not None and says_stop(progress, found()):
            budget.stop("callback")

    return tell


def close_both(
    sides: tuple[RatioTerm, RatioTerm],
    base: Model | None,
    options: BoundOptions,
    budget: Budget,
    enough: Callable[[], bool],
    tell: Callable[[], None],
) -> AskedStop:
    """Tighten two log Z as far as the limits allow, until it is enough; return why that ended.

    `base` is the model that both are, but for states ruled out, if there is one; `tell` is called as they close.
    """
    for side in sides:
        check_room(side.model, options.num_bytes)
    reason: AskedStop = "time"
    if not _sum_both(sides, options, budget) and not enough():
        with Crew(None, options.num_threads) as crew:
            try:
                if base is not None:
                    _bound_as_lanes(sides, base, options, budget.share(LANES_SHARE), crew)
                    tell()
                reason = _search_in_turn(sides, options, budget, crew, enough, tell)
            finally:
                budget.end()
    if all(side.is_closed for side in sides):
        return "exact"
    return "gap" if enough() else reason


def _sum_both(sides: tuple[RatioTerm, RatioTerm], options: BoundOptions, budget: Budget) -> bool:
    """Exact sums of both, by one plan where they are lanes of one model, if they fit into time and memory."""
    left = [side for side in sides if not side.is_closed]
    num_entries = sum(side.model.num_entries for side in left)
    if not left or not options.exact or num_entries * SECONDS_PER_ENTRY > budget.left(PLANNING_SHARE):
        return not left
    batches = [Batch.of(side.model) for side in left]
    if len(left) == 2 and _differ_in_unary(left[0].model, left[1].model):
        batches = [Batch(left[0].model, np.stack([side.model.unary.flat for side in left], axis=1))]
    memory = options.num_bytes // 2
    chosen = ExactOptions(memory=memory, marginals=False, threads=options.threads)
    found: list[tuple[float, float]] = []
    for number, batch in enumerate(batches):
        sums, _ = exact_if_it_fits(batch, chosen, budget.share(1 / (len(batches) - number)))
        if sums is None or sums.bound != "exact" or not np.asarray(sums.converged).all():
            return False
        found += zip(sums.lower.tolist(), sums.upper.tolist(), strict=True)
    for side, ends in zip(left, found, strict=True):
        side.close(*ends)
    return True


def _differ_in_unary(one: Model, other: Model) -> bool:
    """Whether two models are lanes of one."""
    a, b = one.contents, other.contents
    same = np.array_equal(a.num_states, b.num_states) and np.array_equal(a.edges, b.edges)
    return same and np.array_equal(a.pairwise, b.pairwise) and a.factors == b.factors and a.constant == b.constant


def _bound_as_lanes(
    sides: tuple[RatioTerm, RatioTerm], base: Model, options: BoundOptions, budget: Budget, crew: Crew
) -> None:
    unary = np.stack([side.model.unary.flat for side in sides], axis=1)

    def lanes_of(rows: Integers) -> Floats:
        return take_lanes(unary, rows)

    def tighten(row: int, lower: float, upper: float) -> None:
        sides[row].tighten(lower, upper)

    rows = np.array([k for k, side in enumerate(sides) if not side.is_closed], dtype=np.int64)
    bound_lanes(base, rows, lanes_of, options, budget, crew, tighten)


def _search_in_turn(
    sides: tuple[RatioTerm, RatioTerm],
    options: BoundOptions,
    budget: Budget,
    crew: Crew,
    enough: Callable[[], bool],
    tell: Callable[[], None],
) -> AskedStop:
    """Search for one after the other, until time is over or the gap is closed; return why that ended."""
    narrow, reason = options.gap / 2, "time"
    while not budget.must_stop() and not enough():
        waiting = [side for side in sides if not side.is_closed and side.width > narrow]
        new = [side for side in waiting if not side.seconds]
        seconds = budget.left(1 / len(new)) if new else budget.left()
        worth = new or [side for side in waiting if side.seconds < seconds]
        if not worth:
            break
        side = max(worth, key=lambda side: side.width)
        if side.model.num_entries * SEARCH_SECONDS_PER_ENTRY > seconds:
            break
        turn = Budget(seconds, within=budget)
        problem = Problem(side.model, replace(options, gap=narrow, time=max(seconds, 0.0)))
        for bracket in Scheduler(problem, STRATEGIES).run(crew, turn):
            side.tighten(bracket.lower, bracket.upper)
            side.point = bracket.estimate if bracket.estimate is not None else side.point
            side.is_closed = side.is_closed or bracket.stopped_by == "exact"
            reason = bracket.stopped_by
            tell()
            if enough():
                break
        turn.end()
        side.seconds = seconds
    if budget.stopped_by in ("interrupt", "callback"):
        return budget.stopped_by
    return "memory" if reason == "memory" else "time"
