"""Mutual information of pairwise beliefs: minus the gradient of the TRW bound by rho.

The arrays are those of `message_passing.binary` and of `message_passing.tables`.
"""

import numpy as np

from clampz._kernels.approximations.message_passing.binary import message
from clampz._kernels.approximations.message_passing.pair_beliefs import pair_beliefs
from clampz._kernels.jit import inline, kernel
from clampz._kernels.simd_math import log, sigmoid, softplus


@kernel
def mutual_information_binary(u, total, weights, graph, out):
    """(m, B) compute I_ij of the pairwise beliefs T_ij."""
    w, _, _, free = weights
    _, tail, _, message_of_edge = graph
    num_lanes = u.shape[1]
    shared = w.shape[1] == 1
    for edge in range(message_of_edge.shape[0]):
        e = message_of_edge[edge, 1]
        r = message_of_edge[edge, 0]
        j = tail[e]
        i = tail[r]
        for b in range(num_lanes):
            x = w[e, 0 if shared else b]
            a = total[i, b] - u[e, b]
            c = total[j, b] - u[r, b]
            new_i = message(c, x)
            new_j = message(a, x)
            # T_ij factorises as (marginal of i) (j given i); the log-odds of j given x_i are c - x and c + x.
            t_i = a + new_i
            t_j = c + new_j
            p1 = sigmoid(t_i)
            p0 = sigmoid(-t_i)
            information = _entropy(t_j) - p0 * _entropy(c - x) - p1 * _entropy(c + x)
            if free.size > 0:
                information *= free[i, b] * free[j, b]
            out[edge, b] = max(0.0, information)


@inline
def _entropy(t):
    """Compute the entropy of a binary variable with log-odds t."""
    return softplus(t) - t * sigmoid(t)


@kernel
def mutual_information_of_lane(lane, messages, total, potentials, graph, pair_start, beliefs, out):
    """Compute I_ij of the pairwise beliefs of one lane into out (m,)."""
    pair_beliefs(lane, messages, total, potentials, graph, pair_start, beliefs)
    for k in range(out.size):
        j = graph.tail[graph.message_of_edge[k, 1]]
        num_j = graph.state_start[j + 1] - graph.state_start[j]
        first = pair_start[k]
        num_i = (pair_start[k + 1] - first) // num_j
        information = 0.0
        row = np.zeros(num_i)
        column = np.zeros(num_j)
        for x in range(num_i):
            for y in range(num_j):
                row[x] += beliefs[first + x * num_j + y]
                column[y] += beliefs[first + x * num_j + y]
        for x in range(num_i):
            for y in range(num_j):
                p = beliefs[first + x * num_j + y]
                if p > 1e-290:
                    information += p * (log(p) - log(row[x]) - log(column[y]))
        out[k] = max(0.0, information)
