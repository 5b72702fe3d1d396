"""A shift set so that the two cliques of a bucket agree: with mu_c(x_I) = sum over the other axes of exp(psi_c / w_c),

    x += w1 w2 / (w1 + w2) (log mu2 - log mu1)

makes the power marginals on I equal, for weights of either sign.  A joint state of I that is impossible in one clique
is impossible: it becomes a hard zero of the other one's own table, never a large shift, which the next step would have
to take back.
"""

import math

import numpy as np

from clampz._kernels.jit import part
from clampz._kernels.mini_buckets_layout import MATCHED
from clampz._kernels.mini_buckets_links import add_to, advance, enter, place_of


@part
def match(layout, theta, x, p, matching, lane):
    """Match shift p, in x, psi and, for zeros, theta; or only the zeros."""
    begin, end = layout.shift_start[p], layout.shift_start[p + 1]
    num_entries = end - begin
    left, right = layout.pair_links[p, 0], layout.pair_links[p, 1]
    log_left, log_right, zero = np.empty(num_entries), np.empty(num_entries), np.zeros(num_entries)
    first = fill_power_marginals(layout, left, matching, lane, log_left)
    second = fill_power_marginals(layout, right, matching, lane, log_right)
    w = lane.weight[first] * lane.weight[second] / (lane.weight[first] + lane.weight[second])
    change = np.zeros(num_entries)
    zeros_left, zeros_right = False, False
    for j in range(num_entries):
        possible_left, possible_right = log_left[j] > -np.inf, log_right[j] > -np.inf
        if possible_left and possible_right:
            if matching == MATCHED:
                change[j] = w * (log_right[j] - log_left[j])
                x[begin + j] += change[j]
        else:
            zero[j] = -np.inf
            zeros_left = zeros_left or possible_left
            zeros_right = zeros_right or possible_right
    if matching == MATCHED:
        add_link(layout, left, first, lane.table, change, 1.0, lane.scratch)
        add_link(layout, right, second, lane.table, change, -1.0, lane.scratch)
    if zeros_left:
        add_link(layout, left, first, theta, zero, 1.0, lane.scratch)
        add_link(layout, left, first, lane.table, zero, 1.0, lane.scratch)
    if zeros_right:
        add_link(layout, right, second, theta, zero, 1.0, lane.scratch)
        add_link(layout, right, second, lane.table, zero, 1.0, lane.scratch)


@part
def clique_of(layout, link):
    """The clique that a link is of: the last one whose links begin there or before."""
    first, last = 0, layout.link_start.size - 1
    while last - first > 1:
        middle = (first + last) // 2
        if layout.link_start[middle] <= link:
            first = middle
        else:
            last = middle
    return first


@part
def add_link(layout, link, c, table, small, sign, scratch):
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides = layout.strides[layout.stride_start[link] : layout.stride_start[link] + sizes.size]
    add_to(table, layout.table_start[c], sizes, strides, small, 0, sign, 0.0, scratch)


@part
def fill_power_marginals(layout, link, matching, lane, out):
    """log mu of the clique that the link is of, each with a largest term of its own so that none underflows; returns
    the clique.  Where only zeros are asked for, anything finite will do for the others."""
    c = clique_of(layout, link)
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides = layout.strides[layout.stride_start[link] : layout.stride_start[link] + sizes.size]
    psi = lane.table[layout.table_start[c] : layout.table_start[c + 1]]
    w = lane.weight[c]
    places, axes = lane.scratch.places, lane.scratch.axes
    top, total = np.full(out.size, -np.inf), np.zeros(out.size)
    for summing in (False, True):
        if summing and matching != MATCHED:
            for i in range(out.size):
                out[i] = top[i]
            return c
        size, _, num_shared, num_other = enter(sizes, strides, lane.scratch)
        place_small = 0
        while place_small >= 0:
            place = place_of(axes, num_shared)
            while place >= 0:
                for j in range(size):
                    at = place_small + np.int64(places[j])
                    value = psi[place + j] / w
                    if not summing:
                        top[at] = max(top[at], value)
                    elif value > -np.inf:
                        total[at] += math.exp(value - top[at])
                place = advance(axes, num_shared, num_other, 1, place)
            place_small = advance(axes, 0, num_shared, 2, place_small)
    for i in range(out.size):
        out[i] = top[i] + math.log(total[i]) if top[i] > -np.inf else -np.inf
    return c
