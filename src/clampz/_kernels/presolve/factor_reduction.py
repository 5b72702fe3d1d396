"""Presolve: what a factor's table shows about its scope; factors lose axes, or go altogether."""

from clampz._kernels.jit import part
from clampz._kernels.presolve.containment import multiply_into_superset
from clampz._kernels.presolve.domain_reduction import reinsert_factor, remove_unsupported_states
from clampz._kernels.presolve.functional_dependence import substitute_dependent
from clampz._kernels.presolve.pools import (
    AXES_GONE,
    CONSTANTS,
    ERROR,
    ROW,
    SHRINKS,
    add_constant,
    empty_slot,
    neighbours_wait_for_sum,
    retire_factor,
    wait_for_shape,
    wait_for_sum,
)
from clampz._kernels.presolve.tables import add_to_unary, nearly, num_possible, split_axis, spread


@part
def reduce_factor(pools, f):
    """Apply the rules for one factor: unsupported states, separable axes, supersets, functional dependence. False where
    there is no room to record a function."""
    factor = pools.factors[f]
    if factor.zeros:  # others may have been multiplied in
        remove_unsupported_states(pools, f)
        if pools.count[SHRINKS]:
            wait_for_shape(pools, f)
            return True
    if not factor.pinned and split_off_axes(pools, f):
        return True
    if not factor.alone and multiply_into_superset(pools, f):
        return True
    return not factor.zeros or substitute_dependent(pools, f)


@part
def split_off_axes(pools, f):
    """Move axes that a table is constant or separable in to unary tables; whether the factor is gone, or waits as
    another."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    apart = spread(table)
    if apart <= nearly(abs(table[0])):
        pools.total[ERROR] += apart
        pools.count[CONSTANTS] += 1
        add_constant(pools, table[0])
        neighbours_wait_for_sum(pools, f)
        retire_factor(pools, f, -1)
        return True
    lost = False
    possible = num_possible(table)
    s = factor.begin
    while s < factor.end:
        v = pools.slots[s].variable
        # (zeros of a product are whole rows, as no state is impossible unless it had to stay)
        may = v >= 0 and (pools.variables[v].keep or possible % pools.variables[v].states == 0)
        if may and split_axis(pools, f, s):
            empty_slot(pools, s)
            add_to_unary(pools, v, pools.total[ROW:], f)
            wait_for_sum(pools, v)
            pools.count[AXES_GONE] += 1
            lost = True
            if factor.arity == 1:
                break
            possible = num_possible(table[: factor.size])
            s = factor.begin
        else:
            s += 1
    if lost:
        reinsert_factor(pools, f)
    return lost
