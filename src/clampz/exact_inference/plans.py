"""ExactPlan, how a model is summed exactly, and `plan_exact`, which finds one: what everybody asks who may sum.

A sum of a moment is planned as the model is.  Otherwise the model is presolved, an elimination order and a tree of
tables are found for what is left, and where that is quicker, or fits where the whole does not, it is cut into slices.
A planar graph is an alternative, whatever its width.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import OptionError, TooWideError
from clampz.exact_inference.cost import WITH_MARGINALS, tree_seconds
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.marginal_queries import quick_entries, sum_entries
from clampz.exact_inference.presolved import PresolvedBatch, check_room
from clampz.exact_inference.scopes import NO_LIMIT, Restriction, too_large
from clampz.exact_inference.slices import Slices
from clampz.exact_inference.slicing import LONG_SUM, Slicer, Slicing
from clampz.exact_inference.sums import lay_out_lanes
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.problem import KEPT_BYTES
from clampz.planar.ising import Unfit
from clampz.planar.plans import BYTES_PER_EDGE, PlanarPlan
from clampz.presolve.simplify import simplify_once
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words, fits_into, memory_allowed

# Shares of the time that presolve may take: where there are answers without a sum, and where there are none.
PRESOLVE_SHARE, SHARE_IF_NEEDED = 0.2, 0.5
CUT_SHORT = "there was no time to simplify it, which may make it narrower: allow more with time="
# Entries that a sum visits, with marginals, in ten times the milliseconds that presolve takes however small a model.
WORTHWHILE_ENTRIES = 2.0**23
# Seconds, and times what log Z takes alone, beyond which marginals are looked for a few at a time.
LONG_SECONDS, MUCH = 0.1, 4.0
# Table entries, by an order that is soon found, from which there is no need of a better one to see that.
HOPELESS_ENTRIES = 2.0**40


@dataclass(frozen=True, eq=False)
class ExactPlan:
    """How to sum over the lanes of a batch.

    Attributes
    ----------
    how
        The sum laid out; or, of a single lane, as a planar graph; None where that is left to those who sum slices.
    marginals
        Whether marginals are asked for.
    presolved
        The lanes of what presolve leaves, which are summed; None for those of the batch itself.
    in_parts
        Whether `how` is for log Z alone, and marginals are found a few at a time.
    joint
        Then, how all of them could be found at once, if in any way.
    slices
        How a single lane is cut into slices, if it is.
    error
        What log Z of the batch may be off by beyond the sum's own rounding.
    """

    batch: Batch
    how: SumTree | PlanarPlan | None
    marginals: bool = True
    presolved: PresolvedBatch | None = None
    in_parts: bool = False
    joint: "ExactPlan | None" = None
    slices: Slicing | None = None
    error: float = 0.0

    @property
    def summed(self) -> Batch:
        """The lanes that are summed."""
        return self.batch if self.presolved is None else self.presolved.batch

    @property
    def tree(self) -> SumTree:
        """The sum laid out, of a plan that is not planar."""
        assert isinstance(self.how, SumTree)
        return self.how

    @property
    def seconds(self) -> float:
        """What all of it takes one thread."""
        if isinstance(self.how, PlanarPlan):
            return self.how.seconds(marginals=self.marginals)
        if self.slices is not None:
            return self.slices.seconds * (WITH_MARGINALS if self.at_once else 1.0)
        return self.batch.num_lanes * tree_seconds(self.tree, marginals=self.at_once)

    def duration(self, num_threads: int = 1) -> float:
        """Seconds until all workers are done with a single lane, whose long steps this number of threads share."""
        if isinstance(self.how, PlanarPlan):
            return self.seconds
        if self.slices is not None:
            return self.seconds * self.slices.duration / self.slices.seconds
        return self.seconds / self.tree.speed_up(self.at_once, num_threads)

    @property
    def at_once(self) -> bool:
        """Whether marginals come with log Z."""
        return self.marginals and not self.in_parts

    @property
    def visits(self) -> float:
        """Table entries that the pass forwards visits, or would in the time that the sum takes."""
        if isinstance(self.how, PlanarPlan):
            return math.inf
        return self.tree.visits if self.slices is None else self.slices.num_sums * self.slices.entries

    @property
    def num_bytes(self) -> int:
        if isinstance(self.how, PlanarPlan):
            return BYTES_PER_EDGE * self.how.num_edges
        return self.tree.num_bytes(self.at_once)

    @property
    def width(self) -> int:
        return 0 if isinstance(self.how, PlanarPlan) else self.tree.width

    def words(self) -> str:
        """Why the sum can be taken, and in which way, as a sentence."""
        if isinstance(self.how, PlanarPlan):
            return "The model is a planar graph, which is solved exactly however wide."
        way = f"width {self.width}, {bytes_in_words(self.num_bytes)}"
        if self.slices is not None:
            way = f"in {self.slices.num_sums:,} slices of {bytes_in_words(int(self.slices.num_bytes))} (at once: {way})"
        needs = f"narrow enough to be solved exactly{': ' if self.slices is None else ' '}{way}."
        if self.presolved is None:
            return f"The model is {needs}"
        left, all_of_them = self.summed.model.num_variables, counted(self.batch.model.num_variables, "variable")
        parts = " Marginals are summed a few at a time, as all at once are too wide." if self.in_parts else ""
        return f"Simplifying leaves {left:,} of {all_of_them}, and these are {needs}{parts}"

    def in_slices(self, options: ExactOptions, most_seconds: float, budget: Budget) -> "ExactPlan | None":
        """Cut a single lane into slices for all threads, within the memory allowed and `most_seconds`.

        None where there is no such way, none that is quicker, or no need of one.
        """
        allowed, num_threads = memory_allowed(options.memory), options.num_threads
        is_short = self.num_bytes <= allowed and self.duration(num_threads) <= LONG_SUM
        if not isinstance(self.how, SumTree) or is_short:
            return None
        found = Slicer(self.summed.model).plan(
            self.summed.unary[:, 0],
            most_seconds,
            allowed,
            how=self.how,
            marginals=self.at_once,
            num_workers=num_threads,
            sharing=True,
            budget=budget,
        )
        if found is None or not found.fixed:
            return None
        slices = Slices(self.summed.model, self.summed.unary[:, 0], found, marginals=self.at_once)
        with suppress(Cancelled, TooWideError):
            slices.begin(budget)
            return replace(self, slices=replace(found, laid_out=slices.laid_out))
        return None


def plan_exact(
    batch: Batch, options: ExactOptions, budget: Budget, *, memory: int | str | None = None, needed: bool = True
) -> ExactPlan:
    """Find the quickest way to sum over the lanes of a batch that keeps to `memory`, by default that of the options.

    Raises TooWideError where there is none, and Cancelled where the budget ends first: as soon as it is over if the
    plan is not `needed` for an answer.
    """
    memory, engine, marginals = options.memory if memory is None else memory, options.engine, options.marginals
    check = budget.check_cancelled if needed else budget.check_stop
    check_room(batch, memory)
    if engine != "planar" and too_large(batch, memory) is None:
        restriction = Restriction.of_lanes(batch)
        if _is_quick(restriction, batch.num_lanes, budget):
            how = lay_out_lanes(batch, memory, marginals=marginals, restriction=restriction, budget=budget)
            return ExactPlan(batch, how, marginals)
    check()
    planar = _planar(batch, options, memory, budget)
    if engine == "planar" and planar:
        return planar[0]
    share = budget.share(SHARE_IF_NEEDED if needed else PRESOLVE_SHARE)
    reduced = PresolvedBatch.of(batch, marginals=marginals, memory=options.memory, budget=share)
    check()
    ways, refusal = _along_trees(reduced, options, memory, budget, check)
    if not ways + planar:
        assert refusal is not None
        if not reduced.simplified.is_complete:
            refusal = TooWideError(f"{refusal}; {CUT_SHORT}", width=refusal.width, num_bytes=refusal.num_bytes)
        raise refusal
    return min(ways + planar, key=lambda way: way.seconds)


def _is_quick(restriction: Restriction, num_lanes: int, budget: Budget) -> bool:
    """Whether presolve would take a tenth of what the sums do, or more."""
    scopes = restriction.scopes
    most = max(WORTHWHILE_ENTRIES, quick_entries(int(scopes.table_start[-1]))) / num_lanes
    if np.log2(np.maximum(scopes.num_states, 1)).sum() <= math.log2(most):
        return True  # in any order
    return sum_entries(scopes, most, budget) < math.inf


def _planar(batch: Batch, options: ExactOptions, memory: int | str | None, budget: Budget) -> list[ExactPlan]:
    """The plan of a single lane as a planar graph, if it is one; OptionError where it must be and is not."""
    if options.engine == "elimination" or batch.num_lanes > 1:
        return []
    try:
        found = _planarity(batch, options.marginals, memory, budget)
    except Cancelled:  # which says nothing about other ways
        if options.engine == "planar":
            raise
        return []
    if isinstance(found, Unfit):
        if options.engine == "planar":
            raise OptionError(f"engine: there is no planar sum of this model: {found.reason}")
        return []
    return [ExactPlan(batch, found, options.marginals)]


def _planarity(batch: Batch, marginals: bool, memory: int | str | None, budget: Budget) -> PlanarPlan | Unfit:
    """A plan of a single lane as a planar graph, or why there is none; looked for once where it is the model itself."""
    model = batch.model
    size = BYTES_PER_EDGE * (model.num_variables + model.num_edges)
    is_model = batch.beta is None and size <= KEPT_BYTES and fits_into(memory, size)
    is_model = is_model and np.array_equal(batch.unary[:, 0], model.unary.flat)

    def find() -> PlanarPlan | Unfit:
        own = model if is_model else batch.lane(0)
        return PlanarPlan.of(own, marginals=marginals, budget=budget, memory=memory)

    return model.problem.once(("planar", marginals), find, lambda found: True) if is_model else find()


def _along_trees(
    reduced: PresolvedBatch,
    options: ExactOptions,
    memory: int | str | None,
    budget: Budget,
    check: Callable[[], None],
) -> tuple[list[ExactPlan], TooWideError | None]:
    """The best plan found for what presolve left, if any, and why there is none with all marginals at once."""
    batch, marginals = reduced.original, options.marginals
    restriction, refusal = None, too_large(reduced.batch, memory)
    if refusal is None:
        restriction = Restriction.of_lanes(reduced.batch)
    hopeless = marginals and (
        restriction is None or math.isinf(sum_entries(restriction.scopes, HOPELESS_ENTRIES, budget))
    )
    check()
    ways = _in_parts(reduced, [], options, memory, budget) if hopeless else []
    if ways or restriction is None:
        return ways, refusal
    check()
    try:
        how = lay_out_lanes(reduced.batch, memory, marginals=marginals, restriction=restriction, budget=budget)
        ways = [ExactPlan(batch, how, marginals, None if reduced.simplified.is_trivial else reduced)]
    except TooWideError as error:
        refusal = error.with_traceback(None)  # which would keep all that was laid out
    if marginals and not hopeless and (not ways or ways[0].seconds > LONG_SECONDS):
        ways = _in_parts(reduced, ways, options, memory, budget)
        if refusal is not None and ways:  # in slices all at once may fit, and may be quicker
            with suppress(TooWideError):
                how = lay_out_lanes(reduced.batch, NO_LIMIT, restriction=restriction, budget=budget)
                ways = [replace(ways[0], joint=ExactPlan(batch, how, True, reduced))]
    return ways, refusal


def _in_parts(
    reduced: PresolvedBatch,
    joint: list[ExactPlan],
    options: ExactOptions,
    memory: int | str | None,
    budget: Budget,
) -> list[ExactPlan]:
    """Plan log Z alone, and marginals a few at a time, where much of the model is there for marginals only and log Z
    takes much less without them; else return the plans as they were."""
    share = budget.share(PRESOLVE_SHARE)
    alone = PresolvedBatch.of(reduced.original, marginals=False, memory=options.memory, budget=share)
    if alone.batch.model.num_variables == reduced.batch.model.num_variables:
        return joint
    budget.check_cancelled()
    if too_large(alone.batch, memory) is not None:
        return joint
    restriction = Restriction.of_lanes(alone.batch)
    if not joint and math.isinf(sum_entries(restriction.scopes, HOPELESS_ENTRIES / MUCH, budget)):
        return joint
    try:
        how = lay_out_lanes(alone.batch, memory, marginals=False, restriction=restriction, budget=budget)
    except TooWideError:
        return joint
    if any(how.visits > way.visits / MUCH for way in joint):
        return joint
    return [ExactPlan(reduced.original, how, True, alone, in_parts=True, joint=joint[0] if joint else None)]


def plan_in_a_moment(model: Model, most_seconds: float, memory: float, budget: Budget) -> ExactPlan | None:
    """Plan log Z of a model as it is, if that takes a moment: along a tree, or as a planar graph however wide."""
    slices = Slicer(model).plan(model.unary.flat, most_seconds, memory, budget=budget)
    if slices is not None:
        return ExactPlan(Batch.of(model), None, False, slices=slices)
    found = _planar(Batch.of(model), ExactOptions(marginals=False), int(memory), budget)
    return found[0] if found and found[0].seconds <= most_seconds else None


def plan_whole(
    model: Model,
    rest: Model,
    error: float,
    most_seconds: float,
    memory: float,
    thorough: bool,
    num_workers: int,
    budget: Budget,
) -> ExactPlan | None:
    """Plan log Z of `rest`, which presolve left of a model within an error, by the quickest sum of `most_seconds` at
    most: over what more presolve leaves of it, or over the model as a planar graph."""
    ways = _planar(Batch.of(model), ExactOptions(marginals=False), int(memory), budget)
    ways = [replace(way, error=error) for way in ways]
    least = simplify_once(rest, marginals=False, memory=int(memory), budget=budget)
    slices = Slicer(least.model).plan(
        least.model.unary.flat, most_seconds, memory, thorough=thorough, num_workers=num_workers, budget=budget
    )
    if slices is not None:
        ways.append(ExactPlan(Batch.of(least.model), None, False, slices=slices, error=least.error))
    return min((way for way in ways if way.duration() <= most_seconds), key=ExactPlan.duration, default=None)
