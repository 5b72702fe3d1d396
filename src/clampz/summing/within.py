"""Exact sums within time and memory: at once, or in slices where that is quicker or fits."""

import math

import numpy as np

from clampz.elimination.exact import ExactOptions
from clampz.model.results import Estimate
from clampz.runtime.budget import Budget
from clampz.runtime.options import bytes_in_words, memory_allowed
from clampz.summing.costs import ExactCost

# The share of the time that looking for an order of exact inference may take, and for slices.
PLANNING_SHARE = 0.15
# A sum of no time at all takes so many seconds.
LEAST_SECONDS = 1e-9


def sum_within(cost: ExactCost, options: ExactOptions, expected: float, budget: Budget) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, and it is expected to take no more
    seconds than there are (of one thread, which others may help), and how in words; else None, and why."""
    allowed, plan, most = memory_allowed(options.memory), cost.plan, budget.left()
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    sliced = None if plan is None else plan.in_slices(options, most, budget.share(PLANNING_SHARE))
    shared = 1.0 if plan is None else plan.duration(options.num_threads) / max(plan.seconds, LEAST_SECONDS)
    fits = cost.num_bytes <= allowed and shared * expected <= most
    if plan is None or (not fits and sliced is None):
        more, limit = "at least " if cost.at_least else "", "memory" if cost.num_bytes > allowed else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    plan = sliced or plan
    return plan.run(options, budget)[0], plan.words()


def lacks_marginals(found: Estimate) -> bool:
    """Whether an exact result has not all marginals, though there are some to be had."""
    return math.isfinite(found.log_z) and bool(np.isnan(found.marginals.flat).any())
