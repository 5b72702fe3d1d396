"""Mean field on binary models by coordinate ascent: arrays in, arrays out.  Rows are slots.

centred  (n, B)  q - 1/2, updated in place; 0 where the lane has the variable clamped, so that it says nothing to its
                 neighbours
theta    (n, B)  log-odds of the unary potentials; 0 where clamped
weight   (2m,)   W of each message's edge
free     (n, B)  1, or 0 where clamped; (0, 0) where no lane has any

    q_i <- sigmoid( theta_i + sum_j W_ij (q_j - 1/2) )
    F    = constant + sum theta_i q_i + sum W_ij (q_i - 1/2)(q_j - 1/2) + W_ij / 4 + sum H(q_i)

Every q gives a lower bound F <= log Z, and each update can only raise it.
"""

import numpy as np

from clampz._kernels.approximations.message_passing.binary import ADDITIONS_COVERED, CHUNK, piece_end
from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.simd_math import log, lost_in_sum, sigmoid

# Below this the entropy term q log q is lost to rounding anyway.
SMALLEST = 1e-300


@kernel
def sweep(ranges, num_sweeps, centred, theta, weight, free, graph):
    """Update the slots of all ranges by coordinate ascent, `num_sweeps` times; `ranges` as in
    `message_passing.binary`."""
    row = np.empty(max(1, CHUNK // centred.shape[1]) * centred.shape[1])
    for _ in range(num_sweeps):
        for k in range(ranges.shape[0]):
            last, step = ranges[k, 1], ranges[k, 2]
            for first in range(ranges[k, 0], last, step):
                _update(first, piece_end(first, last, step), centred, theta, weight, free, graph, row)


@part
def _update(first, last, centred, theta, weight, free, graph, row):
    """Update slots first..last-1, a chunk at a time."""
    num_lanes = centred.shape[1]
    per_chunk = row.size // num_lanes
    for begin in range(first, last, per_chunk):
        end = min(begin + per_chunk, last)
        for i in range(begin, end):
            k = (i - begin) * num_lanes
            for b in range(num_lanes):
                row[k + b] = theta[i, b]
            for e in range(graph.start[i], graph.start[i + 1]):
                j = graph.tail[e]
                W = weight[e]
                for b in range(num_lanes):
                    row[k + b] += W * centred[j, b]
        for k in range((end - begin) * num_lanes):
            row[k] = sigmoid(row[k]) - 0.5
        for i in range(begin, end):
            k = (i - begin) * num_lanes
            if free.size > 0:
                for b in range(num_lanes):
                    row[k + b] *= free[i, b]
            for b in range(num_lanes):
                centred[i, b] = row[k + b]


@inline
def entropy_term(p):
    """Compute -p log p, also for p = 0."""
    return -p * log(max(p, SMALLEST))


@kernel
def value_terms(first, last, centred, theta, weight, free, graph, out):
    """Add the slots' share of F to out (6, B), each edge half to either end. The share goes to out[0], its magnitude to
    out[3], what out[0] loses to rounding to out[4]."""
    num_lanes = centred.shape[1]
    row = np.empty(num_lanes)
    size = np.empty(num_lanes)
    for i in range(first, last):
        additions = 1.0 + (graph.start[i + 1] - graph.start[i]) / ADDITIONS_COVERED
        for b in range(num_lanes):
            row[b] = 0.0
            size[b] = 0.0
        for e in range(graph.start[i], graph.start[i + 1]):
            j = graph.tail[e]
            half = weight[e] / 2
            for b in range(num_lanes):
                row[b] += half * centred[j, b]
                size[b] += abs(half)
        for b in range(num_lanes):
            high = 0.5 + centred[i, b]
            entropy = entropy_term(high) + entropy_term(0.5 - centred[i, b])
            if free.size > 0:
                entropy *= free[i, b]
            value = theta[i, b] * high + centred[i, b] * row[b] + entropy
            out[4, b] += lost_in_sum(out[0, b], value)
            out[0, b] += value
            out[3, b] += abs(theta[i, b]) + size[b] * additions + 1.0
