"""Certified intervals for marginals: exactly where that fits, else from bounds on log Z with a variable in a state."""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from clampz.bounding.exact_answer import ExactAnswer
from clampz.bounding.marginals.goal import Marginals, Searches, SharedLanes
from clampz.bounding.marginals.marginal_bounds import MarginalBounds
from clampz.bounding.marginals.relevant import RelevantModel, known_exactly
from clampz.bounding.options import BoundKeywords, BoundOptions
from clampz.bounding.tree.frontier import check_room
from clampz.clamping.branches import checked_variables
from clampz.exact_inference.lanes import ExactOptions
from clampz.model import Evidence, Model, Variable
from clampz.model.batch import Batch
from clampz.model.conditioning import given
from clampz.model.results import Estimates
from clampz.portfolio.scheduler import run_to_end
from clampz.portfolio.strategy import Strategy
from clampz.runtime.budget import Budget
from clampz.runtime.options import takes_names
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, with_rng
from clampz.runtime.workers import AnyExecutor


@takes_names
def bound_marginals(
    model: Model,
    variables: Sequence[Variable] | None = None,
    *,
    evidence: Evidence | None = None,
    executor: AnyExecutor | None = None,
    rng: Seed = None,
    progress: Listener[MarginalBounds] = None,
    options: BoundOptions | None = None,
    **changes: Unpack[BoundKeywords],
) -> MarginalBounds:
    """Bound the probability of every state of some variables (all by default), certified.

    Parameters
    ----------
    model
        What to bracket the marginals of.
    variables
        By index or name; None for all.
    progress
        True for a live line; or called with the intervals so far as they close, and may raise StopIteration to stop.
    evidence, executor, rng
        As for `bound`.
    options, changes
        `BoundOptions` whole, or its fields by name; `gap` is the width in probability that is narrow enough.

    Returns
    -------
    MarginalBounds
        An interval for each state of each variable asked for; nan where Z = 0 and nothing has a probability.

    Raises
    ------
    OptionError, EvidenceError
        As for `bound`.

    Examples
    --------
    >>> from clampz import generators
    >>> bool(bound_marginals(generators.grid(3, 3, rng=0), [4]).widest < 1e-9)
    True
    """
    chosen = BoundOptions.chosen(options, with_rng(changes, rng))
    budget = Budget(chosen.time)
    with as_callback(progress, "bounding marginals") as listener, budget.interruptible():
        model = given(model, evidence)
        check_room(model, chosen.num_bytes)
        asked = np.arange(model.num_variables)
        if variables is not None:
            asked = np.array(checked_variables(model, variables), dtype=np.int64)
        around = RelevantModel.of(model, asked, chosen, budget)
        goal = Marginals(around, chosen)
        return run_to_end(goal, _strategies(goal), executor, chosen.num_threads, budget, listener)


def _strategies(goal: Marginals) -> list[Callable[[Any], Strategy[Any]]]:
    """Return ways to find the marginals, those that are tried first before the others."""
    around, options = goal.around, goal.options
    if not options.exact or goal.closed:
        return [SharedLanes, Searches]
    limits, batch = ExactOptions(memory=options.num_bytes // 2, threads=options.threads), Batch.of(around.rest)

    def know(sums: Estimates) -> None:
        goal.know(known_exactly(around, sums))

    def exact_answer(_: Any) -> Strategy[Any]:
        goal.exact_answer = ExactAnswer(goal, batch, limits, know)
        return goal.exact_answer

    return [exact_answer, SharedLanes, Searches]
