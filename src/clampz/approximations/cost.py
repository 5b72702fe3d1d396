"""What approximations cost: typical sweeps, and the seconds of one."""

from clampz.model import Model
from clampz.model.pairwise_equivalent import Equivalent
from clampz.runtime.budget import UNLIMITED

# Seconds of a sweep for each entry of the tables (5 ns for a message of four, in many lanes; several times
# that in one).
SECONDS_PER_ENTRY = 2e-9
# Typical sweeps, for estimates made before any run, and from how many starts.
TYPICAL_SWEEPS = {"mean_field": 50, "bethe": 300, "trw": 300}
STARTS = {"mean_field": 16, "bethe": 4, "trw": 1}
# Sweeps of all starts of a branch for one sweep that the whole model took: Bethe has two starts there, and TRW's edge
# weights are optimized on only in branches that stay.
BRANCH_SWEEPS = {"mean_field": 17.0, "bethe": 2.0, "trw": 1 / 3}


def seconds_per_sweep(model: Model) -> float:
    """Estimate the seconds of a lane's sweep over the model, or over its pairwise equivalent."""
    solved = Equivalent.of(model, UNLIMITED).model if model.factors else model
    return (2 * len(solved.pairwise.flat) + len(solved.unary.flat)) * SECONDS_PER_ENTRY
