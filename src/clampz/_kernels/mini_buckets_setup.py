"""What the passes over mini-buckets need to know of a structure: links with their strides, and the model's tables in
those of the cliques; and the way back, from beliefs of cliques to those of the model's tables."""

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.mini_buckets_links import add_to, sum_onto
from clampz._kernels.mini_buckets_passes import largest_possible

# Above all that potentials add up to, also when it is divided by the smallest weight.
OUT = 1e300


@kernel
def fill_strides(clique, small_start, small, num_states, scope_start, scope, stride_start, strides):
    """Strides of small tables, whose variables are in order of elimination, along the axes of the cliques they are
    linked to."""
    for link in range(clique.size):
        c = clique[link]
        begin, at = small_start[link], small_start[link + 1] - 1
        stride = 1
        for a in range(scope_start[c + 1] - 1, scope_start[c] - 1, -1):
            place = stride_start[link] + a - scope_start[c]
            if at >= begin and small[at] == scope[a]:
                strides[place] = stride
                stride *= num_states[scope[a]]
                at -= 1
            else:
                strides[place] = 0
        if at >= begin:
            return link  # a variable that the clique does not have
    return -1


@kernel
def rule_out(unary, unary_start, order, bucket_start, table_start, main, theta):
    """Take the states that unary tables rule out from all cliques of their variables' buckets: in a lower bound they
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


@part
def enter_table(variables, clique_scope, num_states, sizes, strides):
    """Sizes of a clique's axes, and the strides along them of a table of the model's, its last variable fastest."""
    for a in range(clique_scope.size):
        i = clique_scope[a]
        sizes[a] = num_states[i]
        strides[a] = 0
        stride = 1
        for place in range(variables.size - 1, -1, -1):
            if variables[place] == i:
                strides[a] = stride
            stride *= num_states[variables[place]]


@kernel
def add_tables(
    clique, table_scope_start, variables, start, flat, num_states, scope_start, scope, table_start, theta, size, scratch
):
    """Add tables of a model, each to the clique that has its variables: theta, and the size of what it is made of."""
    strides = np.empty(scratch.axes.shape[1], dtype=np.int64)
    sizes = np.empty_like(strides)
    for f in range(clique.size):
        c = clique[f]
        axes = scope_start[c + 1] - scope_start[c]
        of_table = variables[table_scope_start[f] : table_scope_start[f + 1]]
        enter_table(of_table, scope[scope_start[c] : scope_start[c + 1]], num_states, sizes, strides)
        add_to(theta, table_start[c], sizes[:axes], strides[:axes], flat, start[f], 1.0, 0.0, scratch)
        size[c] += largest_possible(flat[start[f] : start[f + 1]])


@kernel
def sum_tables(
    clique, table_scope_start, variables, start, out, num_states, scope_start, scope, table_start, beliefs, scratch
):
    """Sum the beliefs of cliques onto tables of the model's, each from the clique that it was added to."""
    strides = np.empty(scratch.axes.shape[1], dtype=np.int64)
    sizes = np.empty_like(strides)
    for f in range(clique.size):
        c = clique[f]
        axes = scope_start[c + 1] - scope_start[c]
        of_table = variables[table_scope_start[f] : table_scope_start[f + 1]]
        enter_table(of_table, scope[scope_start[c] : scope_start[c + 1]], num_states, sizes, strides)
        sum_onto(beliefs, table_start[c], sizes[:axes], strides[:axes], out, start[f], 1.0, scratch)
