"""Weighted mini-buckets, forwards and backwards, over one lane or several side by side.

    forwards    psi_c = theta_c + messages in + shifts,   m_c = w_c log sum_x exp(psi_c / w_c)
    backwards   b_c = b_m p_c,   p_c = exp((psi_c - m_c) / w_c),   b_m the belief of the message's scope at its parent

With weights w_c > 0 that add up to at least 1 over the cliques of a bucket, the sum of the roots' messages is an upper
bound on log Z (Hölder); with one positive weight and the others negative, 1 at most in all, it is a lower one.  p is
kept in place of psi, so the backward pass has no exponentials.  Its derivative by a shift over I is the difference of
the two cliques' beliefs of I, and by a weight the entropy of x given the rest.

theta    (T W,)  tables of all cliques: what the model has, and zeros that it implies; of W lanes, the lane last
size     (C W,)  what the absolute terms of theta_c add up to at most
roundings (C,)   of psi_c: one for each table that is added up in it, and some
x        (X W,)  the shifts end to end, then v, one for each clique
main     (n W,)  the clique of each bucket whose weight is positive in a lower bound; -1: an upper bound, of all lanes
layout, lanes    see `layout`
cancel_flag     (1,)    raised from outside when the run is over; looked at before every bucket
"""

import math

import numpy as np

from clampz._kernels.jit import inline, inline_with, kernel_in_place, part_with
from clampz._kernels.mini_buckets.layout import AS_THEY_ARE, DONE, MESSAGE, STOPPED
from clampz._kernels.mini_buckets.links import add_to, fill_products, sum_onto
from clampz._kernels.mini_buckets.moment_matching import match
from clampz._kernels.mini_buckets.power_sums import power_sums
from clampz._kernels.simd_math import EXP_LIMIT, exp, lost_in_sum
from clampz.numerics import EPS

# Weights are no smaller in size: power sums divide by them.
LEAST_WEIGHT = 1e-6
# v of a lower bound is taken for no larger: its main weight is one more than the sum of all exp(v).
LARGEST_V = 14.0
# Larger shifts, or v, prove nothing: they could be taken for hard zeros.
LARGEST_SHIFT = 1e100
# Roundings of a power sum beside one for each state.
MORE_ROUNDINGS = 8.0

# Maxima vectorise only where the compiler may leave nan aside.
reducing = part_with("reassoc", "nnan")


@inline
def fill_weights(layout, v, main, lanes):
    """Compute weights softmax(v) over a bucket's cliques, rounded so that they add up to at least 1. For a lower bound
    -exp(v), and what is left to 1, rounded down, for the main clique. Exponentials of all cliques are one loop."""
    weight, W, top, total = lanes.weight, len(lanes.each), lanes.spare[0], lanes.spare[1]
    is_upper = main.size == 0 or main[0] < 0
    for t in range(layout.bucket_start.size - 1):
        begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
        if end == begin + 1:
            continue
        top[:] = -np.inf if is_upper else 0.0
        if is_upper:
            for c in range(begin, end):
                own = v[c * W : (c + 1) * W]
                for b in range(W):
                    top[b] = max(top[b], own[b])
        for c in range(begin, end):
            own, w = v[c * W : (c + 1) * W], weight[c * W : (c + 1) * W]
            for b in range(W):
                w[b] = own[b] - top[b]
    for j in range(weight.size):
        weight[j] = exp(max(min(weight[j], LARGEST_V), -EXP_LIMIT))
    for t in range(layout.bucket_start.size - 1):
        begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
        main_of = main[t * W : (t + 1) * W]
        if end == begin + 1:
            weight[begin * W : end * W] = 1.0
        elif is_upper:
            total[:] = 0.0
            for c in range(begin, end):
                w = weight[c * W : (c + 1) * W]
                for b in range(W):
                    total[b] += w[b]
            up = 1.0 + 2.0 * (end - begin + 4) * EPS
            for c in range(begin, end):
                w = weight[c * W : (c + 1) * W]
                for b in range(W):
                    w[b] = max(w[b] / total[b], LEAST_WEIGHT) * up
        else:
            total[:] = 1.0
            for c in range(begin, end):
                w = weight[c * W : (c + 1) * W]
                for b in range(W):
                    w[b] = -max(w[b], LEAST_WEIGHT)
                    total[b] -= w[b] if c != main_of[b] else 0.0
            for b in range(W):
                weight[main_of[b] * W + b] = total[b] * (1.0 - (end - begin + 4) * EPS)


@inline
def fill_psi(layout, theta, x, c, lanes):
    """Compute psi of clique c: its own table plus messages and shifts."""
    W = len(lanes.each)
    begin, end = layout.table_start[c], layout.table_start[c + 1]
    out, own = lanes.table[begin * W : end * W], theta[begin * W : end * W]
    for j in range(out.size):
        out[j] = own[j]
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    at = layout.stride_start[c]
    for link in range(layout.link_start[c], layout.link_start[c + 1]):
        strides = layout.strides[at : at + sizes.size]
        at += sizes.size
        kind, other = layout.link_kind[link], layout.link_of[link]
        is_message = kind == MESSAGE
        small, starts = (lanes.message, layout.message_start) if is_message else (x, layout.shift_start)
        offset = lanes.peak[other * W : (other + 1) * W] if is_message else lanes.scratch.zeros
        sign = 1.0 if is_message else float(kind)
        add_to(lanes.table, begin, sizes, strides, small, starts[other], sign, offset, W, lanes.scratch)


@kernel_in_place
def forwards(layout, theta, size, roundings, x, main, matching, lanes, cancel_flag):
    """Run the forward pass; returns how it ended.

    `lanes.value` is the bound but for the model's constant, -inf where no configuration is possible (or a lower bound
    infinitely low). `lanes.error` is what rounding may have taken from it.

    `matching` says what is done about shifts on the way: zeros are written into theta, and shifts into x. Shifts that
    are too large prove nothing: the error is infinite then.
    """
    W, num_cliques = len(lanes.each), layout.parent.size
    num_shifts = layout.shift_start[layout.shift_start.size - 1]
    value, lost, sizes, error, largest_of = lanes.value, lanes.lost, lanes.sizes, lanes.error, lanes.largest
    terms, shift_size = lanes.spare[0], lanes.shift_size
    fill_weights(layout, x[num_shifts * W :], main, lanes)
    fill_largest(x, largest_of, W)
    for p in range(layout.shift_start.size - 1):
        own = x[layout.shift_start[p] * W : layout.shift_start[p + 1] * W]
        fill_largest(own, shift_size[p * W : (p + 1) * W], W)
    value[:] = 0.0
    lost[:] = 0.0
    sizes[:] = 0.0
    error[:] = 0.0
    for t in range(layout.bucket_start.size - 1):
        if cancel_flag[0]:
            return STOPPED
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            fill_psi(layout, theta, x, c, lanes)
        if matching != AS_THEY_ARE:
            for p in range(layout.pair_start[t], layout.pair_start[t + 1]):
                match(layout, theta, x, p, matching, lanes)
                own = shift_size[p * W : (p + 1) * W]
                fill_largest(x[layout.shift_start[p] * W : layout.shift_start[p + 1] * W], terms, W)
                for b in range(W):  # what it was, and what was added to it
                    own[b] += own[b] + terms[b]
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            m = lanes.message[layout.message_start[c] * W : layout.message_start[c + 1] * W]
            psi = lanes.table[layout.table_start[c] * W : layout.table_start[c + 1] * W]
            entropy = lanes.entropy[layout.message_start[c] * W : layout.message_start[c + 1] * W]
            w, K = lanes.weight[c * W : (c + 1) * W], layout.sizes[layout.scope_start[c]]
            power_sums(psi, K, w, m, entropy, W, lanes.scratch)
            peak, spread = lanes.peak[c * W : (c + 1) * W], lanes.spread[c * W : (c + 1) * W]
            fill_extremes(m, peak, spread, W)
            own = size[c * W : (c + 1) * W]
            for b in range(W):
                terms[b] = own[b]
            for link in range(layout.link_start[c], layout.link_start[c + 1]):
                other = layout.link_of[link]
                added = lanes.spread if layout.link_kind[link] == MESSAGE else shift_size
                own = added[other * W : (other + 1) * W]
                for b in range(W):
                    terms[b] += own[b]
            of_sum = (K + MORE_ROUNDINGS) * (1.0 + math.log(float(K)))
            for b in range(W):
                error[b] += EPS * (roundings[c] * terms[b] + abs(w[b]) * of_sum)
                # of a lane without configurations, nothing else counts
                lost[b] += lost_in_sum(value[b], peak[b]) if peak[b] > -np.inf and value[b] > -np.inf else 0.0
                value[b] += peak[b]
                sizes[b] += abs(peak[b])
                peak[b] = peak[b] if peak[b] > -np.inf else 0.0
    for b in range(W):
        value[b] += lost[b]
        error[b] += 4.0 * EPS * (abs(value[b]) + num_cliques * EPS * num_cliques * sizes[b])
        error[b] = error[b] * (1.0 + 4.0 * num_cliques * EPS) if value[b] > -np.inf else 0.0
        if not largest_of[b] <= LARGEST_SHIFT:
            value[b] = np.inf
            error[b] = np.inf
    return DONE


@kernel_in_place
def backwards(layout, x, main, lanes, gradient, cancel_flag):
    """Compute beliefs of all cliques, in place of p, and the derivative of the bound by the shifts and v."""
    W, num_shifts = len(lanes.each), layout.shift_start[layout.shift_start.size - 1]
    gradient[:] = 0.0
    for t in range(layout.bucket_start.size - 2, -1, -1):
        if cancel_flag[0]:
            return STOPPED
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            begin = layout.table_start[c]
            table = lanes.table[begin * W : layout.table_start[c + 1] * W]
            belief = lanes.message[layout.message_start[c] * W : layout.message_start[c + 1] * W]
            if layout.parent[c] < 0:
                belief[:] = 1.0
            R = belief.size
            for k in range(layout.sizes[layout.scope_start[c]]):
                row = table[k * R : (k + 1) * R]
                for r in range(R):
                    row[r] *= belief[r]
            entropy = lanes.entropy[layout.message_start[c] * W : layout.message_start[c + 1] * W]
            fill_products(belief, entropy, lanes.clique_entropy[c * W : (c + 1) * W], W, lanes.scratch)
            sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
            at = layout.stride_start[c]
            for link in range(layout.link_start[c], layout.link_start[c + 1]):
                strides = layout.strides[at : at + sizes.size]
                at += sizes.size
                kind, other = layout.link_kind[link], layout.link_of[link]
                is_message = kind == MESSAGE
                if is_message:
                    lanes.message[layout.message_start[other] * W : layout.message_start[other + 1] * W] = 0.0
                small, starts = (lanes.message, layout.message_start) if is_message else (gradient, layout.shift_start)
                sign = 1.0 if is_message else float(kind)
                sum_onto(lanes.table, begin, sizes, strides, small, starts[other], sign, W, lanes.scratch)
        fill_weight_gradient(layout, t, main, lanes, gradient[num_shifts * W :])
    return DONE


@inline
def fill_weight_gradient(layout, t, main, lanes, gradient):
    """Compute w_c (H_c - sum w H) for weights softmax(v), exp(v_c) (H_main - H_c) in a lower bound."""
    W, mean = len(lanes.each), lanes.spare[0]
    begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
    if end == begin + 1:
        return
    main_of = main[t * W : (t + 1) * W]
    is_upper = main_of[0] < 0
    for b in range(W):
        mean[b] = 0.0 if is_upper else lanes.clique_entropy[main_of[b] * W + b]
    if is_upper:
        for c in range(begin, end):
            w, H = lanes.weight[c * W : (c + 1) * W], lanes.clique_entropy[c * W : (c + 1) * W]
            for b in range(W):
                mean[b] += w[b] * H[b]
    for c in range(begin, end):
        w, H = lanes.weight[c * W : (c + 1) * W], lanes.clique_entropy[c * W : (c + 1) * W]
        out = gradient[c * W : (c + 1) * W]
        for b in range(W):
            # -exp(v) is the weight of a lower bound; the main one's difference is 0
            out[b] = w[b] * (H[b] - mean[b])


@inline_with("reassoc", "nnan")
def dot(a, b):
    """Compute the dot product."""
    total = 0.0
    for j in range(a.size):
        total += np.float64(a[j]) * b[j]
    return total


@reducing
def largest(values):
    """Return the largest absolute value."""
    found = 0.0
    for j in range(values.size):
        found = max(found, abs(values[j]))
    return found


@reducing
def largest_possible(values):
    """Return the largest absolute value but for hard zeros."""
    found = 0.0
    for j in range(values.size):
        found = max(found, abs(values[j]) if values[j] > -np.inf else 0.0)
    return found


@inline
def fill_largest(values, out, W):
    """Compute the largest absolute value of every lane."""
    if W == 1:
        out[0] = largest(values)
        return
    out[:] = 0.0
    for at in range(0, values.size, W):
        row = values[at : at + W]
        for b in range(W):
            out[b] = max(out[b], abs(row[b]))


@inline
def fill_extremes(m, peak, spread, W):
    """Compute the largest entry of every lane, and its distance to the smallest possible one."""
    if W == 1:
        top, low = extremes(m)
        peak[0] = top
        spread[0] = top - low
        return
    peak[:] = -np.inf
    spread[:] = np.inf
    for at in range(0, m.size, W):
        row = m[at : at + W]
        for b in range(W):
            peak[b] = max(peak[b], row[b])
            spread[b] = min(spread[b], row[b] if row[b] > -np.inf else np.inf)
    for b in range(W):
        spread[b] = peak[b] - spread[b]


@reducing
def extremes(m):
    """Return the largest entry, and the smallest possible one."""
    top, low = -np.inf, np.inf
    for j in range(m.size):
        top = max(top, m[j])
        low = min(low, m[j] if m[j] > -np.inf else np.inf)
    return top, low
