"""Local search for a configuration of large score: coordinate moves with kicks, and simulated annealing.

A variable takes its best state given the others, and those that share a table with it are looked at again, until none
can be improved.  Then a few variables near each other are given states at random, and it begins anew there; what
comes of that is taken back if it is worse.  Annealing draws states given the others, at ever larger inverse
temperatures: where good configurations are many flips apart, as those of spin glasses are, kicks do not get there.

x        (n,)      the configuration, improved in place
start, flat        all tables end to end, hard zeros as large negative numbers
scope_start, scope, strides    their variables, and how far apart two states of each are in the table
at_start, tables_at            the tables of each variable, as places in `scope`; table_of: the table of such a place
uniform  (R, 1 + 3 S)   numbers from [0, 1): for each kick, which variable, and S times a table of the last one, a
                        variable of that, and its state; to anneal, (R, n): for each sweep and variable, its state
betas    (R,)      the inverse temperature of each sweep
stakes   (n,)      what the second best state of a variable would cost, given the others
"""

import math

import numpy as np

from clampz._kernels.jit import kernel, part

# An improvement is more than this share of what the tables of a variable say: rounding is none.
LEAST_GAIN = 1e-12


@kernel
def hill_climb(
    num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at, uniform, x, cancel_flag
):
    """Improve a configuration by coordinate moves and kicks; returns by how much the score has grown."""
    n = num_states.size
    gain = np.empty(num_states.max() if n else 0)
    queue, waiting = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    trail = np.empty((4 * n + 64, 2), dtype=np.int64)
    tables = (num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at)
    for i in range(n):
        queue[i] = i
        waiting[i] = 1
    grown, _ = improve_waiting(tables, x, gain, queue, waiting, n, trail[:0], 0, cancel_flag)
    for kick in range(uniform.shape[0]):
        if cancel_flag[0] or n == 0:
            return grown
        changed, num_trail, num_waiting = 0.0, 0, 0
        i = int(uniform[kick, 0] * n)
        for s in range(1, uniform.shape[1], 3):
            if at_start[i + 1] == at_start[i]:
                break
            at = tables_at[at_start[i] + int(uniform[kick, s] * (at_start[i + 1] - at_start[i]))]
            table = table_of[at]
            arity = scope_start[table + 1] - scope_start[table]
            i = int(scope[scope_start[table] + int(uniform[kick, s + 1] * arity)])
            state = int(uniform[kick, s + 2] * num_states[i])
            if state != x[i]:
                fill_gain(tables, x, i, gain)
                changed += gain[state] - gain[x[i]]
                trail[num_trail, 0] = i
                trail[num_trail, 1] = x[i]
                num_trail += 1
                x[i] = state
                num_waiting = enqueue_neighbours(tables, i, queue, waiting, 0, num_waiting)
        more, num_trail = improve_waiting(tables, x, gain, queue, waiting, num_waiting, trail, num_trail, cancel_flag)
        if changed + more >= 0.0:
            grown += changed + more
        else:
            for back in range(num_trail - 1, -1, -1):
                x[trail[back, 0]] = trail[back, 1]
    return grown


@kernel
def fill_stakes(num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at, x, stakes):
    """Fill in each variable's gap between its best and second best state given the others; 0 where there is no
    choice."""
    n = num_states.size
    gain = np.empty(num_states.max() if n else 0)
    tables = (num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at)
    for i in range(n):
        fill_gain(tables, x, i, gain)
        best, second = -np.inf, -np.inf
        for k in range(num_states[i]):
            if gain[k] > best:
                best, second = gain[k], best
            elif gain[k] > second:
                second = gain[k]
        stakes[i] = best - second if num_states[i] > 1 else 0.0


@kernel
def anneal(
    num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at, betas, uniform, x, cancel_flag
):
    """Draw every variable from p(x_i) ~ exp(beta gain), a sweep at each inverse temperature; returns how many were
    made."""
    n = num_states.size
    gain = np.empty(num_states.max() if n else 0)
    tables = (num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at)
    for sweep in range(betas.size):
        if cancel_flag[0]:
            return sweep
        for i in range(n):
            K = num_states[i]
            fill_gain(tables, x, i, gain)
            top, total = gain[:K].max(), 0.0
            for k in range(K):
                gain[k] = math.exp(betas[sweep] * (gain[k] - top))
                total += gain[k]
            left, state = uniform[sweep, i] * total, 0
            while state < K - 1 and left >= gain[state]:
                left -= gain[state]
                state += 1
            x[i] = state
    return betas.size


@part
def improve_waiting(tables, x, gain, queue, waiting, num_waiting, trail, num_trail, cancel_flag):
    """Move queued variables to their best states until nothing improves. Returns the gain, and the number of changes on
    the trail, which is empty where nothing will be taken back."""
    n, first, grown = queue.size, 0, 0.0
    on_trail = trail.shape[0] > 0
    while num_waiting > 0:
        i = queue[first]
        first = (first + 1) % n
        num_waiting -= 1
        waiting[i] = 0
        if cancel_flag[0] or (on_trail and num_trail == trail.shape[0]):
            continue
        size = fill_gain(tables, x, i, gain)
        best = x[i]
        for k in range(tables[0][i]):
            if gain[k] > gain[best]:
                best = k
        if gain[best] - gain[x[i]] > LEAST_GAIN * size:
            grown += gain[best] - gain[x[i]]
            if on_trail:
                trail[num_trail, 0] = i
                trail[num_trail, 1] = x[i]
                num_trail += 1
            x[i] = best
            num_waiting = enqueue_neighbours(tables, i, queue, waiting, first, num_waiting)
    return grown, num_trail


@part
def fill_gain(tables, x, i, gain):
    """Fill in what the tables of variable i say of each of its states; returns the largest size of that."""
    num_states, scope_start, scope, strides, start, flat, table_of, at_start, tables_at = tables
    K = num_states[i]
    for k in range(K):
        gain[k] = 0.0
    for place in range(at_start[i], at_start[i + 1]):
        at = tables_at[place]
        table = table_of[at]
        begin = start[table]
        for a in range(scope_start[table], scope_start[table + 1]):
            if a != at:
                begin += x[scope[a]] * strides[a]
        for k in range(K):
            gain[k] += flat[begin + k * strides[at]]
    size = 0.0
    for k in range(K):
        size = max(size, abs(gain[k]))
    return size


@part
def enqueue_neighbours(tables, i, queue, waiting, first, num_waiting):
    """Queue all variables that share a table with variable i; returns how many wait."""
    _, scope_start, scope, _, _, _, table_of, at_start, tables_at = tables
    n = queue.size
    for place in range(at_start[i], at_start[i + 1]):
        table = table_of[tables_at[place]]
        for a in range(scope_start[table], scope_start[table + 1]):
            j = scope[a]
            if not waiting[j]:
                waiting[j] = 1
                queue[(first + num_waiting) % n] = j
                num_waiting += 1
    return num_waiting
