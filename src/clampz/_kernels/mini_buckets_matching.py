"""A shift set so that the two cliques of a bucket agree: with mu_c(x_I) = sum over the other axes of exp(psi_c / w_c),

    x += w1 w2 / (w1 + w2) (log mu2 - log mu1)

makes the power marginals on I equal, for weights of either sign.  A joint state of I that is impossible in one clique
is impossible: it becomes a hard zero of the other one's own table, never a large shift, which the next step would have
to take back.
"""

import numpy as np

from clampz._kernels.jit import part_in_place
from clampz._kernels.mini_buckets_layout import ADDED, MATCHED, SUBTRACTED
from clampz._kernels.mini_buckets_links import add_to, advance, enter, place_of
from clampz._kernels.simd_math import EXP_LIMIT, exp, log


@part_in_place
def match(layout, theta, x, p, matching, lane):
    """Match shift p, in x, psi and, for zeros, theta; or only the zeros."""
    begin, end = layout.shift_start[p], layout.shift_start[p + 1]
    left, right = layout.pair_left[p], layout.pair_right[p]
    at_left, at_right = strides_at(layout, left, ADDED, p), strides_at(layout, right, SUBTRACTED, p)
    log_left = lane.scratch.shift[0, : end - begin]
    log_right = lane.scratch.shift[1, : end - begin]
    change = lane.scratch.shift[2, : end - begin]  # first what sums are made in, and last the zeros
    fill_power_marginals(layout, left, at_left, matching, lane, log_left, change)
    fill_power_marginals(layout, right, at_right, matching, lane, log_right, change)
    w = lane.weight[left] * lane.weight[right] / (lane.weight[left] + lane.weight[right])
    zeros_left, zeros_right = False, False
    for j in range(change.size):
        possible_left, possible_right = log_left[j] > -np.inf, log_right[j] > -np.inf
        zeros_left = zeros_left or (possible_left and not possible_right)
        zeros_right = zeros_right or (possible_right and not possible_left)
        possible = possible_left and possible_right and matching == MATCHED
        change[j] = w * (log_right[j] - log_left[j]) if possible else 0.0
        x[begin + j] += change[j]
    if matching == MATCHED:
        add_link(layout, left, at_left, lane.table, change, 1.0, lane.scratch)
        add_link(layout, right, at_right, lane.table, change, -1.0, lane.scratch)
    if not zeros_left and not zeros_right:
        return
    for j in range(change.size):
        change[j] = 0.0 if log_left[j] > -np.inf and log_right[j] > -np.inf else -np.inf
    if zeros_left:
        add_link(layout, left, at_left, theta, change, 1.0, lane.scratch)
        add_link(layout, left, at_left, lane.table, change, 1.0, lane.scratch)
    if zeros_right:
        add_link(layout, right, at_right, theta, change, 1.0, lane.scratch)
        add_link(layout, right, at_right, lane.table, change, 1.0, lane.scratch)


@part_in_place
def strides_at(layout, c, kind, p):
    """Where the strides of shift p begin, as clique c has it."""
    at = layout.stride_start[c]
    for link in range(layout.link_start[c], layout.link_start[c + 1]):
        if layout.link_kind[link] == kind and layout.link_of[link] == p:
            break
        at += layout.scope_start[c + 1] - layout.scope_start[c]
    return at


@part_in_place
def add_link(layout, c, at, table, small, sign, scratch):
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides = layout.strides[at : at + sizes.size]
    add_to(table, layout.table_start[c], sizes, strides, small, 0, sign, 0.0, scratch)


@part_in_place
def fill_power_marginals(layout, c, at, matching, lane, out, total):
    """log mu of clique c, each with a largest term of its own so that none underflows.  Where only zeros are asked for,
    anything finite will do for the others."""
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides = layout.strides[at : at + sizes.size]
    psi = lane.table[layout.table_start[c] : layout.table_start[c + 1]]
    inverse = 1.0 / lane.weight[c]
    places, axes, block = lane.scratch.places, lane.scratch.axes, lane.scratch.block
    for i in range(out.size):
        out[i] = -np.inf
        total[i] = 0.0
    size, _, num_shared, num_other = enter(sizes, strides, lane.scratch)
    for summing in (False, True):
        if summing and matching != MATCHED:
            return
        first = 0
        while first >= 0:
            top = out[first:]
            place = place_of(axes, num_shared)
            while place >= 0:
                piece = psi[place : place + size]
                if summing:
                    for j in range(size):
                        block[j] = exp(max(min(piece[j] * inverse - top[places[j]], 0.0), -EXP_LIMIT))
                    for j in range(size):
                        total[first + np.int64(places[j])] += block[j]
                else:
                    for j in range(size):
                        top[places[j]] = max(top[places[j]], piece[j] * inverse)
                place = advance(axes, num_shared, num_other, 1, place)
            first = advance(axes, 0, num_shared, 2, first)
    for i in range(out.size):
        out[i] = out[i] + log(max(total[i], 1.0)) if out[i] > -np.inf else -np.inf
