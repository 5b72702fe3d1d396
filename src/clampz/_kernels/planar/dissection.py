"""Nested dissection of cities: a binary tree that cuts few edges near its root.

city_start, city_half   the half-edges of each city; 2e and 2e + 1 are the two sides of an edge
order       (C,)        cities, so that every node of the tree is a range of them
low, high   (K,)        the range of a node; children come before their parent, those of a node one after the other
children    (K, 2)      -1 for leaves, which have one city
cancel_flag        (1,)        raised from outside when the run is over
"""

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.statuses import LOOK_EVERY

# How far from its middle a range may be cut, as a share of it.
OFF_MIDDLE = 0.12


@part
def _search(first, node, city_start, city_half, city_of, part, distance, queue, filled):
    """Search breadth first from a city inside its part; returns the end of the queue, which begins at `filled`."""
    end = filled
    queue[end] = first
    end += 1
    distance[first] = 0
    done = filled
    while done < end:
        c = queue[done]
        done += 1
        for p in range(city_start[c], city_start[c + 1]):
            d = city_of[city_half[p] ^ 1]
            if part[d] == node and distance[d] < 0:
                distance[d] = distance[c] + 1
                queue[end] = d
                end += 1
    return end


@part
def _distances(first, node, city_start, city_half, city_of, part, distance, queue, members):
    """Compute the distances of a part's cities from one of them."""
    for p in range(members.size):
        distance[members[p]] = -1
    return _search(first, node, city_start, city_half, city_of, part, distance, queue, 0)


@part
def _by_difference(members, one, other, key_count, out):
    """Sort members by the difference of two distances, keeping the order of ties."""
    k = members.size
    key_count[: 2 * k + 2] = 0
    for p in range(k):
        c = members[p]
        key_count[one[c] - other[c] + k + 1] += 1
    for q in range(2 * k + 1):
        key_count[q + 1] += key_count[q]
    for p in range(k):
        c = members[p]
        place = one[c] - other[c] + k
        out[key_count[place]] = c
        key_count[place] += 1


@part
def _best_cut(ranked, node, city_start, city_half, city_of, part, taken):
    """Find the best place near the middle to cut a ranking in two: (edges cut, where)."""
    k = ranked.size
    lowest = max(1, int(k * (0.5 - OFF_MIDDLE)))
    highest = min(k - 1, k - lowest)
    cut = 0
    best = 1 << 40
    where = k // 2
    for p in range(highest):
        c = ranked[p]
        taken[c] = 1
        for q in range(city_start[c], city_start[c + 1]):
            d = city_of[city_half[q] ^ 1]
            if part[d] == node and d != c:
                cut += -1 if taken[d] else 1
        if p + 1 >= lowest and (cut < best or (cut == best and abs(2 * (p + 1) - k) < abs(2 * where - k))):
            best = cut
            where = p + 1
    for p in range(highest):
        taken[ranked[p]] = 0
    return best, where


@kernel
def dissect(city_start, city_half, city_of, cancel_flag):
    """Build the dissection tree (order, low, high, children), or nothing where the flag was raised. A part is ranked by
    the difference of the distances from two far ends, for several pairs of ends, and cut where that cuts least."""
    num = city_start.size - 1
    order = np.arange(num)
    num_nodes = max(2 * num - 1, 0)
    low = np.empty(num_nodes, dtype=np.int64)
    high = np.empty(num_nodes, dtype=np.int64)
    children = np.full((num_nodes, 2), -1, dtype=np.int64)
    part = np.zeros(num, dtype=np.int64)
    taken = np.zeros(num, dtype=np.uint8)
    distance = np.empty((4, num), dtype=np.int32)
    queue = np.empty(num, dtype=np.int64)
    ranked = np.empty(num, dtype=np.int64)
    best_ranked = np.empty(num, dtype=np.int64)
    key_count = np.empty(2 * num + 2, dtype=np.int64)
    # nodes are numbered from the last one down, as they are met from the root: children before parents
    waiting = np.empty((num + 1, 3), dtype=np.int64)
    top = 0
    if num > 0:
        waiting[0, 0] = 0
        waiting[0, 1] = num
        waiting[0, 2] = -1
        top = 1
    node = num_nodes
    work = 0
    while top > 0:
        if work > LOOK_EVERY:
            work = 0
            if cancel_flag[0]:
                return order[:0], low, high, children
        top -= 1
        node -= 1
        lo = waiting[top, 0]
        hi = waiting[top, 1]
        parent = waiting[top, 2]
        low[node] = lo
        high[node] = hi
        if parent >= 0:
            children[parent, 0 if children[parent, 0] < 0 else 1] = node
        k = hi - lo
        if k == 1:
            continue
        work += 16 * k
        members = order[lo:hi]
        for p in range(k):
            part[members[p]] = node
            distance[0, members[p]] = -1
        # components come first: cut between two of them, as near to the middle as may be
        end = _search(members[0], node, city_start, city_half, city_of, part, distance[0], queue, 0)
        middle = end
        if end < k:
            for p in range(k):
                if distance[0, members[p]] < 0:
                    if abs(2 * end - k) < abs(2 * middle - k):
                        middle = end
                    end = _search(members[p], node, city_start, city_half, city_of, part, distance[0], queue, end)
            for p in range(k):
                members[p] = queue[p]
        else:
            ends = np.empty(4, dtype=np.int64)
            ends[0] = queue[k - 1]
            _distances(ends[0], node, city_start, city_half, city_of, part, distance[0], queue, members)
            ends[1] = queue[k - 1]
            for p in range(k):
                members[p] = queue[p]
            _distances(ends[1], node, city_start, city_half, city_of, part, distance[1], queue, members)
            # the two other ends: far from each other, half-way between the first two
            _by_difference(members, distance[0], distance[1], key_count, ranked)
            centre = ranked[k // 2]
            level = distance[0, centre] - distance[1, centre]
            start_at = centre
            for s in (2, 3):
                _distances(start_at, node, city_start, city_half, city_of, part, distance[s], queue, members)
                for p in range(k):
                    c = queue[p]
                    if abs(distance[0, c] - distance[1, c] - level) <= 1:
                        ends[s] = c
                start_at = ends[s]
            _distances(ends[2], node, city_start, city_half, city_of, part, distance[2], queue, members)
            _distances(ends[3], node, city_start, city_half, city_of, part, distance[3], queue, members)
            fewest = 1 << 40
            middle = k // 2
            for one in range(2):
                for other in range(one + 1, 4):
                    _by_difference(members, distance[one], distance[other], key_count, ranked[:k])
                    cut, where = _best_cut(ranked[:k], node, city_start, city_half, city_of, part, taken)
                    if cut < fewest:
                        fewest = cut
                        middle = where
                        for p in range(k):
                            best_ranked[p] = ranked[p]
            _by_difference(members, distance[2], distance[3], key_count, ranked[:k])
            cut, where = _best_cut(ranked[:k], node, city_start, city_half, city_of, part, taken)
            if cut < fewest:
                middle = where
                for p in range(k):
                    best_ranked[p] = ranked[p]
            for p in range(k):
                members[p] = best_ranked[p]
        waiting[top, 0] = lo
        waiting[top, 1] = lo + middle
        waiting[top, 2] = node
        waiting[top + 1, 0] = lo + middle
        waiting[top + 1, 1] = hi
        waiting[top + 1, 2] = node
        top += 2
    return order, low, high, children


@kernel
def count_updates(city_start, city_of, place, low, high, children, cancel_flag):
    """Count the entries updated in the fronts of all nodes. A front of f rows updates f^2 + (f - 2)^2 + ... for the
    pairs that are eliminated there."""
    joined = np.zeros(low.size, dtype=np.int64)  # edges with both sides inside a node, but not inside a child
    for e in range(city_of.size // 2):
        if e % LOOK_EVERY == 0 and cancel_flag[0]:
            return 0.0
        one = place[city_of[2 * e]]
        other = place[city_of[2 * e + 1]]
        t = low.size - 1
        while children[t, 0] >= 0:
            child = children[t, 0] if low[children[t, 0]] <= one < high[children[t, 0]] else children[t, 1]
            if other < low[child] or other >= high[child]:
                break
            t = child
        joined[t] += 1
    side = np.empty(place.size, dtype=np.int64)
    for c in range(place.size):
        side[place[c]] = city_start[c + 1] - city_start[c]
    left = np.empty(low.size, dtype=np.int64)
    total = 0.0
    for t in range(low.size):
        f = side[low[t]] if children[t, 0] < 0 else left[children[t, 0]] + left[children[t, 1]]
        left[t] = f - 2 * joined[t]
        total += (float(f) ** 3 - float(left[t]) ** 3) / 6
    return total
