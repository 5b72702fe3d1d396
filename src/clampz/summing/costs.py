"""What exact inference on a model takes, for whoever has to choose; nothing is run."""

import math
from dataclasses import replace
from typing import NamedTuple

from clampz.elimination.cost import seconds
from clampz.elimination.plans import ExactPlan
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.runtime.budget import Budget, Cancelled
from clampz.summing.lanes import check_room
from clampz.summing.plans import SumPlan


class ExactCost(NamedTuple):
    """What exact inference on a model takes, and the plan that takes it; where no order was completed there is none,
    and it takes `at_least` that."""

    width: int
    num_bytes: int
    seconds: float
    plan: SumPlan | None

    @property
    def at_least(self) -> bool:
        return self.plan is None


def exact_cost(
    model: Model, *, marginals: bool = True, memory: int | str | None = None, budget: Budget | None = None
) -> ExactCost:
    """What the best way found to solve a model exactly takes, in so many bytes if that can be done; nothing is run.
    Where a watch is over before there is any, all that is known is that it takes longer.

    >>> from clampz import generators
    >>> exact_cost(generators.cycle(100, rng=0)).width
    2
    """
    try:
        check_room(Batch.of(model), memory)
        plan = SumPlan.of(Batch.of(model), marginals=marginals, room=memory, budget=budget, needed=False)
    except TooWideError as error:
        return ExactCost(error.width, error.num_bytes, seconds(error.num_bytes / 8, marginals=marginals), None)
    except Cancelled:
        return ExactCost(0, 0, math.inf, None)
    if isinstance(plan.how, ExactPlan):
        plan = replace(plan, how=plan.how._replace(elimination=plan.how.elimination.within(memory)))
    return ExactCost(plan.width, plan.num_bytes, plan.seconds, plan)
