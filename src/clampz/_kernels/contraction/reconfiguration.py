"""Subtree reconfiguration: contraction trees made better, a few leaves at a time.

A subtree of a few leaves is taken apart and put together in the best of all ways, by dynamic programming over sets of
leaves, over and over: it is how cotengra makes trees good.  Arrays are those of `tree`.
"""

import numpy as np

from clampz._kernels.contraction.tree import grow_pool, step_seconds
from clampz._kernels.jit import kernel

# Leaves of a subtree that is put together anew: of eight there are 3,280 ways to split a set of them, some 20
# microseconds; one more takes three times as long.
LEAVES = 8


@kernel
def reconfigure(tree, size, own, roots, log_states, limit, cancel_flag):
    """Put the subtrees of these nodes together anew, one after another, until the flag is raised.

    Tree, size and own change in place.  Returns whether anything became better, and the pool, which may have moved.
    """
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
                    pool = grow_pool(pool, used, num_local)
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


@kernel
def from_leaves(left, right, parent):
    """Return the nodes that are made of others, each after those it is made of."""
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
