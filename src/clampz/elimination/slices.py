"""Exact sums where they are cheap: directly, or in slices, by fixing a few variables so that what is left is narrow.

The sum over the states of the fixed variables of exact sums over the rest is exact too; it takes little memory and can
be done piece by piece.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clampz.elimination import cost
from clampz.elimination.exact import ExactOptions, run_exact
from clampz.elimination.orders import Order, elimination_entries
from clampz.elimination.plans import NO_LIMIT, ExactPlan, Restriction, Scopes
from clampz.model import Model
from clampz.model.batch import Batch, joint_lanes
from clampz.model.fixing import states_left, too_large
from clampz.numerics import EPS, Floats, Integers, log_sum_exp
from clampz.watch import Overdue, Watch

# Entries beyond which a sum is not taken in one go.
MOST_ENTRIES = 2.0**31
# Seconds that a sum may take without a look for variables to fix, and that looking for them may take.
QUICK_SECONDS, PLANNING_SECONDS = 0.05, 0.1
# Slices that are laid out at once at most (more of them are the branches of a search), each in so many arrays.
MOST_AT_ONCE, LANE_ARRAYS = 2500, 3
# Variables that are fixed at most, and those of a model that fixing so few makes narrow.
MAX_FIXED, MOST_VARIABLES = 24, 4096


@dataclass(frozen=True)
class SlicedPlan:
    """How to sum a lane exactly: the variables to fix, table entries of each sum then, how many sums, and the order of
    a single sum where one was looked for thoroughly."""

    fixed: tuple[int, ...]
    entries: float
    num_sums: int
    order: Order | None = None

    @property
    def seconds(self) -> float:
        """What all of it takes, without marginals."""
        return self.num_sums * cost.seconds(self.entries)

    def fits(self, most_seconds: float, memory: float, beside: float) -> bool:
        """Whether it keeps to so many seconds and bytes, with what it takes beside its tables."""
        return self.entries < MOST_ENTRIES and 8 * self.entries + beside <= memory and self.seconds <= most_seconds


class Slicer:
    """Exact sums over lanes of one model; what it knows of the model is computed when it is first needed."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes.of(self.model)

    @cached_property
    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor."""
        return self.scopes.edges() if self.model.factors else self.model.edges.astype(np.int64)

    @cached_property
    def may_fix(self) -> bool:
        """Whether sums may be cut into slices."""
        few = not self.model.factors and self.model.num_variables <= MOST_VARIABLES
        return few and not too_large(self.model)

    def plan(
        self,
        unary: Floats,
        most_seconds: float,
        memory: float = math.inf,
        *,
        thorough: bool = False,
        watch: Watch | None = None,
    ) -> SlicedPlan | None:
        """The cheapest way found to sum the lane with these unary potentials (S,) exactly within so many seconds and
        bytes; None if there is none, or the watch was over first.

        `thorough` spends up to a second on finding a narrow order, which the plan then carries.
        """
        possible = unary > -np.inf
        left = np.maximum(states_left(possible, self.model.unary.start), 1)
        order = Restriction.of(self.scopes, possible).scopes.order(watch) if thorough else None
        entries = self._entries(left, watch) if order is None else order.total
        direct = SlicedPlan((), entries, 1, order)
        beside = float(self.scopes.num_bytes)
        best = direct if direct.fits(most_seconds, memory, beside) else None
        if entries <= cost.CACHED_ENTRIES or (best is not None and best.seconds < QUICK_SECONDS):
            return best
        fixed: list[int] = []
        num_sums = 1
        planning = Watch(min(PLANNING_SECONDS, most_seconds / 4), within=watch)
        while (
            self.may_fix
            and not planning.must_stop()
            and len(fixed) < MAX_FIXED
            and num_sums * cost.SECONDS_PER_SUM < most_seconds
        ):
            busy = np.bincount(self.edges[(left[self.edges] > 1).all(axis=1)].ravel(), minlength=len(left))
            if not busy.any():
                break
            variable = int(np.argmax(busy * np.log2(left)))
            fixed.append(variable)
            num_sums *= int(left[variable])
            left[variable] = 1
            sliced = SlicedPlan(tuple(fixed), self._entries(left, planning), num_sums)
            lanes = LANE_ARRAYS * 8 * len(unary) * min(num_sums, MOST_AT_ONCE)
            if sliced.fits(most_seconds, memory, beside + lanes) and (best is None or sliced.seconds < best.seconds):
                best = sliced
            if sliced.entries <= cost.CACHED_ENTRIES / 8:
                break
        return best

    def total(self, unary: Floats, plan: SlicedPlan, watch: Watch | None = None) -> tuple[float, float]:
        """Lower and upper end of log Z of the lane: apart by rounding only, unless the watch was over before all of it
        was summed; then the lower one has what was, and the upper one is inf."""
        if not states_left(unary > -np.inf, self.model.unary.start).all():
            return -math.inf, -math.inf
        if plan.fixed:
            batch, constant, error = joint_lanes(self.model, unary, plan.fixed)
        else:
            batch, constant, error = Batch(self.model, unary[:, None]), np.zeros(1), 0.0
        possible = np.flatnonzero(constant > -np.inf)
        if not possible.size:
            return -math.inf, -math.inf
        batch = batch.take(possible)
        try:
            how = ExactPlan.of(batch, NO_LIMIT, marginals=False, order=plan.order, watch=watch)
        except Overdue:
            return -math.inf, math.inf
        found = run_exact(batch, ExactOptions(marginals=False, threads=1), watch, how)
        lower, upper = log_sum_exp(found.lower + constant[possible]), log_sum_exp(found.upper + constant[possible])
        rounding = error + 4 * EPS * len(found)
        return (
            lower - rounding * (1 + abs(lower)) if math.isfinite(lower) else lower,
            upper + rounding * (1 + abs(upper)) if math.isfinite(upper) else upper,
        )

    def _entries(self, left: Integers, watch: Watch | None) -> float:
        """Table entries of the elimination of the variables with a choice of states; inf where they are too many, or
        the watch was over before they were counted."""
        free = np.flatnonzero(left > 1)
        kept = self.edges[(left[self.edges] > 1).all(axis=1)]
        return elimination_entries(kept, np.log2(left), free, MOST_ENTRIES, watch)
