"""Faces of an embedded graph as cities, and the signs that make every cut count with the same one.

Half-edges 2e and 2e + 1 are the two sides of edge e; each lies in one face.  A city is a face, or a piece of one: faces
with many sides are cut up by chords, edges without a weight, so that no city has more than MOST_SIDES.

follows     (2m,)      the next half-edge along the face
tails       (2M,)      the variable that a half-edge leaves, chords included
city_start  (C + 1,)   the half-edges of city c, in turn, are city_half[city_start[c] : city_start[c + 1]]
sign        (M,)       of the entry that joins the two sides of an edge
cancel_flag        (1,)       raised from outside when the run is over: what comes out then is worth nothing
"""

import numpy as np

from clampz._kernels.graph import neighbour_lists
from clampz._kernels.jit import kernel
from clampz._kernels.statuses import LOOK_EVERY

# Sides of a city at most; four leave grids as they are.
MOST_SIDES = 4


@kernel
def cities(edges, follows, cancel_flag):
    """Cut every face into cities from outside, three sides and a chord at a time: (tails, city_start, city_half)."""
    m = edges.shape[0]
    # a chord for every two sides at most
    tails = np.empty(6 * m + 2, dtype=np.int32)
    for e in range(m):
        tails[2 * e] = edges[e, 0]
        tails[2 * e + 1] = edges[e, 1]
    start = np.empty(4 * m + 2, dtype=np.int64)
    half = np.empty(6 * m + 2, dtype=np.int32)
    start[0] = 0
    num_cities = 0
    num_half = 2 * m
    filled = 0
    seen = np.zeros(2 * m, dtype=np.uint8)
    sides = np.empty(2 * m, dtype=np.int32)
    group = MOST_SIDES - 1
    for first in range(2 * m):
        if first % LOOK_EVERY == 0 and cancel_flag[0]:
            break
        if seen[first]:
            continue
        length = 0
        h = first
        while not seen[h]:
            seen[h] = 1
            sides[length] = h
            length += 1
            h = follows[h]
        while length > MOST_SIDES:
            shorter = 0
            for p in range(0, length, group):
                end = min(p + group, length)
                if end - p == 1:
                    sides[shorter] = sides[p]
                else:
                    tail = tails[sides[p]]
                    head = tails[sides[end - 1] ^ 1]
                    for q in range(p, end):
                        half[filled] = sides[q]
                        filled += 1
                    half[filled] = num_half
                    filled += 1
                    num_cities += 1
                    start[num_cities] = filled
                    tails[num_half] = head
                    tails[num_half + 1] = tail
                    sides[shorter] = num_half + 1
                    num_half += 2
                shorter += 1
            length = shorter
        for p in range(length):
            half[filled] = sides[p]
            filled += 1
        num_cities += 1
        start[num_cities] = filled
    return tails[:num_half].copy(), start[: num_cities + 1].copy(), half[:filled].copy()


@kernel
def kasteleyn_signs(num_variables, tails, city_start, city_half, cancel_flag):
    """Find signs such that around every variable an odd number of steps goes against its arrow; whether there are any.
    Steps inside cities lead from a half-edge to the next in turn: along the arrow, but from the last to the first.
    Steps across edges go along the arrow from 2e to 2e + 1, or against it where the sign is -1. The edges of a spanning
    forest get the signs that make it odd, leaves first."""
    n = num_variables
    num_edges = tails.size // 2
    even = np.ones(n, dtype=np.uint8)
    for c in range(city_start.size - 1):
        for p in range(city_start[c], city_start[c + 1]):
            last = p + 1 == city_start[c + 1]
            h = city_half[city_start[c] if last else p + 1]
            even[tails[h]] ^= (1 if last else 0) ^ (h & 1)
    sign = np.ones(num_edges, dtype=np.int8)
    start, neighbour, edge_of = neighbour_lists(n, tails.reshape(num_edges, 2))
    order = np.empty(n, dtype=np.int32)
    parent = np.full(n, -1, dtype=np.int32)
    edge = np.full(n, -1, dtype=np.int32)
    seen = np.zeros(n, dtype=np.uint8)
    reached = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = 1
        order[reached] = root
        done = reached
        reached += 1
        while done < reached:
            if done % LOOK_EVERY == 0 and cancel_flag[0]:
                return sign, False
            v = order[done]
            done += 1
            for p in range(start[v], start[v + 1]):
                w = neighbour[p]
                if not seen[w]:
                    seen[w] = 1
                    parent[w] = v
                    edge[w] = edge_of[p]
                    order[reached] = w
                    reached += 1
    well = True
    for p in range(n - 1, -1, -1):
        v = order[p]
        if parent[v] < 0:
            well = well and (start[v] == start[v + 1] or even[v] == 0)
        elif even[v]:
            sign[edge[v]] = -1
            even[parent[v]] ^= 1
    return sign, well
