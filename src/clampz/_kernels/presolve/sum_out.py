"""Presolve: variables summed out, or maximised over.

    m(S) = log sum_x exp( theta_v(x) + sum over parts theta_f(x, S) )

for a variable v, the factors ("parts") that mention it and S, their other variables; a new table that is no larger than
those it replaces together, nor than the largest of the model.  Its largest entry goes into the constant.
"""

import math

import numpy as np

from clampz._kernels.jit import part
from clampz._kernels.presolve.containment import absorb_subsets, multiply_into_superset
from clampz._kernels.presolve.pools import (
    BY,
    ENTRIES,
    ERROR,
    FACTORS,
    IMPOSSIBLE,
    MAXIMUM,
    MOST_AXES,
    MOST_PARTS,
    NUMBERS,
    PAIRWISE,
    PINS,
    ROW,
    SLOTS,
    STAMP,
    SUMMED,
    SUMS,
    WIDEST,
    WORK,
    add_constant,
    link_all,
    record_exit,
    retire_factor,
    wait_for_shape,
    wait_for_sum,
    wait_for_support,
)
from clampz._kernels.presolve.tables import add_to_unary, extent, slot_of
from clampz.numerics import EPS

# Terms of a sum per entry of the tables that it replaces: a product of matrices of hundreds of states is left to exact
# sums, which do nothing else.
MOST_TERMS = 64
# Terms this far (in nats) below the largest are nothing beside rounding.
NOTHING = 60.0
# What is charged for each sum beside its terms, in roundings: exp, log and their arguments.
ROUNDINGS = 16.0


@part
def sum_out(pools, v):
    """Sum a variable out if the new table is no larger than those it replaces; False where there is no room."""
    variable, count = pools.variables[v], pools.count
    parts, scope = pools.scratch[0], pools.scratch[1]
    count[STAMP] += 1
    stamp = count[STAMP]
    variable.mark = stamp
    num_parts = num_axes = 0
    size = 1
    replaced = 0
    for head in (variable.edges, variable.larger):
        s = head
        while s >= 0:
            f = pools.slots[s].factor
            if num_parts == MOST_PARTS:
                return True
            parts[num_parts] = f
            num_parts += 1
            replaced += pools.factors[f].size
            count[WORK] += pools.factors[f].arity
            for q in range(pools.factors[f].begin, pools.factors[f].end):
                u = pools.slots[q].variable
                if u >= 0 and pools.variables[u].mark != stamp:
                    pools.variables[u].mark = stamp
                    if num_axes == MOST_AXES:
                        return True
                    scope[num_axes] = u
                    num_axes += 1
                    size *= pools.variables[u].states
                    if size > count[WIDEST]:
                        return True
            s = pools.slots[s].following
    if num_parts and (size > replaced or size * variable.states > MOST_TERMS * replaced):
        return True
    if count[PAIRWISE] and num_axes > 2 and num_parts > 1:
        return True
    if (
        count[ENTRIES] + size > pools.table.size
        or count[SLOTS] + num_axes > pools.slots.size
        or count[FACTORS] >= pools.factors.size
        or count[NUMBERS] + num_parts + num_axes > pools.numbers.size
    ):
        return False
    sort(scope, num_axes)
    c = count[FACTORS]
    count[FACTORS] += 1
    made = pools.factors[c]
    made.table, made.size = count[ENTRIES], size
    made.begin, made.end, made.arity = count[SLOTS], count[SLOTS] + num_axes, num_axes
    made.into, made.alive, made.pinned, made.supports, made.shapes = -1, 1, count[PINS], 0, 0
    count[ENTRIES] += size
    count[SLOTS] += num_axes
    for k in range(num_axes):
        slot = pools.slots[made.begin + k]
        slot.variable, slot.factor = scope[k], c
    top = fill_sum(pools, v, num_parts, num_axes, c)
    record = pools.record[count[SUMS]]
    record.variable, record.size, record.parts = v, size, count[NUMBERS]
    record.axes = record.parts + num_parts
    record.end = count[NUMBERS] = record.axes + num_axes
    for k in range(num_parts):
        pools.numbers[record.parts + k] = parts[k]
    for k in range(num_axes):
        pools.numbers[record.axes + k] = scope[k]
    record_exit(pools, v, SUMMED, count[SUMS])
    count[SUMS] += 1
    for k in range(num_parts):
        retire_factor(pools, parts[k], c)
    if top == -np.inf:
        made.alive = 0
        count[IMPOSSIBLE] = v
        count[BY] = c
        return True
    add_constant(pools, top)
    for k in range(num_axes):
        wait_for_sum(pools, scope[k])
    if num_axes == 1:
        made.alive = 0
        add_to_unary(pools, scope[0], pools.table[made.table : made.table + size], c)
    elif num_axes == 0:
        made.alive = 0
    else:
        link_all(pools, c)
        if not multiply_into_superset(pools, c):
            absorb_subsets(pools, c)
            wait_for_shape(pools, c)
            wait_for_support(pools, c)
    return True


@part
def sort(values, size):
    """Sort the first `size` values in ascending order."""
    for k in range(1, size):
        value = values[k]
        place = k
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@part
def fill_sum(pools, v, num_parts, num_axes, c):
    """Fill the table of factor c with the sum, less its largest entry, which is returned; charge rounding."""
    made = pools.factors[c]
    parts, scope, digit = pools.scratch[0], pools.scratch[1], pools.scratch[2]
    at, along = pools.scratch[3], pools.scratch[4]
    strides, row = np.empty((num_parts, num_axes), dtype=np.int64), pools.total[ROW:]
    states = pools.variables[v].states
    unary = pools.table[pools.variables[v].first : pools.variables[v].first + states]
    out = pools.table[made.table : made.table + made.size]
    for k in range(num_parts):
        f = parts[k]
        at[k] = pools.factors[f].table
        along[k] = extent(pools, f, slot_of(pools, f, v))[1]
        for a in range(num_axes):
            s = slot_of(pools, f, scope[a])
            strides[k, a] = extent(pools, f, s)[1] if s >= 0 else 0
    for a in range(num_axes):
        digit[a] = 0
    pools.count[WORK] += made.size * states * (num_parts + 1)
    maximum = pools.count[MAXIMUM]
    high = -np.inf
    worst = 0.0
    zeros = 0
    for t in range(out.size):
        top = -np.inf
        for x in range(states):
            value = unary[x]
            for k in range(num_parts):
                value += pools.table[at[k] + x * along[k]]
            row[x] = value
            top = max(top, value)
        if top == -np.inf:
            zeros = 1
            out[t] = -np.inf
        else:
            sum_of = 0.0
            terms = 0.0  # the largest sum of sizes that goes into a term that counts
            for x in range(states):
                if row[x] == -np.inf:
                    continue
                sizes = abs(unary[x])
                for k in range(num_parts):
                    sizes += abs(pools.table[at[k] + x * along[k]])
                if row[x] + num_parts * EPS * sizes >= top - NOTHING:
                    terms = max(terms, sizes)
                sum_of += math.exp(row[x] - top)
            if maximum:
                out[t] = top
                error = EPS * num_parts * terms
            else:
                out[t] = top + math.log(sum_of)
                error = EPS * (num_parts * terms + states + ROUNDINGS + abs(out[t]))
            worst = max(worst, error)
            high = max(high, out[t])
        q = num_axes - 1
        while q >= 0:
            digit[q] += 1
            for k in range(num_parts):
                at[k] += strides[k, q]
            if digit[q] < pools.variables[scope[q]].states:
                break
            for k in range(num_parts):
                at[k] -= strides[k, q] * digit[q]
            digit[q] = 0
            q -= 1
    made.zeros = zeros
    if high == -np.inf:
        return high
    shift = 0.0
    for t in range(out.size):
        if out[t] > -np.inf:
            out[t] -= high
            shift = max(shift, abs(out[t]))
    pools.total[ERROR] += worst + EPS * (shift if high != 0.0 else 0.0)
    return high
