"""The left-right planarity test, with an embedding: linear in time, no recursion.

After U. Brandes, "The left-right planarity test" (2009).  A depth-first search orients every edge: tree edges away from
the root, back edges towards it.  A graph is planar if back edges can be put left and right of the tree so that those
that return above each other are on different sides; constraints are kept as pairs of intervals of back edges, which
must be on different sides, on a stack.

edges       (m, 2)   the two variables of each edge; half-edge 2e runs from the first to the second, 2e + 1 back
tail        (m,)     where the search comes from along an edge
parent      (n,)     the tree edge into a variable, -1 for roots
height      (n,)     distance from the root along the tree
low, low2   (m,)     the lowest and second lowest height that the edge's subtree returns to
nesting     (m,)     order of the edges out of a variable
pairs       (m, 4)   the stack of constraints: left low, left high, right low, right high edges, -1 for none
ref, side   (m,)     the edge whose side this one's is relative to (-1: none), and the side, 1 or -1
onward, back (2m,)   the next half-edge around the variable that it leaves, and the one before
cancel_flag        (1,)     raised from outside when the run is over
"""

import numpy as np

from clampz._kernels.graph import neighbour_lists
from clampz._kernels.jit import kernel, part
from clampz._kernels.statuses import LOOK_EVERY, STOPPED

NOT_PLANAR, PLANAR = 0, 2

LEFT_LOW, LEFT_HIGH, RIGHT_LOW, RIGHT_HIGH = 0, 1, 2, 3


@part
def _close_edge(k, tail, parent, height, low, low2, nesting):
    """Finish an edge of the search: where it is nested, and what its parent edge returns to by it."""
    v = tail[k]
    nesting[k] = 2 * low[k] + (1 if low2[k] < height[v] else 0)
    e = parent[v]
    if e >= 0:
        if low[k] < low[e]:
            low2[e] = min(low[e], low2[k])
            low[e] = low[k]
        elif low[k] > low[e]:
            low2[e] = min(low2[e], low[k])
        else:
            low2[e] = min(low2[e], low2[k])


@part
def _orient(start, neighbour, edge_of, tail, parent, height, low, low2, nesting, cancel_flag):
    """Orient the edges by depth-first search; False where the flag was raised."""
    n = start.size - 1
    at = start[:-1].copy()
    stack = np.empty(n, dtype=np.int32)
    steps = 0
    for root in range(n):
        if height[root] >= 0:
            continue
        height[root] = 0
        stack[0] = root
        top = 1
        while top > 0:
            steps += 1
            if steps % LOOK_EVERY == 0 and cancel_flag[0]:
                return False
            v = stack[top - 1]
            p = at[v]
            if p == start[v + 1]:
                top -= 1
                if parent[v] >= 0:
                    _close_edge(parent[v], tail, parent, height, low, low2, nesting)
                continue
            at[v] += 1
            w = neighbour[p]
            k = edge_of[p]
            if tail[k] >= 0:
                continue
            tail[k] = v
            low[k] = height[v]
            low2[k] = height[v]
            if height[w] < 0:
                parent[w] = k
                height[w] = height[v] + 1
                stack[top] = w
                top += 1
            else:
                low[k] = height[w]
                _close_edge(k, tail, parent, height, low, low2, nesting)
    return True


@part
def _out_edges(num_variables, tail, key, lowest, highest):
    """List the edges out of each variable, sorted by key: a counting sort by key, then by tail."""
    m = tail.size
    count = np.zeros(highest - lowest + 2, dtype=np.int64)
    for k in range(m):
        count[key[k] - lowest + 1] += 1
    for c in range(count.size - 1):
        count[c + 1] += count[c]
    by_key = np.empty(m, dtype=np.int32)
    for k in range(m):
        by_key[count[key[k] - lowest]] = k
        count[key[k] - lowest] += 1
    start = np.zeros(num_variables + 1, dtype=np.int64)
    for k in range(m):
        start[tail[k] + 1] += 1
    for v in range(num_variables):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    out = np.empty(m, dtype=np.int32)
    for p in range(m):
        k = by_key[p]
        out[fill[tail[k]]] = k
        fill[tail[k]] += 1
    return start, out


@part
def _conflicts(high, k, low):
    """Whether an interval of back edges returns above edge k."""
    return high >= 0 and low[high] > low[k]


@part
def _swap_sides(pair):
    """Exchange the left and right interval of a pair."""
    for c in range(2):
        kept = pair[c]
        pair[c] = pair[c + 2]
        pair[c + 2] = kept


@part
def _add_constraints(k, e, pairs, top, bottom, low, low_edge, ref):
    """Merge the constraints of edge k with those of edges before it, all below e. Its return edges must be on one side,
    against those of the others on the other side. Returns the new top of the stack, -1 where that cannot be."""
    new = np.full(4, -1, dtype=np.int32)
    while True:  # what k returns to goes into the right interval
        top -= 1
        pair = pairs[top]
        if pair[LEFT_HIGH] >= 0:
            _swap_sides(pair)
        if pair[LEFT_HIGH] >= 0:
            return -1
        if low[pair[RIGHT_LOW]] > low[e]:
            if new[RIGHT_HIGH] < 0:
                new[RIGHT_HIGH] = pair[RIGHT_HIGH]
            else:
                ref[new[RIGHT_LOW]] = pair[RIGHT_HIGH]
            new[RIGHT_LOW] = pair[RIGHT_LOW]
        else:
            ref[pair[RIGHT_LOW]] = low_edge[e]
        if top == bottom:
            break
    # what the edges before it return to above its own return goes into the left one
    while top > 0 and (_conflicts(pairs[top - 1, LEFT_HIGH], k, low) or _conflicts(pairs[top - 1, RIGHT_HIGH], k, low)):
        top -= 1
        pair = pairs[top]
        if _conflicts(pair[RIGHT_HIGH], k, low):
            _swap_sides(pair)
        if _conflicts(pair[RIGHT_HIGH], k, low):
            return -1
        if new[RIGHT_LOW] >= 0:
            ref[new[RIGHT_LOW]] = pair[RIGHT_HIGH]
        if pair[RIGHT_LOW] >= 0:
            new[RIGHT_LOW] = pair[RIGHT_LOW]
        if new[LEFT_HIGH] < 0:
            new[LEFT_HIGH] = pair[LEFT_HIGH]
        else:
            ref[new[LEFT_LOW]] = pair[LEFT_HIGH]
        new[LEFT_LOW] = pair[LEFT_LOW]
    if new[LEFT_HIGH] >= 0 or new[RIGHT_HIGH] >= 0:
        pairs[top] = new
        top += 1
    return top


@part
def _lowest(pair, low):
    """Return the lowest height that a pair of intervals returns to."""
    if pair[LEFT_LOW] < 0:
        return low[pair[RIGHT_LOW]]
    if pair[RIGHT_LOW] < 0:
        return low[pair[LEFT_LOW]]
    return min(low[pair[LEFT_LOW]], low[pair[RIGHT_LOW]])


@part
def _trim(pair, mine, other, u, head, ref, side):
    """Remove back edges into u from an interval: `mine` and `other` are where the two begin."""
    while pair[mine + 1] >= 0 and head[pair[mine + 1]] == u:
        pair[mine + 1] = ref[pair[mine + 1]]
    if pair[mine + 1] < 0 and pair[mine] >= 0:
        ref[pair[mine]] = pair[other]
        side[pair[mine]] = -1
        pair[mine] = -1


@part
def _retreat(e, pairs, top, tail, head, height, low, ref, side):
    """Go back along e: back edges into its tail end here. Returns the new top of the stack."""
    u = tail[e]
    while top > 0 and _lowest(pairs[top - 1], low) == height[u]:
        top -= 1
        if pairs[top, LEFT_LOW] >= 0:
            side[pairs[top, LEFT_LOW]] = -1
    if top > 0:
        pair = pairs[top - 1]
        _trim(pair, LEFT_LOW, RIGHT_LOW, u, head, ref, side)
        _trim(pair, RIGHT_LOW, LEFT_LOW, u, head, ref, side)
        if low[e] < height[u]:  # e is on the side of its highest return edge
            left = pair[LEFT_HIGH]
            right = pair[RIGHT_HIGH]
            ref[e] = left if left >= 0 and (right < 0 or low[left] > low[right]) else right
    return top


@part
def _test(start, out, tail, head, parent, height, low, ref, side, cancel_flag):
    """Test whether back edges can be put on two sides: NOT_PLANAR, PLANAR or STOPPED."""
    n = start.size - 1
    m = out.size
    at = start[:-1].copy()
    entered = np.zeros(n, dtype=np.uint8)  # the tree edge at hand has been gone along
    stack = np.empty(n, dtype=np.int32)
    pairs = np.empty((m + 1, 4), dtype=np.int32)
    bottom = np.zeros(m, dtype=np.int64)
    low_edge = np.full(m, -1, dtype=np.int32)
    top = 0
    steps = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0] = root
        depth = 1
        while depth > 0:
            steps += 1
            if steps % LOOK_EVERY == 0 and cancel_flag[0]:
                return STOPPED
            v = stack[depth - 1]
            e = parent[v]
            if at[v] == start[v + 1]:
                depth -= 1
                if e >= 0:
                    top = _retreat(e, pairs, top, tail, head, height, low, ref, side)
                continue
            k = out[at[v]]
            w = head[k]
            if not entered[v]:
                bottom[k] = top
                if parent[w] == k:
                    entered[v] = 1
                    stack[depth] = w
                    depth += 1
                    continue
                low_edge[k] = k
                pairs[top, LEFT_LOW] = -1
                pairs[top, LEFT_HIGH] = -1
                pairs[top, RIGHT_LOW] = k
                pairs[top, RIGHT_HIGH] = k
                top += 1
            entered[v] = 0
            if low[k] < height[v]:
                if at[v] == start[v]:
                    low_edge[e] = low_edge[k]
                else:
                    top = _add_constraints(k, e, pairs, top, bottom[k], low, low_edge, ref)
                    if top < 0:
                        return NOT_PLANAR
            at[v] += 1
    return PLANAR


@part
def _resolve_sides(ref, side):
    """Turn sides relative to other edges into sides."""
    chain = np.empty(ref.size, dtype=np.int32)
    for k in range(ref.size):
        length = 0
        e = k
        while ref[e] >= 0:
            chain[length] = e
            length += 1
            e = ref[e]
        for p in range(length - 1, -1, -1):
            e = chain[p]
            side[e] *= side[ref[e]]
            ref[e] = -1


@part
def _insert(h, before, onward, back):
    """Insert half-edge h directly before another around their variable."""
    last = back[before]
    onward[last] = h
    back[h] = last
    onward[h] = before
    back[before] = h


@part
def _rotations(start, out, edges, tail, head, parent, side):
    """Order the half-edges around each variable, in a circle."""
    n = start.size - 1
    m = out.size
    onward = np.empty(2 * m, dtype=np.int32)
    back = np.empty(2 * m, dtype=np.int32)
    first = np.full(n, -1, dtype=np.int32)
    left = np.full(n, -1, dtype=np.int32)
    right = np.full(n, -1, dtype=np.int32)
    for v in range(n):
        for p in range(start[v], start[v + 1]):
            h = 2 * out[p] + (0 if edges[out[p], 0] == v else 1)
            if first[v] < 0:
                first[v] = h
                onward[h] = h
                back[h] = h
            else:
                _insert(h, first[v], onward, back)
    at = start[:-1].copy()
    stack = np.empty(n, dtype=np.int32)
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0] = root
        depth = 1
        while depth > 0:
            v = stack[depth - 1]
            if at[v] == start[v + 1]:
                depth -= 1
                continue
            k = out[at[v]]
            at[v] += 1
            w = head[k]
            forward = 2 * k + (0 if edges[k, 0] == v else 1)
            backward = forward ^ 1
            if parent[w] == k:
                if first[w] < 0:
                    onward[backward] = backward
                    back[backward] = backward
                else:
                    _insert(backward, first[w], onward, back)
                first[w] = backward
                left[v] = forward
                right[v] = forward
                stack[depth] = w
                depth += 1
            elif side[k] == 1:
                _insert(backward, onward[right[w]], onward, back)
            else:
                _insert(backward, left[w], onward, back)
                left[w] = backward
    return back


@kernel
def embed(num_variables, edges, cancel_flag):
    """Embed a graph of distinct edges without loops in the plane. Returns PLANAR, NOT_PLANAR or STOPPED, and for each
    half-edge the next one along its face."""
    n = num_variables
    m = edges.shape[0]
    nothing = np.empty(0, dtype=np.int32)
    if n > 2 and m > 3 * n - 6:
        return NOT_PLANAR, nothing
    start, neighbour, edge_of = neighbour_lists(n, edges)
    tail = np.full(m, -1, dtype=np.int32)
    parent = np.full(n, -1, dtype=np.int32)
    height = np.full(n, -1, dtype=np.int32)
    low = np.empty(m, dtype=np.int32)
    low2 = np.empty(m, dtype=np.int32)
    nesting = np.empty(m, dtype=np.int32)
    if not _orient(start, neighbour, edge_of, tail, parent, height, low, low2, nesting, cancel_flag):
        return STOPPED, nothing
    head = np.empty(m, dtype=np.int32)
    for k in range(m):
        head[k] = edges[k, 0] + edges[k, 1] - tail[k]
    ref = np.full(m, -1, dtype=np.int32)
    side = np.ones(m, dtype=np.int8)
    start, out = _out_edges(n, tail, nesting, 0, 2 * n + 1)
    status = _test(start, out, tail, head, parent, height, low, ref, side, cancel_flag)
    if status != PLANAR:
        return status, nothing
    _resolve_sides(ref, side)
    for k in range(m):
        nesting[k] *= side[k]
    start, out = _out_edges(n, tail, nesting, -2 * n - 1, 2 * n + 1)
    back = _rotations(start, out, edges, tail, head, parent, side)
    follows = np.empty(2 * m, dtype=np.int32)
    for h in range(2 * m):
        follows[h] = back[h ^ 1]
    return PLANAR, follows
