"""The method `exact`: log Z and all marginals, of models that some way to sum them is quick enough for."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np

from clampz.errors import TooWideError
from clampz.exact_inference.lanes import ExactKeywords, ExactOptions, not_reached
from clampz.exact_inference.plans import ExactPlan, plan_exact
from clampz.exact_inference.running import run_count, run_plan
from clampz.exact_inference.scopes import NO_LIMIT, least_bytes
from clampz.method import AnyBeta, AnySets, CallKeywords, Method, OneBeta, OneSet, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.warm_starts import Start
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import fits_into

# What a sum in slices, of what does not fit into memory at once, may take where no time is given; it is tried where it
# is expected to take this many times as long, as what is expected has room to spare.
UNASKED_SECONDS, TO_SPARE = 60.0, 2.0


class ExactCall(ExactKeywords, CallKeywords, total=False):
    """What a call of `exact` takes by name, beside evidence and beta."""

    options: ExactOptions | None


class ExactMethod(Method[ExactOptions]):
    """The method `exact`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(  # type: ignore[overload-overlap]
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[ExactCall]
    ) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Unpack[ExactCall]
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
    single, is_count = batch.num_lanes == 1, options.engine == "counting"
    if not single and (is_count or options.engine == "planar"):
        return _lane_by_lane(batch, options, budget)
    if is_count:
        return replace(run_count(batch, options, budget), batch=batch)
    try:
        try:
            plan = plan_exact(batch, options, budget)
            plan = (plan.in_slices(options, math.inf, budget) if single else None) or plan
        except TooWideError as error:
            # without its traceback, which would keep all that was laid out
            plan = _planned_in_slices(batch, options, budget, error.with_traceback(None))
    except Cancelled:
        return replace(not_reached(batch, options, budget), batch=batch)
    found = run_plan(plan, options, budget)
    if single and found.log_z[0] == -np.inf:
        why = simplify(batch.lane(0), marginals=False, memory=options.memory, budget=budget).infeasibility
        found = replace(found, notes=[f"{found.notes[0]}; {why}" if why else found.notes[0]])
    return found


def _planned_in_slices(batch: Batch, options: ExactOptions, budget: Budget, refusal: TooWideError) -> ExactPlan:
    """Plan a single lane that does not fit into memory at once in slices, if the time allows that; else refuse."""
    sliced = None
    if batch.num_lanes == 1 and fits_into(options.memory, least_bytes(batch.model)):
        with suppress(TooWideError):
            at_once = plan_exact(batch, options, budget, memory=NO_LIMIT)
            sliced = at_once.in_slices(options, math.inf, budget)
    if sliced is None or sliced.slices is None:
        raise refusal
    left, seconds = budget.left(), sliced.duration(options.num_threads)
    if seconds > TO_SPARE * (left if math.isfinite(left) else UNASKED_SECONDS):
        raise TooWideError(
            f"{refusal}; it fits in {sliced.slices.num_sums:,} slices, which may take {math.ceil(seconds):,} "
            "seconds: allow that with time=",
            width=refusal.width,
            num_bytes=refusal.num_bytes,
        )
    return sliced


def _lane_by_lane(batch: Batch, options: ExactOptions, budget: Budget) -> Estimates:
    """One after another; what they are together, each of them that has a log Z is."""
    lanes = (batch.take(np.array([lane])) for lane in range(batch.num_lanes))
    first, *others = (exact.__wrapped__(lane, options, None, budget) for lane in lanes)
    kinds = {each.bound for each in (first, *others) if not np.isnan(each.log_z[0])}
    return replace(first.join(others), batch=batch, bound=kinds.pop() if len(kinds) == 1 else None)
