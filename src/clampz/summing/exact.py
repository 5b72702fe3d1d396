"""The method `exact`: log Z and all marginals, of models that some way to sum them is quick enough for."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from clampz.counting import MISSING, count, is_available
from clampz.elimination.exact import ExactOptions, ExactState, exact_estimates, not_reached
from clampz.errors import OptionError
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.model.starts import Start
from clampz.signature import approximation
from clampz.simplifying import simplify
from clampz.summing import joints as joints  # (which results find by the name of this method)
from clampz.summing.plans import SumPlan
from clampz.watch import Overdue, Watch

COUNTED = "counted: right with high probability, not proven"


@approximation("exact", ExactOptions, takes_factors=True, plans_memory=True)
def exact(batch: Batch, options: ExactOptions, start: Start | None, watch: Watch) -> Estimates:
    """log Z and all marginals, exactly: the model is simplified, and what is left summed over.

    Cost and memory are exponential in the width of the model, but for planar graphs without fields: TooWideError says,
    before anything is allocated, how wide it is and what it would take. `lower` and `upper` enclose log Z and differ by
    a bound on the rounding error only.

    >>> from clampz.model import Model
    >>> print(f"{exact(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)])).log_z:.6f}")
    2.006409
    """
    one = _counted if options.engine == "counting" else _summed
    alone = options.engine == "counting" or (options.engine == "planar" and batch.num_lanes > 1)
    found = _lane_by_lane(batch, options, watch, one) if alone else one(batch, options, watch)
    return replace(found, batch=batch)


def _summed(batch: Batch, options: ExactOptions, watch: Watch) -> Estimates:
    try:
        memory = options.memory
        plan = SumPlan.of(batch, memory, marginals=options.marginals, engine=options.engine, room=memory, watch=watch)
    except Overdue:
        return not_reached(batch, options, watch)
    found = plan.run(options, watch)
    if batch.num_lanes == 1 and found.log_z[0] == -np.inf:
        why = simplify(batch.lane(0), marginals=False, memory=options.memory, watch=watch).contradiction
        return replace(found, notes=[f"{found.notes[0]}; {why}" if why else found.notes[0]])
    return found


def _counted(batch: Batch, options: ExactOptions, watch: Watch) -> Estimates:
    """By programs that count: exact where that is proven, and else an estimate."""
    if not is_available():
        raise OptionError(f"engine: there is no program that counts; {MISSING}")
    model = batch.lane(0)
    found = count(model, watch=watch, memory=options.memory, marginals=options.marginals)
    if found.log_z is None:
        return replace(not_reached(batch, options, watch), notes=[f"there is no count: {found.why_none}"])
    marginals = np.full(len(batch.unary), np.nan) if found.marginals is None else found.marginals
    state = ExactState(None, None, len(model.pairwise.flat))
    ends = np.array([found.log_z]), np.array([found.error])
    estimates = exact_estimates(batch, options, watch, *ends, marginals[:, None], state)
    if found.is_proven:
        return estimates
    ends = np.array([found.lower]), np.array([np.inf])
    return replace(estimates, bound=None, lower=ends[0], upper=ends[1], notes=[COUNTED])


def _lane_by_lane(
    batch: Batch, options: ExactOptions, watch: Watch, one: Callable[[Batch, ExactOptions, Watch], Estimates]
) -> Estimates:
    """One after another; what they are together, each of them that has a log Z is."""
    first, *others = (one(batch.take(np.array([lane])), options, watch) for lane in range(batch.num_lanes))
    kinds = {each.bound for each in (first, *others) if not np.isnan(each.log_z[0])}
    return replace(first.join(others), bound=kinds.pop() if len(kinds) == 1 else None)
