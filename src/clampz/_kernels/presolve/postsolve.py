"""Postsolve: beliefs and states of eliminated variables, last eliminated first.

A *target* is a scope whose joint belief is wanted: that of a sum's message, or of an original factor. Its *source* is
the table that the belief comes from: the sum over the first of its variables to be summed out, or a table of the
reduced model. A table over (S, v) is P(v | S) of a sum times the belief of S.

targets   start, variables: their scopes; time: axes have the states possible at that time; out: begins in `belief`
rest      start, variables (by original number), tables: where each reduced table begins in `rest_belief`
"""

import math
from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.presolve.containment import smallest_superset
from clampz._kernels.presolve.pools import EQUAL, FIXED, LEFT, NEVER, STAMP, STAYS, SUMMED, SUMS
from clampz._kernels.random_numbers import uniform_of

# Sources that are none: the variables are in no one table; none of them has a choice.
NOWHERE, CERTAIN = -1, -2


class Targets(NamedTuple):
    """Scopes whose beliefs are wanted, as described above."""

    start: Any
    variables: Any
    time: Any
    out: Any


class ReducedTables(NamedTuple):
    """Tables of the reduced model; `of_factor` is the table that a factor has become, `of_variable` the unary one."""

    start: Any
    variables: Any
    tables: Any
    of_factor: Any
    of_variable: Any


@kernel
def find_sources(pools, targets, rest, home):
    """Find for each target the sum, or the number of sums plus the reduced table, that its belief comes from."""
    num_records = pools.count[SUMS]
    widest = 0
    for t in range(home.size):
        widest = max(widest, targets.start[t + 1] - targets.start[t])
    some = np.empty(widest, dtype=np.int64)
    for t in range(home.size):
        size = 0
        for k in range(targets.start[t], targets.start[t + 1]):
            some[size] = targets.variables[k]
            size += 1
        while True:
            first = -1
            for k in range(size):
                v = some[k]
                if pools.variables[v].fate != STAYS and (
                    first < 0 or pools.variables[v].left < pools.variables[some[first]].left
                ):
                    first = k
            if first < 0:
                break
            v = some[first]
            fate = pools.variables[v].fate
            if fate == SUMMED:
                break
            there = fate == FIXED
            for k in range(size):
                there |= fate == EQUAL and some[k] == pools.variables[v].to
            if there:
                size -= 1
                some[first] = some[size]
            else:
                some[first] = pools.variables[v].to
        pools.count[STAMP] += 1
        stamp = pools.count[STAMP]
        if size == 0:
            home[t] = CERTAIN
        elif first >= 0:
            r = pools.variables[some[first]].to
            for k in range(pools.record[r].axes, pools.record[r].end):
                pools.variables[pools.numbers[k]].mark = stamp
            pools.variables[some[first]].mark = stamp
            home[t] = r
            for k in range(size):
                if pools.variables[some[k]].mark != stamp:
                    home[t] = NOWHERE
        elif size == 1:
            home[t] = num_records + rest.of_variable[some[0]]
        else:
            first = 0
            for k in range(size):
                pools.variables[some[k]].mark = stamp
                if degree(pools, some[k]) < degree(pools, some[first]):
                    first = k
            g = smallest_superset(pools, stamp, size, some[first], some[first - 1 if first else 1], -1)
            home[t] = NOWHERE if g < 0 else num_records + rest.of_factor[g]


@part
def degree(pools, v):
    """Count the factors of a variable."""
    return pools.variables[v].num_edges + pools.variables[v].num_larger


@part
def states_at(pools, v, time):
    """Count the states that a variable had at a time."""
    found = 0
    for place in range(pools.variables[v].first, pools.variables[v].last):
        found += pools.states[place].gone > time
    return found


@part
def ranks_at(pools, v, time):
    """Number the states of a variable among those possible at a time."""
    ranks = np.empty(pools.variables[v].last - pools.variables[v].first, dtype=np.int64)
    found = 0
    for place in range(pools.variables[v].first, pools.variables[v].last):
        ranks[place - pools.variables[v].first] = found
        found += pools.states[place].gone > time
    return ranks


@part
def place_axes(pools, axes, time, dims):
    """Number the axes of a table in the variables' records, and fill in their lengths."""
    size = 1
    for k in range(axes.size):
        pools.variables[axes[k]].axis = k
        dims[k] = states_at(pools, axes[k], time)
        size *= dims[k]
    return size


@kernel
def forget_axes(pools, axes):
    """Remove the axis numbers that `place_axes` has set."""
    for k in range(axes.size):
        pools.variables[axes[k]].axis = -1


@part
def axes_of_sum(pools, r):
    """Return the variables of a sum's table, the summed variable last."""
    begin, end = pools.record[r].axes, pools.record[r].end
    axes = np.empty(end - begin + 1, dtype=np.int64)
    for k in range(begin, end):
        axes[k - begin] = pools.numbers[k]
    axes[end - begin] = pools.record[r].variable
    return axes


@part
def part_strides(pools, r, axes, dims):
    """Return the strides of each part of a sum along the axes of its table."""
    begin, end = pools.record[r].parts, pools.record[r].axes
    strides = np.zeros((end - begin, axes.size), dtype=np.int64)
    for k in range(begin, end):
        factor = pools.factors[pools.numbers[k]]
        stride = 1
        for s in range(factor.end - 1, factor.begin - 1, -1):
            v = pools.slots[s].variable
            if v >= 0:
                axis = pools.variables[v].axis
                strides[k - begin, axis] = stride
                stride *= dims[axis]
    return strides


@kernel
def conditional(pools, r):
    """Compute P(v | S) of a sum, v varying fastest; the caller forgets the axes."""
    axes = axes_of_sum(pools, r)
    v = pools.record[r].variable
    dims = np.empty(axes.size, dtype=np.int64)
    out = np.empty(place_axes(pools, axes, pools.variables[v].time, dims))
    strides = part_strides(pools, r, axes, dims)
    part, num_axes, states = pools.record[r].parts, axes.size - 1, dims[axes.size - 1]
    digit = np.zeros(axes.size, dtype=np.int64)
    for begin in range(0, out.size, states):
        row = out[begin : begin + states]
        for x in range(states):
            row[x] = pools.table[pools.variables[v].first + x]
        for k in range(strides.shape[0]):
            at = pools.factors[pools.numbers[part + k]].table
            for a in range(num_axes):
                at += digit[a] * strides[k, a]
            for x in range(states):
                row[x] += pools.table[at + x * strides[k, num_axes]]
        top = -np.inf
        for x in range(states):
            top = max(top, row[x])
        total = 0.0
        for x in range(states):
            row[x] = math.exp(row[x] - top) if row[x] > -np.inf else 0.0
            total += row[x]
        for x in range(states):
            row[x] = row[x] / total if total > 0.0 else 0.0
        q = num_axes - 1
        while q >= 0:
            digit[q] += 1
            if digit[q] < dims[q]:
                break
            digit[q] = 0
            q -= 1
    return axes, dims, out


@part
def add_belief_to_target(pools, axes, dims, time, values, targets, t, belief):
    """Sum a joint belief onto the scope of a target; its axes are numbered."""
    begin = np.zeros(axes.size + 1, dtype=np.int64)
    for k in range(axes.size):
        begin[k + 1] = begin[k] + dims[k]
    shift = np.zeros(begin[axes.size], dtype=np.int64)
    at = targets.out[t]
    stride = 1
    for p in range(targets.start[t + 1] - 1, targets.start[t] - 1, -1):
        v = targets.variables[p]
        rank = ranks_at(pools, v, targets.time[t])
        u = v
        length = 0
        while pools.variables[u].axis < 0 and pools.variables[u].fate == EQUAL:
            u = pools.variables[u].to
            length += 1
        axis = pools.variables[u].axis
        if axis < 0:
            at += stride * rank[state_of(pools, v, length, pools.variables[u].to)]
        else:
            k = begin[axis]
            for place in range(pools.variables[u].first, pools.variables[u].last):
                if pools.states[place].gone > time:
                    shift[k] += stride * rank[state_of(pools, v, length, place - pools.variables[u].first)]
                    k += 1
        stride *= states_at(pools, v, targets.time[t])
    digit = np.zeros(axes.size, dtype=np.int64)
    for k in range(axes.size):
        at += shift[begin[k]]
    for i in range(values.size):
        belief[at] += values[i]
        q = axes.size - 1
        while q >= 0:
            at -= shift[begin[q] + digit[q]]
            digit[q] += 1
            if digit[q] < dims[q]:
                at += shift[begin[q] + digit[q]]
                break
            digit[q] = 0
            at += shift[begin[q]]
            q -= 1


@part
def state_of(pools, v, length, state):
    """Return the state of v, given that of the variable which it is a function of, `length` substitutions away."""
    for step in range(length, 0, -1):
        u = v
        for _ in range(step - 1):
            u = pools.variables[u].to
        state = pools.numbers[pools.variables[u].map + state]
    return state


@kernel
def propagate_beliefs(pools, rest, rest_belief, targets, source_start, of_source, belief, marginal, cancel_flag):
    """Fill in the beliefs of all targets and the marginals of all variables; False where the flag was raised first. The
    targets of source h are of_source[source_start[h] : source_start[h + 1]]."""
    num_records = pools.count[SUMS]
    for k in range(rest.tables.size - 1):
        if cancel_flag[0] != 0:
            return False
        axes = rest.variables[rest.start[k] : rest.start[k + 1]]
        values = rest_belief[rest.tables[k] : rest.tables[k + 1]]
        if axes.size == 1 and rest.of_variable[axes[0]] == k:
            v = axes[0]
            i = 0
            for place in range(pools.variables[v].first, pools.variables[v].last):
                if pools.states[place].gone == NEVER:
                    marginal[place] = values[i]
                    i += 1
        h = num_records + k
        if source_start[h] < source_start[h + 1]:
            dims = np.empty(axes.size, dtype=np.int64)
            place_axes(pools, axes, NEVER - 1, dims)
            for k in range(source_start[h], source_start[h + 1]):
                add_belief_to_target(pools, axes, dims, NEVER - 1, values, targets, of_source[k], belief)
            forget_axes(pools, axes)
    for left in range(pools.count[LEFT] - 1, -1, -1):
        if cancel_flag[0] != 0:
            return False
        v = pools.variables[left].order
        variable = pools.variables[v]
        if variable.fate == FIXED:
            marginal[pools.variables[v].first + variable.to] = 1.0
        elif variable.fate == EQUAL:
            u = variable.to
            for place in range(pools.variables[u].first, pools.variables[u].last):
                if pools.states[place].gone > variable.time:
                    state = pools.numbers[variable.map + place - pools.variables[u].first]
                    marginal[pools.variables[v].first + state] += marginal[place]
        else:
            r = variable.to
            axes, dims, values = conditional(pools, r)
            states = dims[dims.size - 1]
            for i in range(values.size // states):
                weight = belief[targets.out[r] + i]
                for x in range(states):
                    values[i * states + x] *= weight
            x = 0
            for place in range(pools.variables[v].first, pools.variables[v].last):
                if pools.states[place].gone > variable.time:
                    for i in range(x, values.size, states):
                        marginal[place] += values[i]
                    x += 1
            for k in range(source_start[r], source_start[r + 1]):
                add_belief_to_target(pools, axes, dims, variable.time, values, targets, of_source[k], belief)
            forget_axes(pools, axes)
    return True


@kernel
def fill_states(pools, states, seed, maximum, cancel_flag):
    """Fill in the states (N, n) of eliminated variables, drawn or the best; False where the flag was raised first."""
    for left in range(pools.count[LEFT] - 1, -1, -1):
        if cancel_flag[0] != 0:
            return False
        v = pools.variables[left].order
        variable = pools.variables[v]
        if variable.fate == FIXED:
            for i in range(states.shape[0]):
                states[i, v] = variable.to
        elif variable.fate == EQUAL:
            for i in range(states.shape[0]):
                states[i, v] = pools.numbers[variable.map + states[i, variable.to]]
        else:
            fill_eliminated_states(pools, variable.to, states, seed, maximum)
    return True


@part
def fill_eliminated_states(pools, r, states, seed, maximum):
    """Draw, or maximise, the state of a summed variable in every configuration, given those eliminated later."""
    v = pools.record[r].variable
    time = pools.variables[v].time
    axes = axes_of_sum(pools, r)
    dims = np.empty(axes.size, dtype=np.int64)
    place_axes(pools, axes, time, dims)
    strides = part_strides(pools, r, axes, dims)
    forget_axes(pools, axes)
    part, num_axes, num_states = pools.record[r].parts, axes.size - 1, dims[axes.size - 1]
    begin = np.zeros(axes.size + 1, dtype=np.int64)
    for a in range(axes.size):
        begin[a + 1] = begin[a] + pools.variables[axes[a]].last - pools.variables[axes[a]].first
    rank = np.empty(begin[axes.size], dtype=np.int64)
    for a in range(axes.size):
        of_axis = ranks_at(pools, axes[a], time)
        for k in range(of_axis.size):
            rank[begin[a] + k] = of_axis[k]
    row = np.empty(num_states)
    for i in range(states.shape[0]):
        for x in range(num_states):
            row[x] = pools.table[pools.variables[v].first + x]
        for k in range(strides.shape[0]):
            at = pools.factors[pools.numbers[part + k]].table
            for a in range(num_axes):
                at += rank[begin[a] + states[i, axes[a]]] * strides[k, a]
            for x in range(num_states):
                row[x] += pools.table[at + x * strides[k, num_axes]]
        x = 0
        for y in range(num_states):
            if row[y] > row[x]:
                x = y
        if not maximum and row[x] > -np.inf:
            top = row[x]
            total = 0.0
            for y in range(num_states):
                row[y] = math.exp(row[y] - top)
                total += row[y]
            left = uniform_of(seed, r * states.shape[0] + i) * total
            for y in range(num_states):
                if row[y] > 0.0:
                    x = y
                    left -= row[y]
                    if left < 0.0:
                        break
        place = pools.variables[v].first
        while pools.states[place].gone <= time or rank[begin[num_axes] + place - pools.variables[v].first] != x:
            place += 1
        states[i, v] = place - pools.variables[v].first
