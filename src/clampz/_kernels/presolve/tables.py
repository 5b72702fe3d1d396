"""Presolve: walks over one table, or two.

Along one axis a table is (outer, states, inner); over all axes at once the states are counted up like an odometer.
"""

import numpy as np

from clampz._kernels.jit import inline, part
from clampz._kernels.presolve.pools import CLOCK, ERROR, NEVER, ROW, STATES_GONE, WORK, wait_to_shrink
from clampz.numerics import EPS

# Equal means: up to this share of a table's entries, and no more than this in all.  A sum of probabilities is 1 up to a
# few roundings; what differs is charged.
NEARLY, AT_MOST = 32.0 * EPS, 1e-12


@part
def extent(pools, f, s):
    """Return the outer size and the stride of slot s in the table of factor f."""
    factor = pools.factors[f]
    outer = 1
    for q in range(factor.begin, s):
        if pools.slots[q].variable >= 0:
            outer *= pools.variables[pools.slots[q].variable].states
    return outer, factor.size // (outer * pools.variables[pools.slots[s].variable].states)


@part
def slot_of(pools, f, v):
    """Return the slot of variable v in factor f, or -1."""
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable == v:
            return s
    return -1


@part
def rule_out_state(pools, v, a, by):
    """Rule out the a-th current state of a variable, on the evidence of factor `by`."""
    place = pools.variables[v].first + a
    if pools.table[place] > -np.inf:
        pools.table[place] = -np.inf
        pools.states[original_place(pools, v, a)].reason = by
        pools.count[STATES_GONE] += 1
        wait_to_shrink(pools, v)


@part
def original_place(pools, v, a):
    """Return the place of a variable's a-th current state among all states of the model."""
    place = pools.variables[v].first
    while True:
        if pools.states[place].gone == NEVER:
            if a == 0:
                return place
            a -= 1
        place += 1


@part
def cut_axis(pools, f, s):
    """Drop the impossible states of a variable from one axis of a table."""
    factor = pools.factors[f]
    v = pools.slots[s].variable
    outer, inner = extent(pools, f, s)
    states = pools.variables[v].states
    table = pools.table[factor.table : factor.table + factor.size]
    pools.count[WORK] += factor.size
    to = 0
    for o in range(outer):
        for a in range(states):
            if pools.table[pools.variables[v].first + a] > -np.inf:
                begin = (o * states + a) * inner
                for i in range(inner):
                    table[to] = table[begin + i]
                    to += 1
    factor.size = to
    factor.zeros = any_zero(table[:to])


@part
def num_possible(values):
    """Count the entries that are no hard zeros."""
    found = 0
    for t in range(values.size):
        found += values[t] > -np.inf
    return found


@part
def any_zero(values):
    """Whether a table has a hard zero (1 or 0)."""
    for k in range(values.size):
        if values[k] == -np.inf:
            return 1
    return 0


@part
def cut_unary(pools, v):
    """Drop the impossible states of a variable from its unary table, after all of its factors."""
    pools.count[CLOCK] += 1
    place = pools.variables[v].first
    left = 0
    for a in range(pools.variables[v].states):
        while pools.states[place].gone != NEVER:
            place += 1
        value = pools.table[pools.variables[v].first + a]
        if value > -np.inf:
            pools.table[pools.variables[v].first + left] = value
            left += 1
        else:
            pools.states[place].gone = pools.count[CLOCK]
        place += 1
    pools.variables[v].states = left


@part
def nearly(size):
    """Return the tolerance at which numbers of this size count as equal."""
    return min(NEARLY * (1.0 + size), AT_MOST)


@part
def spread(values):
    """Return the range of the entries; inf if some are hard zeros."""
    low = values[0]
    high = values[0]
    for k in range(values.size):
        low = min(low, values[k])
        high = max(high, values[k])
        if high - low > AT_MOST:
            return np.inf
    return high - low if low > -np.inf else np.inf


@part
def split_axis(pools, f, s):
    """Split a table g(x) + h(others), x the variable of slot s: g goes into the scratch of `total`, h stays. False
    where the table is not separable. The axis is gone then, the slot is not, and what is not quite equal is charged."""
    factor = pools.factors[f]
    outer, inner = extent(pools, f, s)
    states = pools.variables[pools.slots[s].variable].states
    table = pools.table[factor.table : factor.table + factor.size]
    row = pools.total[ROW:]
    base = -1  # the first row that is not all zeros, and its first state that is none
    x0 = 0
    for o in range(outer):
        for i in range(inner):
            for x in range(states):
                if table[(o * states + x) * inner + i] > -np.inf:
                    base = o * states * inner + i
                    x0 = x
                    break
            if base >= 0:
                break
        if base >= 0:
            break
    if base < 0:
        return False
    origin = table[base + x0 * inner]
    for x in range(states):
        row[x] = table[base + x * inner] - origin
    worst = 0.0
    for o in range(outer):
        for i in range(inner):
            begin = o * states * inner + i
            level = table[begin + x0 * inner]
            for x in range(states):
                value = table[begin + x * inner]
                if level == -np.inf or row[x] == -np.inf:
                    if value > -np.inf:
                        return False
                    continue
                if value == -np.inf:
                    return False
                differs = abs((value - level) - row[x])
                if differs > 0.0 and differs > nearly(abs(value) + abs(level) + abs(row[x])):
                    return False
                worst = max(worst, differs + EPS * abs(value - level))
    to = 0
    for o in range(outer):
        for i in range(inner):
            table[to] = table[(o * states + x0) * inner + i]
            to += 1
    factor.size = to
    factor.zeros = any_zero(table[:to])
    pools.count[WORK] += table.size
    pools.total[ERROR] += worst
    return True


@part
def add_to_unary(pools, v, values, by):
    """Add a table over one variable to its unary table; factor `by` rules out where it has zeros."""
    first = pools.variables[v].first
    worst = 0.0
    for a in range(pools.variables[v].states):
        if pools.table[first + a] == -np.inf:
            continue
        if values[a] == -np.inf:
            rule_out_state(pools, v, a, by)
        else:
            exact = pools.table[first + a] == 0.0 or values[a] == 0.0
            pools.table[first + a] += values[a]
            if not exact:
                worst = max(worst, abs(pools.table[first + a]))
    pools.total[ERROR] += EPS * worst


@inline
def advance(digit, dims, strides, num_axes, at):
    """Step the odometer of a table's axes, the last one fastest; returns the place along these strides."""
    q = num_axes - 1
    while q >= 0:
        digit[q] += 1
        at += strides[q]
        if digit[q] < dims[q]:
            break
        at -= strides[q] * dims[q]
        digit[q] = 0
        q -= 1
    return at


@part
def add_table(pools, f, g):
    """Add the table of f to that of g, whose scope has all variables of f."""
    of_f, of_g = pools.factors[f], pools.factors[g]
    digit, dims, strides = pools.scratch[0], pools.scratch[1], pools.scratch[2]
    small = pools.table[of_f.table : of_f.table + of_f.size]
    large = pools.table[of_g.table : of_g.table + of_g.size]
    k = 0
    for s in range(of_g.begin, of_g.end):
        v = pools.slots[s].variable
        if v >= 0:
            inside = slot_of(pools, f, v)
            digit[k] = 0
            dims[k] = pools.variables[v].states
            strides[k] = extent(pools, f, inside)[1] if inside >= 0 else 0
            k += 1
    at = 0
    worst = 0.0
    for t in range(large.size):
        exact = large[t] == 0.0 or small[at] == 0.0
        large[t] += small[at]
        if not exact and large[t] > -np.inf:
            worst = max(worst, abs(large[t]))
        at = advance(digit, dims, strides, k, at)
    if of_f.zeros:
        of_g.zeros = 1
    pools.count[WORK] += large.size
    pools.total[ERROR] += EPS * worst
