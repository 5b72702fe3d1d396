"""Presolve: the worklist of all rules."""

from clampz._kernels.jit import kernel
from clampz._kernels.presolve.domain_reduction import remove_impossible_states, remove_unsupported_states
from clampz._kernels.presolve.factor_reduction import reduce_factor
from clampz._kernels.presolve.pools import (
    FIRST_SHAPE,
    IMPOSSIBLE,
    RING,
    SHAPES,
    SHRINKS,
    STAYS,
    SUPPORTS,
    WAITING,
    WORK,
    wait_for_shape,
)
from clampz._kernels.presolve.sum_out import sum_out
from clampz._kernels.statuses import DONE, STOPPED

FULL, INFEASIBLE = 2, 3


@kernel
def apply_rules(pools, most_work, cancel_flag):
    """Apply all rules until nothing changes, the flag is raised, or the work exceeds `most_work`. FULL: there is no
    room for what a sum leaves; call again with more."""
    count = pools.count
    while cancel_flag[0] == 0 and count[WORK] <= most_work:
        if count[IMPOSSIBLE] >= 0:
            return INFEASIBLE
        if count[SHRINKS]:  # first, so that what follows has smaller tables to look at
            count[SHRINKS] -= 1
            v = pools.variables[count[SHRINKS]].shrink
            pools.variables[v].shrinks = 0
            if pools.variables[v].fate == STAYS:
                remove_impossible_states(pools, v)
        elif count[SUPPORTS]:
            count[SUPPORTS] -= 1
            f = pools.factors[count[SUPPORTS]].support
            pools.factors[f].supports = 0
            if pools.factors[f].alive:
                remove_unsupported_states(pools, f)
        elif count[SHAPES]:
            f = pools.factors[count[FIRST_SHAPE]].shape
            count[FIRST_SHAPE] = (count[FIRST_SHAPE] + 1) % pools.factors.size
            count[SHAPES] -= 1
            pools.factors[f].shapes = 0
            if pools.factors[f].alive and not reduce_factor(pools, f):
                wait_for_shape(pools, f)
                return FULL
        elif count[WAITING]:
            v = pools.variables[count[RING]].ring
            if pools.variables[v].fate == STAYS and not sum_out(pools, v):
                return FULL
            count[RING] = (count[RING] + 1) % pools.variables.size
            count[WAITING] -= 1
            pools.variables[v].waits = 0
        else:
            return DONE
    return STOPPED
