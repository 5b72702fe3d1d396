"""Paths in a spanning forest, and closed walks, for the selectors of variables to clamp.

A path is cut into jumps, O(log n) of them, from one pointer per variable (Myers 1983).  Costs are only ever added along
a path, and scores only ever handed down it: differences of sums from the root would do with less code, and lose a small
cost or score behind a large one elsewhere in the tree.

start, neighbour, edge_of   neighbour lists, see `graph`
order     (n,)  the variables, parents before their children
parent    (n,)  towards the root; a root is its own
edge_up   (n,)  the tree edge to the parent; -1 for roots
depth     (n,)  edges to the root
jump      (n,)  an ancestor: which one follows from the depth alone.  Either the parent p, or the end of p's jump's jump
paths     (k, 2) pairs of variables of one tree
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import inline, kernel


class Forest(NamedTuple):
    """A rooted forest with jump pointers; the root of a tree is its first variable."""

    order: NDArray[np.int64]
    parent: NDArray[np.int64]
    edge_up: NDArray[np.int64]
    depth: NDArray[np.int64]
    jump: NDArray[np.int64]


@kernel
def root_forest(start, neighbour, edge_of):
    """Root a forest given by its neighbour lists, breadth first."""
    n = start.size - 1
    order = np.empty(n, dtype=np.int64)
    parent = np.full(n, -1, dtype=np.int64)
    edge_up = np.full(n, -1, dtype=np.int64)
    depth = np.zeros(n, dtype=np.int64)
    jump = np.empty(n, dtype=np.int64)
    count = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        parent[root] = root
        jump[root] = root
        order[count] = root
        done = count
        count += 1
        while done < count:
            i = order[done]
            done += 1
            far = jump[i]
            same_length = depth[i] - depth[far] == depth[far] - depth[jump[far]]
            for p in range(start[i], start[i + 1]):
                j = neighbour[p]
                if parent[j] >= 0:
                    continue
                parent[j] = i
                edge_up[j] = edge_of[p]
                depth[j] = depth[i] + 1
                # two jumps of one length become one: the skew-binary numbers
                jump[j] = jump[far] if same_length else i
                order[count] = j
                count += 1
    return Forest(order, parent, edge_up, depth, jump)


@kernel
def parities(forest, odd):
    """(n,) compute whether the path from the root has an odd number of `odd` edges."""
    parity = np.zeros(forest.parent.size, dtype=np.uint8)
    for r in range(parity.size):
        i = forest.order[r]
        if forest.edge_up[i] >= 0:
            parity[i] = parity[forest.parent[i]] ^ odd[forest.edge_up[i]]
    return parity


@inline
def _plus(a, b, in_logs):
    """Add numbers, or their logarithms: log(e^a + e^b)."""
    if not in_logs:
        return a + b
    if a == b:  # also where both are infinite
        return a + math.log(2.0)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@kernel
def path_sums(forest, paths, cost, in_logs):
    """(k,) sum the costs of the tree edges along each path; `in_logs`, costs and sums are logarithms."""
    parent, depth, jump = forest.parent, forest.depth, forest.jump
    n = parent.size
    nothing = -np.inf if in_logs else 0.0
    step = np.full(n, nothing)  # the edge to the parent
    leap = np.full(n, nothing)  # all edges to the end of the jump
    for r in range(n):
        i = forest.order[r]
        if forest.edge_up[i] < 0:
            continue
        step[i] = cost[forest.edge_up[i]]
        leap[i] = step[i]
        p = parent[i]
        if jump[i] != p:
            leap[i] = _plus(step[i], _plus(leap[p], leap[jump[p]], in_logs), in_logs)
    out = np.empty(paths.shape[0])
    for k in range(out.size):
        u = np.int64(paths[k, 0])
        v = np.int64(paths[k, 1])
        if depth[u] < depth[v]:
            u, v = v, u
        total = nothing
        while depth[u] > depth[v]:
            if depth[jump[u]] >= depth[v]:
                total = _plus(total, leap[u], in_logs)
                u = jump[u]
            else:
                total = _plus(total, step[u], in_logs)
                u = parent[u]
        while u != v:  # jumps of equal depths are as long: where they end apart, the paths have not met below
            if jump[u] != jump[v]:
                total = _plus(total, _plus(leap[u], leap[v], in_logs), in_logs)
                u = jump[u]
                v = jump[v]
            else:
                total = _plus(total, _plus(step[u], step[v], in_logs), in_logs)
                u = parent[u]
                v = parent[v]
        out[k] = total
    return out


@kernel
def add_along_paths(forest, paths, score):
    """(n,) sum for each variable the scores of the paths through it, ends included."""
    parent, depth, jump = forest.parent, forest.depth, forest.jump
    n = parent.size
    total = np.zeros(n)
    along = np.zeros(n)  # still to be handed to every variable from here to the end of the jump, which is excluded
    for k in range(paths.shape[0]):
        u = np.int64(paths[k, 0])
        v = np.int64(paths[k, 1])
        s = score[k]
        if depth[u] < depth[v]:
            u, v = v, u
        while depth[u] > depth[v]:
            if depth[jump[u]] >= depth[v]:
                along[u] += s
                u = jump[u]
            else:
                total[u] += s
                u = parent[u]
        while u != v:
            if jump[u] != jump[v]:
                along[u] += s
                along[v] += s
                u = jump[u]
                v = jump[v]
            else:
                total[u] += s
                total[v] += s
                u = parent[u]
                v = parent[v]
        total[u] += s
    # a jump is a step and the parent's two jumps: handed on from the leaves to the roots
    for r in range(n - 1, -1, -1):
        i = forest.order[r]
        p = parent[i]
        total[i] += along[i]
        if jump[i] != p:
            along[p] += along[i]
            along[jump[p]] += along[i]
    return total


@kernel
def closed_walks(start, neighbour, weight, longer, cancel_flag):
    """(n,) compute Mpower's score up to walks of 4 edges, or 6 if `longer`; weight (2m,) holds M_ij beside each
    neighbour.

    With s_i = [M^2]_ii and B = M^2 without its diagonal, x = row i of B and z = M x:

        score = ( [M^3]_ii + 2 s [G B]_ii + [B G B]_ii ) / (1 - s^2),    G = I + M + M^2 + ...
              = x.M_i + x.x  +  2 s x.M_i + x.z  +  2 s x.x + z.z  +  walks of 7 edges and more
    """
    n = start.size - 1
    score = np.zeros(n)
    x = np.zeros(n)
    z = np.zeros(n)
    near = np.empty(n, dtype=np.int64)
    far = np.empty(n, dtype=np.int64)
    near_of = np.full(n, -1, dtype=np.int64)
    far_of = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        num_near = 0
        s = 0.0
        for p in range(start[i], start[i + 1]):
            if cancel_flag[0]:
                return score
            j = neighbour[p]
            s += weight[p] * weight[p]
            for q in range(start[j], start[j + 1]):
                k = neighbour[q]
                if k == i:
                    continue
                if near_of[k] != i:
                    near_of[k] = i
                    near[num_near] = k
                    num_near += 1
                    x[k] = 0.0
                x[k] += weight[p] * weight[q]
        three = 0.0
        for p in range(start[i], start[i + 1]):
            if near_of[neighbour[p]] == i:
                three += weight[p] * x[neighbour[p]]
        four = 0.0
        for a in range(num_near):
            four += x[near[a]] * x[near[a]]
        score[i] = three + four
        if not longer:
            continue
        num_far = 0
        for a in range(num_near):
            k = near[a]
            for q in range(start[k], start[k + 1]):
                j = neighbour[q]
                if far_of[j] != i:
                    far_of[j] = i
                    far[num_far] = j
                    num_far += 1
                    z[j] = 0.0
                z[j] += weight[q] * x[k]
        five = 2.0 * s * three
        for a in range(num_near):
            if far_of[near[a]] == i:
                five += x[near[a]] * z[near[a]]
        six = 2.0 * s * four
        for a in range(num_far):
            six += z[far[a]] * z[far[a]]
        score[i] = (three + four + five + six) / (1.0 - s * s)
    return score
