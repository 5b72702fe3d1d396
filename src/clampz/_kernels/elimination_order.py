"""Elimination orders: which variable to sum out next, so that the tables on the way stay small.

Variables of small degree go first, on neighbour lists, in linear time: what is left is the hard part, and there the
greedy rules work on a matrix of bits, where counting the edges that an elimination would add costs one instruction per
64 variables.

start, neighbour (n + 1,), (2m,)   neighbour lists of the graph
log_states       (n,)              log2 of the number of states
rows             (n, words)        bit u of row v: u and v are neighbours, or have become so
total            sum over eliminations of the size of the table over the variable and its neighbours: the cost of the
                 order
work             words of bits read, to weigh the time spent on orders against the time they save
flag             (1,)              raised from outside when the run is over; looked at before each elimination and count
"""

import numpy as np

from clampz._kernels.jit import inline, kernel

# A table of 2**60 entries fits no machine: an order that reaches it is given up, which also bounds the degrees that are
# ever looked at.
HOPELESS = 60.0
# Beyond this many variables the matrix of bits outgrows the cache; the smallest degrees are then eliminated first, on
# lists.
DENSE_LIMIT = 4096

# Neighbours from which on a list is not gone through whenever one of them is eliminated: what is left of a star or a
# wheel would be gone through once for each of its variables.
LONG = 256

# Added to the key of a variable whose table would be hopeless: it goes last, and what its elimination adds is not
# counted.
LAST_KEY = 1e12
# Among equals, and so within a clique, the variable with the most states goes first: what is left is smaller.
LAST_TIE = 1e-6

ONE = np.uint64(1)
ZERO = np.uint64(0)
WORD = 64


@inline
def _popcount(x):
    # LLVM knows this sequence and makes it one instruction
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inline
def _bit(u):
    return ONE << np.uint64(u & 63)


@kernel
def _members(words, out):
    """The numbers of the bits that are set; returns how many."""
    count = 0
    for w in range(words.size):
        left = words[w]
        while left != ZERO:
            low = left & (~left + ONE)
            out[count] = w * WORD + _popcount(low - ONE)
            count += 1
            left ^= low
    return count


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


@inline
def _without_gone(pool, begin, length, gone):
    """Drop the variables that are gone from a list; returns how many are left."""
    kept = 0
    for p in range(begin, begin + length):
        if not gone[pool[p]]:
            pool[begin + kept] = pool[p]
            kept += 1
    return kept


@inline
def _has(pool, begin, length, u):
    """Whether u is on a list: what was added last is found first."""
    p = begin + length - 1
    while p >= begin and pool[p] != u:
        p -= 1
    return p >= begin


@inline
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
def low_degrees_first(start, neighbour, log_states, max_degree, dense_limit, limit, flag):
    """Eliminate variables of degree <= max_degree, smallest first, and any degree while more than `dense_limit`
    variables are left.

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
    for v in range(n - 1, -1, -1):
        d = count[v]
        after[v] = head[d]
        if head[d] >= 0:
            before[head[d]] = v
        head[d] = v
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
        v = head[d]
        degree = d  # d itself falls as v's neighbours lose theirs
        length[v] = _without_gone(pool, begin[v], length[v], gone)
        size = log_states[v]
        for p in range(begin[v], begin[v] + degree):
            size += log_states[pool[p]]
        largest = max(largest, size)
        total += 2.0**size
        if size > HOPELESS or total >= limit or flag[0] != 0:
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
            before[u] = -1
            after[u] = head[count[u]]
            if after[u] >= 0:
                before[after[u]] = u
            head[count[u]] = u
            d = min(d, count[u])
    for v in range(n):
        if not gone[v]:
            count[v] = _without_gone(pool, begin[v], length[v], gone)
    return order[:done], begin, count, pool, total, largest


@kernel
def bit_rows(rest, begin, count, pool):
    """The graph among the variables `rest` as a matrix of bits, numbered by their place in `rest`."""
    size = rest.size
    place = np.full(begin.size, -1, dtype=np.int64)
    for i in range(size):
        place[rest[i]] = i
    rows = np.zeros((size, (size + WORD - 1) // WORD), dtype=np.uint64)
    for i in range(size):
        v = rest[i]
        for p in range(begin[v], begin[v] + count[v]):
            u = place[pool[p]]
            rows[i, u // WORD] |= _bit(u)
    return rows


@kernel
def _fill_of(rows, v, members, num_members):
    """How many pairs of neighbours of v are not neighbours themselves."""
    missing = 0
    for p in range(num_members):
        u = members[p]
        for w in range(rows.shape[1]):
            missing += _popcount(rows[v, w] & ~rows[u, w])
    return (missing - num_members) // 2  # no bit (u, u) is set, so each u was counted once


@kernel
def greedy_order(adjacency, log_states, by_fill, by_size, noise, seed, limit, flag):
    """Eliminate the variable with the smallest by_fill * (edges added) + by_size * log2(table size) + noise * (random
    number in [0, 1)).

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
            if flag[0] != 0:
                return order, np.inf, largest, False, work
            v = members[p]
            degree = _members(rows[v], others)
            size[v] = log_states[v]
            for q in range(degree):
                size[v] += log_states[others[q]]
            if size[v] <= HOPELESS:
                fill[v] = _fill_of(rows, v, others, degree)
                work += degree * num_words
            touched[v // WORD] |= _bit(v)
            work += 2 * num_words
        # ... and rank those and whatever else has changed
        num_members = _members(touched, members)
        for p in range(num_members):
            v = members[p]
            random = random * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            chance = np.float64(random >> np.uint64(11)) * 2.0**-53
            if size[v] <= HOPELESS:
                key[v] = by_fill * fill[v] + by_size * size[v] + noise * chance - LAST_TIE * log_states[v]
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
        num_members = _members(rows[v], members)
        for w in range(num_words):
            touched[w] = ZERO
        if fill[v] == 0:
            # no edge is added: neighbours lose v and the pairs (v, b) that they had to join
            for p in range(num_members):
                a = members[p]
                counted = size[a] <= HOPELESS
                size[a] -= log_states[v]
                rows[a, v // WORD] &= ~_bit(v)
                if counted:
                    for w in range(num_words):
                        fill[a] -= _popcount(rows[a, w] & ~rows[v, w])
                elif size[a] <= HOPELESS:
                    fill[a] = _fill_of(rows, a, others, _members(rows[a], others))
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
                if rows[a, b // WORD] & _bit(b) != ZERO:
                    continue
                work += num_words
                for w in range(num_words):
                    common = rows[a, w] & rows[b, w] & ~rows[v, w]
                    touched[w] |= common
                    while common != ZERO:
                        low = common & (~common + ONE)
                        fill[w * WORD + _popcount(low - ONE)] -= 1
                        common ^= low
        touched[v // WORD] &= ~_bit(v)
        for p in range(num_members):
            a = members[p]
            for w in range(num_words):
                rows[a, w] |= rows[v, w]
            rows[a, a // WORD] &= ~_bit(a)
            rows[a, v // WORD] &= ~_bit(v)
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
