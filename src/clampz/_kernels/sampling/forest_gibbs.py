"""A step of forest Gibbs sampling: variables of a random forest are drawn jointly, given all others.

A function is a table over some variables (of one, of an edge, of a larger factor), and one of its variables is an
occurrence.  Variables are taken into the forest in a random order, each unless it would share functions with two that
are connected already, or one function with two: so what is left of the functions, given the others, is a forest.

num_states   (n,)     of each variable
start        (F + 1,) occurrences of function f are start[f] : start[f + 1]
variables    (O,)     the variable of each occurrence
strides      (O,)     how far apart two of its states are in the function's table
table_start  (F + 1,) where each table begins in `values`
home         (O,)     the function of each occurrence
of_start     (n + 1,) occurrences of variable i are of[of_start[i] : of_start[i + 1]]
state_start  (n + 1,) where each variable's states begin, end to end
order        (n,)     variables in the order in which they are taken in
uniform      (n,)     numbers from [0, 1), one for each variable
x            (n,)     the configuration, possible; changed in place
up           (n,)     the next variable towards the root of a tree; ROOT, or OUTSIDE the forest
belief       (S,)     log potentials of each variable of the forest, summed over what hangs below it
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.graph import find_root
from clampz._kernels.jit import kernel, part

Integers = NDArray[np.int64]

ROOT, OUTSIDE = -1, -2
# Variables between two looks at the flag.
LOOK = 1024


class ForestFunctions(NamedTuple):
    """A model's tables, and where each variable occurs, as described above."""

    num_states: Integers
    start: Integers
    variables: Integers
    strides: Integers
    table_start: Integers
    values: NDArray[np.float64]
    home: Integers
    of_start: Integers
    of: Integers
    state_start: Integers


@kernel
def draw_forest(functions, order, uniform, x, cancel_flag):
    """Make one step of the chain; False where the flag was raised first, and x may be half changed."""
    n = order.size
    up = np.empty(n, dtype=np.int64)
    if not grow_forest(functions, order, up, cancel_flag):
        return False
    upwards = leaves_first(up)
    belief = np.zeros(functions.state_start[n])
    most = 1
    for i in range(n):
        most = max(most, functions.num_states[i])
    weights = np.empty(most)
    for step in range(upwards.size):
        if step % LOOK == 0 and cancel_flag[0]:
            return False
        i = upwards[step]
        add_own_functions(functions, up, x, i, belief)
        if up[i] >= 0:
            for b in range(functions.num_states[up[i]]):
                fill_conditional(functions, belief, x, i, up[i], b, weights)
                total = log_sum(weights, functions.num_states[i])
                belief[functions.state_start[up[i]] + b] += total
    for step in range(upwards.size - 1, -1, -1):
        i = upwards[step]
        fill_conditional(functions, belief, x, i, up[i], x[up[i]] if up[i] >= 0 else 0, weights)
        x[i] = draw_state(weights, functions.num_states[i], uniform[i])
    return True


@part
def grow_forest(functions, order, up, cancel_flag):
    """Take variables into the forest in their order, as long as no cycle arises; False where the flag was raised."""
    n = order.size
    tree = np.empty(n, dtype=np.int64)  # of each variable, another of its tree, or itself
    seen = np.empty(n, dtype=np.int64)  # of each tree, the last variable that was looked at beside it,
    beside = np.empty(n, dtype=np.int64)  # and the one in it that that has functions with
    for i in range(n):
        up[i], tree[i], seen[i], beside[i] = OUTSIDE, i, -1, -1
    for step in range(n):
        if step % LOOK == 0 and cancel_flag[0]:
            return False
        i = order[step]
        fits = True
        for k in range(functions.of_start[i], functions.of_start[i + 1]):
            f = functions.home[functions.of[k]]
            inside = 0
            for p in range(functions.start[f], functions.start[f + 1]):
                j = functions.variables[p]
                if j != i and up[j] != OUTSIDE:
                    inside += 1
                    t = find_root(tree, j)
                    fits = fits and not (seen[t] == i and beside[t] != j)
                    seen[t], beside[t] = i, j
            fits = fits and inside < 2
            if not fits:
                break
        if not fits:
            continue
        up[i] = ROOT
        for k in range(functions.of_start[i], functions.of_start[i + 1]):
            f = functions.home[functions.of[k]]
            for p in range(functions.start[f], functions.start[f + 1]):
                j = functions.variables[p]
                if j != i and up[j] != OUTSIDE and find_root(tree, j) != find_root(tree, i):
                    reroot(up, j, i)
                    tree[find_root(tree, j)] = find_root(tree, i)
    return True


@part
def reroot(up, j, i):
    """Make j the root of its tree, and hang it below i."""
    above = i
    while j >= 0:
        next_one = up[j]
        up[j] = above
        above, j = j, next_one


@part
def leaves_first(up):
    """Order the variables of the forest, each after all that hang below it."""
    n = up.size
    below = np.zeros(n, dtype=np.int64)
    number = 0
    for i in range(n):
        number += up[i] != OUTSIDE
        if up[i] >= 0:
            below[up[i]] += 1
    out = np.empty(number, dtype=np.int64)
    end = 0
    for i in range(n):
        if up[i] != OUTSIDE and below[i] == 0:
            out[end] = i
            end += 1
    for begin in range(number):
        above = up[out[begin]]
        if above >= 0:
            below[above] -= 1
            if below[above] == 0:
                out[end] = above
                end += 1
    return out


@part
def add_own_functions(functions, up, x, i, belief):
    """Add the functions in which i is the only variable of the forest to its belief."""
    for k in range(functions.of_start[i], functions.of_start[i + 1]):
        occurrence = functions.of[k]
        f = functions.home[occurrence]
        place, alone = functions.table_start[f], True
        for p in range(functions.start[f], functions.start[f + 1]):
            j = functions.variables[p]
            if j != i:
                alone = alone and up[j] == OUTSIDE
                place += x[j] * functions.strides[p]
        if alone:
            for a in range(functions.num_states[i]):
                belief[functions.state_start[i] + a] += functions.values[place + a * functions.strides[occurrence]]


@part
def fill_conditional(functions, belief, x, i, above, b, weights):
    """Write the log potentials of i, given state b of its parent if it has one."""
    for a in range(functions.num_states[i]):
        weights[a] = belief[functions.state_start[i] + a]
    if above < 0:
        return
    for k in range(functions.of_start[i], functions.of_start[i + 1]):
        occurrence = functions.of[k]
        f = functions.home[occurrence]
        place, shared = functions.table_start[f], False
        for p in range(functions.start[f], functions.start[f + 1]):
            j = functions.variables[p]
            if j == above:
                shared = True
                place += b * functions.strides[p]
            elif j != i:
                place += x[j] * functions.strides[p]
        if shared:
            for a in range(functions.num_states[i]):
                weights[a] += functions.values[place + a * functions.strides[occurrence]]


@part
def log_sum(values, number):
    """Compute the log-sum-exp of the first `number` values; -inf where all of them are."""
    top = values[0]
    for a in range(number):
        top = max(top, values[a])
    if top == -np.inf:
        return top
    total = 0.0
    for a in range(number):
        total += math.exp(values[a] - top)
    return top + math.log(total)


@part
def draw_state(values, number, uniform):
    """Draw a state from the first `number` log potentials by inverse transform of `uniform`."""
    whole, left, last = log_sum(values, number), uniform, 0
    for a in range(number):
        share = math.exp(values[a] - whole)
        if share > 0.0:
            last = a
            left -= share
            if left < 0.0:
                break
    return last
