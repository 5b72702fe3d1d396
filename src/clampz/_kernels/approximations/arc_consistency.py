"""Arc consistency of lanes: states without a supporting state in some neighbour are ruled out."""

import numpy as np

from clampz._kernels.jit import kernel


@kernel
def remove_unsupported(possible, graph, table, forwards):
    """Remove states without a partner in some neighbour, lane by lane, in one pass over the slots; whether there were
    any. The pass goes through the slots in their order, or backwards."""
    num_lanes = possible.shape[1]
    n = graph.start.size - 1
    removed = False
    for k in range(n):
        i = k if forwards else n - 1 - k
        first = graph.state_start[i]
        num_i = graph.state_start[i + 1] - first
        for e in range(graph.start[i], graph.start[i + 1]):
            j = graph.tail[e]
            first_j = graph.state_start[j]
            num_j = graph.state_start[j + 1] - first_j
            for x in range(num_i):
                for b in range(num_lanes):
                    if not possible[first + x, b]:
                        continue
                    supported = False
                    for y in range(num_j):
                        if possible[first_j + y, b] and table[graph.table_start[e] + y * num_i + x] > -np.inf:
                            supported = True
                            break
                    if not supported:
                        possible[first + x, b] = False
                        removed = True
    return removed
