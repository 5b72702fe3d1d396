"""Plans of sums in slices: a few variables are fixed so that what is left is narrow, and can be summed for each of
their joint states in the time and memory that there is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from clampz._kernels.contraction.tree import Tree
from clampz.errors import TooWideError
from clampz.exact_inference import cost
from clampz.exact_inference.contraction_trees import ContractionTree
from clampz.exact_inference.cuts import Cuts, TreeCuts
from clampz.exact_inference.orders import EliminationOrder, find_order, quick_order
from clampz.exact_inference.scopes import NO_LIMIT, Restriction, Scopes, least_bytes
from clampz.exact_inference.sums import lay_out_lanes, order_of
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled

# Entries beyond which a sum by a quick order is not taken in one go, and a plan is not made to see what it takes.
MOST_ENTRIES, MOST_PLANNED = 2.0**31, 2.0**40
# Seconds that a sum may take without a look for variables to fix, and that looking for them may take.
QUICK_SECONDS, PLANNING_SECONDS = 0.05, 0.1
# Variables of a model that fixing a few makes narrow, and of which a plan is made to see what a sum takes.
MOST_VARIABLES = 2**16
# Seconds from which on a sum is worth slices, if these are quicker, and a second order for them.
LONG_SUM = 1.0
# Slices of a sum at most, and those that are laid out at once, and arrays of each.
MOST_SLICES, MOST_AT_ONCE, LANE_ARRAYS = 2**16, 256, 3
# Seconds that a slice of a long sum takes, if that does not make it much longer: who looks on sees it move, and
# workers end at about the same time.
SLICE_SECONDS, NOT_MUCH = 0.25, 1.25


@dataclass(frozen=True, eq=False)
class Slicing:
    """How to sum a lane exactly.

    Attributes
    ----------
    fixed
        Variables to fix.
    entries
        Table entries of each sum then, along its order.
    num_sums
        How many there are.
    order, tree
        Of each, where one was looked for; a tree of contractions is what the order was laid out as.
    num_workers
        How many may do one at a time.
    pace, bytes_per_entry
        How long a sum takes, for a sweep over the entries of its order, and how much memory: less of both, if the plan
        that is made of the order has a better way.
    speed_up
        How many times as fast a sum is by the threads that share it.
    memory
        For each worker, in bytes.
    laid_out
        Each sum, where it has been laid out.
    """

    fixed: tuple[int, ...]
    entries: float
    num_sums: int
    order: EliminationOrder | None = None
    num_workers: int = 1
    pace: float = 1.0
    bytes_per_entry: float = 8.0
    speed_up: float = 1.0
    memory: float = math.inf
    laid_out: SumTree | None = None
    tree: Tree | None = None

    @property
    def seconds(self) -> float:
        """What all of it takes one worker, without marginals."""
        return self.num_sums * self.slice_seconds

    @property
    def slice_seconds(self) -> float:
        """What each sum takes."""
        return self.pace * cost.seconds(self.entries, contracted=self.tree is not None)

    @property
    def duration(self) -> float:
        """Seconds until all workers are done."""
        return math.ceil(self.num_sums / self.num_workers) * self.slice_seconds / self.speed_up

    @property
    def num_bytes(self) -> float:
        """Bytes of the tables of each sum."""
        return self.bytes_per_entry * self.entries

    @property
    def is_small(self) -> bool:
        """Whether there is nothing to gain from smaller sums but for memory: tables are in the cache, or the blocks
        that contractions cut them into."""
        if self.tree is not None:
            return self.slice_seconds < QUICK_SECONDS
        return self.entries <= cost.CACHED_ENTRIES / 8

    @property
    def num_at_once(self) -> int:
        """Sums that a worker is given at most: as many as take a moment, and leave something for the others."""
        share = self.num_sums if self.num_workers == 1 else self.num_sums // (2 * self.num_workers)
        return max(1, min(int(SLICE_SECONDS / self.slice_seconds), MOST_AT_ONCE, share))

    def fits(self, most_seconds: float, memory: float, beside: int, num_states: int) -> bool:
        """Whether it keeps to time and memory, with what each worker takes beside its tables, and its lanes of
        `num_states` states."""
        lanes = LANE_ARRAYS * 8 * num_states * self.num_at_once if self.fixed else 0
        return self.num_workers * (self.num_bytes + beside + lanes) <= memory and self.duration <= most_seconds


class Slicer:
    """Plans of exact sums over lanes of one model; what it knows of the model is computed when it is first needed."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes.of(self.model)

    @cached_property
    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor."""
        return self.scopes.edges() if self.model.factors else self.model.edges.astype(np.int64)

    def plan(
        self,
        unary: Floats,
        most_seconds: float,
        memory: float = math.inf,
        *,
        thorough: bool = False,
        how: SumTree | None = None,
        marginals: bool = False,
        num_workers: int = 1,
        sharing: bool = False,
        budget: Budget | None = None,
    ) -> Slicing | None:
        """The quickest way found to sum the lane with these unary potentials (S,) exactly, with or without marginals,
        within `most_seconds` and `memory`, by some workers, who may be `sharing` a sum as threads; None if there is
        none, or the budget ended first.

        `thorough` spends up to a second on finding a narrow order, which the plan then carries; `how` is a plan made
        before.
        """
        if least_bytes(self.model) > memory:
            return None
        most_seconds /= cost.WITH_MARGINALS if marginals else 1.0  # plans count what a sum takes without
        left = np.maximum(states_left(unary > -np.inf, self.model.unary.start), 1)
        try:
            direct = self._direct(unary, left, thorough, how, marginals, budget)
        except (Cancelled, TooWideError):
            return None

        def fits(plan: Slicing) -> bool:
            return plan.fits(most_seconds, memory, self.scopes.num_bytes, len(unary))

        if direct.entries <= cost.CACHED_ENTRIES or (direct.seconds < QUICK_SECONDS and fits(direct)):
            return direct if fits(direct) else None
        planning = Budget(min(PLANNING_SECONDS, most_seconds / 4), within=budget)
        if sharing and direct.laid_out is not None:
            direct = replace(direct, speed_up=direct.laid_out.speed_up(marginals, num_workers))
        most_bytes = memory / (2 * num_workers)
        sliced = list(self._sliced(left, direct, most_bytes, most_seconds * num_workers, marginals, planning))
        while True:
            among = [replace(plan, num_workers=min(num_workers, plan.num_sums)) for plan in sliced]
            found = _that_moves([plan for plan in (direct, *among) if fits(plan)])
            if found is not None or num_workers == 1:
                break
            num_workers //= 2  # for fewer of them there may be memory enough
        if found is None:
            return None
        found = replace(found, memory=memory / found.num_workers)
        known = found.tree is not None or (direct.order is not None and found.seconds < LONG_SUM)
        if not found.fixed or known:
            return found
        return self._with_order(unary, found, budget)

    def _direct(
        self,
        unary: Floats,
        left: Integers,
        thorough: bool,
        how: SumTree | None,
        marginals: bool,
        budget: Budget | None,
    ) -> Slicing:
        """Plan the lane in one go; Cancelled where the budget ends first."""
        entry_bytes = 16.0 if marginals else 8.0
        order = None if how is None else how.order
        if how is None and thorough:
            order = order_of(Restriction.of(self.scopes, unary > -np.inf), self.model.problem, budget)
        if order is None:
            entries = self._quick_order(left, MOST_ENTRIES, budget).total
            return Slicing((), entries, 1, None, bytes_per_entry=entry_bytes)
        direct = Slicing((), order.total, 1, order, bytes_per_entry=entry_bytes)
        worth_it = direct.seconds >= QUICK_SECONDS and order.total < MOST_PLANNED and len(left) <= MOST_VARIABLES
        if how is None and worth_it:
            how = lay_out_lanes(
                Batch(self.model, unary[:, None]), NO_LIMIT, marginals=marginals, order=order, budget=budget
            )
        if how is None:
            return direct
        pace = min(1.0, cost.tree_seconds(how, marginals=False) / direct.seconds)
        return replace(
            direct, laid_out=how, pace=pace, bytes_per_entry=how.thread_bytes(marginals) / max(order.total, 1.0)
        )

    def _sliced(
        self,
        left: Integers,
        direct: Slicing,
        most_bytes: float,
        most_seconds: float,
        marginals: bool,
        budget: Budget,
    ) -> Iterator[Slicing]:
        """Plans that fix one variable more each time, until the tables of a slice are small enough."""
        if len(left) > MOST_VARIABLES:
            return
        contraction = direct.laid_out
        plans = (
            self._along_tree(contraction, direct, marginals)
            if isinstance(contraction, ContractionTree)
            else self._along_order(left, direct, budget)
        )
        num_sums = 1
        for plan in plans:
            num_sums *= int(left[plan.fixed[-1]])
            if num_sums > MOST_SLICES or num_sums * cost.SECONDS_PER_SUM > most_seconds:
                return
            yield replace(plan, num_sums=num_sums, speed_up=1.0)
            if (plan.is_small and plan.num_bytes <= most_bytes) or budget.must_stop():
                return

    def _along_order(self, left: Integers, direct: Slicing, budget: Budget) -> Iterator[Slicing]:
        known = direct.order is not None and direct.order.total < math.inf
        order = direct.order if known else self._quick_order(left, math.inf, budget)
        if order is None or math.isinf(order.total) or budget.must_stop():
            return
        cuts = Cuts(order, left, self.edges)
        while cuts.fix_one() is not None:
            yield replace(direct, fixed=tuple(cuts.fixed), entries=cuts.order.total, order=cuts.order, laid_out=None)

    def _along_tree(self, contraction: ContractionTree, direct: Slicing, marginals: bool) -> Iterator[Slicing]:
        cuts = TreeCuts(contraction.tree, contraction.scopes.num_states)
        if not cuts.seconds:  # there is nothing to contract
            return
        visits = contraction.visits / cuts.seconds
        while cuts.fix_one() is not None:
            entries = visits * cuts.seconds
            scopes = contraction.scopes._replace(num_states=cuts.num_states)
            own = replace(contraction, restriction=contraction.restriction._replace(scopes=scopes))
            yield replace(
                direct,
                fixed=tuple(cuts.fixed),
                entries=entries,
                pace=1.0,
                bytes_per_entry=own.thread_bytes(marginals) / entries,
                tree=contraction.tree,
                laid_out=None,
            )

    def _with_order(self, unary: Floats, plan: Slicing, budget: Budget | None) -> Slicing:
        """Look for a better order for the slices of a plan."""
        one = unary > -np.inf
        for i in plan.fixed:
            own = one[self.model.unary.start[i] : self.model.unary.start[i + 1]]
            own[int(np.argmax(own)) + 1 :] = False
        left = Restriction.of(self.scopes, one).scopes
        found = find_order(left.num_states, *left.neighbours(), budget)
        return replace(plan, entries=found.total, order=found) if found.total < plan.entries else plan

    def _quick_order(self, left: Integers, limit: float, budget: Budget | None) -> EliminationOrder:
        """Find an order that eliminates the variables with a choice of states after the others.

        It is incomplete from `limit` on, or where the budget ended first.
        """
        return quick_order(self.edges[(left[self.edges] > 1).all(axis=1)], np.log2(left), left > 1, limit, budget)


def _that_moves(plans: Sequence[Slicing]) -> Slicing | None:
    """The quickest plan, if there is any; or, where that is long, the first that takes little longer in slices of a
    moment each."""
    quickest = min(plans, key=lambda plan: plan.duration, default=None)
    if quickest is None or quickest.slice_seconds <= SLICE_SECONDS:
        return quickest
    moving = [plan for plan in plans if plan.duration <= NOT_MUCH * quickest.duration]
    return next((plan for plan in moving if plan.slice_seconds <= SLICE_SECONDS), moving[-1])
