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


def exactly(model: Model, cost: ExactCost, run: Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take so many seconds
    at most (of one thread, which others may help), and does, and how in words; else None, and why."""
    allowed = memory_allowed(run.memory)
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    options = ExactOptions(memory=allowed, marginals=run.marginals, threads=run.threads)
    watch = Watch(most, run.tell, within=run.watch)
    expected /= 1.0 if cost.plan is None else cost.plan.speed_up(options.num_threads)
    fits = cost.plan is not None and cost.num_bytes <= allowed and expected <= most
    sliced = None
    if cost.plan is not None:
        sliced = cost.plan.in_slices(options, watch.left(), watch.share(PLANNING_SHARE))
    if cost.plan is None or (not fits and sliced is None):
        more, limit = "at least " if cost.at_least else "", "memory" if cost.num_bytes > allowed else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    found = cost.plan.run(options, watch, sliced)[0]
    if found.converged:
        return found, "" if sliced is None else f" in {sliced.num_sums:,} slices"
    run.heard(found)
    return None, "Exact inference took longer than expected"


def has_all(found: Estimate, run: Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and math.isfinite(found.log_z) and np.isnan(found.marginals.flat).any())
