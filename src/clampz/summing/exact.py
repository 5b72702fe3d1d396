"""The method `exact`: log Z and all marginals, of models that some way to sum them is quick enough for."""

from clampz.elimination.exact import ExactOptions, not_reached
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.model.starts import Start
from clampz.signature import approximation
from clampz.summing.plans import SumPlan
from clampz.watch import Overdue, Watch


@approximation("exact", ExactOptions, takes_factors=True)
def exact(batch: Batch, options: ExactOptions, start: Start | None, watch: Watch) -> Estimates:
    """log Z and all marginals, exactly: the model is simplified, and what is left summed over.

    Cost and memory are exponential in the width of the model: TooWideError says, before anything is allocated, how wide
    it is and what it would take. `lower` and `upper` enclose log Z and differ by a bound on the rounding error only.

    >>> from clampz.model import Model
    >>> print(f"{exact(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)])).log_z:.6f}")
    2.006409
    """
    try:
        plan = SumPlan.of(batch, options.memory, marginals=options.marginals, watch=watch)
    except Overdue:
        return not_reached(batch, options, watch)
    return plan.run(options, watch)
