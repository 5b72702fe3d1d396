"""Mutual information of the pairwise beliefs of binary models: minus the gradient of the TRW bound by rho.

The arrays are those of `message_passing.binary`.
"""

from clampz._kernels.approximations.message_passing.binary import message
from clampz._kernels.jit import inline, kernel
from clampz._kernels.simd_math import sigmoid, softplus


@kernel
def mutual_information(u, total, weights, graph, out):
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
