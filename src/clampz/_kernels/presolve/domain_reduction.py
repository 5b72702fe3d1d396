"""Presolve: impossible states are found by arc consistency and removed, and variables with one state left are fixed.

Each rule keeps the sum over all configurations and is done whole or not at all: every prefix of them is a presolve too.
"""

import numpy as np

from clampz._kernels.jit import part
from clampz._kernels.presolve.containment import multiply_into_superset
from clampz._kernels.presolve.pools import (
    FIXED,
    IMPOSSIBLE,
    WORK,
    add_constant,
    empty_slot,
    neighbours_wait_for_sum,
    record_exit,
    retire_factor,
    wait_for_shape,
    wait_for_sum,
)
from clampz._kernels.presolve.tables import add_to_unary, cut_axis, cut_unary, extent, original_place, rule_out_state


@part
def remove_unsupported_states(pools, f):
    """Rule out states without support in a factor's table (arc consistency). Entries ruled out by unary tables become
    hard zeros first: impossible states of kept variables are still there."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v < 0:
            continue
        outer, inner = extent(pools, f, s)
        states = pools.variables[v].states
        for a in range(states):
            if pools.table[pools.variables[v].first + a] == -np.inf:
                for o in range(outer):
                    begin = (o * states + a) * inner
                    for i in range(begin, begin + inner):
                        table[i] = -np.inf
    looked = 0
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v < 0:
            continue
        outer, inner = extent(pools, f, s)
        states = pools.variables[v].states
        for a in range(states):
            if pools.table[pools.variables[v].first + a] == -np.inf:
                continue
            found = False
            for o in range(outer):
                begin = (o * states + a) * inner
                for i in range(begin, begin + inner):
                    looked += 1
                    if table[i] > -np.inf:
                        found = True
                        break
                if found:
                    break
            if not found:
                rule_out_state(pools, v, a, f)
    pools.count[WORK] += looked


@part
def remove_impossible_states(pools, v):
    """Cut the impossible states of a variable from all of its tables; with one state left, fix it."""
    variable = pools.variables[v]
    left = 0
    for a in range(variable.states):
        left += pools.table[variable.first + a] > -np.inf
    if left == 0:
        pools.count[IMPOSSIBLE] = v
        return
    if variable.keep:  # stays, with all of its states
        return
    for head in (variable.edges, variable.larger):
        s = head
        while s >= 0:
            f = pools.slots[s].factor
            cut_axis(pools, f, s)
            wait_for_shape(pools, f)
            neighbours_wait_for_sum(pools, f)
            s = pools.slots[s].following
    cut_unary(pools, v)
    if left == 1:
        fix_variable(pools, v)


@part
def fix_variable(pools, v):
    """Remove a variable with one state left from all of its factors."""
    add_constant(pools, pools.table[pools.variables[v].first])
    record_exit(pools, v, FIXED, original_place(pools, v, 0) - pools.variables[v].first)
    variable = pools.variables[v]
    while variable.edges >= 0 or variable.larger >= 0:
        s = variable.edges if variable.edges >= 0 else variable.larger
        f = pools.slots[s].factor
        empty_slot(pools, s)
        reinsert_factor(pools, f)


@part
def reinsert_factor(pools, f):
    """File a factor that has lost variables: as a factor, in a superset's table, in a unary table or in the
    constant."""
    factor = pools.factors[f]
    if factor.arity > 1:
        wait_for_shape(pools, f)
        neighbours_wait_for_sum(pools, f)
        multiply_into_superset(pools, f)
        return
    dissolve_factor(pools, f)


@part
def dissolve_factor(pools, f):
    """Add a factor of one variable or none to the unary table, or to the constant."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    v = -1
    for s in range(factor.begin, factor.end):
        v = max(v, pools.slots[s].variable)
    retire_factor(pools, f, -1)
    if v < 0:
        add_constant(pools, table[0])
    else:
        add_to_unary(pools, v, table, f)
        wait_for_sum(pools, v)
