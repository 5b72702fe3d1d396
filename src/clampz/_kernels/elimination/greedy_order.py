"""Elimination orders: which variable to sum out next, so that the tables on the way stay small.

Variables of small degree go first, on neighbour lists, in linear time (`elimination_lists`): what is left is the hard
part, and there the greedy rules work on a matrix of bits, where counting the edges that an elimination would add costs
one instruction per 64 variables.

start, neighbour (n + 1,), (2m,)   neighbour lists of the graph
log_states       (n,)              log2 of the number of states
stage            (n,)              variables of a lower stage go first (`elimination_stages`); (0,) for no stages
rows             (n, words)        bit u of row v: u and v are neighbours, or have become so
total            sum over eliminations of the size of the table over the variable and its neighbours: the cost of the
                 order
work             words of bits read, to weigh the time spent on orders against the time they save
cancel_flag      (1,)              raised from outside when the run is over; looked at before each elimination
                                   and count
"""

import numpy as np

from clampz._kernels.bits import ONE, WORD, ZERO, bit, popcount
from clampz._kernels.bits import members as members_of
from clampz._kernels.jit import kernel, part
from clampz._kernels.random_numbers import next_random, uniform

# A table of 2**60 entries fits no machine: an order that reaches it is given up, which also bounds the degrees that are
# ever looked at.
HOPELESS = 60.0
# Beyond this many variables the matrix of bits outgrows the cache; the smallest degrees are then eliminated first, on
# lists.
DENSE_LIMIT = 4096

# Added to the key of a variable whose table would be hopeless: it goes last, and what its elimination adds is not
# counted.
LAST_KEY = 1e12
# Added to it for each stage: more than any count of edges.
STAGE_KEY = 1e8
# Among equals, and so within a clique, the variable with the most states goes first: what is left is smaller.
LAST_TIE = 1e-6


@part
def _fill_of(rows, v, members, num_members):
    """How many pairs of neighbours of v are not neighbours themselves."""
    missing = 0
    for p in range(num_members):
        u = members[p]
        for w in range(rows.shape[1]):
            missing += popcount(rows[v, w] & ~rows[u, w])
    return (missing - num_members) // 2  # no bit (u, u) is set, so each u was counted once


@kernel
def greedy_order(adjacency, log_states, stage, by_fill, by_size, noise, seed, limit, cancel_flag):
    """Eliminate, of those of the lowest stage, the variable with the smallest by_fill * (edges added) + by_size *
    log2(table size) + noise * (random number in [0, 1)).

    Returns the order, its total (inf where it would reach `limit` or the flag was raised: then the order is
    incomplete), log2 of the largest table, whether it added no edge at all (no order is narrower then), and the work.
    """
    n, num_words = adjacency.shape
    rows = adjacency.copy()
    members = np.empty(n, dtype=np.int64)
    others = np.empty(n, dtype=np.int64)
    fill = np.zeros(n, dtype=np.int64)
    size = np.empty(n)
    key = np.empty(n)
    waiting = np.empty(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    touched = np.zeros(num_words, dtype=np.uint64)
    random = np.uint64(seed)
    total = 0.0
    largest = 0.0
    perfect = True
    work = 0
    num_members = n
    for v in range(n):
        members[v] = v
        waiting[v] = v
    for step in range(n):
        # count afresh around the variable eliminated last ...
        for p in range(num_members):
            if cancel_flag[0] != 0:
                return order, np.inf, largest, False, work
            v = members[p]
            degree = members_of(rows[v], others)
            size[v] = log_states[v]
            for q in range(degree):
                size[v] += log_states[others[q]]
            if size[v] <= HOPELESS:
                fill[v] = _fill_of(rows, v, others, degree)
                work += degree * num_words
            touched[v // WORD] |= bit(v)
            work += 2 * num_words
        # ... and rank those and whatever else has changed
        num_members = members_of(touched, members)
        for p in range(num_members):
            v = members[p]
            random = next_random(random)
            chance = uniform(random)
            if size[v] <= HOPELESS:
                key[v] = by_fill * fill[v] + by_size * size[v] + noise * chance - LAST_TIE * log_states[v]
                if stage.size > 0:
                    key[v] += STAGE_KEY * stage[v]
            else:
                key[v] = LAST_KEY + size[v]
        at = 0
        for p in range(1, n - step):
            if key[waiting[p]] < key[waiting[at]]:
                at = p
        work += (n - step) // 4 + num_members
        v = waiting[at]
        waiting[at] = waiting[n - step - 1]
        largest = max(largest, size[v])
        total += 2.0 ** size[v]
        if size[v] > HOPELESS or total >= limit:
            return order, np.inf, largest, perfect, work
        order[step] = v
        # v's neighbours become neighbours of each other; every other common neighbour of two that were none before has
        # one pair less to join
        num_members = members_of(rows[v], members)
        for w in range(num_words):
            touched[w] = ZERO
        if fill[v] == 0:
            # no edge is added: neighbours lose v and the pairs (v, b) that they had to join
            for p in range(num_members):
                a = members[p]
                counted = size[a] <= HOPELESS
                size[a] -= log_states[v]
                rows[a, v // WORD] &= ~bit(v)
                if counted:
                    for w in range(num_words):
                        fill[a] -= popcount(rows[a, w] & ~rows[v, w])
                elif size[a] <= HOPELESS:
                    fill[a] = _fill_of(rows, a, others, members_of(rows[a], others))
            for w in range(num_words):
                touched[w] = rows[v, w]
            work += num_members * num_words
            num_members = 0
            continue
        perfect = False
        for p in range(num_members):
            a = members[p]
            for q in range(p):
                b = members[q]
                if rows[a, b // WORD] & bit(b) != ZERO:
                    continue
                work += num_words
                for w in range(num_words):
                    common = rows[a, w] & rows[b, w] & ~rows[v, w]
                    touched[w] |= common
                    while common != ZERO:
                        low = common & (~common + ONE)
                        fill[w * WORD + popcount(low - ONE)] -= 1
                        common ^= low
        touched[v // WORD] &= ~bit(v)
        for p in range(num_members):
            a = members[p]
            for w in range(num_words):
                rows[a, w] |= rows[v, w]
            rows[a, a // WORD] &= ~bit(a)
            rows[a, v // WORD] &= ~bit(v)
        work += num_members * num_words
    return order, total, largest, perfect, work


@kernel
def bucket_scopes(order, start, neighbour):
    """Symbolic elimination: step k sums out variable order[k] and leaves a table over the later steps scope[begin[k] :
    begin[k + 1]], ascending.

    The table of step k is used up at its first later step, so children[k] chains them: `first[k]`, then
    `following[child]`.
    """
    n = order.size
    step_of = np.empty(n, dtype=np.int64)
    for k in range(n):
        step_of[order[k]] = k
    begin = np.zeros(n + 1, dtype=np.int64)
    scope = np.empty(neighbour.size + n, dtype=np.int64)
    first = np.full(n, -1, dtype=np.int64)
    following = np.full(n, -1, dtype=np.int64)
    stamp = np.full(n, -1, dtype=np.int64)
    gathered = np.empty(n, dtype=np.int64)
    for k in range(n):
        count = 0
        v = order[k]
        stamp[k] = k
        for p in range(start[v], start[v + 1]):
            t = step_of[neighbour[p]]
            if t > k and stamp[t] != k:
                stamp[t] = k
                gathered[count] = t
                count += 1
        child = first[k]
        while child >= 0:
            for p in range(begin[child], begin[child + 1]):
                t = scope[p]
                if stamp[t] != k:
                    stamp[t] = k
                    gathered[count] = t
                    count += 1
            child = following[child]
        if begin[k] + count > scope.size:
            larger = np.empty(2 * scope.size + count, dtype=np.int64)
            for p in range(begin[k]):
                larger[p] = scope[p]
            scope = larger
        begin[k + 1] = begin[k] + count
        # insertion sort: what children contribute is sorted already
        for i in range(count):
            p = begin[k] + i
            while p > begin[k] and scope[p - 1] > gathered[i]:
                scope[p] = scope[p - 1]
                p -= 1
            scope[p] = gathered[i]
        if count > 0:
            parent = scope[begin[k]]
            following[k] = first[parent]
            first[parent] = k
    return begin, scope[: begin[n]], first, following
