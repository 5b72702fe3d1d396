"""How many variables there is time and memory to clamp."""

import math

import numpy as np

from clampz.approximations.cost import BRANCH_SWEEPS, TYPICAL_SWEEPS, seconds_per_sweep
from clampz.clamping.branches import clamps_that_fit
from clampz.model.results import Estimate

# Clamps that are made unasked, at most.
MAX_CLAMPS = 8


def affordable(
    found: Estimate, seconds: float, memory: int | str | None = None, *, tries: int = 1, given: bool = False
) -> int:
    """Return how many variables can be clamped in this time and memory, by the sweeps that the whole model took.

    `tries` candidates are solved for each; with `given` variables no selector is run.
    """
    model = found.model
    most = clamps_that_fit(model, MAX_CLAMPS, tries=tries, limit=memory)
    if most <= 0:  # what a sweep takes is asked of an equivalent that there may be no memory for
        return 0
    states = float(np.median(model.num_states)) if model.num_variables else 2.0
    sweeps = max(found.num_iter, 1) * BRANCH_SWEEPS[found.method]
    if found.method != "trw" and not given:  # TRW is run for its entropies, to choose variables by
        sweeps += TYPICAL_SWEEPS["trw"]
    per_lane = sweeps * max(seconds_per_sweep(model), 1e-9)
    # every step solves `tries` times as many branches as there will be, and the last step as many as all before
    lanes = seconds / per_lane / tries / 2
    most = min(most, model.num_variables if model.factors else model.topology.num_core)
    return min(most, int(math.log(max(lanes, 1.0)) / math.log(max(states, 2.0))))
