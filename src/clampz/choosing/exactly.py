"""Exact inference, where time and memory allow it, at once or in slices."""

import math

import numpy as np

from clampz.choosing.run import Run
from clampz.elimination.exact import ExactOptions
from clampz.elimination.plans import ExactPlan
from clampz.elimination.slice_plans import SlicedPlan, Slicer
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.options import bytes_in_words, memory_allowed
from clampz.summing.plans import ExactCost
from clampz.watch import Watch

# The share of the time that looking for an order of exact inference may take, and for slices.
PLANNING_SHARE = 0.15
# Seconds beyond which exact inference is done in slices, on all threads, if that is quicker.
LONG_SECONDS = 1.0


def exactly(model: Model, cost: ExactCost, run: Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take so many seconds
    at most, and does, and how in words; else None, and why."""
    allowed = memory_allowed(run.memory)
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    options = ExactOptions(memory=allowed, marginals=run.marginals, threads=run.threads)
    watch = Watch(most, run.tell, within=run.watch)
    fits = cost.plan is not None and cost.num_bytes <= allowed and expected <= most
    sliced = None if fits and expected <= LONG_SECONDS else _slices(cost, options, watch)
    if cost.plan is None or (not fits and (sliced is None or not sliced.fixed)):
        more, limit = "at least " if cost.at_least else "", "memory" if cost.num_bytes > allowed else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    if sliced is not None and sliced.fixed:
        found, how = cost.plan.run(options, watch, sliced)[0], f" in {sliced.num_sums} slices"
    else:
        found, how = cost.plan.run(options, watch)[0], ""
    if found.converged:
        return found, how
    run.heard(found)
    return None, "Exact inference took longer than expected"


def has_all(found: Estimate, run: Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and math.isfinite(found.log_z) and np.isnan(found.marginals.flat).any())


def _slices(cost: ExactCost, options: ExactOptions, watch: Watch) -> SlicedPlan | None:
    """How to solve a model exactly in slices, on all threads, if time and memory allow that."""
    if cost.plan is None or not isinstance(cost.plan.how, ExactPlan):
        return None
    lanes = cost.plan.summed
    return Slicer(lanes.model).plan(
        lanes.unary[:, 0],
        watch.left(),
        memory_allowed(options.memory),
        how=cost.plan.how,
        marginals=options.marginals,
        num_workers=options.num_threads,
        watch=watch.share(PLANNING_SHARE),
    )
