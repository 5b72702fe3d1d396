"""Mean field for any number of labels, on tables.

Rows are states in slot order, the layout of `state_tables`:
q        (S, B)    updated in place
theta    (S, B)    log unary potentials; -inf where a state is out
table    (tables,) theta_ij in both directions, hard zeros replaced by -HARD
"""

import numpy as np

from clampz._kernels.approximations.mean_field.binary import entropy_term
from clampz._kernels.approximations.message_passing.binary import ADDITIONS_COVERED, piece_end
from clampz._kernels.jit import kernel, part
from clampz._kernels.simd_math import EXP_LIMIT, exp, lost_in_sum

# Stands for an infinite penalty in a sum: beyond all potentials that matter, and zero times it is still zero.
HARD = 1e30


@part
def softmax(q, first, num_states, b):
    """Turn log weights q[first : first + num_states, b] into probabilities that add up to 1 within two roundings.
    Potentials are weighed with them, and a bound must not gain by what is too much."""
    top = -np.inf
    for x in range(num_states):
        top = max(top, q[first + x, b])
    s = 0.0
    lost = 0.0
    for x in range(num_states):
        d = q[first + x, b] - top
        w = exp(d) if d >= -EXP_LIMIT else 0.0
        q[first + x, b] = w
        lost += lost_in_sum(s, w)
        s += w
    s += lost
    for x in range(num_states):
        q[first + x, b] /= s


@kernel
def softmax_all(q, state_start):
    """Normalise every variable's log weights, rows state_start[i] : state_start[i + 1] of variable i."""
    for i in range(state_start.size - 1):
        for b in range(q.shape[1]):
            softmax(q, state_start[i], state_start[i + 1] - state_start[i], b)


@kernel
def sweep(ranges, num_sweeps, q, theta, table, graph):
    """Update the slots of all ranges by coordinate ascent, `num_sweeps` times; `ranges` as in
    `message_passing.binary`."""
    for _ in range(num_sweeps):
        for k in range(ranges.shape[0]):
            last, step = ranges[k, 1], ranges[k, 2]
            for first in range(ranges[k, 0], last, step):
                _update(first, piece_end(first, last, step), q, theta, table, graph)


@part
def _update(first, last, q, theta, table, graph):
    """Set q_i(x) in proportion to exp(theta_i(x) + sum_j sum_y q_j(y) theta_ij(x, y)) for slots first..last-1."""
    num_lanes = q.shape[1]
    for i in range(first, last):
        at = graph.state_start[i]
        num_i = graph.state_start[i + 1] - at
        for x in range(num_i):
            for b in range(num_lanes):
                q[at + x, b] = theta[at + x, b]
        for e in range(graph.start[i], graph.start[i + 1]):
            j = graph.tail[e]
            from_j = graph.state_start[j]
            num_j = graph.state_start[j + 1] - from_j
            begin = graph.table_start[e]
            if num_lanes == 1:
                for y in range(num_j):
                    p = q[from_j + y, 0]
                    for x in range(num_i):
                        q[at + x, 0] += table[begin + y * num_i + x] * p
            else:
                for x in range(num_i):
                    for y in range(num_j):
                        t = table[begin + y * num_i + x]
                        for b in range(num_lanes):
                            q[at + x, b] += t * q[from_j + y, b]
        for b in range(num_lanes):
            softmax(q, at, num_i, b)


@kernel
def value_terms(first, last, q, theta, table, graph, out):
    """Add the slots' share of F to out[0] (each edge half to either end), its magnitude to out[3], its loss to
    out[4]."""
    num_lanes = q.shape[1]
    for i in range(first, last):
        at = graph.state_start[i]
        num_i = graph.state_start[i + 1] - at
        for x in range(num_i):
            for b in range(num_lanes):
                p = q[at + x, b]
                if p != 0.0:  # nan makes the value nan, which is no bound
                    energy = 0.0
                    size = 0.0
                    additions = 1.0
                    for e in range(graph.start[i], graph.start[i + 1]):
                        from_j = graph.state_start[graph.tail[e]]
                        num_j = graph.state_start[graph.tail[e] + 1] - from_j
                        additions += num_j / ADDITIONS_COVERED
                        for y in range(num_j):
                            term = table[graph.table_start[e] + y * num_i + x] * q[from_j + y, b]
                            energy += term
                            size += abs(term)
                    value = p * (theta[at + x, b] + energy / 2) + entropy_term(p)
                    out[4, b] += lost_in_sum(out[0, b], value)
                    out[0, b] += value
                    out[3, b] += p * (abs(theta[at + x, b]) + size * additions) + 1.0
