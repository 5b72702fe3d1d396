"""Trees of contractions that grow: tables are added to a tree where they cost least, as many as are worth it.

table_start, table_variables   the scopes of all tables, those in the tree first
need_start, needs              tables that have to be there with each of them
state                          the tree as it grows: see contraction_places
"""

import numpy as np

from clampz._kernels.contraction.insertion_places import (
    MARK,
    NODES,
    ROOT,
    Growing,
    Ways,
    best_place,
    look,
    node_seconds,
    put,
    use,
)
from clampz._kernels.contraction.tree import Tree
from clampz._kernels.jit import inline, kernel, part

# Tables that were tried for nothing, beside as many as came in, after which no more are tried.
FEW = 64


@kernel
def grow(
    tree,
    table_start,
    table_variables,
    num_there,
    need_start,
    needs,
    wanted,
    log_states,
    allowed,
    limit,
    in_any_case,
    cancel_flag,
):
    """A tree that has the first `num_there` tables, with more of them: each that is `wanted`, with all that it needs,
    if these take at most `allowed` seconds more and make no table of more than `limit` entries; `in_any_case`, the
    first whatever it takes.

    Returns the tree, and the tables that it has, in the order of its leaves.
    """
    num_tables = table_start.size - 1
    state = _begin(tree, table_start, table_variables, num_there, log_states, limit)
    size = state.left.size
    ways = Ways(
        np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64), np.empty(2 * size, dtype=np.int64),
        np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.empty(size, dtype=np.int64),
    )  # fmt: skip
    there = np.zeros(num_tables, dtype=np.bool_)
    there[:num_there] = True
    stack = np.empty(num_tables + needs.size + 1, dtype=np.int64)
    missing = np.empty(num_tables, dtype=np.int64)
    waits = np.zeros(num_tables, dtype=np.int64)
    largest = np.log2(limit)
    num_kept, num_removed = 0, 0
    for target in range(num_there, num_tables):
        if cancel_flag[0] != 0 or num_removed > FEW + num_kept:
            break
        if not wanted[target] or there[target]:
            continue
        num_missing = _missing(target, there, need_start, needs, stack, missing, waits)
        kept = _copy(state) if num_missing > 1 else state  # of one, it is known before what it takes
        more, widest = 0.0, 0.0
        for k in range(num_missing):
            f = missing[k]
            scope = table_variables[table_start[f] : table_start[f + 1]]
            num_seen = look(state, ways, scope)
            place, seconds = best_place(state, ways, num_seen, scope, log_states, limit)
            more += seconds
            fits = more <= allowed or in_any_case
            if fits:
                widest = max(widest, put(state, ways, place, f, scope, log_states, limit))
                there[f] = True
            for i in range(num_seen):
                ways.has[ways.seen[i]] = ways.sums[ways.seen[i]] = 0
            if not fits:
                break
        if in_any_case and widest > largest:
            break
        in_any_case = False
        if there[target]:
            num_kept += num_missing
            continue
        num_removed += num_missing
        for k in range(num_missing):
            there[missing[k]] = False
        kept.counts[MARK] = state.counts[MARK]
        state = kept
    return _finished(state, table_start, table_variables, there, log_states, limit), np.flatnonzero(there)


@part
def _missing(target, there, need_start, needs, stack, missing, waits):
    """Write what a table needs that is not there, each after all that it needs itself, the table last; how many."""
    found = 0
    depth = 1
    stack[0] = target
    while depth > 0:
        f = stack[depth - 1]
        if there[f] or waits[f] == 2:
            depth -= 1
        elif waits[f] == 1:
            depth -= 1
            waits[f] = 2
            missing[found] = f
            found += 1
        else:
            waits[f] = 1
            for k in range(need_start[f], need_start[f + 1]):
                if not there[needs[k]] and waits[needs[k]] == 0:
                    stack[depth] = needs[k]
                    depth += 1
    for k in range(found):
        waits[missing[k]] = 0
    return found


# -- the state ---------------------------------------------------------------------------------------------------------


@part
def _begin(tree, table_start, table_variables, num_there, log_states, limit):
    """A tree with room, its roots joined into one.  Tables that come are numbered after those that are there, and nodes
    after all tables."""
    more = table_start.size - 1 - num_there
    num_nodes = tree.left.size
    size = 2 * num_nodes + 2 * more + 1
    left = np.full(size, -1, dtype=np.int64)
    right = np.full(size, -1, dtype=np.int64)
    parent = np.full(size, -1, dtype=np.int64)
    counts = np.zeros(4, dtype=np.int64)
    counts[NODES] = num_nodes + more
    root = -1
    for a in range(num_nodes):
        to = _moved(a, num_there, more)
        left[to] = _moved(tree.left[a], num_there, more)
        right[to] = _moved(tree.right[a], num_there, more)
        parent[to] = _moved(tree.parent[a], num_there, more)
    for a in range(num_nodes):
        if tree.parent[a] >= 0:
            continue
        to = _moved(a, num_there, more)
        if root >= 0:
            b = counts[NODES]
            counts[NODES] += 1
            left[b], right[b] = root, to
            parent[root] = parent[to] = b
            to = b
        root = to
    counts[ROOT] = root
    n = log_states.size
    state = Growing(
        left, right, parent, np.zeros(size), np.zeros(size), np.zeros(size), np.full(n, -1, dtype=np.int64),
        np.full(n, -1, dtype=np.int64), np.empty(table_variables.size, dtype=np.int64),
        np.empty(table_variables.size, dtype=np.int64), counts,
    )  # fmt: skip
    for f in range(num_there):
        use(state, f, table_variables[table_start[f] : table_start[f + 1]])
    _measure(state, table_start, table_variables, log_states, limit)
    return state


@inline
def _moved(a, num_there, more):
    return a + more if a >= num_there else a


@part
def _copy(state):
    """To go back to: lists are only added to."""
    return Growing(
        state.left.copy(), state.right.copy(), state.parent.copy(), state.log_out.copy(), state.log_union.copy(),
        state.own.copy(), state.summed.copy(), state.used.copy(), state.table, state.before, state.counts.copy(),
    )  # fmt: skip


@part
def _measure(state, table_start, table_variables, log_states, limit):
    """Everything that follows from which nodes are made of which.  Returns also where the variables of each node begin
    in a pool, how many they are, and the pool."""
    size, n = state.left.size, log_states.size
    begin = np.zeros(size, dtype=np.int64)
    count = np.zeros(size, dtype=np.int64)
    total = np.zeros(n, dtype=np.int64)  # tables that have a variable
    for v in range(n):
        u = state.used[v]
        while u >= 0:
            total[v] += 1
            u = state.before[u]
    pool = np.empty(4 * table_variables.size + 64, dtype=np.int64)
    inside = np.empty(pool.size, dtype=np.int64)  # and those of them that are below a node
    written = 0
    stamp = np.full(n, -1, dtype=np.int64)
    at = np.empty(n, dtype=np.int64)
    order = np.empty(size, dtype=np.int64)
    order[0] = state.counts[ROOT]
    found, done = 1, 0
    while done < found:
        a = order[done]
        done += 1
        for child in (state.left[a], state.right[a]):
            if child >= 0:
                order[found] = child
                found += 1
    for k in range(found - 1, -1, -1):
        a = order[k]
        one, two = state.left[a], state.right[a]
        most = table_start[a + 1] - table_start[a] if one < 0 else count[one] + (count[two] if two >= 0 else 0)
        if written + most > pool.size:
            wider, more = np.empty(2 * (written + most), dtype=np.int64), np.empty(2 * (written + most), dtype=np.int64)
            for p in range(written):
                wider[p], more[p] = pool[p], inside[p]
            pool, inside = wider, more
        begin[a] = written
        state.log_out[a] = state.log_union[a] = 0.0
        if one < 0:
            for p in range(table_start[a], table_start[a + 1]):
                pool[written], inside[written] = table_variables[p], 1
                written += 1
                state.log_out[a] += log_states[table_variables[p]]
            state.log_union[a] = state.log_out[a]
            count[a] = written - begin[a]
            continue
        for child in (one, two):
            if child < 0:
                continue
            for p in range(begin[child], begin[child] + count[child]):
                v = pool[p]
                if stamp[v] == a:
                    inside[at[v]] += inside[p]
                    continue
                stamp[v], at[v] = a, written
                pool[written], inside[written] = v, inside[p]
                written += 1
                state.log_union[a] += log_states[v]
        kept = begin[a]
        for p in range(begin[a], written):
            v = pool[p]
            if inside[p] == total[v]:
                state.summed[v] = a
            else:
                pool[kept], inside[kept] = v, inside[p]
                kept += 1
                state.log_out[a] += log_states[v]
        written = kept
        count[a] = kept - begin[a]
        state.own[a] = node_seconds(state, a, limit)
    return begin, count, pool


@part
def _finished(state, table_start, table_variables, there, log_states, limit):
    """The tree as others have it: tables that are there first, and no others."""
    begin, count, pool = _measure(state, table_start, table_variables, log_states, limit)
    num_tables, last = there.size, state.counts[NODES]
    number = np.full(last, -1, dtype=np.int64)
    nodes = np.empty(last, dtype=np.int64)
    found = 0
    for a in range(last):
        if a >= num_tables or there[a]:
            number[a] = found
            nodes[found] = a
            found += 1
    nodes = nodes[:found]
    left, right, parent = np.empty_like(nodes), np.empty_like(nodes), np.empty_like(nodes)
    for k in range(found):
        left[k] = _number(number, state.left[nodes[k]])
        right[k] = _number(number, state.right[nodes[k]])
        parent[k] = _number(number, state.parent[nodes[k]])
    return Tree(left, right, parent, begin[nodes], count[nodes], pool)


@inline
def _number(number, a):
    return number[a] if a >= 0 else -1
