"""Graph kernels: neighbour lists, core, colouring, components, spanning forests and balance, each about linear in time.

edges        (m, 2)   the two variables of each edge
start        (n + 1,) the neighbours of i are neighbour[start[i] : start[i + 1]]
neighbour    (2m,)    the variable at the other end
edge_of      (2m,)    the edge that leads there
"""

import numpy as np

from clampz._kernels.jit import kernel


@kernel
def neighbour_lists(num_variables, edges):
    """Build compressed neighbour lists of a graph, each in the order of the edges."""
    m = edges.shape[0]
    start = np.zeros(num_variables + 1, dtype=np.int64)
    for k in range(m):
        start[edges[k, 0] + 1] += 1
        start[edges[k, 1] + 1] += 1
    for i in range(num_variables):
        start[i + 1] += start[i]
    neighbour = np.empty(2 * m, dtype=np.int32)
    edge_of = np.empty(2 * m, dtype=np.int32)
    fill = start[:-1].copy()
    for k in range(m):
        i = edges[k, 0]
        j = edges[k, 1]
        neighbour[fill[i]] = j
        edge_of[fill[i]] = k
        fill[i] += 1
        neighbour[fill[j]] = i
        edge_of[fill[j]] = k
        fill[j] += 1
    return start, neighbour, edge_of


@kernel
def strip_to_core(start, neighbour, edge_of):
    """Strip variables of degree <= 1 until none remains. Returns the removed variables in the order of removal, and for
    each the edge that still held it (-1: none)."""
    # Of each variable's remaining neighbours and edges only their exclusive or is kept: at degree one it is the
    # neighbour, and the edge.
    n = start.size - 1
    degree = start[1:] - start[:-1]
    other = np.zeros(n, dtype=np.int32)
    held_by = np.zeros(n, dtype=np.int32)
    removed = np.empty(n, dtype=np.int32)
    last_edge = np.full(n, -1, dtype=np.int32)
    count = 0
    for i in range(n):
        for p in range(start[i], start[i + 1]):
            other[i] ^= neighbour[p]
            held_by[i] ^= edge_of[p]
        if degree[i] <= 1:
            removed[count] = i
            count += 1
    done = 0
    while done < count:
        i = removed[done]
        if degree[i] == 1:  # 0: its neighbour went first
            j = other[i]
            last_edge[done] = held_by[i]
            other[j] ^= i
            held_by[j] ^= held_by[i]
            degree[j] -= 1
            if degree[j] == 1:
                removed[count] = j
                count += 1
        done += 1
    return removed[:count], last_edge[:count]


@kernel
def first_fit_colours(start, neighbour, member):
    """Colour the members so that no neighbours share a colour: the smallest free one, in order of number."""
    n = start.size - 1
    colour = np.full(n, -1, dtype=np.int32)
    taken_by = np.full(n + 1, -1, dtype=np.int32)
    for i in range(n):
        if not member[i]:
            continue
        for p in range(start[i], start[i + 1]):
            if colour[neighbour[p]] >= 0:
                taken_by[colour[neighbour[p]]] = i
        c = 0
        while taken_by[c] == i:
            c += 1
        colour[i] = c
    return colour


@kernel
def message_lists(edges, slot_of, num_slots):
    """Sort directed messages by the slot that they end in. Message `forward[k]` runs along edge k from its first
    variable to its second, `backward[k]` the other way."""
    m = edges.shape[0]
    start = np.zeros(num_slots + 1, dtype=np.int64)
    for k in range(m):
        start[slot_of[edges[k, 0]] + 1] += 1
        start[slot_of[edges[k, 1]] + 1] += 1
    for p in range(num_slots):
        start[p + 1] += start[p]
    fill = start[:-1].copy()
    tail = np.empty(2 * m, dtype=np.int32)
    reverse = np.empty(2 * m, dtype=np.int32)
    edge_of_message = np.empty(2 * m, dtype=np.int32)
    message_of_edge = np.empty((m, 2), dtype=np.int32)
    for k in range(m):
        p = slot_of[edges[k, 0]]
        q = slot_of[edges[k, 1]]
        forward = fill[q]
        fill[q] += 1
        backward = fill[p]
        fill[p] += 1
        tail[forward] = p
        tail[backward] = q
        reverse[forward] = backward
        reverse[backward] = forward
        edge_of_message[forward] = k
        edge_of_message[backward] = k
        message_of_edge[k, 0] = forward
        message_of_edge[k, 1] = backward
    return start, tail, reverse, edge_of_message, message_of_edge


@kernel
def find_root(parent, i):
    """Find the root of i in a union-find forest, halving the path on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def component_labels(num_variables, edges):
    """Label connected components, numbered by their smallest variable."""
    parent = np.arange(num_variables)
    for k in range(edges.shape[0]):
        a = find_root(parent, np.int64(edges[k, 0]))
        b = find_root(parent, np.int64(edges[k, 1]))
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    label = np.empty(num_variables, dtype=np.int64)
    count = 0
    for i in range(num_variables):
        r = find_root(parent, i)
        if r == i:
            label[i] = count
            count += 1
        else:
            label[i] = label[r]
    return label


@kernel
def spanning_forest(num_variables, edges, ranking, cancel_flag):
    """Mark the edges of Kruskal's spanning forest, taken in the order of `ranking` until the flag is raised."""
    parent = np.arange(num_variables)
    taken = np.zeros(edges.shape[0], dtype=np.uint8)
    for r in range(ranking.size):
        if r % 65536 == 0 and cancel_flag[0]:
            break
        k = ranking[r]
        a = find_root(parent, np.int64(edges[k, 0]))
        b = find_root(parent, np.int64(edges[k, 1]))
        if a != b:
            parent[max(a, b)] = min(a, b)
            taken[k] = 1
    return taken


@kernel
def balance(start, neighbour, edge_of, negative):
    """Find flips that make every edge attractive, and whether they exist (no cycle has an odd number of negative
    edges)."""
    n = start.size - 1
    flip = np.full(n, -1, dtype=np.int8)
    stack = np.empty(n, dtype=np.int64)
    balanced = True
    for root in range(n):
        if flip[root] >= 0:
            continue
        flip[root] = 0
        stack[0] = root
        height = 1
        while height > 0:
            height -= 1
            i = stack[height]
            for p in range(start[i], start[i + 1]):
                j = neighbour[p]
                wanted = flip[i] ^ negative[edge_of[p]]
                if flip[j] < 0:
                    flip[j] = wanted
                    stack[height] = j
                    height += 1
                elif flip[j] != wanted:
                    balanced = False
    return flip, balanced
