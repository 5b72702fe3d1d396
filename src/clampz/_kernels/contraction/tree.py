"""Trees of pairwise contractions: which two tables are multiplied next, found by cost alone.

A contraction multiplies two tables and sums over every variable that is in no other.  The nodes of a tree are the
factors, first, and a table for each contraction; those that nothing contains are roots, one for each connected
component of the model, and have no variables left.

left, right    (N,)   the two tables that a node is made of; a factor has none (-1), and of a single table that is only
                      summed right is -1
parent         (N,)   the node that uses it up, -1 at a root
begin, count   (N,)   a node is over pool[begin : begin + count], until axes are put in order in any order
log_states     (n,)   log2 of the number of states

The first tree follows an elimination order, the tables of each bucket taken in pairs, smallest result first.  Then
subtrees of a few leaves are taken apart and put together in the best of all ways, by dynamic programming over sets of
leaves, over and over: it is how cotengra makes trees good.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import inline, kernel, part

# Leaves of a subtree that is put together anew: of eight there are 3,280 ways to split a set of them, some 20
# microseconds; one more takes three times as long.
LEAVES = 8
# Tables of a bucket of which every pair is looked at, at a time.
PAIRED = 12
# Seconds of a contraction whatever its size, per product, and per entry that is read or written.  Measured with one
# thread on grids; only the ratios choose.
SECONDS_PER_STEP, SECONDS_PER_PRODUCT, SECONDS_PER_ENTRY = 1.2e-6, 1e-10, 1.5e-9
# A table beyond the limit costs as many times more: where none fits, those that are too large become fewer.
BEYOND = 1e4


class Tree(NamedTuple):
    """As above."""

    left: Any
    right: Any
    parent: Any
    begin: Any
    count: Any
    pool: Any


@inline
def step_seconds(products, first, second, out, limit):
    """What a contraction takes, from how many products and entries of its tables."""
    seconds = SECONDS_PER_STEP + SECONDS_PER_PRODUCT * products + SECONDS_PER_ENTRY * (first + second + out)
    return seconds if out <= limit else seconds * BEYOND


@part
def _log_size(pool, begin, count, log_states):
    total = 0.0
    for p in range(begin, begin + count):
        total += log_states[pool[p]]
    return total


@part
def _room(pool, used, more):
    """The pool, with room for more."""
    if used + more <= pool.size:
        return pool
    larger = np.empty(2 * (used + more), dtype=np.int64)
    for p in range(used):
        larger[p] = pool[p]
    return larger


@part
def _joint_log(pool, begin, count, a, b, uses, log_states, stamp, mark):
    """log2 of the entries of the table that contracting a and b gives."""
    total = 0.0
    for p in range(begin[a], begin[a] + count[a]):
        stamp[pool[p]] = mark
        total += log_states[pool[p]]
    for p in range(begin[b], begin[b] + count[b]):
        v = pool[p]
        if stamp[v] != mark:
            total += log_states[v]
        elif uses[v] == 2:
            total -= log_states[v]
    return total


@kernel
def tree_of_order(order, log_states, scope_start, scopes):
    """The tree that eliminates variables in this order."""
    n = order.size
    num_factors = scope_start.size - 1
    most = 2 * num_factors + n
    left = np.full(most, -1, dtype=np.int64)
    right = np.full(most, -1, dtype=np.int64)
    parent = np.full(most, -1, dtype=np.int64)
    begin = np.zeros(most, dtype=np.int64)
    count = np.zeros(most, dtype=np.int64)
    pool = np.empty(4 * scopes.size + 64, dtype=np.int64)
    used = scopes.size
    for p in range(used):
        pool[p] = scopes[p]
    position = np.empty(n, dtype=np.int64)
    for k in range(n):
        position[order[k]] = k
    uses = np.zeros(n, dtype=np.int64)  # tables that a variable is in
    first = np.full(n, -1, dtype=np.int64)  # tables whose earliest variable this is, linked
    following = np.full(most, -1, dtype=np.int64)
    stamp = np.zeros(n, dtype=np.int64)
    mark = 0
    for f in range(num_factors):
        begin[f] = scope_start[f]
        count[f] = scope_start[f + 1] - scope_start[f]
        earliest = n
        for p in range(scope_start[f], scope_start[f + 1]):
            uses[scopes[p]] += 1
            earliest = min(earliest, position[scopes[p]])
        if earliest < n:
            following[f] = first[earliest]
            first[earliest] = f
    num_nodes = num_factors
    for k in range(n):
        x = order[k]
        size = 0
        table = first[k]
        while table >= 0:
            size += 1
            table = following[table]
        if size == 0:
            continue
        tables = np.empty(size, dtype=np.int64)
        table = first[k]
        for i in range(size):
            tables[i] = table
            table = following[table]
        while size > 1:
            a, b = size - 1, size - 2
            smallest = np.inf
            for i in range(max(0, size - PAIRED), size):
                for j in range(max(0, size - PAIRED), i):
                    mark += 1
                    found = _joint_log(pool, begin, count, tables[i], tables[j], uses, log_states, stamp, mark)
                    if found < smallest:
                        smallest = found
                        a, b = i, j
            first_table, second_table = tables[a], tables[b]
            pool = _room(pool, used, count[first_table] + count[second_table])
            mark += 1
            begin[num_nodes] = used
            used = _contract_scopes(
                pool, begin[first_table], count[first_table], begin[second_table], count[second_table], uses, stamp,
                mark, used,
            )  # fmt: skip
            count[num_nodes] = used - begin[num_nodes]
            left[num_nodes], right[num_nodes] = first_table, second_table
            parent[first_table] = parent[second_table] = num_nodes
            tables[b] = num_nodes
            tables[a] = tables[size - 1]
            size -= 1
            num_nodes += 1
        last = tables[0]
        if uses[x] > 0:  # in one table alone
            pool = _room(pool, used, count[last])
            begin[num_nodes] = used
            for p in range(begin[last], begin[last] + count[last]):
                v = pool[p]
                if uses[v] == 1:
                    uses[v] = 0
                else:
                    pool[used] = v
                    used += 1
            count[num_nodes] = used - begin[num_nodes]
            left[num_nodes] = last
            parent[last] = num_nodes
            last = num_nodes
            num_nodes += 1
        earliest = n
        for p in range(begin[last], begin[last] + count[last]):
            earliest = min(earliest, position[pool[p]])
        if earliest < n:
            following[last] = first[earliest]
            first[earliest] = last
    return Tree(
        left[:num_nodes], right[:num_nodes], parent[:num_nodes], begin[:num_nodes], count[:num_nodes], pool[:used]
    )


@part
def _contract_scopes(pool, begin_a, count_a, begin_b, count_b, uses, stamp, mark, used):
    """Write the variables that are left of two tables; returns where they end."""
    for p in range(begin_a, begin_a + count_a):
        stamp[pool[p]] = mark
    for p in range(begin_b, begin_b + count_b):
        v = pool[p]
        if stamp[v] == mark:
            uses[v] -= 1
        stamp[v] = mark
    for q in range(count_a + count_b):
        v = pool[begin_a + q] if q < count_a else pool[begin_b + q - count_a]
        if stamp[v] == mark:
            stamp[v] = 0
            if uses[v] == 1:
                uses[v] = 0
            else:
                pool[used] = v
                used += 1
    return used


@kernel
def measure(tree, log_states, limit):
    """(N,) entries of every table, and seconds of the contraction that makes it."""
    size = np.empty(tree.left.size)
    own = np.zeros(tree.left.size)
    stamp = np.full(log_states.size, -1, dtype=np.int64)
    for a in range(size.size):
        size[a] = 2.0 ** _log_size(tree.pool, tree.begin[a], tree.count[a], log_states)
    for a in range(size.size):
        if tree.left[a] >= 0:
            own[a] = _node_seconds(tree, a, size, log_states, stamp, limit)
    return size, own


@kernel
def reconfigure(tree, size, own, roots, log_states, limit, cancel_flag):
    """Put the subtrees of these nodes together anew, one after another, until the flag is raised; tree, size and own
    are changed in place.  Returns whether anything became better, and the pool, which may have moved."""
    left, right, parent, begin, count, pool = tree
    used = pool.size
    n = log_states.size
    stamp = np.full(n, -1, dtype=np.int64)
    outside = np.zeros(n, dtype=np.bool_)
    masks = np.empty(n, dtype=np.int64)  # the leaves that each variable of the subtree is in
    local = np.empty(n, dtype=np.int64)  # and which variable that is
    num_sets = 1 << LEAVES
    members = np.empty(LEAVES, dtype=np.int64)  # leaves of the subtree
    inner = np.empty(LEAVES, dtype=np.int64)  # its nodes, the root first
    within = np.empty(num_sets)  # log2 of the states of variables that are in no table outside a set, then those states
    entries = np.empty(num_sets)  # of the table of a set
    seconds = np.empty(num_sets)
    split = np.empty(num_sets, dtype=np.int64)
    touched = np.empty(num_sets)
    stack = np.empty((2 * LEAVES, 2), dtype=np.int64)
    better = False
    for root in roots:
        if cancel_flag[0] != 0:
            break
        if right[root] < 0:
            continue
        # the subtree: whatever has the largest table is opened next
        inner[0] = root
        num_inner = 1
        members[0], members[1] = left[root], right[root]
        num_members = 2
        while num_members < LEAVES:
            widest = -1
            for i in range(num_members):
                if right[members[i]] >= 0 and (widest < 0 or size[members[i]] > size[members[widest]]):
                    widest = i
            if widest < 0:
                break
            opened = members[widest]
            inner[num_inner] = opened
            num_inner += 1
            members[widest] = left[opened]
            members[num_members] = right[opened]
            num_members += 1
        if num_members < 3:
            continue
        before = 0.0
        for i in range(num_inner):
            before += own[inner[i]]
        full = (1 << num_members) - 1
        # which leaves each variable is in, and whether it is in others too
        num_local = 0
        for i in range(num_members):
            a = members[i]
            for p in range(begin[a], begin[a] + count[a]):
                v = pool[p]
                if stamp[v] < 0:
                    stamp[v] = num_local
                    masks[num_local] = 0
                    local[num_local] = v
                    outside[v] = False
                    num_local += 1
                masks[stamp[v]] |= 1 << i
        for p in range(begin[root], begin[root] + count[root]):
            outside[pool[p]] = True
        for s in range(full + 1):
            within[s] = touched[s] = 0.0
        total = 0.0
        for q in range(num_local):
            v = local[q]
            touched[masks[q]] += log_states[v]
            total += log_states[v]
            if not outside[v]:
                within[masks[q]] += log_states[v]
            stamp[v] = -1
        for i in range(num_members):  # sums over subsets
            for s in range(full + 1):
                if s >> i & 1:
                    within[s] += within[s ^ (1 << i)]
                    touched[s] += touched[s ^ (1 << i)]
        for s in range(1, full + 1):
            entries[s] = 2.0 ** (total - touched[full ^ s] - within[s])
        for i in range(num_members):
            entries[1 << i] = size[members[i]]
            seconds[1 << i] = 0.0
        for s in range(1, full + 1):
            within[s] = 2.0 ** within[s]
        for s in range(3, full + 1):
            if s & (s - 1) == 0:
                continue
            best = np.inf
            joint = entries[s] * within[s]
            part = (s - 1) & s
            while part > (s ^ part):
                other = s ^ part
                found = seconds[part] + seconds[other]
                if found < best:
                    found += step_seconds(
                        joint / (within[part] * within[other]), entries[part], entries[other], entries[s], limit
                    )
                    if found < best:
                        best = found
                        split[s] = part
                part = (part - 1) & s
            seconds[s] = best
        if not seconds[full] < before * (1.0 - 1e-9):
            continue
        better = True
        # build it
        taken = 1
        depth = 1
        stack[0, 0], stack[0, 1] = full, root
        while depth > 0:
            depth -= 1
            s, node = stack[depth, 0], stack[depth, 1]
            own[node] = seconds[s] - seconds[split[s]] - seconds[s ^ split[s]]
            for side in range(2):
                part = split[s] if side == 0 else s ^ split[s]
                if part & (part - 1) == 0:
                    i = 0
                    while part >> i != 1:
                        i += 1
                    child = members[i]
                else:
                    child = inner[taken]
                    taken += 1
                    pool = _room(pool, used, num_local)
                    begin[child] = used
                    for q in range(num_local):
                        if masks[q] & part and (outside[local[q]] or masks[q] & ~part):
                            pool[used] = local[q]
                            used += 1
                    count[child] = used - begin[child]
                    size[child] = entries[part]
                    stack[depth, 0], stack[depth, 1] = part, child
                    depth += 1
                parent[child] = node
                if side == 0:
                    left[node] = child
                else:
                    right[node] = child
    return better, pool[:used]


@part
def _node_seconds(tree, a, size, log_states, stamp, limit):
    """What the contraction that makes node a takes."""
    left, right, _, begin, count, pool = tree
    if right[a] < 0:
        return step_seconds(size[left[a]], size[left[a]], 1.0, size[a], limit)
    joint = 0.0
    first, second = left[a], right[a]
    for p in range(begin[first], begin[first] + count[first]):
        stamp[pool[p]] = 0
        joint += log_states[pool[p]]
    for p in range(begin[second], begin[second] + count[second]):
        if stamp[pool[p]] < 0:
            joint += log_states[pool[p]]
    for p in range(begin[first], begin[first] + count[first]):
        stamp[pool[p]] = -1
    return step_seconds(2.0**joint, size[first], size[second], size[a], limit)


@kernel
def from_leaves(left, right, parent):
    """Nodes that are made of others, each after those it is made of."""
    num_nodes = left.size
    waiting = np.zeros(num_nodes, dtype=np.int64)
    order = np.empty(num_nodes, dtype=np.int64)
    found = 0
    queue = np.empty(num_nodes, dtype=np.int64)
    num_queued = 0
    for a in range(num_nodes):
        if left[a] < 0:
            queue[num_queued] = a
            num_queued += 1
        else:
            waiting[a] = 2 if right[a] >= 0 else 1
    for k in range(num_nodes):
        a = queue[k]
        if left[a] >= 0:
            order[found] = a
            found += 1
        if parent[a] >= 0:
            waiting[parent[a]] -= 1
            if waiting[parent[a]] == 0:
                queue[num_queued] = parent[a]
                num_queued += 1
    return order[:found]
