"""Presolve: a variable whose state is a function of another's is replaced by that one in all tables."""

import numpy as np

from clampz._kernels.jit import part
from clampz._kernels.presolve.containment import absorb_subsets, multiply_into_superset
from clampz._kernels.presolve.domain_reduction import reinsert_factor
from clampz._kernels.presolve.pools import (
    EQUAL,
    IMAGE,
    NEVER,
    NUMBERS,
    ROW,
    WORK,
    empty_slot,
    link,
    neighbours_wait_for_sum,
    record_exit,
    unlink,
    wait_for_shape,
    wait_for_sum,
)
from clampz._kernels.presolve.tables import add_to_unary, any_zero, extent, num_possible, original_place, slot_of


@part
def substitute_dependent(pools, f):
    """Replace a variable of a factor by another that determines its state, where no table grows. False where there is
    no room for the function."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    possible = num_possible(table)
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v < 0 or pools.variables[v].keep or possible * pools.variables[v].states > table.size:
            continue
        for q in range(factor.begin, factor.end):
            u = pools.slots[q].variable
            if u < 0 or q == s or not may_substitute(pools, v, u) or not fill_image(pools, f, q, s):
                continue
            if pools.count[NUMBERS] + pools.variables[u].last - pools.variables[u].first > pools.numbers.size:
                return False
            substitute(pools, v, u, f)
            return True
    return True


@part
def fill_image(pools, f, q, s):
    """Write the state of slot s for every state of slot q; False where the table allows several."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    image = pools.scratch[IMAGE]
    num_u = pools.variables[pools.slots[q].variable].states
    num_v = pools.variables[pools.slots[s].variable].states
    stride_u = extent(pools, f, q)[1]
    stride_v = extent(pools, f, s)[1]
    pools.count[WORK] += table.size
    for a in range(num_u):
        image[a] = -1
    for t in range(table.size):
        if table[t] > -np.inf:
            a = (t // stride_u) % num_u
            b = (t // stride_v) % num_v
            if image[a] >= 0 and image[a] != b:
                return False
            image[a] = b
    for a in range(num_u):  # (a state of a variable that is kept may be impossible: then any will do)
        if image[a] < 0:
            image[a] = 0
    return True


@part
def may_substitute(pools, v, u):
    """Whether no table grows where u replaces v."""
    variable, other = pools.variables[v], pools.variables[u]
    if variable.states == other.states:
        return True
    for head in (variable.edges, variable.larger):
        s = head
        while s >= 0:
            if slot_of(pools, pools.slots[s].factor, u) < 0:
                return False
            s = pools.slots[s].following
    return True


@part
def substitute(pools, v, u, by):
    """Replace v = image(u), as factor `by` implies, by u in all tables."""
    variable, other, image = pools.variables[v], pools.variables[u], pools.scratch[IMAGE]
    variable.by = by
    variable.map = pools.count[NUMBERS]
    pools.count[NUMBERS] += other.last - other.first
    a = 0
    for place in range(other.first, other.last):
        there = pools.states[place].gone == NEVER
        pools.numbers[variable.map + place - other.first] = (
            original_place(pools, v, image[a]) - variable.first if there else 0
        )
        a += there
    record_exit(pools, v, EQUAL, u)
    row = pools.total[ROW:]
    for a in range(other.states):
        row[a] = pools.table[variable.first + image[a]]
    add_to_unary(pools, u, row, -1)
    while variable.edges >= 0 or variable.larger >= 0:
        s = variable.edges if variable.edges >= 0 else variable.larger
        f = pools.slots[s].factor
        q = slot_of(pools, f, u)
        if q >= 0:
            take_diagonal(pools, f, q, s)
            empty_slot(pools, s)
            reinsert_factor(pools, f)
        else:
            permute(pools, f, s)
            unlink(pools, s)
            pools.slots[s].variable = u
            link(pools, s)
            wait_for_shape(pools, f)
            neighbours_wait_for_sum(pools, f)
            if not multiply_into_superset(pools, f):
                absorb_subsets(pools, f)
    wait_for_sum(pools, u)


@part
def take_diagonal(pools, f, q, s):
    """Restrict the axis of slot s to the image of slot q's state, and drop it."""
    factor = pools.factors[f]
    outer, inner = extent(pools, f, s)
    stride = extent(pools, f, q)[1]
    num_u = pools.variables[pools.slots[q].variable].states
    num_v = pools.variables[pools.slots[s].variable].states
    table = pools.table[factor.table : factor.table + factor.size]
    image = pools.scratch[IMAGE]
    pools.count[WORK] += table.size
    to = 0
    for o in range(outer):
        for i in range(inner):
            begin = o * num_v * inner + i
            table[to] = table[begin + image[(begin // stride) % num_u] * inner]
            to += 1
    factor.size = to
    factor.zeros = any_zero(table[:to])


@part
def permute(pools, f, s):
    """Reorder the states of an axis as their images."""
    factor = pools.factors[f]
    outer, inner = extent(pools, f, s)
    states = pools.variables[pools.slots[s].variable].states
    table = pools.table[factor.table : factor.table + factor.size]
    image, row = pools.scratch[IMAGE], pools.total[ROW:]
    pools.count[WORK] += table.size
    for o in range(outer):
        for i in range(inner):
            begin = o * states * inner + i
            for a in range(states):
                row[a] = table[begin + image[a] * inner]
            for a in range(states):
                table[begin + a * inner] = row[a]
