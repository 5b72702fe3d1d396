"""The joint marginal of any few variables, on demand.

The model is simplified around them, and what is left summed with one table over all of them.  Where that is too wide,
log Z is summed for each of their joint states: as many sums, each as wide as what is left without them.
"""

import math
from collections.abc import Sequence

import numpy as np

from clampz.display.formatting import counted
from clampz.elimination.exact import ExactOptions, run_exact
from clampz.elimination.plans import ExactPlan
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import keep_only
from clampz.model.marginals import JOINTS_BY
from clampz.numerics import Floats, Integers, log_sum_exp
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words, fits_into, memory_allowed
from clampz.summing.blocks import Asked, Block

# Joint states whose sums are laid out at once.
LANES_AT_ONCE = 256


def joint_marginal(model: Model, variables: Sequence[int], memory: int | str | None, budget: Budget) -> Floats:
    """P(x_i, x_j, ...) with an axis for each of some distinct variables, in this order; nan where Z = 0, and where the
    watch is over first.  TooWideError where the memory does not suffice, in either way."""
    scope = np.sort(np.array(variables, dtype=np.int64))
    shape = model.num_states[scope]
    num_bytes = 8 * math.prod(shape.tolist())
    if not fits_into(memory, 4 * num_bytes):
        raise TooWideError(
            f"the joint marginal of {counted(len(scope), 'variable')} takes {bytes_in_words(num_bytes)} and three "
            f"times that on the way, and {bytes_in_words(memory_allowed(memory))} are allowed: ask for fewer "
            "variables, or allow more with memory=",
            width=len(scope),
            num_bytes=num_bytes,
        )
    table = np.empty(math.prod(shape.tolist()))
    try:
        try:
            asked = Asked(np.array([0, len(scope)]), scope, np.zeros(1, dtype=np.int64))
            Block.of(model, asked, memory_allowed(memory) / 8, budget).fill(table, memory, budget)
        except TooWideError:
            table = _state_by_state(model, scope, memory, budget)
    except Cancelled:
        table[:] = np.nan
    return table.reshape(shape).transpose([int(np.searchsorted(scope, i)) for i in variables])


def _state_by_state(model: Model, scope: Integers, memory: int | str | None, budget: Budget) -> Floats:
    """From log Z with the variables fixed to each of their joint states that are possible."""
    simpler = simplify(model, scope.tolist(), marginals=False, memory=memory, budget=budget)
    rest = simpler.model
    start, fixed = rest.unary.start, np.searchsorted(simpler.variables, scope)
    states = [np.flatnonzero(rest.unary[i] > -np.inf) for i in fixed.tolist()]
    places = np.ravel_multi_index(np.ix_(*states), tuple(rest.num_states[fixed].tolist())).ravel()
    log_z = np.full(math.prod(rest.num_states[fixed].tolist()), -np.inf)
    options, plan = ExactOptions(memory=memory, marginals=False), None
    for begin in range(0, len(places), LANES_AT_ONCE):
        some = places[begin : begin + LANES_AT_ONCE]
        unary = np.repeat(rest.unary.flat[:, None], len(some), axis=1)
        for lane, chosen in enumerate(np.transpose(np.unravel_index(some, tuple(rest.num_states[fixed].tolist())))):
            for i, a in zip(fixed.tolist(), chosen.tolist(), strict=True):
                keep_only(unary[:, lane], start, i, [a])
        batch = Batch(rest, unary)
        plan = plan or ExactPlan.of(batch, memory, marginals=False, fixed=fixed.tolist(), budget=budget)
        found = run_exact(batch, options, budget, plan)
        if not found.converged.all():
            raise Cancelled
        log_z[some] = found.log_z
    total = log_sum_exp(log_z)
    return np.full(len(log_z), np.nan) if total == -np.inf else np.exp(log_z - total)


JOINTS_BY["exact"] = joint_marginal
