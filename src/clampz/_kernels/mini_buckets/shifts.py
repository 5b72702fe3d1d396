"""Mini-buckets: cliques that grow towards their parents, and the pairs of cliques that have shifts.

bucket_start        (n + 1,)   the cliques of the t-th variable eliminated are bucket_start[t] : bucket_start[t + 1]
scope_start, scope  (C + 1,)   their variables, the bucket's own first
parent              (C,)       the clique that a message goes to, -1 for none; always a later one
position            (n,)       when a variable is eliminated
states              (n,)       as floats
cancel_flag                (1,)       raised from outside when the run is over; looked at for each bucket
"""

import numpy as np

from clampz._kernels.jit import kernel, part, part_in_place

# Cliques of a bucket up to which all pairs have shifts, unless others imply them; beyond, those of a spanning tree.
ALL_PAIRS = 4
# Cliques before a clique that it may be joined to in that tree.
JOINED = 128


@part_in_place
def _by_position(scope, begin, end, position):
    """Sort variables by when they are eliminated."""
    for p in range(begin + 1, end):
        v = scope[p]
        q = p
        while q > begin and position[scope[q - 1]] > position[v]:
            scope[q] = scope[q - 1]
            q -= 1
        scope[q] = v


@kernel
def grow(order, bucket_start, scope_start, scope, parent, states, limit, up, cancel_flag):
    """Order scopes by elimination, and with `up` grow the cliques of split buckets. From the last clique to the first,
    they take variables of their parent that others of the bucket have, up to the limit: those that most have first.
    Returns where scopes begin, the scopes, the entries of each table, and whether it came to its end."""
    n = order.size
    num_cliques = parent.size
    position = np.empty(n, dtype=np.int64)
    for t in range(n):
        position[order[t]] = t
    pool = np.empty(scope.size + scope.size // 2, dtype=np.int64)
    begin = np.zeros(num_cliques, dtype=np.int64)
    end = np.zeros(num_cliques, dtype=np.int64)
    entries = np.empty(num_cliques)
    holders = np.zeros(n, dtype=np.int64)  # cliques of the bucket that have a variable
    own = np.full(n, -1, dtype=np.int64)  # the clique that was last seen to have it
    used = np.int64(0)
    for t in range(n - 1, -1, -1):
        if cancel_flag[0] != 0:
            return scope_start, scope, entries, False
        low, high = bucket_start[t], bucket_start[t + 1]
        several = up and high - low > 1 and states[order[t]] > 1
        if several:
            for p in range(scope_start[low], scope_start[high]):
                holders[scope[p]] += 1
        for c in range(high - 1, low - 1, -1):
            length = scope_start[c + 1] - scope_start[c]
            most = length
            if parent[c] >= 0:
                most += end[parent[c]] - begin[parent[c]]
            if used + most > pool.size:
                larger = np.empty(used + most + pool.size // 2, dtype=np.int64)
                for p in range(used):
                    larger[p] = pool[p]
                pool = larger
            begin[c] = used
            size = 1.0
            for p in range(scope_start[c], scope_start[c + 1]):
                pool[used] = scope[p]
                used += 1
                size *= states[scope[p]]
                own[scope[p]] = c
            if several and parent[c] >= 0 and size < limit:
                used, size = _add_shared(
                    pool, begin[parent[c]], end[parent[c]], used, size, states, limit, holders, own, c
                )
            _by_position(pool, begin[c], used, position)
            end[c] = used
            entries[c] = size
        if several:
            for c in range(low, high):
                for p in range(begin[c], end[c]):
                    holders[pool[p]] = 0
    new_start = np.zeros(num_cliques + 1, dtype=np.int64)
    new_scope = np.empty(used, dtype=np.int64)
    for c in range(num_cliques):
        new_start[c + 1] = new_start[c] + end[c] - begin[c]
        for p in range(begin[c], end[c]):
            new_scope[new_start[c] + p - begin[c]] = pool[p]
    return new_start, new_scope, entries, True


@part_in_place
def _add_shared(pool, low, high, used, size, states, limit, holders, own, c):
    """Add to clique c the variables of its parent (low : high) that most of the bucket have, as long as they fit. The
    clique's variables end at `used`. Returns where they end now, and its entries."""
    # candidates lie behind what is used
    count = 0
    for p in range(low, high):
        u = pool[p]
        if own[u] != c and holders[u] > 0:
            q = used + count
            while q > used and holders[pool[q - 1]] < holders[u]:
                pool[q] = pool[q - 1]
                q -= 1
            pool[q] = u
            count += 1
    kept = used
    for p in range(used, used + count):
        u = pool[p]
        if size * states[u] <= limit:
            size *= states[u]
            holders[u] += 1
            own[u] = c
            pool[kept] = u
            kept += 1
    return kept, size


@part_in_place
def _common(scope, low, high, mark, now, states):
    """Count the entries of a table over the marked variables of a scope."""
    size = 1.0
    for p in range(low, high):
        if mark[scope[p]] == now:
            size *= states[scope[p]]
    return size


@part
def _spanning_pairs(scope_start, scope, low, high, states, mark, marks, left, right, num_pairs):
    """Pair the cliques low : high by a spanning tree with as many entries in common as possible (Prim). Of many
    cliques, each is joined to the best of some before it."""
    count = high - low
    best = np.full(count, -1.0)
    partner = np.full(count, -1, dtype=np.int64)
    if count > JOINED:
        for c in range(low + 1, high):
            marks[0] += 1
            for p in range(scope_start[c], scope_start[c + 1]):
                mark[scope[p]] = marks[0]
            for a in range(max(low, c - JOINED), c):
                size = _common(scope, scope_start[a], scope_start[a + 1], mark, marks[0], states)
                if size > best[c - low]:
                    best[c - low] = size
                    partner[c - low] = a
            left[num_pairs] = partner[c - low]
            right[num_pairs] = c
            num_pairs += 1
        return num_pairs
    joined = np.zeros(count, dtype=np.bool_)
    newest = low
    for _ in range(count - 1):
        joined[newest - low] = True
        marks[0] += 1
        for p in range(scope_start[newest], scope_start[newest + 1]):
            mark[scope[p]] = marks[0]
        following = -1
        for c in range(low, high):
            if joined[c - low]:
                continue
            size = _common(scope, scope_start[c], scope_start[c + 1], mark, marks[0], states)
            if size > best[c - low]:
                best[c - low] = size
                partner[c - low] = newest
            if following < 0 or best[c - low] > best[following - low]:
                following = c
        newest = following
        left[num_pairs] = min(partner[newest - low], newest)
        right[num_pairs] = max(partner[newest - low], newest)
        num_pairs += 1
    return num_pairs


@part
def _all_pairs(scope_start, scope, low, high, states, mark, marks, left, right, num_pairs):
    """Pair all cliques low : high but where other pairs imply it. Smallest first, a pair is left out where kept pairs
    that have all that it has in common lead from one of its cliques to the other."""
    count = high - low
    size = np.zeros((count, count))
    waiting = np.zeros((count, count), dtype=np.bool_)
    for a in range(count):
        marks[0] += 1
        for p in range(scope_start[low + a], scope_start[low + a + 1]):
            mark[scope[p]] = marks[0]
        for c in range(a + 1, count):
            size[a, c] = _common(scope, scope_start[low + c], scope_start[low + c + 1], mark, marks[0], states)
            waiting[a, c] = True
    kept = waiting.copy()
    reached = np.empty(count, dtype=np.bool_)
    has_all = np.empty(count, dtype=np.bool_)
    for _ in range(count * (count - 1) // 2):
        a, c = -1, -1
        for x in range(count):
            for y in range(x + 1, count):
                if waiting[x, y] and (a < 0 or size[x, y] < size[a, c]):
                    a, c = x, y
        waiting[a, c] = False
        # which cliques have everything that a and c have in common
        marks[0] += 1
        for p in range(scope_start[low + a], scope_start[low + a + 1]):
            mark[scope[p]] = marks[0]
        marks[0] += 1
        common = 0
        for p in range(scope_start[low + c], scope_start[low + c + 1]):
            if mark[scope[p]] == marks[0] - 1:
                mark[scope[p]] = marks[0]
                common += 1
        for x in range(count):
            found = 0
            for p in range(scope_start[low + x], scope_start[low + x + 1]):
                found += mark[scope[p]] == marks[0]
            has_all[x] = found == common
            reached[x] = x == a
        kept[a, c] = False
        for _ in range(count):
            for x in range(count):
                for y in range(x + 1, count):
                    if kept[x, y] and has_all[x] and has_all[y] and reached[x] != reached[y]:
                        reached[x] = reached[y] = True
        kept[a, c] = not reached[c]
    for a in range(count):
        for c in range(a + 1, count):
            if kept[a, c]:
                left[num_pairs] = low + a
                right[num_pairs] = low + c
                num_pairs += 1
    return num_pairs


@kernel
def shift_pairs(order, bucket_start, scope_start, scope, states, cancel_flag):
    """List the pairs of cliques of a bucket that have a shift, and the variables that both have. Returns the two
    cliques of each, where its variables begin, those variables, the entries of each, and whether it came to its end."""
    n = order.size
    most = 0
    for t in range(n):
        count = bucket_start[t + 1] - bucket_start[t]
        if states[order[t]] > 1:  # a variable of one state loses nothing
            most += count * (count - 1) // 2 if count <= ALL_PAIRS else count - 1
    left = np.empty(most, dtype=np.int64)
    right = np.empty(most, dtype=np.int64)
    mark = np.full(n, -1, dtype=np.int64)
    marks = np.zeros(1, dtype=np.int64)
    num_pairs = np.int64(0)
    for t in range(n):
        if cancel_flag[0] != 0:
            break
        low, high = bucket_start[t], bucket_start[t + 1]
        if high - low < 2 or states[order[t]] == 1:
            continue
        if high - low <= ALL_PAIRS:
            num_pairs = _all_pairs(scope_start, scope, low, high, states, mark, marks, left, right, num_pairs)
        else:
            num_pairs = _spanning_pairs(scope_start, scope, low, high, states, mark, marks, left, right, num_pairs)
    pair_start = np.zeros(num_pairs + 1, dtype=np.int64)
    most = 0
    for k in range(num_pairs):
        most += min(scope_start[left[k] + 1] - scope_start[left[k]], scope_start[right[k] + 1] - scope_start[right[k]])
    pair_scope = np.empty(most, dtype=np.int64)
    entries = np.ones(num_pairs)
    used = 0
    for k in range(num_pairs):
        marks[0] += 1
        for p in range(scope_start[right[k]], scope_start[right[k] + 1]):
            mark[scope[p]] = marks[0]
        for p in range(scope_start[left[k]], scope_start[left[k] + 1]):
            if mark[scope[p]] == marks[0]:
                pair_scope[used] = scope[p]
                used += 1
                entries[k] *= states[scope[p]]
        pair_start[k + 1] = used
    return (
        left[:num_pairs].copy(),
        right[:num_pairs].copy(),
        pair_start,
        pair_scope[:used].copy(),
        entries,
        cancel_flag[0] == 0,
    )
