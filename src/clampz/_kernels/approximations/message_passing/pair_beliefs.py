"""Pairwise beliefs of message passing over tables.

The arrays are those of `message_passing.tables`; `pair_start` is where each edge's table begins in the model.
"""

import numpy as np

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import EXP_LIMIT, exp


@kernel
def pair_beliefs(lane, messages, total, potentials, graph, pair_start, out):
    """Compute the pairwise beliefs T_ij of one lane, laid out as the model's pairwise tables."""
    for k in range(graph.message_of_edge.shape[0]):
        r = graph.message_of_edge[k, 0]
        e = graph.message_of_edge[k, 1]
        i = graph.tail[r]
        j = graph.tail[e]
        num_i = graph.state_start[i + 1] - graph.state_start[i]
        num_j = graph.state_start[j + 1] - graph.state_start[j]
        top = -np.inf
        for x in range(num_i):
            for y in range(num_j):
                term = potentials.table[graph.table_start[r] + x * num_j + y] / potentials.rho[e, 0]
                term += total[graph.state_start[i] + x, lane] - messages[graph.entry_start[e] + x, lane]
                term += total[graph.state_start[j] + y, lane] - messages[graph.entry_start[r] + y, lane]
                out[pair_start[k] + x * num_j + y] = term
                top = max(top, term)
        s = 0.0
        for p in range(pair_start[k], pair_start[k + 1]):
            out[p] = exp(out[p] - top) if out[p] - top >= -EXP_LIMIT else 0.0
            s += out[p]
        for p in range(pair_start[k], pair_start[k + 1]):
            out[p] /= s
