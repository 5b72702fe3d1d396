"""From a tree of contractions to a list of steps: in which order, how every table is laid out, and where it lies.

A step makes one table from two others: forwards a node from the two it is made of, backwards the adjoint of a node
(what Z is, per entry of its table, from everything else) from the adjoint of its parent and the node beside it.  No
division, so zeros are harmless.  The adjoint of a factor, times the factor, is its marginal.

Tables are numbered: node a is table a, its adjoint table N + a, and table 2N is the number 1.  The arena has the
factors first, as they were given, then the 1, and then a place for every table for as long as it is used.

Where not all tables fit until the pass back uses them, the steps forwards are cut into segments: the first pass
keeps only what is alive at the cuts, and a segment's tables are made again when the pass back comes to it.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.contraction.reconfiguration import from_leaves
from clampz._kernels.jit import kernel, part
from clampz._kernels.records import record

# Entries of the innermost axes that stay together, from a table into those made of it: as many as are worth a loop.
RUN = 64
# Fewer are gathered one by one rather than kept together.
SHORT = 8
# How many generations are looked at for axes that stay together.
GENERATIONS = 64

# One record per step:
#   out, first, second        the tables
#   out_at, first_at, second_at    where they begin in the arena
#   again                     whether the table was made before
STEP = record(i8="out first second out_at first_at second_at again")


class StepList(NamedTuple):
    """What to do, and the axes of every node, outermost first: node a is over axes[start[a] : start[a + 1]]."""

    steps: Any
    start: Any
    axes: Any
    num_nodes: int
    num_factors: int


@kernel
def node_sizes(tree, num_states):
    """(N,) entries of every table."""
    sizes = np.ones(tree.left.size)
    for a in range(sizes.size):
        for p in range(tree.begin[a], tree.begin[a] + tree.count[a]):
            sizes[a] *= num_states[tree.pool[p]]
    return sizes


@kernel
def steps_forwards(tree, sizes):
    """Nodes that are made of others in the order in which to make them: a whole subtree before the next, that one first
    that leaves less memory in use in the end."""
    num_nodes = tree.left.size
    peak = np.zeros(num_nodes, dtype=np.int64)  # entries while the subtree is worked on, factors apart
    held = np.zeros(num_nodes, dtype=np.int64)
    second_first = np.zeros(num_nodes, dtype=np.bool_)
    for a in from_leaves(tree.left, tree.right, tree.parent):
        one, two = tree.left[a], tree.right[a]
        held[a] = sizes[a]
        if two < 0:
            peak[a] = max(peak[one], held[one] + sizes[a])
            continue
        as_is = max(peak[one], held[one] + peak[two])
        swapped = max(peak[two], held[two] + peak[one])
        second_first[a] = swapped < as_is
        peak[a] = max(min(as_is, swapped), held[one] + held[two] + sizes[a])
    order = np.empty(num_nodes, dtype=np.int64)
    found = 0
    stack = np.empty(2 * num_nodes + 2, dtype=np.int64)
    for root in range(num_nodes):
        if tree.parent[root] >= 0 or tree.left[root] < 0:
            continue
        depth = 1
        stack[0] = root
        while depth > 0:
            depth -= 1
            a = stack[depth]
            if a < 0:  # both sides are done
                order[found] = -a - 1
                found += 1
                continue
            stack[depth] = -a - 1
            depth += 1
            one, two = tree.left[a], tree.right[a]
            if second_first[a]:
                one, two = two, one
            for child in (two, one):
                if child >= 0 and tree.left[child] >= 0:
                    stack[depth] = child
                    depth += 1
    return order[:found]


@kernel
def lay_out(tree, order, num_states, sizes):
    """The axes of every node: those that are summed first outermost, those that stay with a table through most of what
    it is made of innermost.  Returns where each node's begin, and all of them."""
    num_nodes = tree.left.size
    start = np.zeros(num_nodes + 1, dtype=np.int64)
    for a in range(num_nodes):
        start[a + 1] = start[a] + tree.count[a]
    axes = np.empty(start[num_nodes], dtype=np.int64)
    in_one = np.full(num_states.size, -1, dtype=np.int64)
    in_two = np.full(num_states.size, -1, dtype=np.int64)
    given = np.zeros(num_nodes, dtype=np.int64)  # innermost axes that the parent has chosen, already in place
    rank = np.zeros(num_states.size, dtype=np.int64)
    for k in range(order.size - 1, -1, -1):
        a = order[k]
        if tree.parent[a] < 0:
            _order_axes(tree, a, num_states, sizes, start, axes, given, in_one, in_two, rank)
        one, two = tree.left[a], tree.right[a]
        for p in range(tree.begin[one], tree.begin[one] + tree.count[one]):
            in_one[tree.pool[p]] = a
        if two >= 0:
            for p in range(tree.begin[two], tree.begin[two] + tree.count[two]):
                in_two[tree.pool[p]] = a
        # how far from the innermost axis outwards all are in the same of both tables
        run = 0
        entries = 1
        while run < tree.count[a]:
            innermost = axes[start[a + 1] - 1]
            v = axes[start[a + 1] - 1 - run]
            if (in_one[v] == a) != (in_one[innermost] == a) or (in_two[v] == a) != (in_two[innermost] == a):
                break
            run += 1
            entries *= num_states[v]
        if entries < SHORT:
            run = 0
        for side in range(2):
            child = one if side == 0 else two
            if child < 0:
                continue
            inside = in_one if side == 0 else in_two
            if run > 0 and inside[axes[start[a + 1] - 1]] == a:
                given[child] = run
                for q in range(run):
                    axes[start[child + 1] - 1 - q] = axes[start[a + 1] - 1 - q]
        for child in (one, two):
            if child >= 0:
                _order_axes(tree, child, num_states, sizes, start, axes, given, in_one, in_two, rank)
    for a in range(num_nodes):  # factors that are all there is of a component without variables
        if tree.parent[a] < 0 and tree.left[a] < 0:
            for p in range(tree.count[a]):
                axes[start[a] + p] = tree.pool[tree.begin[a] + p]
    return start, axes


@part
def _order_axes(tree, a, num_states, sizes, start, axes, given, in_one, in_two, rank):
    """Put the axes of node a in order; `given` innermost ones are in place."""
    count = tree.count[a]
    entries = 1
    for q in range(given[a]):
        v = axes[start[a + 1] - 1 - q]
        rank[v] = -1
        entries *= num_states[v]
        if entries >= RUN:
            given[a] = q + 1  # more need not stay together
            break
    free = np.empty(count, dtype=np.int64)
    num_free = 0
    for p in range(tree.begin[a], tree.begin[a] + count):
        v = tree.pool[p]
        is_given = False
        for q in range(given[a]):
            is_given = is_given or axes[start[a + 1] - 1 - q] == v
        if not is_given:
            free[num_free] = v
            num_free += 1
            rank[v] = 0
    # generations down, the larger table each time, for which an axis is in that one only
    node = a
    alive = num_free
    level = 0
    while alive > 0 and tree.left[node] >= 0 and level < GENERATIONS:
        level += 1
        one, two = tree.left[node], tree.right[node]
        if two >= 0:
            if sizes[two] > sizes[one]:
                one, two = two, one
            for p in range(tree.begin[two], tree.begin[two] + tree.count[two]):
                in_two[tree.pool[p]] = -2 - node
        alive = 0
        left = 1
        for p in range(tree.begin[one], tree.begin[one] + tree.count[one]):
            in_one[tree.pool[p]] = -2 - node
        for q in range(num_free):
            v = free[q]
            if rank[v] == level - 1 and in_one[v] == -2 - node and in_two[v] != -2 - node:
                rank[v] = level
                alive += 1
                left *= num_states[v]
        node = one
        if left * entries < RUN:
            break
    # those of the highest rank innermost
    for q in range(num_free):
        v = free[q]
        p = start[a] + q
        while p > start[a] and rank[axes[p - 1]] > rank[v]:
            axes[p] = axes[p - 1]
            p -= 1
        axes[p] = v


@kernel
def list_steps(tree, order, segment, wanted):
    """All steps, without places: forwards and, where marginals of factors are `wanted`, back to these.  segment[k] is
    that of order[k]."""
    num_nodes = tree.left.size
    one_table = 2 * num_nodes
    on_the_way = np.zeros(num_nodes, dtype=np.bool_)
    for f in range(wanted.size):
        a = f
        while wanted[f] and a >= 0 and not on_the_way[a]:
            on_the_way[a] = True
            a = tree.parent[a]
    steps = np.zeros(4 * order.size, STEP)
    used = 0
    segment_of = np.full(num_nodes, -1, dtype=np.int64)
    for k in range(order.size):
        segment_of[order[k]] = segment[k]
        used = _forwards(tree, steps, used, order[k], one_table, 0)
    if not on_the_way.any():
        return steps[:used]
    end = order.size
    last = segment[end - 1] if end > 0 else 0
    while end > 0:
        begin = end
        now = segment[end - 1]
        while begin > 0 and segment[begin - 1] == now:
            begin -= 1
        if now != last:
            for k in range(begin, end):
                above = tree.parent[order[k]]
                if above >= 0 and segment_of[above] == now:
                    used = _forwards(tree, steps, used, order[k], one_table, 1)
        for k in range(end - 1, begin - 1, -1):
            a = order[k]
            one, two = tree.left[a], tree.right[a]
            adjoint = num_nodes + a if tree.parent[a] >= 0 else one_table
            for child, other in ((one, two), (two, one)):
                if child >= 0 and on_the_way[child]:
                    steps[used].out = num_nodes + child
                    steps[used].first = adjoint
                    steps[used].second = other if other >= 0 else one_table
                    used += 1
        end = begin
    return steps[:used]


@part
def _forwards(tree, steps, used, a, one_table, again):
    steps[used].out = a
    steps[used].first = tree.left[a]
    steps[used].second = tree.right[a] if tree.right[a] >= 0 else one_table
    steps[used].again = again
    return used + 1


@kernel
def find_places(steps, sizes, table_start):
    """Give every table its place in the arena, the first that is free and large enough, for as long as it is used.
    Returns the entries of the arena."""
    num_nodes = sizes.size
    num_factors = table_start.size - 1
    num_tables = 2 * num_nodes + 1
    # whether a step is the last to use what it reads, until that is made again
    ends = np.zeros((steps.size, 2), dtype=np.bool_)
    unused = np.zeros(steps.size, dtype=np.bool_)
    needed = np.zeros(num_tables, dtype=np.bool_)
    for k in range(steps.size - 1, -1, -1):
        unused[k] = not needed[steps[k].out]
        needed[steps[k].out] = False
        for side in range(2):
            table = steps[k].first if side == 0 else steps[k].second
            if not needed[table]:
                ends[k, side] = True
                needed[table] = True
    at = np.full(num_tables, -1, dtype=np.int64)
    for f in range(num_factors):
        at[f] = table_start[f]
    at[num_tables - 1] = table_start[num_factors]
    floor = table_start[num_factors] + 1
    free_at = np.empty(steps.size + 2, dtype=np.int64)
    free_size = np.empty(steps.size + 2, dtype=np.int64)
    num_free = 0
    top = floor
    for k in range(steps.size):
        out = steps[k].out
        size = sizes[out if out < num_nodes else out - num_nodes]
        chosen = -1
        for i in range(num_free):
            if free_size[i] >= size:
                chosen = i
                break
        if chosen >= 0:
            at[out] = free_at[chosen]
            free_at[chosen] += size
            free_size[chosen] -= size
            if free_size[chosen] == 0:
                num_free = _drop(free_at, free_size, chosen, num_free)
        elif num_free > 0 and free_at[num_free - 1] + free_size[num_free - 1] == top:
            num_free -= 1  # the last one grows
            at[out] = free_at[num_free]
            top = at[out] + size
        else:
            at[out] = top
            top += size
        floor = max(floor, top)
        steps[k].out_at = at[out]
        steps[k].first_at = at[steps[k].first]
        steps[k].second_at = at[steps[k].second]
        for side in range(3):
            table = steps[k].first if side == 0 else steps[k].second if side == 1 else out
            ended = unused[k] if side == 2 else ends[k, side]
            if side == 1 and table == steps[k].first:
                ended = False
            if ended and table >= num_factors and table != num_tables - 1:
                size = sizes[table if table < num_nodes else table - num_nodes]
                num_free = _release(free_at, free_size, num_free, at[table], size)
    return floor


@part
def _drop(free_at, free_size, i, num_free):
    for j in range(i, num_free - 1):
        free_at[j] = free_at[j + 1]
        free_size[j] = free_size[j + 1]
    return num_free - 1


@part
def _release(free_at, free_size, num_free, at, size):
    """Add a piece to the free ones, which are in order and never side by side."""
    i = num_free
    while i > 0 and free_at[i - 1] > at:
        free_at[i] = free_at[i - 1]
        free_size[i] = free_size[i - 1]
        i -= 1
    free_at[i] = at
    free_size[i] = size
    num_free += 1
    if i + 1 < num_free and at + size == free_at[i + 1]:
        free_size[i] += free_size[i + 1]
        num_free = _drop(free_at, free_size, i + 1, num_free)
    if i > 0 and free_at[i - 1] + free_size[i - 1] == at:
        free_size[i - 1] += free_size[i]
        num_free = _drop(free_at, free_size, i, num_free)
    return num_free
