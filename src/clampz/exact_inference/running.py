"""Running plans: sums over lanes, at once, in slices or as a planar graph, and the postsolve; and exact
inference wherever it fits into time and memory."""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from clampz.errors import OptionError, TooWideError
from clampz.exact_inference.cost import seconds
from clampz.exact_inference.insertion import OUT_OF_TIME, Insertion
from clampz.exact_inference.lanes import ExactOptions, ExactState, exact_estimates, not_reached, run_exact
from clampz.exact_inference.marginal_queries import Asked, BlockBeliefs, beliefs_in_blocks, sum_entries
from clampz.exact_inference.plans import HOPELESS_ENTRIES, ExactPlan, plan_exact
from clampz.exact_inference.presolved import PresolvedBatch, check_room
from clampz.exact_inference.scopes import NO_LIMIT, Restriction
from clampz.exact_inference.slices import sum_in_slices, sum_lane
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import MISSING, count, is_available
from clampz.numerics import Floats
from clampz.planar.ising import Unfit
from clampz.planar.plans import PlanarPlan
from clampz.planar.sums import sum_by_plan
from clampz.presolve.simplified import postsolve
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words, memory_allowed

# Seconds of a sum for log Z from which what it leaves out comes back into it; to sum the little that is around a few
# variables anew is quicker where log Z takes less.
LONG_ENOUGH = 2e-3
# Shares of the time that exact inference may take where there are other ways to answer: to plan it, and for the sum.
PLANNING_SHARE, EXACT_SHARE = 0.15, 0.7
UNKNOWN = -math.inf, math.inf
PROVEN = "Nearly all tables have zeros, so it was counted, and the count is proven."
COUNTED = "counted: right with high probability, not proven"
ALONE = 'a count has those of the variables alone; engine="elimination" has all, where it is narrow enough'


def run_plan(plan: ExactPlan, options: ExactOptions, budget: Budget) -> Estimates:
    """Sum over the lanes that a plan is for, with marginals if these were planned for."""
    if isinstance(plan.how, PlanarPlan):
        found = _run_planar(plan, plan.how, options, budget)
        if not found.converged[0] and options.engine != "planar":  # its rounding could not be bounded
            try:
                other = plan_exact(plan.batch, replace(options, engine="elimination"), budget)
            except (TooWideError, Cancelled):
                return replace(found, batch=plan.batch)
            return run_plan(other, options, budget)
        return replace(found, batch=plan.batch)
    once = replace(options, marginals=False) if plan.in_parts else options
    if plan.slices is None:
        found = run_exact(plan.summed, once, budget, plan.how)
    else:
        found = sum_in_slices(plan.summed.lane(0), plan.slices, once, budget)
    found = found if plan.presolved is None else _back(plan, plan.presolved, found, options.memory)
    found = _with_marginals(plan, found, options, budget) if plan.in_parts else found
    return replace(found, batch=plan.batch)


def sum_ends(plan: ExactPlan, memory: float, budget: Budget | None = None) -> tuple[float, float]:
    """Sum a plan of log Z of a single model; returns its ends, apart by rounding only.

    They are further apart where the budget ended first, or rounding could not be bounded.
    """
    model = plan.batch.model
    if plan.slices is not None:
        lower, upper = sum_lane(model, plan.batch.unary[:, 0], plan.slices, budget)
        return lower - plan.error, upper + plan.error
    assert isinstance(plan.how, PlanarPlan)
    try:
        found = sum_by_plan(model, plan.how, budget=budget, memory=None if math.isinf(memory) else int(memory))
    except Cancelled:
        return UNKNOWN
    if isinstance(found, Unfit):
        return UNKNOWN
    off = found.error + plan.error
    return found.log_z - off, found.log_z + off


def run_count(batch: Batch, options: ExactOptions, budget: Budget) -> Estimates:
    """Count a single lane by programs made for that: exact where the count is proven, and else an estimate."""
    if not is_available():
        raise OptionError(f"engine: there is no program that counts; {MISSING}")
    model = batch.lane(0)
    found = count(model, budget=budget, memory=options.memory, marginals=options.marginals)
    if found.log_z is None:
        return replace(not_reached(batch, options, budget), notes=[f"there is no count: {found.why_none}"])
    marginals = np.full(len(batch.unary), np.nan) if found.marginals is None else found.marginals
    num_pairs = len(model.pairwise.flat)
    state = ExactState(None, None, num_pairs, *([ALONE] if options.marginals else []))
    ends = np.array([found.log_z]), np.array([found.error])
    estimates = exact_estimates(batch, options, budget, *ends, marginals[:, None], state)
    if found.is_proven:
        return estimates
    ends = np.array([found.lower]), np.array([np.inf])
    return replace(estimates, bound=None, lower=ends[0], upper=ends[1], notes=[COUNTED])


def _run_planar(plan: ExactPlan, how: PlanarPlan, options: ExactOptions, budget: Budget) -> Estimates:
    batch = plan.batch
    model = batch.lane(0)
    try:
        found = sum_by_plan(model, how, marginals=options.marginals, budget=budget, memory=options.memory)
    except Cancelled:
        return not_reached(batch, options, budget)
    if isinstance(found, Unfit):
        return replace(not_reached(batch, options, budget), notes=[found.reason])
    unary = found.unary if options.marginals else np.full(len(batch.unary), np.nan)
    state = ExactState(found.pairwise[None] if options.marginals else None, None, len(model.pairwise.flat))
    ends = np.array([found.log_z]), np.array([found.error])
    return replace(exact_estimates(batch, options, budget, *ends, unary[:, None], state), model=batch.model)


def _with_marginals(plan: ExactPlan, found: Estimates, options: ExactOptions, budget: Budget) -> Estimates:
    """Add marginals to sums for log Z, as far as time and memory suffice; all of them at once, if that is quicker."""
    joint = plan.joint
    if joint is not None and joint.num_bytes > memory_allowed(options.memory):
        joint = joint.in_slices(options, budget.left(), budget) if plan.batch.num_lanes == 1 else None
    lanes = np.flatnonzero(np.isfinite(found.log_z)).tolist()
    few_at_a_time = _in_rounds if plan.seconds >= LONG_ENOUGH else _block_by_block
    parts = few_at_a_time(plan, joint, lanes, options, budget)
    if parts is None:
        assert joint is not None
        at_once = run_plan(joint, options, budget)
        if joint.slices is None or at_once.converged.all():
            return at_once
        parts = few_at_a_time(plan, None, lanes, options, budget)
        assert parts is not None
    flat, notes = np.full(plan.batch.unary.shape, np.nan), list(found.notes)
    for lane, (marginals, why_none) in zip(lanes, parts, strict=True):
        flat[:, lane], notes[lane] = marginals, why_none or notes[lane]
    state = ExactState(None, partial(_tables, plan, options.memory), len(plan.batch.model.pairwise.flat))
    return replace(found, options=options, marginals_flat=flat, notes=notes, state=state)


def _in_rounds(
    plan: ExactPlan, joint: ExactPlan | None, lanes: list[int], options: ExactOptions, budget: Budget
) -> list[BlockBeliefs] | None:
    """Marginals of lanes: what is missing comes back into the sum for log Z, round by round.  None where all at
    once is quicker, or there is not memory enough for rounds."""
    assert isinstance(plan.how, SumTree) and plan.presolved is not None
    lost, start = postsolve(plan.presolved.simplified).lost.tolist(), plan.batch.model.unary.start
    insertion = Insertion(plan.presolved, plan.how, [(v,) for v in lost], options.memory, budget)
    if joint is not None and (insertion.why_none or joint.seconds < insertion.seconds):
        return None
    found = []
    for lane in lanes:
        flat, tables = insertion.run(lane, options.num_threads, budget)
        for v, table in zip(lost, tables, strict=True):
            if table is not None:
                flat[start[v] : start[v + 1]] = table
        found.append(BlockBeliefs(flat, (insertion.why_none or OUT_OF_TIME) if np.isnan(flat).any() else ""))
    return found


def _block_by_block(
    plan: ExactPlan, joint: ExactPlan | None, lanes: list[int], options: ExactOptions, budget: Budget
) -> list[BlockBeliefs] | None:
    """Find marginals of lanes whose log Z takes next to nothing: what is missing is summed anew, a few at a time."""
    known, found = _known_marginals(plan, options, budget), []
    alone = sum_entries(Restriction.of_lanes(plan.summed).scopes, HOPELESS_ENTRIES, budget)
    alone = alone if math.isfinite(alone) else 0.0
    for lane in lanes:
        model, flat = plan.batch.lane(lane), known[:, lane].copy()
        asked = Asked.of_variables(model, np.flatnonzero(np.isnan(flat[model.unary.start[:-1]])))
        visits = math.inf if joint is None else joint.visits
        beliefs = beliefs_in_blocks(model, asked, options.memory, budget, visits, alone)
        if beliefs is None:
            return None
        flat[np.isnan(flat)] = beliefs.flat
        found.append(beliefs._replace(flat=flat))
    return found


def _known_marginals(plan: ExactPlan, options: ExactOptions, budget: Budget) -> Floats:
    """(S, B) of variables whose marginals follow from those of what was summed for log Z, else nan."""
    flat = np.full(plan.batch.unary.shape, np.nan)
    assert isinstance(plan.how, SumTree) and plan.presolved is not None
    if plan.how.num_bytes(True) <= memory_allowed(options.memory):
        found = run_exact(plan.summed, options, budget, plan.how)
        for lane in np.flatnonzero(np.isfinite(found.log_z)).tolist():
            flat[:, lane] = plan.presolved.marginals(found, lane, known=True)
    return flat


def _back(plan: ExactPlan, presolved: PresolvedBatch, found: Estimates, memory: int | str | None) -> Estimates:
    """Return results of the original's lanes from those of what presolve left."""
    batch, log_z = presolved.original, found.log_z
    possible = log_z > -np.inf
    flat = np.full(batch.unary.shape, np.nan)
    if plan.at_once:
        for lane in np.flatnonzero(np.isfinite(log_z)).tolist():
            flat[:, lane] = presolved.marginals(found, lane)
    again = partial(_tables_back, plan, presolved, found, memory) if plan.at_once else None
    return replace(
        found,
        model=batch.model,
        lower=np.where(possible, found.lower - presolved.error, found.lower),
        upper=np.where(possible, found.upper + presolved.error, found.upper),
        marginals_flat=flat,
        state=ExactState(None, again, len(batch.model.pairwise.flat)),
    )


def _tables_back(
    plan: ExactPlan, presolved: PresolvedBatch, found: Estimates, memory: int | str | None, lane: int
) -> Floats:
    """Marginals of the edges and larger factors of a lane; a few at a time where all that fell apart is too wide
    together."""
    try:
        return presolved.tables(found, lane, memory)
    except TooWideError:
        return _tables(plan, memory, lane)


def _tables(plan: ExactPlan, memory: int | str | None, lane: int) -> Floats:
    """Marginals of the edges and larger factors of a lane."""
    model = plan.batch.lane(lane)
    beliefs = beliefs_in_blocks(model, Asked.tables_of(model), memory, Budget())
    assert beliefs is not None
    return beliefs.flat


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

    def fits(self, options: ExactOptions, most_seconds: float) -> bool:
        """Whether the sum, by as many threads as there are, keeps to memory and time."""
        seconds = self.seconds if self.plan is None else self.plan.duration(options.num_threads)
        return self.num_bytes <= memory_allowed(options.memory) and seconds <= most_seconds


def exact_cost(
    model: Model | Batch, *, marginals: bool = True, memory: int | str | None = None, budget: Budget | None = None
) -> ExactCost:
    """Find out what the best way to solve a model exactly takes, within `memory` bytes if possible; nothing is run.

    Where the budget ends before there is any, all that is known is that it takes longer.

    >>> from clampz import generators
    >>> exact_cost(generators.cycle(100, rng=0)).width
    2
    """
    batch = model if isinstance(model, Batch) else Batch.of(model)
    options = ExactOptions(marginals=marginals, memory=memory)
    try:
        check_room(batch, memory)
        plan = plan_exact(batch, options, budget or Budget(), memory=NO_LIMIT, needed=False)
    except TooWideError as error:
        return ExactCost(error.width, error.num_bytes, seconds(error.num_bytes / 8, marginals=marginals), None)
    except Cancelled:
        return ExactCost(0, 0, math.inf, None)
    if isinstance(plan.how, SumTree):
        plan = replace(plan, how=plan.how.within(memory_allowed(memory)))
    return ExactCost(plan.width, plan.num_bytes, plan.seconds, plan)


def plan_if_it_fits(cost: ExactCost, options: ExactOptions, budget: Budget) -> tuple[ExactPlan | None, str]:
    """Return the plan of a sum that memory allows and that is expected to be done in time, and say how.

    It is in slices if not at once. Else None, and why.
    """
    plan, most = cost.plan, budget.left()
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    single = plan is not None and plan.batch.num_lanes == 1
    sliced = plan.in_slices(options, most, budget.share(PLANNING_SHARE)) if plan is not None and single else None
    if plan is None or (sliced is None and not cost.fits(options, most)):
        more = "at least " if cost.at_least else ""
        limit = "memory" if cost.num_bytes > memory_allowed(options.memory) else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    return sliced or plan, (sliced or plan).words()


def count_or_sum(batch: Batch, cost: ExactCost, options: ExactOptions, budget: Budget) -> Estimates | None:
    """Count a single lane that is nearly all constraints, or else sum where that fits into a share of the time.

    Returns None where nothing fits.
    """
    if batch.num_lanes == 1 and worth_counting(batch.model, cost.seconds, first=True) and is_available():
        found = run_count(batch, options, budget.share(EXACT_SHARE))
        if found.bound == "exact":
            return found
    within = budget.share(EXACT_SHARE)
    plan, _ = plan_if_it_fits(cost, options, within)
    return None if plan is None else run_plan(plan, options, within)


def lacks_marginals(found: Estimate) -> bool:
    """Whether an exact result has not all marginals, though there are some to be had."""
    return math.isfinite(found.log_z) and bool(np.isnan(found.marginals.flat).any())
