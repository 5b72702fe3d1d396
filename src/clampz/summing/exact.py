"""The method `exact`: log Z and all marginals, of models that some way to sum them is quick enough for."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np

from clampz.elimination.exact import ExactKeywords, ExactOptions, ExactState, exact_estimates, not_reached
from clampz.elimination.plans import NO_LIMIT, least_bytes
from clampz.errors import OptionError, TooWideError
from clampz.method import AnyBeta, Betas, CallKeywords, Method, OneBeta, OneSet, Sets, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.warm_starts import Start
from clampz.model_counting.count import MISSING, count, is_available
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import fits_into
from clampz.summing import joints as joints  # (which results find by the name of this method)
from clampz.summing.plans import SumPlan

# What a sum in slices, of what does not fit into memory at once, may take where no time is given; it is tried where it
# is expected to take so many times as long, as what is expected has room to spare.
UNASKED_SECONDS, TO_SPARE = 60.0, 2.0
COUNTED = "counted: right with high probability, not proven"
ALONE = 'a count has those of the variables alone; engine="elimination" has all, where it is narrow enough'


class ExactCall(ExactKeywords, CallKeywords, total=False):
    """What a call of `exact` takes by name, beside evidence and beta."""

    options: ExactOptions | None


class ExactMethod(Method[ExactOptions]):
    """The method `exact`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[ExactCall]
    ) -> Estimate: ...
    @overload
    def __call__(self, model: Batch, *, beta: AnyBeta = None, **given: Unpack[ExactCall]) -> Estimates: ...
    @overload
    def __call__(
        self, model: Model, *, evidence: Sets, beta: AnyBeta = None, **given: Unpack[ExactCall]
    ) -> Estimates: ...
    @overload
    def __call__(
        self, model: Model, *, evidence: OneSet = None, beta: Betas, **given: Unpack[ExactCall]
    ) -> Estimates: ...
    def __call__(self, *unnamed: Any, **given: Any) -> Any:
        return super().__call__(*unnamed, **given)


@approximation(ExactMethod, ExactOptions, takes_factors=True, plans_memory=True)
def exact(batch: Batch, options: ExactOptions, start: Start | None, budget: Budget) -> Estimates:
    """log Z and all marginals, exactly: the model is simplified, and what is left summed over.

    Cost and memory are exponential in the width of the model, but for planar graphs without fields.  What does not fit
    into memory is summed in slices, if that takes a minute at most, or the `time` that is given; else TooWideError
    says, before anything is allocated, how wide it is and what it would take.  `lower` and `upper` enclose log Z and
    differ by a bound on the rounding error only.

    >>> from clampz.model import Model
    >>> print(f"{exact(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)])).log_z:.6f}")
    2.006409
    """
    one = _counted if options.engine == "counting" else _summed
    alone = options.engine == "counting" or (options.engine == "planar" and batch.num_lanes > 1)
    found = _lane_by_lane(batch, options, budget, one) if alone else one(batch, options, budget)
    return replace(found, batch=batch)


def _summed(batch: Batch, options: ExactOptions, budget: Budget) -> Estimates:
    try:
        plan = _planned(batch, options, budget)
    except Cancelled:
        return not_reached(batch, options, budget)
    found = plan.run(options, budget)
    if batch.num_lanes == 1 and found.log_z[0] == -np.inf:
        why = simplify(batch.lane(0), marginals=False, memory=options.memory, budget=budget).infeasibility
        return replace(found, notes=[f"{found.notes[0]}; {why}" if why else found.notes[0]])
    return found


def _planned(batch: Batch, options: ExactOptions, budget: Budget) -> SumPlan:
    """How to sum the lanes: a single one in slices if that is quicker, or if it is too wide for the memory and the time
    allows that."""

    def plan(memory: int | str | None) -> SumPlan:
        return SumPlan.of(
            batch, memory, marginals=options.marginals, engine=options.engine, room=options.memory, budget=budget
        )

    try:
        found = plan(options.memory)
        return (found.in_slices(options, math.inf, budget) if batch.num_lanes == 1 else None) or found
    except TooWideError as error:
        too_wide = error.with_traceback(None)  # which would keep all that was laid out
    may = batch.num_lanes == 1 and fits_into(options.memory, least_bytes(batch.model))
    try:
        at_once = plan(NO_LIMIT) if may else None
    except TooWideError:
        at_once = None
    in_slices = None if at_once is None else at_once.in_slices(options, math.inf, budget)
    if in_slices is None or in_slices.sliced is None:
        raise too_wide
    left, seconds = budget.left(), in_slices.duration(options.num_threads)
    if seconds > TO_SPARE * (left if math.isfinite(left) else UNASKED_SECONDS):
        raise TooWideError(
            f"{too_wide}; it fits in {in_slices.sliced.num_sums:,} slices, which may take {math.ceil(seconds):,} "
            "seconds: allow that with time=",
            width=too_wide.width,
            num_bytes=too_wide.num_bytes,
        )
    return in_slices


def _counted(batch: Batch, options: ExactOptions, budget: Budget) -> Estimates:
    """By programs that count: exact where that is proven, and else an estimate."""
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


def _lane_by_lane(
    batch: Batch, options: ExactOptions, budget: Budget, one: Callable[[Batch, ExactOptions, Budget], Estimates]
) -> Estimates:
    """One after another; what they are together, each of them that has a log Z is."""
    first, *others = (one(batch.take(np.array([lane])), options, budget) for lane in range(batch.num_lanes))
    kinds = {each.bound for each in (first, *others) if not np.isnan(each.log_z[0])}
    return replace(first.join(others), bound=kinds.pop() if len(kinds) == 1 else None)
