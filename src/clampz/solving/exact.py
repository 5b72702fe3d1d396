"""Exact inference, where time and memory allow it, at once or in slices."""

from clampz.elimination.exact import ExactOptions
from clampz.model.results import Estimate
from clampz.runtime.budget import Budget
from clampz.runtime.options import memory_allowed
from clampz.solving.run import Run
from clampz.summing.costs import ExactCost
from clampz.summing.within import lacks_marginals, sum_within


def exactly(cost: ExactCost, run: Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take so many seconds
    at most (of one thread, which others may help), and does, and how in words; else None, and why."""
    options = ExactOptions(memory=memory_allowed(run.memory), marginals=run.marginals, threads=run.threads)
    found, words = sum_within(cost, options, expected, Budget(most, run.tell, within=run.budget))
    if found is None or found.converged:
        return found, words
    run.as_callback(found)
    return None, "Exact inference took longer than expected"


def has_all(found: Estimate, run: Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and lacks_marginals(found))
