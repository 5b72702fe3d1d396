"""Presolve: factors whose scopes lie inside others are multiplied into these.  No two scopes are ever the same."""

from clampz._kernels.jit import part
from clampz._kernels.presolve.pools import (
    CONTAINED,
    STAMP,
    WORK,
    neighbours_wait_for_sum,
    retire_factor,
    wait_for_shape,
)
from clampz._kernels.presolve.tables import add_table, slot_of

# Work that looking at a factor counts as, in table entries: it is somewhere else in memory.
VISIT = 16


@part
def contains(pools, g, stamp, wanted):
    """Whether the scope of g has all of the `wanted` marked variables."""
    found = 0
    for s in range(pools.factors[g].begin, pools.factors[g].end):
        v = pools.slots[s].variable
        if v >= 0 and pools.variables[v].mark == stamp:
            found += 1
    return found == wanted


@part
def mark_scope(pools, f):
    """Mark the variables of a factor with a new stamp, and return it."""
    pools.count[STAMP] += 1
    stamp = pools.count[STAMP]
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            pools.variables[pools.slots[s].variable].mark = stamp
    return stamp


@part
def smallest_superset(pools, stamp, arity, v, u, without):
    """Find the smallest factor whose scope has all `arity` marked variables, v and u among them; -1 if there is
    none."""
    best = -1
    for large in range(1 if arity > 2 else 0, 2):
        s = pools.variables[v].larger if large else pools.variables[v].edges
        while s >= 0:
            g = pools.slots[s].factor
            pools.count[WORK] += VISIT
            if (
                g != without
                and pools.factors[g].arity >= arity
                and (best < 0 or pools.factors[g].size < pools.factors[best].size)
                and slot_of(pools, g, u) >= 0
                and (arity == 2 or contains(pools, g, stamp, arity))
            ):
                best = g
            s = pools.slots[s].following
    return best


@part
def multiply_into_superset(pools, f):
    """Multiply a factor into one whose scope contains its own; whether there was one. Every change of a scope calls
    this at once, so that no two factors ever have the same scope."""
    factor = pools.factors[f]
    factor.alone = 1
    v = u = -1
    fewest = 0
    for s in range(factor.begin, factor.end):
        w = pools.slots[s].variable
        if w >= 0:
            number = pools.variables[w].num_larger + (pools.variables[w].num_edges if factor.arity == 2 else 0)
            if v < 0 or number < fewest:
                u = v
                v = w
                fewest = number
            else:
                u = w
    if fewest < 2:  # nothing but itself
        return False
    g = smallest_superset(pools, mark_scope(pools, f), factor.arity, v, u, f)
    if g < 0:
        return False
    multiply_in(pools, f, g)
    return True


@part
def multiply_in(pools, f, g):
    """Multiply factor f into g, whose scope contains that of f."""
    add_table(pools, f, g)
    if pools.factors[f].pinned:
        pools.factors[g].pinned = 1
    pools.count[CONTAINED] += 1
    retire_factor(pools, f, g)
    wait_for_shape(pools, g)
    neighbours_wait_for_sum(pools, g)


@part
def absorb_subsets(pools, g):
    """Multiply all factors whose scopes lie inside a new scope into its factor."""
    factor = pools.factors[g]
    if factor.arity < 3:
        return
    stamp = mark_scope(pools, g)
    busiest = -1  # whatever lies inside has another variable too
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v >= 0 and (
            busiest < 0
            or pools.variables[v].num_edges + pools.variables[v].num_larger
            > pools.variables[busiest].num_edges + pools.variables[busiest].num_larger
        ):
            busiest = v
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v < 0 or v == busiest:
            continue
        for large in range(2):
            q = pools.variables[v].larger if large else pools.variables[v].edges
            while q >= 0:
                f = pools.slots[q].factor
                q = pools.slots[q].following
                pools.count[WORK] += VISIT
                if (
                    f != g
                    and pools.factors[f].arity <= factor.arity
                    and contains(pools, f, stamp, pools.factors[f].arity)
                ):
                    multiply_in(pools, f, g)
