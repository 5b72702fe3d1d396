"""Exact inference, where time and memory allow it, at once or in slices."""

import math

import numpy as np

from clampz.choosing.run import Run
from clampz.elimination.exact import ExactOptions
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.options import bytes_in_words, memory_allowed
from clampz.summing.costs import ExactCost
from clampz.watch import Watch

# The share of the time that looking for an order of exact inference may take, and for slices.
PLANNING_SHARE = 0.15
# A sum of no time at all takes so many seconds.
LEAST_SECONDS = 1e-9


def exactly(model: Model, cost: ExactCost, run: Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take so many seconds
    at most (of one thread, which others may help), and does, and how in words; else None, and why."""
    allowed, plan = memory_allowed(run.memory), cost.plan
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    options = ExactOptions(memory=allowed, marginals=run.marginals, threads=run.threads)
    watch = Watch(most, run.tell, within=run.watch)
    sliced = None if plan is None else plan.in_slices(options, watch.left(), watch.share(PLANNING_SHARE))
    shared = 1.0 if plan is None else plan.duration(options.num_threads) / max(plan.seconds, LEAST_SECONDS)
    fits = cost.num_bytes <= allowed and shared * expected <= most
    if plan is None or (not fits and sliced is None):
        more, limit = "at least " if cost.at_least else "", "memory" if cost.num_bytes > allowed else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    plan = sliced or plan
    found = plan.run(options, watch)[0]
    if found.converged:
        return found, plan.words()
    run.heard(found)
    return None, "Exact inference took longer than expected"


def has_all(found: Estimate, run: Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and math.isfinite(found.log_z) and np.isnan(found.marginals.flat).any())
