"""Mini-bucket elimination: which variable is eliminated when, and which tables are then added up.

A *function* is a table whose scope waits for its first variable to be eliminated: the model's own, or the message of a
clique.  Two variables are neighbours where some waiting function has both; there is no other graph, and so only
messages make fill.

first      (n,)           a variable's first place, -1 for none; the functions that have it are linked from there
scope      (places,)      the variables of all functions; a clique's own variable first, which its message does not have
owner      (places,)      the function that a place belongs to
following  (places,)      the next place of the same variable, -1 for none
begin, end (functions,)   a function's variables are scope[begin : end]
home       (functions,)   the clique it went to, -1 as long as it waits.  Functions of the model come first, then the
                          messages, in the order of the cliques that send them
weight     (n,)           the variables of all waiting functions that have a variable, each as often as they have it: no
                          fewer than its neighbours, and the work of listing them
cancel_flag       (1,)           raised from outside when the run is over; looked at before each elimination
"""

from typing import NamedTuple

import numpy as np

from clampz._kernels.jit import inline, kernel, part, part_in_place
from clampz._kernels.mini_buckets.partitioning import counted_states, partition_functions

# How the next variable is chosen: by the edges that eliminating it would add, each weighted by log2 of the states of
# both ends (upper bounds, mean of five seeds at 2^12: linkage_23 1.6 and linkage_17 0.8 nats better than without,
# linkage_11 0.4 worse, seeds differing by more than that); among equals the smaller table, then the variable with more
# states, so that what is left is smaller.
BY_SIZE, BY_STATES = 1e-3, 1e-6
# Neighbours are not even listed, for all the others of a dense graph again and again, where the square of their number
# is more than this many times the looks allowed for counting.
LISTED = 16.0
# Added to the key of variables that go last: more than any number of edges.
LATE = 1e15
# Bytes of all index arrays for each place, variable and clique, at most, while they are made.
PER_PLACE, PER_VARIABLE, PER_CLIQUE = 40, 200, 120


class Functions(NamedTuple):
    """The arrays described above that grow with the messages, but for `first`."""

    begin: np.ndarray
    end: np.ndarray
    home: np.ndarray
    scope: np.ndarray
    owner: np.ndarray
    following: np.ndarray


@part
def _with_room(f, num_functions, used, more, places):
    """Make room for `more` functions on `places` more places."""
    begin, end, home, scope, owner, following = f
    if num_functions + more > begin.size:
        size = num_functions + more + begin.size // 2
        begin, end, home = _longer(begin, size), _longer(end, size), _longer(home, size)
    if used + places > scope.size:
        size = used + places + scope.size // 2
        scope, owner, following = _longer(scope, size), _longer(owner, size), _longer(following, size)
    return Functions(begin, end, home, scope, owner, following)


@part
def _longer(array, size):
    """Copy an array into a longer one."""
    longer = np.empty(size, dtype=np.int32)
    for p in range(array.size):  # a slice would take three seconds to compile
        longer[p] = array[p]
    return longer


@part_in_place
def _list_places(f, first, number, from_place):
    """Put the places of a function on the lists of their variables."""
    for p in range(from_place, f.end[number]):
        f.owner[p] = number
        f.following[p] = first[f.scope[p]]
        first[f.scope[p]] = p


@part_in_place
def _neighbours(f, first, v, seen, mark, around):
    """Mark and list the neighbours of v, dropping functions that wait no more from its list; returns how many."""
    seen[v] = mark
    count = 0
    before = -1
    p = first[v]
    while p >= 0:
        number = f.owner[p]
        if f.home[number] >= 0:
            if before < 0:
                first[v] = f.following[p]
            else:
                f.following[before] = f.following[p]
        else:
            before = p
            for q in range(f.begin[number], f.end[number]):
                u = f.scope[q]
                if seen[u] < mark:
                    seen[u] = mark
                    around[count] = u
                    count += 1
        p = f.following[p]
    return count


@part_in_place
def _key(f, first, v, weight, log_states, seen, marks, around, worth, most):
    """Compute the elimination key of v, small first: the weight of the edges that eliminating it would add if nothing
    were split. Edges are found from either of their ends; where both have too many neighbours to look at, they are not
    missed."""
    if log_states[v] == 0.0:
        return -1.0  # nothing is lost, however its functions are split
    if np.float64(weight[v]) ** 2 > LISTED * most:
        return 0.5 * np.float64(weight[v]) ** 2
    mark = marks[0]
    degree = _neighbours(f, first, v, seen, mark, around)
    marks[0] += degree + 1
    # twice the weight of all pairs is the square of the sum less the sum of the squares
    size, squares = 0.0, 0.0
    size_of_large, squares_of_large = 0.0, 0.0
    work = 0
    for k in range(degree):
        u = around[k]
        size += log_states[u]
        squares += log_states[u] ** 2
        if weight[u] <= most:
            work += weight[u]
            worth[u] = 0.5 * log_states[u]  # an edge is found from both of its ends
        else:
            worth[u] = log_states[u]
            size_of_large += log_states[u]
            squares_of_large += log_states[u] ** 2
    fill = 0.5 * (size**2 - squares)
    tie_break = BY_SIZE * (size + log_states[v]) - BY_STATES * log_states[v]
    if work > most:
        return fill + tie_break
    fill -= 0.5 * (size_of_large**2 - squares_of_large)
    # seen[w] is `mark` for a neighbour of v, and mark + 1 + k for one that was last met as a neighbour of the k-th
    for k in range(degree):
        u = around[k]
        if weight[u] > most:
            continue
        now = mark + 1 + k
        seen[u] = now
        met = 0.0
        p = first[u]
        while p >= 0:
            number = f.owner[p]
            if f.home[number] < 0:
                for q in range(f.begin[number], f.end[number]):
                    w = f.scope[q]
                    if mark <= seen[w] < now and w != v:
                        seen[w] = now
                        met += worth[w]
            p = f.following[p]
        fill -= log_states[u] * met
    return fill + tie_break


@inline
def _sooner(key, v, w):
    """Whether v comes before w in the heap."""
    return key[v] < key[w] or (key[v] == key[w] and v < w)


@part_in_place
def _sift(heap, place, key, v, size):
    """Move v to where it belongs in the heap of variables, after its key has changed."""
    p = place[v]
    while p > 0 and _sooner(key, v, heap[(p - 1) // 2]):
        heap[p] = heap[(p - 1) // 2]
        place[heap[p]] = p
        p = (p - 1) // 2
    while 2 * p + 1 < size:
        child = 2 * p + 1
        if child + 1 < size and _sooner(key, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(key, heap[child], v):
            break
        heap[p] = heap[child]
        place[heap[p]] = p
        p = child
    heap[p] = v
    place[v] = p


@part_in_place
def _pop(heap, place, key, size):
    """Take the first variable off a heap of `size`."""
    v = heap[0]
    if size > 1:
        heap[0] = heap[size - 1]
        place[heap[0]] = 0
        _sift(heap, place, key, heap[0], size - 1)
    return v


@kernel
def eliminate(start, variables, states, noise, late, given, limit, most, most_bytes, cancel_flag):
    """Eliminate all variables, small keys first or in a given order, by mini-buckets of at most `limit` entries.

    start, variables  the scopes of the model's functions, end to end, int32: half the memory
    states            (n,) as floats
    noise             (n,) added to the keys
    late              (n,) 1 for variables that go after all others
    given             (n,) the order, or none of it
    most              neighbours looked at to count the edges that an elimination would add; of a variable for which
                      that does not do, no edge is taken to be there

    Returns the order, where each variable's cliques begin, where each clique's scope does, the scopes, the homes of all
    functions, how many variables were eliminated (fewer than all where the flag was raised, or tables and indices
    would take more than `most_bytes`), and those bytes.
    """
    n = states.size
    num_own = start.size - 1
    num_functions = num_own
    used = np.int64(start[num_own])
    first = np.full(n, -1, dtype=np.int64)
    f = Functions(
        start[:-1].copy(), start[1:].copy(), np.full(num_own, -1, dtype=np.int32), variables,
        np.empty(used, dtype=np.int32), np.empty(used, dtype=np.int32),
    )  # fmt: skip
    f = _with_room(f, num_own, used, 2 * n, used + 2 * n)
    weight = np.zeros(n, dtype=np.int64)
    for number in range(num_own):
        _list_places(f, first, number, f.begin[number])
        for q in range(f.begin[number], f.end[number]):
            weight[f.scope[q]] += f.end[number] - f.begin[number]
    order = np.empty(n, dtype=np.int64)
    bucket_start = np.zeros(n + 1, dtype=np.int64)
    around = np.empty(n, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    marks = np.zeros(1, dtype=np.int64)
    member_of = np.zeros(n, dtype=np.int64)
    log_states = np.log2(states)
    worth = np.empty(n)
    key = np.empty(n)
    heap = np.arange(n)
    place = np.arange(n)
    num_bytes = np.float64(PER_PLACE * f.scope.size + PER_VARIABLE * n)
    if given.size == 0:
        for v in range(n):
            if cancel_flag[0] != 0:
                return order, bucket_start, order[:0], order[:0], order[:0], 0, num_bytes
            key[v] = _key(f, first, v, weight, log_states, seen, marks, around, worth, most) + noise[v] + LATE * late[v]
        for p in range(n):
            _sift(heap, place, key, heap[p], p + 1)
    done = 0
    while done < n:
        if cancel_flag[0] != 0 or num_bytes > most_bytes:
            break
        v = given[done] if given.size > 0 else _pop(heap, place, key, n - done)
        # the functions of v, largest first, and among equals the latest
        count = 0
        p = first[v]
        while p >= 0:
            count += f.home[f.owner[p]] < 0
            p = f.following[p]
        found = np.empty(count, dtype=np.int64)
        sizes = np.empty(count)
        k = 0
        p = first[v]
        while p >= 0:
            if f.home[f.owner[p]] < 0:
                found[k] = f.owner[p]
                sizes[k] = -1.0
                for q in range(f.begin[found[k]], f.end[found[k]]):
                    sizes[k] *= counted_states(states, f.scope[q])
                k += 1
            p = f.following[p]
        ranking = np.arange(count)
        ranked = np.arange(count)
        for k in range(count):
            _sift(ranking, ranked, sizes, k, k + 1)
        chosen = np.empty(count, dtype=np.int64)
        for k in range(count):
            chosen[k] = found[_pop(ranking, ranked, sizes, count - k)]
        bucket = np.empty(count, dtype=np.int64)
        entries = np.empty(max(count, 1))
        head = np.empty(max(count, 1), dtype=np.int64)
        member = np.empty(weight[v], dtype=np.int64)
        after = np.empty(weight[v], dtype=np.int64)
        allowed = limit if states[v] > 1 else 0.0
        num_buckets, num_members = partition_functions(
            f, chosen, v, states, allowed, member_of, bucket, entries, head, member, after
        )
        if count == 0:
            head[0] = -1
            num_buckets = 1
        f = _with_room(f, num_functions, used, num_buckets, num_members + num_buckets)
        base = num_functions - num_own
        for k in range(count):
            number = chosen[k]
            f.home[number] = base + bucket[k]
            for q in range(f.begin[number], f.end[number]):
                weight[f.scope[q]] -= f.end[number] - f.begin[number]
        for b in range(num_buckets):
            f.home[num_functions] = -1
            f.scope[used] = v
            used += 1
            f.begin[num_functions] = used
            num_entries = states[v]
            p = head[b]
            while p >= 0:
                f.scope[used] = member[p]
                num_entries *= states[member[p]]
                used += 1
                p = after[p]
            f.end[num_functions] = used
            _list_places(f, first, num_functions, f.begin[num_functions])
            for q in range(f.begin[num_functions], used):
                weight[f.scope[q]] += used - f.begin[num_functions]
            num_functions += 1
            num_bytes += 8.0 * num_entries + PER_CLIQUE
        num_bytes += PER_PLACE * (num_members + num_buckets)
        order[done] = v
        done += 1
        bucket_start[done] = base + num_buckets
        if given.size > 0:
            continue
        # the keys of former neighbours of v change
        marks[0] += 1
        degree = 0
        for p in range(num_members):
            if seen[member[p]] < marks[0]:
                seen[member[p]] = marks[0]
                member[degree] = member[p]
                degree += 1
        marks[0] += 1
        for k in range(degree):
            u = member[k]
            key[u] = _key(f, first, u, weight, log_states, seen, marks, around, worth, most) + noise[u] + LATE * late[u]
            _sift(heap, place, key, u, n - done)
    num_cliques = num_functions - num_own
    scope_start = np.empty(num_cliques + 1, dtype=np.int64)
    for c in range(num_cliques):
        scope_start[c] = f.begin[num_own + c] - 1 - start[num_own]
    scope_start[num_cliques] = used - start[num_own]
    scope = f.scope[start[num_own] : used].astype(np.int64)
    return order, bucket_start, scope_start, scope, f.home[:num_functions].astype(np.int64), done, num_bytes
