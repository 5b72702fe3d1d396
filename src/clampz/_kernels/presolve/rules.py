"""Simplifying: the rules about one factor, and about a variable that is no longer needed.

Each leaves the sum over all configurations as it was, up to what it charges; each is done whole or not at all, so that
every prefix of their sequence is a simplification too.
"""

import numpy as np

from clampz._kernels.jit import part
from clampz._kernels.presolve.pools import (
    AXES_GONE,
    CONSTANTS,
    CONTAINED,
    EQUAL,
    ERROR,
    FIXED,
    IMAGE,
    IMPOSSIBLE,
    NEVER,
    NUMBERS,
    ROW,
    SHRINKS,
    STAMP,
    WORK,
    add_constant,
    empty_slot,
    end_factor,
    leave,
    link,
    neighbours_wait_for_sum,
    unlink,
    wait_for_shape,
    wait_for_sum,
)
from clampz._kernels.presolve.tables import (
    add_table,
    add_to_unary,
    any_zero,
    cut_axis,
    cut_unary,
    extent,
    lose_support,
    nearly,
    original_place,
    slot_of,
    split_axis,
    spread,
)

# What a look at a factor counts as work, in entries: it is somewhere else in memory.
VISIT = 16


@part
def shrink(pools, v):
    """Impossible states of a variable go; with one state left, the variable does."""
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
        fix(pools, v)


@part
def fix(pools, v):
    """A variable with one state left goes: its factors have an axis of length one less."""
    add_constant(pools, pools.table[pools.variables[v].first])
    leave(pools, v, FIXED, original_place(pools, v, 0) - pools.variables[v].first)
    variable = pools.variables[v]
    while variable.edges >= 0 or variable.larger >= 0:
        s = variable.edges if variable.edges >= 0 else variable.larger
        f = pools.slots[s].factor
        empty_slot(pools, s)
        scope_shrank(pools, f)


@part
def scope_shrank(pools, f):
    """What is left of a factor that has lost variables: a factor, or part of a unary table or the constant; or of a
    factor with the same variables and more."""
    factor = pools.factors[f]
    if factor.arity > 1:
        wait_for_shape(pools, f)
        neighbours_wait_for_sum(pools, f)
        go_into_larger(pools, f)
        return
    end_small(pools, f)


@part
def end_small(pools, f):
    """A factor of one variable or none becomes part of its unary table, or of the constant."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    v = -1
    for s in range(factor.begin, factor.end):
        v = max(v, pools.slots[s].variable)
    end_factor(pools, f, -1)
    if v < 0:
        add_constant(pools, table[0])
    else:
        add_to_unary(pools, v, table, f)
        wait_for_sum(pools, v)


# -- scopes inside others ----------------------------------------------------------------------------------------------


@part
def contains(pools, g, stamp, wanted):
    """Whether the scope of g has all of the `wanted` variables that are marked."""
    found = 0
    for s in range(pools.factors[g].begin, pools.factors[g].end):
        v = pools.slots[s].variable
        if v >= 0 and pools.variables[v].mark == stamp:
            found += 1
    return found == wanted


@part
def mark_scope(pools, f):
    pools.count[STAMP] += 1
    stamp = pools.count[STAMP]
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            pools.variables[pools.slots[s].variable].mark = stamp
    return stamp


@part
def smallest_around(pools, stamp, arity, v, u, without):
    """The smallest factor whose scope has all of the `arity` variables that are marked, v and u among them; or -1."""
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
def go_into_larger(pools, f):
    """A factor whose scope lies in another's is multiplied in.

    Whoever changes a scope asks for this at once, so that no two factors ever have the same.
    """
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
    g = smallest_around(pools, mark_scope(pools, f), factor.arity, v, u, f)
    if g < 0:
        return False
    multiply_in(pools, f, g)
    return True


@part
def multiply_in(pools, f, g):
    add_table(pools, f, g)
    if pools.factors[f].pinned:
        pools.factors[g].pinned = 1
    pools.count[CONTAINED] += 1
    end_factor(pools, f, g)
    wait_for_shape(pools, g)
    neighbours_wait_for_sum(pools, g)


@part
def take_in_smaller(pools, g):
    """Factors inside a scope that is new are multiplied in."""
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


# -- the shape of a table ----------------------------------------------------------------------------------------------


@part
def reshape(pools, f):
    """What a table shows about its scope: axes that it does not depend on, or only by a factor of their own; variables
    that are functions of one another; another scope around it.  False where there is no room to say what."""
    factor = pools.factors[f]
    if factor.zeros:  # others may have been multiplied in
        lose_support(pools, f)
        if pools.count[SHRINKS]:
            wait_for_shape(pools, f)
            return True
    if not factor.pinned and lose_axes(pools, f):
        return True
    if not factor.alone and go_into_larger(pools, f):
        return True
    return not factor.zeros or find_function(pools, f)


@part
def lose_axes(pools, f):
    """Whether the factor is gone, or waits as another."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    apart = spread(table)
    if apart <= nearly(abs(table[0])):
        pools.total[ERROR] += apart
        pools.count[CONSTANTS] += 1
        add_constant(pools, table[0])
        neighbours_wait_for_sum(pools, f)
        end_factor(pools, f, -1)
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
        scope_shrank(pools, f)
    return lost


@part
def num_possible(values):
    found = 0
    for t in range(values.size):
        found += values[t] > -np.inf
    return found


@part
def find_function(pools, f):
    """A variable v whose state is determined by that of u goes where no table grows.  False where there is no room for
    the function."""
    factor = pools.factors[f]
    table = pools.table[factor.table : factor.table + factor.size]
    possible = num_possible(table)
    for s in range(factor.begin, factor.end):
        v = pools.slots[s].variable
        if v < 0 or pools.variables[v].keep or possible * pools.variables[v].states > table.size:
            continue
        for q in range(factor.begin, factor.end):
            u = pools.slots[q].variable
            if u < 0 or q == s or not may_become(pools, v, u) or not fill_image(pools, f, q, s):
                continue
            if pools.count[NUMBERS] + pools.variables[u].last - pools.variables[u].first > pools.numbers.size:
                return False
            become(pools, v, u, f)
            return True
    return True


@part
def fill_image(pools, f, q, s):
    """The state of slot s for every state of slot q, where the table allows one only; else False."""
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
def may_become(pools, v, u):
    """Whether no table grows where u takes the place of v."""
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
def become(pools, v, u, by):
    """v = image(u) from now on, says a factor: u takes its place in all tables."""
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
    leave(pools, v, EQUAL, u)
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
            scope_shrank(pools, f)
        else:
            permute(pools, f, s)
            unlink(pools, s)
            pools.slots[s].variable = u
            link(pools, s)
            wait_for_shape(pools, f)
            neighbours_wait_for_sum(pools, f)
            if not go_into_larger(pools, f):
                take_in_smaller(pools, f)
    wait_for_sum(pools, u)


@part
def take_diagonal(pools, f, q, s):
    """The axis of slot s goes: its state is the image of that of slot q."""
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
    """The states of an axis in the order of their images."""
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
