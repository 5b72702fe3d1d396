"""Setup of clique tables: links with their strides, the model's tables added to cliques, and beliefs summed back."""

from typing import NamedTuple

import numpy as np

from clampz._kernels.jit import kernel_in_place, part_in_place
from clampz._kernels.mini_buckets.layout import ADDED, MESSAGE, SUBTRACTED
from clampz._kernels.mini_buckets.links import add_to, sum_onto
from clampz._kernels.mini_buckets.passes import largest_possible

# Above all that potentials add up to, also when it is divided by the smallest weight.
OUT = 1e300


class Links(NamedTuple):
    """The links of every clique: see CliqueLayout; `filled` (C,) is where the next one goes."""

    filled: np.ndarray
    start: np.ndarray
    kind: np.ndarray
    of: np.ndarray
    stride_start: np.ndarray
    strides: np.ndarray


@kernel_in_place
def fill_links(
    parent, pair_left, pair_right, pair_scope_start, pair_scope, num_states, scope_start, scope, links, cancel_flag
):
    """Lay out the links of every clique: messages of its children, then added shifts, then subtracted ones, by number.
    Returns a clique that lacks a variable of what is added to it; -1: there is none, -2: the flag was raised."""
    for child in range(parent.size):
        c = parent[child]
        if cancel_flag[0]:
            return -2
        if c >= 0:
            own = scope[scope_start[child] + 1 : scope_start[child + 1]]
            if not _add_link(links, c, MESSAGE, child, own, num_states, scope_start, scope):
                return c
    for kind in (ADDED, SUBTRACTED):
        for p in range(pair_left.size):
            c = pair_left[p] if kind == ADDED else pair_right[p]
            if cancel_flag[0]:
                return -2
            own = pair_scope[pair_scope_start[p] : pair_scope_start[p + 1]]
            if not _add_link(links, c, kind, p, own, num_states, scope_start, scope):
                return c
    return -1


@part_in_place
def _add_link(links, c, kind, of, small, num_states, scope_start, scope):
    """Add a link of a clique: a table with variables in order of elimination. False: the clique lacks one of them."""
    link = links.filled[c]
    links.filled[c] += 1
    links.kind[link] = kind
    links.of[link] = of
    arity = scope_start[c + 1] - scope_start[c]
    first = links.stride_start[c] + (link - links.start[c]) * arity
    left = small.size - 1
    stride = 1
    for a in range(arity - 1, -1, -1):
        i = scope[scope_start[c] + a]
        if left >= 0 and small[left] == i:
            links.strides[first + a] = stride
            stride *= num_states[i]
            left -= 1
        else:
            links.strides[first + a] = 0
    return left < 0


@kernel_in_place
def rule_out(unary, unary_start, order, bucket_start, table_start, main, theta):
    """Take the states that unary tables rule out from all cliques of their variables' buckets. In a lower bound they
    are as good as infinite where weights are negative, so that no sum there has them."""
    for t in range(order.size):
        begin, end = unary_start[order[t]], unary_start[order[t] + 1]
        for row in range(begin, end):
            if unary[row] > -np.inf:
                continue
            for c in range(bucket_start[t], bucket_start[t + 1]):
                size = (table_start[c + 1] - table_start[c]) // (end - begin)
                at = table_start[c] + (row - begin) * size
                theta[at : at + size] = -np.inf if main[t] < 0 or c == main[t] else OUT


@part_in_place
def enter_table(variables, clique_scope, num_states, sizes, strides):
    """Fill in the sizes of a clique's axes, and the strides along them of a table of the model's, its last variable
    fastest."""
    for a in range(clique_scope.size):
        i = clique_scope[a]
        sizes[a] = num_states[i]
        strides[a] = 0
        stride = 1
        for place in range(variables.size - 1, -1, -1):
            if variables[place] == i:
                strides[a] = stride
            stride *= num_states[variables[place]]


@kernel_in_place
def add_tables(
    clique,
    table_scope_start,
    variables,
    start,
    flat,
    num_states,
    scope_start,
    scope,
    table_start,
    theta,
    size,
    scratch,
    cancel_flag,
):
    """Add tables of a model, each to a clique with its variables, and their sizes; False if the flag was raised."""
    sizes, strides = scratch.own[0], scratch.own[1]
    for f in range(clique.size):
        if cancel_flag[0]:
            return False
        c = clique[f]
        axes = scope_start[c + 1] - scope_start[c]
        of_table = variables[table_scope_start[f] : table_scope_start[f + 1]]
        enter_table(of_table, scope[scope_start[c] : scope_start[c + 1]], num_states, sizes, strides)
        add_to(theta, table_start[c], sizes[:axes], strides[:axes], flat, start[f], 1.0, scratch.zeros, 1, scratch)
        size[c] += largest_possible(flat[start[f] : start[f + 1]])
    return True


@kernel_in_place
def sum_tables(
    clique, table_scope_start, variables, start, out, num_states, scope_start, scope, table_start, beliefs, scratch
):
    """Sum the beliefs of cliques onto tables of the model's, each from the clique that it was added to."""
    sizes, strides = scratch.own[0], scratch.own[1]
    for f in range(clique.size):
        c = clique[f]
        axes = scope_start[c + 1] - scope_start[c]
        of_table = variables[table_scope_start[f] : table_scope_start[f + 1]]
        enter_table(of_table, scope[scope_start[c] : scope_start[c + 1]], num_states, sizes, strides)
        sum_onto(beliefs, table_start[c], sizes[:axes], strides[:axes], out, start[f], 1.0, 1, scratch)
