"""Branch and bound over the variables in reverse order of elimination, best first, with dives.

Each variable that is given a state takes what its bucket's cliques say in place of what their messages promised,

    f(x_t, later) = f(later) + sum_c psi_c(x_t, later) - m_c(later)

which is never more than f(later) and bounds the best that can become of the configuration, less the bound on all of
them (see `mini_buckets.maxima`).  The open node of largest f is taken up and explored depth first; after a number of
backtracks what is left of the dive becomes open nodes, as long as there is room for them, and the next one is taken
up.  So the bound falls as in a best-first search, and configurations are found as in a depth-first one.

order, scope, layout, lane    see `mini_buckets.draws`; psi in lane.table, m in lane.message
dive     the one that is under way, as it was left
pool     open nodes, and those between them and the root
best_f   (k,)     f of the best configurations so far, largest first
best_x   (k, n)   those
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import kernel, part
from clampz._kernels.mini_buckets.layout import DONE, STOPPED

# Where `counts` has what: the place in the order that the dive is at (-1: there is no dive), where it began, and at
# which node; backtracks since; nodes that are open, in use, and that have ever been used; the last one freed (-1:
# none); configurations found.
AT, TOP, ROOT, BACKTRACKS, NUM_OPEN, NUM_IN_USE, NUM_USED, FREED, NUM_FOUND, NUM_COUNTS = range(10)
# And `numbers`: the largest f that was given up as no better, and what f must exceed to be of use.
GIVEN_UP, FLOOR, NUM_NUMBERS = range(3)
# How a search ended that has looked at as many nodes as it was asked to.
MORE = 3


class Dive(NamedTuple):
    """A depth-first dive: the states given so far, and at each place of the order the states left to try."""

    x: NDArray[np.int32]  # (n,)
    left_start: NDArray[np.int64]  # (n + 1,) room for the states of each place
    left_end: NDArray[np.int64]  # (n,) where those left to try end
    left_f: NDArray[np.float64]  # f of each
    left_state: NDArray[np.int32]
    counts: NDArray[np.int64]
    numbers: NDArray[np.float64]


class Pool(NamedTuple):
    """The search tree: each node is the state of one variable, with those of later ones up the line of parents."""

    f: NDArray[np.float64]
    parent: NDArray[np.int32]  # of a node that is free: the next one that is
    state: NDArray[np.int32]
    place: NDArray[np.int32]  # of the variable in the order
    num_held: NDArray[np.int32]  # children, and one if it is open or dived from
    heap: NDArray[np.int32]  # open nodes, that of largest f first


@kernel
def begin(layout, dive, pool):
    """Begin a search with the root as the only open node."""
    counts = dive.counts
    counts[:] = 0
    counts[AT] = counts[FREED] = -1
    dive.numbers[GIVEN_UP] = dive.numbers[FLOOR] = -np.inf
    n = dive.x.size
    for t in range(n):
        dive.left_start[t + 1] = dive.left_start[t] + layout.sizes[layout.scope_start[layout.bucket_start[t]]]
    push(pool, counts, new_node(pool, counts, -1, 0, n, 0.0))


@kernel
def search(layout, order, scope, lane, dive, pool, best_f, best_x, tol, most_backtracks, most_nodes, cancel_flag):
    """Continue the search for at most `most_nodes` nodes: DONE, STOPPED or MORE. DONE: no configuration is left that is
    better by more than `tol` than the last of `best`, or than the floor."""
    counts, numbers, x = dive.counts, dive.numbers, dive.x
    for _ in range(most_nodes):
        if cancel_flag[0]:
            return STOPPED
        t = counts[AT]
        enough = threshold(best_f, counts, numbers) + tol
        if t < 0:
            if counts[NUM_OPEN] == 0:
                return DONE
            if pool.f[pool.heap[0]] <= enough:  # and so are all others
                numbers[GIVEN_UP] = max(numbers[GIVEN_UP], pool.f[pool.heap[0]])
                counts[NUM_OPEN] = 0
                return DONE
            node = pop(pool, counts)
            t = begin_dive(order, dive, pool, node)
            expand(layout, scope, lane, dive, t, pool.f[node], enough)
            continue
        place = best_untried(dive, t, enough)
        if place < 0:
            if t == counts[TOP]:
                release(pool, counts, counts[ROOT])
                counts[AT] = -1
            else:
                counts[AT] = t + 1
                counts[BACKTRACKS] += 1
                if counts[BACKTRACKS] >= most_backtracks:
                    end_dive(order, dive, pool, enough)
            continue
        f = dive.left_f[place]
        x[order[t]] = dive.left_state[place]
        dive.left_end[t] -= 1
        dive.left_f[place] = dive.left_f[dive.left_end[t]]
        dive.left_state[place] = dive.left_state[dive.left_end[t]]
        if t == 0:
            record_configuration(best_f, best_x, counts, f, x)
        else:
            counts[AT] = t - 1
            expand(layout, scope, lane, dive, t - 1, f, enough)
    return MORE


@kernel
def open_upper_bound(dive, pool):
    """Return the largest f of all that is open, under way, or was given up."""
    counts = dive.counts
    found = dive.numbers[GIVEN_UP]
    if counts[NUM_OPEN] > 0:
        found = max(found, pool.f[pool.heap[0]])
    if counts[AT] >= 0:
        for t in range(counts[AT], counts[TOP] + 1):
            for place in range(dive.left_start[t], dive.left_end[t]):
                found = max(found, dive.left_f[place])
    return found


@part
def threshold(best_f, counts, numbers):
    """Return what f must exceed: that of the last of the wanted configurations, and the floor."""
    full = counts[NUM_FOUND] == best_f.size
    return max(numbers[FLOOR], best_f[best_f.size - 1]) if full else numbers[FLOOR]


@part
def expand(layout, scope, lane, dive, t, f, enough):
    """Fill in the states to try at place t, given those of later variables, whose f is this."""
    x, start = dive.x, dive.left_start[t]
    K = dive.left_start[t + 1] - start
    for k in range(K):
        dive.left_f[start + k] = 0.0
    for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
        r, stride = 0, 1
        for a in range(layout.scope_start[c + 1] - 1, layout.scope_start[c], -1):
            r += x[scope[a]] * stride
            stride *= layout.sizes[a]
        m = lane.message[layout.message_start[c] + r]
        for k in range(K):
            dive.left_f[start + k] += lane.table[layout.table_start[c] + r + k * stride] - m
    num = 0
    for k in range(K):
        g = f + min(dive.left_f[start + k], 0.0)
        if g > enough:
            dive.left_f[start + num] = g
            dive.left_state[start + num] = k
            num += 1
        else:
            dive.numbers[GIVEN_UP] = max(dive.numbers[GIVEN_UP], g)
    dive.left_end[t] = start + num


@part
def best_untried(dive, t, enough):
    """Find the untried state of largest f at place t, the first of ties; -1 where none is useful."""
    found, f = -1, -np.inf
    for place in range(dive.left_start[t], dive.left_end[t]):
        g = dive.left_f[place]
        if g > f or (g == f and dive.left_state[place] < dive.left_state[found]):
            found, f = place, g
    if f > enough:
        return found
    dive.numbers[GIVEN_UP] = max(dive.numbers[GIVEN_UP], f)
    dive.left_end[t] = dive.left_start[t]
    return -1


@part
def record_configuration(best_f, best_x, counts, f, x):
    """Insert a configuration among the best, in its place."""
    k = min(counts[NUM_FOUND], best_f.size - 1)
    if counts[NUM_FOUND] == best_f.size and f <= best_f[k]:
        return
    while k > 0 and best_f[k - 1] < f:
        best_f[k] = best_f[k - 1]
        for i in range(x.size):
            best_x[k, i] = best_x[k - 1, i]
        k -= 1
    best_f[k] = f
    for i in range(x.size):
        best_x[k, i] = x[i]
    counts[NUM_FOUND] = min(counts[NUM_FOUND] + 1, best_f.size)


@part
def begin_dive(order, dive, pool, node):
    """Begin a dive at a node; returns the place that is next."""
    counts = dive.counts
    t = pool.place[node] - 1
    counts[ROOT] = node
    counts[AT] = counts[TOP] = t
    counts[BACKTRACKS] = 0
    while pool.parent[node] >= 0:
        dive.x[order[pool.place[node]]] = pool.state[node]
        node = np.int64(pool.parent[node])
    return t


@part
def end_dive(order, dive, pool, enough):
    """End the dive: what is left to try becomes open nodes. Without room for them it continues, and asks again after as
    many backtracks."""
    counts = dive.counts
    num = 0
    for t in range(counts[AT], counts[TOP] + 1):
        num += 1 + dive.left_end[t] - dive.left_start[t]
    counts[BACKTRACKS] = 0
    if counts[NUM_IN_USE] + num > pool.f.size:
        return
    above = counts[ROOT]
    for t in range(counts[TOP], counts[AT] - 1, -1):
        for place in range(dive.left_start[t], dive.left_end[t]):
            f = dive.left_f[place]
            if f > enough:
                push(pool, counts, new_node(pool, counts, above, dive.left_state[place], t, f))
            else:
                dive.numbers[GIVEN_UP] = max(dive.numbers[GIVEN_UP], f)
        if t > counts[AT]:
            below = new_node(pool, counts, above, dive.x[order[t]], t, -np.inf)
            if above != counts[ROOT]:
                release(pool, counts, above)
            above = below
    if above != counts[ROOT]:
        release(pool, counts, above)
    release(pool, counts, counts[ROOT])
    counts[AT] = -1


@part
def new_node(pool, counts, parent, state, place, f):
    """Allocate a node that is held once."""
    node = counts[FREED]
    if node >= 0:
        counts[FREED] = pool.parent[node]
    else:
        node = counts[NUM_USED]
        counts[NUM_USED] += 1
    counts[NUM_IN_USE] += 1
    pool.parent[node] = parent
    pool.state[node] = state
    pool.place[node] = place
    pool.f[node] = f
    pool.num_held[node] = 1
    if parent >= 0:
        pool.num_held[parent] += 1
    return node


@part
def release(pool, counts, node):
    """Release a node, and free it and all above it that nothing holds any more."""
    while node >= 0:
        pool.num_held[node] -= 1
        if pool.num_held[node] > 0:
            return
        parent = np.int64(pool.parent[node])
        pool.parent[node] = counts[FREED]
        counts[FREED] = node
        counts[NUM_IN_USE] -= 1
        node = parent


@part
def is_before(pool, a, b):
    """Whether node a is taken up before b: the larger f, and of equals the deeper one."""
    return pool.f[a] > pool.f[b] or (pool.f[a] == pool.f[b] and pool.place[a] < pool.place[b])


@part
def push(pool, counts, node):
    """Push an open node onto the heap."""
    heap, place = pool.heap, counts[NUM_OPEN]
    counts[NUM_OPEN] += 1
    while place > 0 and is_before(pool, node, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = node


@part
def pop(pool, counts):
    """Pop the open node of largest f off the heap."""
    heap = pool.heap
    first = np.int64(heap[0])
    counts[NUM_OPEN] -= 1
    num = counts[NUM_OPEN]
    last, place = heap[num], 0
    while 2 * place + 1 < num:
        child = 2 * place + 1
        if child + 1 < num and is_before(pool, heap[child + 1], heap[child]):
            child += 1
        if not is_before(pool, heap[child], last):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last
    return first
