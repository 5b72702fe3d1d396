"""Exact inference, where time and memory allow it, at once or in slices."""

from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.running import ExactCost, lacks_marginals, sum_if_it_fits
from clampz.model.results import Estimate
from clampz.runtime.budget import Budget
from clampz.runtime.options import memory_allowed
from clampz.solving.run import Run


def exactly(cost: ExactCost, run: Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take `most` seconds
    at most (of one thread, which others may help), and does, and how in words; else None, and why."""
    options = ExactOptions(memory=memory_allowed(run.memory), marginals=run.marginals, threads=run.threads)
    cost = cost._replace(seconds=min(cost.seconds, expected))
    sums, words = sum_if_it_fits(cost, options, Budget(most, run.tell, within=run.budget))
    if sums is None or sums.converged[0]:
        return None if sums is None else sums[0], words
    run.as_callback(sums[0])
    return None, "Exact inference took longer than expected"


def has_all(found: Estimate, run: Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and lacks_marginals(found))
