"""Trees of pairwise contractions: which two tables are multiplied next, found by cost alone.

A contraction multiplies two tables and sums over every variable that is in no other.  The nodes of a tree are the
factors, first, and a table for each contraction; those that nothing contains are roots, one for each connected
component of the model, and have no variables left.

left, right    (N,)   the two tables that a node is made of; a factor has none (-1), and of a single table that is only
                      summed right is -1
parent         (N,)   the node that uses it up, -1 at a root
begin, count   (N,)   a node is over pool[begin : begin + count], until axes are put in order in any order
log_states     (n,)   log2 of the number of states

The first tree follows an elimination order, the tables of each bucket taken in pairs, smallest result first.
`reconfiguration` makes it better.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import inline, kernel, part

# Tables of a bucket of which every pair is looked at, at a time.
PAIRED = 12
# Seconds of a contraction whatever its size, per product, and per entry that is read or written.  Measured with one
# thread on grids; only the ratios choose.
SECONDS_PER_STEP, SECONDS_PER_PRODUCT, SECONDS_PER_ENTRY = 1.2e-6, 1e-10, 1.5e-9
# A table beyond the limit costs as many times more: where none fits, those that are too large become fewer.
BEYOND = 1e4


class Tree(NamedTuple):
    """A tree of pairwise contractions as arrays."""

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
def grow_pool(pool, used, more):
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
            pool = grow_pool(pool, used, count[first_table] + count[second_table])
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
            pool = grow_pool(pool, used, count[last])
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
