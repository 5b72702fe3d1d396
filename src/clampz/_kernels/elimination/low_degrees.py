"""Elimination on neighbour lists, in linear time where degrees are small: what goes first, so that the hard part that
is left fits a matrix of bits (`elimination_order`).

start, neighbour (n + 1,), (2m,)   neighbour lists of the graph
log_states       (n,)              log2 of the number of states
stage            (n,)              variables of a lower stage go first (`elimination_stages`); (0,) for no stages
cancel_flag             (1,)              raised from outside when the run is over; looked at before each elimination
"""

import numpy as np

from clampz._kernels.elimination.greedy_order import HOPELESS
from clampz._kernels.jit import kernel, part

# Neighbours from which on a list is not gone through whenever one of them is eliminated: what is left of a star or a
# wheel would be gone through once for each of its variables.
LONG = 256


@kernel
def around(start, neighbour, root, most):
    """The variables nearest to one, `most` of them at most, and the neighbour lists of the graph among them."""
    n = start.size - 1
    place = np.full(n, -1, dtype=np.int64)
    part = np.empty(min(most, n), dtype=np.int64)
    part[0] = root
    place[root] = 0
    count = 1
    done = 0
    while done < count:
        for p in range(start[part[done]], start[part[done] + 1]):
            if count < part.size and place[neighbour[p]] < 0:
                place[neighbour[p]] = count
                part[count] = neighbour[p]
                count += 1
        done += 1
    begin = np.zeros(count + 1, dtype=np.int64)
    for i in range(count):
        begin[i + 1] = begin[i]
        for p in range(start[part[i]], start[part[i] + 1]):
            begin[i + 1] += place[neighbour[p]] >= 0
    among = np.empty(begin[count], dtype=neighbour.dtype)
    used = 0
    for i in range(count):
        for p in range(start[part[i]], start[part[i] + 1]):
            if place[neighbour[p]] >= 0:
                among[used] = place[neighbour[p]]
                used += 1
    return part[:count], begin, among


@part
def _without_gone(pool, begin, length, gone):
    """Drop the variables that are gone from a list; returns how many are left."""
    kept = 0
    for p in range(begin, begin + length):
        if not gone[pool[p]]:
            pool[begin + kept] = pool[p]
            kept += 1
    return kept


@part
def _has(pool, begin, length, u):
    """Whether u is on a list: what was added last is found first."""
    p = begin + length - 1
    while p >= begin and pool[p] != u:
        p -= 1
    return p >= begin


@part
def _link(head, after, before, d, v):
    """Put v first on the list of degree d."""
    before[v] = -1
    after[v] = head[d]
    if head[d] >= 0:
        before[head[d]] = v
    head[d] = v


@part
def _with_room(pool, used, begin, length, room, u):
    """Move the list of u to where it has room to grow; returns the pool and how much of it is used."""
    room[u] = 2 * room[u] + 2
    if used + room[u] > pool.size:
        larger = np.empty(2 * pool.size + room[u], dtype=pool.dtype)
        for i in range(used):
            larger[i] = pool[i]
        pool = larger
    for i in range(length[u]):
        pool[used + i] = pool[begin[u] + i]
    begin[u] = used
    return pool, used + room[u]


@kernel
def low_degrees_first(start, neighbour, log_states, stage, max_degree, dense_limit, limit, cancel_flag):
    """Eliminate variables of degree <= max_degree, smallest first, and any degree, stage by stage, while more than
    `dense_limit` variables are left.

    Returns the eliminated variables in order, the neighbour lists of the rest (begin, count, pool), the entries of the
    tables made (inf where they would reach `limit`, a table is hopeless or the flag was raised: then it was given up),
    and log2 of the largest.  Variables wait in one doubly linked list per degree.  From LONG lists those that are gone
    are dropped only when they are half of them.
    """
    n = start.size - 1
    begin = start[:-1].copy()
    count = np.empty(n, dtype=np.int64)
    for v in range(n):
        count[v] = start[v + 1] - start[v]
    length = count.copy()  # of the list, with those that are gone but not dropped
    room = count.copy()
    pool = neighbour.copy()
    used = pool.size
    gone = np.zeros(n, dtype=np.bool_)
    head = np.full(n + 1, -1, dtype=np.int64)
    after = np.full(n, -1, dtype=np.int64)
    before = np.full(n, -1, dtype=np.int64)
    # those whose turn it is are on the lists; the others wait for their stage
    num_stages = 1
    for v in range(stage.size):
        num_stages = max(num_stages, stage[v] + 1)
    first_of = np.full(num_stages, -1, dtype=np.int64)
    next_of = np.empty(stage.size, dtype=np.int64)
    listed = np.zeros(n, dtype=np.bool_)
    for v in range(n - 1, -1, -1):
        d = count[v]
        if stage.size > 0 and stage[v] > 0 and d > max_degree:
            next_of[v] = first_of[stage[v]]
            first_of[stage[v]] = v
            continue
        listed[v] = True
        _link(head, after, before, d, v)
    turn = 0
    stamp = np.full(n, -1, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    done = 0
    d = 0
    total = 0.0
    largest = 0.0
    while done < n:
        while d < n and head[d] < 0:
            d += 1
        if d > max_degree and n - done <= dense_limit:
            break
        if d == n:  # the next stage's turn
            turn += 1
            v = first_of[turn]
            while v >= 0:
                if not listed[v]:
                    listed[v] = True
                    _link(head, after, before, count[v], v)
                    d = min(d, count[v])
                v = next_of[v]
            continue
        v = head[d]
        degree = d  # d itself falls as v's neighbours lose theirs
        length[v] = _without_gone(pool, begin[v], length[v], gone)
        size = log_states[v]
        for p in range(begin[v], begin[v] + degree):
            size += log_states[pool[p]]
        largest = max(largest, size)
        total += 2.0**size
        if size > HOPELESS or total >= limit or cancel_flag[0] != 0:
            total = np.inf
            break
        head[d] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        order[done] = v
        done += 1
        gone[v] = True
        for p in range(begin[v], begin[v] + degree):
            u = pool[p]
            if not listed[u]:
                continue
            if before[u] >= 0:
                after[before[u]] = after[u]
            else:
                head[count[u]] = after[u]
            if after[u] >= 0:
                before[after[u]] = before[u]
        # u loses v and gains the other neighbours of v: first where u's list is long, and t's says whether they are
        # neighbours; if t's is long too, u's own does, which says so late only once
        for p in range(begin[v], begin[v] + degree):
            u = pool[p]
            if length[u] <= LONG:
                continue
            count[u] -= 1
            own = length[u]
            for q in range(begin[v], begin[v] + degree):
                t = pool[q]
                if t == u:
                    continue
                if length[t] <= LONG:
                    if _has(pool, begin[t], length[t], u):
                        continue
                elif _has(pool, begin[u], own, t):
                    continue
                if length[u] == room[u]:
                    pool, used = _with_room(pool, used, begin, length, room, u)
                pool[begin[u] + length[u]] = t
                length[u] += 1
                count[u] += 1
        for p in range(begin[v], begin[v] + degree):
            u = pool[p]
            if length[u] > LONG:
                if length[u] > 2 * count[u] + LONG:
                    length[u] = _without_gone(pool, begin[u], length[u], gone)
                continue
            length[u] = _without_gone(pool, begin[u], length[u], gone)
            for q in range(begin[u], begin[u] + length[u]):
                stamp[pool[q]] = u
            stamp[u] = u
            for q in range(begin[v], begin[v] + degree):
                t = pool[q]
                if stamp[t] == u:
                    continue
                if length[u] == room[u]:
                    pool, used = _with_room(pool, used, begin, length, room, u)
                pool[begin[u] + length[u]] = t
                length[u] += 1
            # stamps are compared with u only while u is handled, but u comes up again: clear them
            for q in range(begin[u], begin[u] + length[u]):
                stamp[pool[q]] = -1
            stamp[u] = -1
            count[u] = length[u]
        for p in range(begin[v], begin[v] + degree):
            u = pool[p]
            if listed[u] or count[u] <= max_degree:
                listed[u] = True
                _link(head, after, before, count[u], u)
                d = min(d, count[u])
    for v in range(n):
        if not gone[v]:
            count[v] = _without_gone(pool, begin[v], length[v], gone)
    return order[:done], begin, count, pool, total, largest
