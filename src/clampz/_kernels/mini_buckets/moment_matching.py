"""A shift set so that the two cliques of a bucket agree: with mu_c(x_I) = sum over the other axes of exp(psi_c / w_c),

    x += w1 w2 / (w1 + w2) (log mu2 - log mu1)

makes the power marginals on I equal, for weights of either sign.  A joint state of I that is impossible in one clique
is impossible: it becomes a hard zero of the other one's own table, never a large shift, which the next step would have
to take back.
"""

import numpy as np

from clampz._kernels.jit import inline, part_in_place
from clampz._kernels.mini_buckets.layout import ADDED, MATCHED, SUBTRACTED
from clampz._kernels.mini_buckets.links import add_to, advance, enter, place_of
from clampz._kernels.simd_math import EXP_LIMIT, exp, log


@part_in_place
def match(layout, theta, x, p, matching, lanes):
    """Match the power marginals of shift p, in x, psi and, for hard zeros, theta; or only the hard zeros."""
    W, weight = len(lanes.each), lanes.weight
    begin, end = layout.shift_start[p] * W, layout.shift_start[p + 1] * W
    left, right = layout.pair_left[p], layout.pair_right[p]
    at_left, at_right = strides_at(layout, left, ADDED, p), strides_at(layout, right, SUBTRACTED, p)
    log_left = lanes.scratch.shift[0, : end - begin]
    log_right = lanes.scratch.shift[1, : end - begin]
    change = lanes.scratch.shift[2, : end - begin]  # first what sums are made in, and last the zeros
    fill_power_marginals(layout, left, at_left, matching, lanes, log_left, change)
    fill_power_marginals(layout, right, at_right, matching, lanes, log_right, change)
    zeros_left, zeros_right = False, False
    for j in range(change.size):
        w1, w2 = weight[left * W + j % W], weight[right * W + j % W]
        possible_left, possible_right = log_left[j] > -np.inf, log_right[j] > -np.inf
        zeros_left = zeros_left or (possible_left and not possible_right)
        zeros_right = zeros_right or (possible_right and not possible_left)
        possible = possible_left and possible_right and matching == MATCHED
        change[j] = w1 * w2 / (w1 + w2) * (log_right[j] - log_left[j]) if possible else 0.0
        x[begin + j] += change[j]
    if matching == MATCHED:
        add_link(layout, left, at_left, lanes.table, change, 1.0, lanes)
        add_link(layout, right, at_right, lanes.table, change, -1.0, lanes)
    if zeros_left:
        rule_out_link(layout, left, at_left, theta, log_left, log_right, change, lanes)
    if zeros_right:
        rule_out_link(layout, right, at_right, theta, log_right, log_left, change, lanes)


@part_in_place
def rule_out_link(layout, c, at, theta, own, other, change, lanes):
    """Make hard zeros of clique c of what is impossible in the other one, in theta and psi."""
    for j in range(change.size):
        change[j] = -np.inf if own[j] > -np.inf and other[j] == -np.inf else 0.0
    add_link(layout, c, at, theta, change, 1.0, lanes)
    add_link(layout, c, at, lanes.table, change, 1.0, lanes)


@part_in_place
def strides_at(layout, c, kind, p):
    """Return where the strides of shift p begin, as clique c has it."""
    at = layout.stride_start[c]
    for link in range(layout.link_start[c], layout.link_start[c + 1]):
        if layout.link_kind[link] == kind and layout.link_of[link] == p:
            break
        at += layout.scope_start[c + 1] - layout.scope_start[c]
    return at


@part_in_place
def add_link(layout, c, at, table, small, sign, lanes):
    """Add a shift's table to one of clique c."""
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides, scratch = layout.strides[at : at + sizes.size], lanes.scratch
    add_to(table, layout.table_start[c], sizes, strides, small, 0, sign, scratch.zeros, len(lanes.each), scratch)


@part_in_place
def fill_power_marginals(layout, c, at, matching, lanes, out, total):
    """Compute log mu of clique c, each with a largest term of its own so that none underflows. Where only zeros are
    matched, anything finite will do for the others."""
    W = len(lanes.each)
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    strides = layout.strides[at : at + sizes.size]
    psi = lanes.table[layout.table_start[c] * W : layout.table_start[c + 1] * W]
    places, axes, inverse = lanes.scratch.places, lanes.scratch.axes, lanes.spare[0]
    for b in range(W):
        inverse[b] = 1.0 / lanes.weight[c * W + b]
    for i in range(out.size):
        out[i] = -np.inf
        total[i] = 0.0
    size, _, num_shared, num_other = enter(sizes, strides, lanes.scratch)
    for summing in (False, True):
        if summing and matching != MATCHED:
            return
        first = 0
        while first >= 0:
            top, added = out[first * W :], total[first * W :]
            place = place_of(axes, num_shared)
            while place >= 0:
                piece = psi[place * W : (place + size) * W]
                if summing:
                    add_exponentials(piece, inverse, places, top, added, W, lanes.scratch.block)
                else:
                    raise_tops(piece, inverse, places, top, W)
                place = advance(axes, num_shared, num_other, 1, place)
            first = advance(axes, 0, num_shared, 2, first)
    for i in range(out.size):
        out[i] = out[i] + log(max(total[i], 1.0)) if out[i] > -np.inf else -np.inf


@inline
def raise_tops(piece, inverse, places, top, W):
    """Compute the largest psi / w for every entry of the shift."""
    if W == 1:
        for j in range(piece.size):
            top[places[j]] = max(top[places[j]], piece[j] * inverse[0])
        return
    for j in range(piece.size // W):
        at = np.int64(places[j]) * W
        own, row = top[at : at + W], piece[j * W : (j + 1) * W]
        for b in range(W):
            own[b] = max(own[b], row[b] * inverse[b])


@inline
def add_exponentials(piece, inverse, places, top, total, W, block):
    """Add exp(psi / w), less the largest, for every entry of the shift."""
    if W == 1:
        for j in range(piece.size):
            block[j] = exp(max(min(piece[j] * inverse[0] - top[places[j]], 0.0), -EXP_LIMIT))
        for j in range(piece.size):
            total[places[j]] += block[j]
        return
    for j in range(piece.size // W):
        at = np.int64(places[j]) * W
        own, added, row = top[at : at + W], total[at : at + W], piece[j * W : (j + 1) * W]
        for b in range(W):
            added[b] += exp(max(min(row[b] * inverse[b] - own[b], 0.0), -EXP_LIMIT))
