"""Scales for the rows of the matrix of a planar graph: a largest matching of entries becomes 1, and no entry is larger.

The sum over cuts may be dominated by any of its terms, and where couplings are strong and frustrated, rows scaled each
by its own largest entry leave a matrix that is singular to within rounding.  Scales that solve the assignment problem

    min sum_i c_i,s(i) over permutations s,     c_ij = -log2 |A_ij|,     u_i + v_j <= c_ij, equal where j = s(i),

do not: with scale (u + v) / 2 every entry is at most 1, and the largest terms of the determinant are.  Edges that do
not repel begin matched, side to side; each other row is matched along a shortest augmenting path, which mostly is
short.

log_weight  (M,)       log2 of weight when uncut / weight when cut; inf where an edge cannot be cut
u, v        (2M,)      the dual variables of rows and of columns
column, row (2M,)      the column that a row is matched with, and back; -1 for none
heap        (H, 2)     columns by their distance from the row at hand, smallest first; some of them outdated
"""

import numpy as np

from clampz._kernels.jit import kernel, part

# Columns that are looked at for a row at most; beyond, it is left as it is: scales stay those of no larger entry.
MOST_COLUMNS = 1 << 13
# Rows between two looks at the flag.
LOOK_EVERY = 16


@part
def _push(distance, column, heap_distance, heap_column, size):
    """Push a column onto the heap; returns the heap's size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap_distance[above] <= distance:
            break
        heap_distance[at] = heap_distance[above]
        heap_column[at] = heap_column[above]
        at = above
    heap_distance[at] = distance
    heap_column[at] = column
    return size + 1


@part
def _pop(heap_distance, heap_column, size):
    """Pop the nearest column off the heap: (distance, column, size)."""
    distance = heap_distance[0]
    column = heap_column[0]
    size -= 1
    last = heap_distance[size]
    last_column = heap_column[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and heap_distance[below + 1] < heap_distance[below]:
            below += 1
        if heap_distance[below] >= last:
            break
        heap_distance[at] = heap_distance[below]
        heap_column[at] = heap_column[below]
        at = below
    heap_distance[at] = last
    heap_column[at] = last_column
    return distance, column, size


@part
def _begin(log_weight, city_start, city_half, u, v, column, row):
    """Begin with feasible duals, and edges matched side to side."""
    for e in range(log_weight.size):
        if log_weight[e] >= 0.0:
            for h in range(2 * e, 2 * e + 2):
                u[h] = -log_weight[e] / 2
                v[h] = u[h]
                column[h] = h ^ 1
                row[h] = h ^ 1
    for c in range(city_start.size - 1):
        for p in range(city_start[c], city_start[c + 1]):
            h = city_half[p]
            if column[h] < 0:
                least = -log_weight[h >> 1]
                for q in range(city_start[c], city_start[c + 1]):
                    if q != p:
                        least = min(least, -v[city_half[q]])
                u[h] = least


@kernel
def scales(log_weight, city_start, city_half, city_of, cancel_flag):
    """(2M,) solve for log2 of each row's and column's scale, whole numbers; -inf for edges that cannot be cut."""
    num = city_half.size
    u = np.zeros(num)
    v = np.zeros(num)
    column = np.full(num, -1, dtype=np.int32)
    row = np.full(num, -1, dtype=np.int32)
    _begin(log_weight, city_start, city_half, u, v, column, row)
    # a column is looked at, and settled, at most once for a row; each settled one adds a city's columns to the heap
    room = 8 * (MOST_COLUMNS + 8)
    heap_distance = np.empty(room)
    heap_column = np.empty(room, dtype=np.int32)
    seen = np.empty(room, dtype=np.int32)
    distance = np.full(num, np.inf)
    settled = np.zeros(num, dtype=np.uint8)
    before = np.empty(num, dtype=np.int32)
    searches = 0
    for first in range(num):
        if column[first] >= 0:
            continue
        searches += 1
        if searches % LOOK_EVERY == 0 and cancel_flag[0]:
            break
        size = 0
        num_seen = 0
        num_settled = 0
        i = np.int64(first)
        reached = 0.0
        end = -1
        while True:
            c = city_of[i]
            for p in range(city_start[c] - 1, city_start[c + 1]):
                # the other side of the edge, then the others of the city
                j = i ^ 1 if p < city_start[c] else city_half[p]
                cost = -log_weight[i >> 1] if p < city_start[c] else 0.0
                if j == i or settled[j] or v[j] == -np.inf or cost == np.inf:
                    continue
                d = reached + max(cost - u[i] - v[j], 0.0)
                if d < distance[j]:
                    if distance[j] == np.inf:
                        seen[num_seen] = j
                        num_seen += 1
                    distance[j] = d
                    before[j] = i
                    size = _push(d, j, heap_distance, heap_column, size)
            end = -1
            while size > 0 and end < 0:
                reached, j, size = _pop(heap_distance, heap_column, size)
                if not settled[j]:
                    end = j
            if end < 0 or row[end] < 0 or num_settled == MOST_COLUMNS:
                break
            settled[end] = 1
            num_settled += 1
            i = np.int64(row[end])
        if end >= 0 and row[end] < 0:
            u[first] += reached
            for s in range(num_seen):
                j = seen[s]
                if settled[j]:
                    u[row[j]] += reached - distance[j]
                    v[j] -= reached - distance[j]
            j = end
            while True:
                i = before[j]
                after = column[i]
                column[i] = j
                row[j] = i
                if i == first:
                    break
                j = after
        for s in range(num_seen):
            distance[seen[s]] = np.inf
            settled[seen[s]] = 0
    scale = np.empty(num)
    for h in range(num):
        scale[h] = np.rint((u[h] + v[h]) / 2)
    return scale
