"""Places for one more table in a tree of contractions, and what each costs.

A table over S that is contracted with node a, by a new node above a, changes what some nodes are over: a variable of S
that was summed below a is carried up to the new node, one that is summed elsewhere is carried from there, and from a,
to where the two ways meet.  Nothing else changes, so what a place costs is known from the nodes on these ways, and the
best of all places is found before anything is written.

left, right, parent   as in contraction_tree; there is one root, and room for more nodes
log_out         (N,)   log2 of the entries of a node
log_union       (N,)   log2 of the products that make it
own             (N,)   seconds that this takes
summed          (n,)   the node that sums a variable out, -1 for one that is in no table yet
used            (n,)   the last table that has a variable, in lists: table[u], and the one before in before[u]
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.contraction.tree import SECONDS_PER_PRODUCT, step_seconds
from clampz._kernels.jit import inline, part
from clampz._kernels.simd_math import EXP_LIMIT, LN2, exp


class Growing(NamedTuple):
    """What there is of a tree, as above, and counts: nodes, entries of the lists, the root."""

    left: Any
    right: Any
    parent: Any
    log_out: Any
    log_union: Any
    own: Any
    summed: Any
    used: Any
    table: Any
    before: Any
    counts: Any


class Ways(NamedTuple):
    """What a place changes: log2 by which a node and its products become larger, if it has this mark, and which nodes
    those are; the variables of the table that a node has, those that are summed by it or below it, as bits, and the
    nodes with any."""

    more_out: Any
    more_union: Any
    mark: Any
    changed: Any
    has: Any
    sums: Any
    seen: Any


# Places in `counts`.
NODES, USES, ROOT, MARK = 0, 1, 2, 3


@inline
def entries_of(log_size):
    """2**log_size, quickly."""
    return exp(min(LN2 * log_size, EXP_LIMIT))


@inline
def node_seconds(state, a, limit):
    """What node a takes."""
    one, two = state.left[a], state.right[a]
    second = entries_of(state.log_out[two]) if two >= 0 else 1.0
    return step_seconds(
        entries_of(state.log_union[a]), entries_of(state.log_out[one]), second, entries_of(state.log_out[a]), limit
    )


@part
def use(state, f, scope):
    for v in scope:
        at = state.counts[USES]
        state.table[at] = f
        state.before[at] = state.used[v]
        state.used[v] = at
        state.counts[USES] += 1


@part
def look(state, ways, scope):
    """Which nodes have variables of a scope, and which sum them, up to the first below which all are summed: no higher
    one is a better place.  How many nodes that are."""
    found = 0
    highest = _meeting(state, ways, scope)
    for k in range(scope.size):
        bit = 1 << k
        top = state.summed[scope[k]]
        u = state.used[scope[k]] if top >= 0 else -1
        while u >= 0:
            a = state.table[u]
            while a != top and ways.has[a] & bit == 0:
                if ways.has[a] == 0 and ways.sums[a] == 0:
                    ways.seen[found] = a
                    found += 1
                ways.has[a] |= bit
                a = state.parent[a]
            u = state.before[u]
        a = top
        while a >= 0:
            if ways.has[a] == 0 and ways.sums[a] == 0:
                ways.seen[found] = a
                found += 1
            ways.sums[a] |= bit
            a = state.parent[a] if a != highest else -1
    return found


@part
def _meeting(state, ways, scope):
    """The lowest node below which all variables of a scope are summed, -1 if none is."""
    state.counts[MARK] += 1
    mark = state.counts[MARK]
    found, height = -1, -1
    for v in scope:
        a = state.summed[v]
        if a < 0:
            continue
        if found < 0:  # the way from the first of them to the root, numbered
            found, height, at = a, 0, 0
            while a >= 0:
                ways.mark[a] = mark
                ways.more_out[a] = at
                at += 1
                a = state.parent[a]
            continue
        while ways.mark[a] != mark:
            a = state.parent[a]
        if ways.more_out[a] > height:
            found, height = a, int(ways.more_out[a])
    return found


@part
def best_place(state, ways, num_seen, scope, log_states, limit):
    """The node to contract a table with, and the seconds that this takes more; the root if no other has its
    variables."""
    size = 0.0
    for v in scope:
        size += log_states[v]
    best, least = state.counts[ROOT], np.inf
    for i in range(max(1, num_seen)):
        a = ways.seen[i] if num_seen else best
        if SECONDS_PER_PRODUCT * entries_of(_log_union(state, ways, a, scope, log_states)) >= least:
            continue
        num_changed, union, out = _change(state, ways, a, scope, log_states)
        mark = state.counts[MARK]
        seconds = step_seconds(
            entries_of(union), entries_of(_log_out(state, ways, a)), entries_of(size), entries_of(out), limit
        )
        for j in range(num_changed):
            x = ways.changed[j]
            one, two = state.left[x], state.right[x]
            first = entries_of(out if one == a else _log_out(state, ways, one))
            second = 1.0 if two < 0 else entries_of(out if two == a else _log_out(state, ways, two))
            products = state.log_union[x] + (ways.more_union[x] if ways.mark[x] == mark else 0.0)
            own = step_seconds(entries_of(products), first, second, entries_of(_log_out(state, ways, x)), limit)
            seconds += own - state.own[x]
            if seconds >= least:
                break
        if seconds < least:
            best, least = a, seconds
    return best, least


@inline
def _log_out(state, ways, a):
    """Return the log entries of what a node would hand on, with the variables carried through it."""
    return state.log_out[a] + (ways.more_out[a] if ways.mark[a] == state.counts[MARK] else 0.0)


@inline
def _log_union(state, ways, a, scope, log_states):
    """log2 of the products of a table and node a."""
    union = state.log_out[a]
    for k in range(scope.size):
        union += log_states[scope[k]] if ways.has[a] & (1 << k) == 0 else 0.0
    return union


@inline
def _enlarge(state, ways, x, num_changed, out, union):
    """Add a variable to a node; how many are changed now."""
    mark = state.counts[MARK]
    if ways.mark[x] != mark:
        ways.mark[x] = mark
        ways.more_out[x] = ways.more_union[x] = 0.0
        ways.changed[num_changed] = x
        num_changed += 1
    ways.more_out[x] += out
    ways.more_union[x] += union
    return num_changed


@part
def _change(state, ways, a, scope, log_states):
    """What becomes larger where a table is contracted with node a: how many nodes, with those that are made of them,
    and log2 of the products and of the entries of the new node."""
    state.counts[MARK] += 1
    union, out = _log_union(state, ways, a, scope, log_states), state.log_out[a]
    changed = 0
    for k in range(scope.size):
        size, top = log_states[scope[k]], state.summed[scope[k]]
        bit = 1 << k
        if top < 0:
            continue
        if ways.sums[a] & bit != 0:  # carried up from where it was summed
            changed = _carry(state, ways, top, state.parent[a], size, changed)
            continue
        out += 0.0 if ways.has[a] & bit != 0 else size
        x = state.parent[a]
        while ways.sums[x] & bit == 0:
            if ways.has[x] & bit == 0:
                changed = _enlarge(state, ways, x, changed, size, size)
            x = state.parent[x]
        if x != top:
            changed = _enlarge(state, ways, x, changed, 0.0, size)
            changed = _carry(state, ways, top, x, size, changed)
    # entries that are read become more too
    last = changed
    for j in range(-1, last):
        x = state.parent[a] if j < 0 else state.parent[ways.changed[j]]
        if x >= 0 and ways.mark[x] != state.counts[MARK]:
            changed = _enlarge(state, ways, x, changed, 0.0, 0.0)
    return changed, union, out


@inline
def _carry(state, ways, top, end, size, changed):
    """Up from where a variable was summed, to below the end."""
    x = top
    while x != end:
        changed = _enlarge(state, ways, x, changed, size, 0.0 if x == top else size)
        x = state.parent[x]
    return changed


@part
def put(state, ways, a, f, scope, log_states, limit):
    """Contract a table with node a; log2 of the largest table that becomes of it."""
    num_changed, union, out = _change(state, ways, a, scope, log_states)
    b, above = state.counts[NODES], state.parent[a]
    for k in range(scope.size):
        v = scope[k]
        top, x = state.summed[v], above
        if top < 0 or ways.sums[a] & (1 << k) != 0:
            state.summed[v] = b
            continue
        while ways.sums[x] & (1 << k) == 0:
            x = state.parent[x]
        state.summed[v] = x
    widest = out
    state.log_out[f] = 0.0
    for v in scope:
        state.log_out[f] += log_states[v]
    state.log_union[f] = state.log_out[f]
    for j in range(num_changed):
        x = ways.changed[j]
        state.log_out[x] += ways.more_out[x]
        state.log_union[x] += ways.more_union[x]
        widest = max(widest, state.log_out[x])
    state.counts[NODES] += 1
    state.left[b], state.right[b], state.parent[b] = a, f, above
    state.parent[a] = state.parent[f] = b
    if above < 0:
        state.counts[ROOT] = b
    elif state.left[above] == a:
        state.left[above] = b
    else:
        state.right[above] = b
    state.log_out[b], state.log_union[b] = out, union
    state.own[b] = node_seconds(state, b, limit)
    for j in range(num_changed):
        state.own[ways.changed[j]] = node_seconds(state, ways.changed[j], limit)
    use(state, f, scope)
    return widest
