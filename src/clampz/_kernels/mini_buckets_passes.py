"""Weighted mini-buckets, forwards and backwards, over one lane.

    forwards    psi_c = theta_c + messages in + shifts,   m_c = w_c log sum_x exp(psi_c / w_c)
    backwards   b_c = b_m p_c,   p_c = exp((psi_c - m_c) / w_c),   b_m the belief of the message's scope at its parent

With weights w_c > 0 that add up to at least 1 over the cliques of a bucket, the sum of the roots' messages is an upper
bound on log Z (Hölder); with one positive weight and the others negative, 1 at most in all, it is a lower one.  p is
kept in place of psi, so the way back has no exponentials.  Its derivative by a shift over I is the difference of the
two cliques' beliefs of I, and by a weight the entropy of x given the rest.

theta    (T,)   tables of all cliques: what the model has, and zeros that it implies
size     (C,)   what the absolute terms of theta_c add up to at most
roundings (C,)  of psi_c: one for each table that is added up in it, and some
x        (X,)   the shifts end to end, then v, one for each clique
main     (n,)   the clique of each bucket whose weight is positive in a lower bound; -1: an upper bound
layout, lane    see mini_buckets_layout
flag     (1,)   raised from outside when the run is over; looked at before every bucket
"""

import math

import numpy as np

from clampz._kernels.jit import inline, inline_with, kernel_in_place, part_with
from clampz._kernels.mini_buckets_layout import AS_THEY_ARE, DONE, MESSAGE, NOTHING, STOPPED
from clampz._kernels.mini_buckets_links import add_to, sum_onto
from clampz._kernels.mini_buckets_matching import match
from clampz._kernels.mini_buckets_sums import power_sum
from clampz._kernels.simd_math import lost_in_sum

EPS = 2.220446049250313e-16
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
def fill_weights(layout, v, main, weight):
    """softmax(v) over a bucket's cliques, rounded so that they add up to at least 1; for a lower bound -exp(v), and
    what is left to 1, rounded down, for the main clique."""
    for t in range(main.size):
        begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
        if end == begin + 1:
            weight[begin] = 1.0
        elif main[t] < 0:
            top = v[begin]
            for c in range(begin + 1, end):
                top = max(top, v[c])
            total = 0.0
            for c in range(begin, end):
                weight[c] = math.exp(v[c] - top)
                total += weight[c]
            up = 1.0 + 2.0 * (end - begin + 4) * EPS
            for c in range(begin, end):
                weight[c] = max(weight[c] / total, LEAST_WEIGHT) * up
        else:
            total = 1.0
            for c in range(begin, end):
                if c != main[t]:
                    weight[c] = -max(math.exp(min(v[c], LARGEST_V)), LEAST_WEIGHT)
                    total -= weight[c]
            weight[main[t]] = total * (1.0 - (end - begin + 4) * EPS)


@inline
def fill_psi(layout, theta, x, c, lane):
    """psi of clique c."""
    begin, end = layout.table_start[c], layout.table_start[c + 1]
    out, own = lane.table[begin:end], theta[begin:end]
    for j in range(out.size):
        out[j] = own[j]
    sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
    at = layout.stride_start[c]
    for link in range(layout.link_start[c], layout.link_start[c + 1]):
        strides = layout.strides[at : at + sizes.size]
        at += sizes.size
        kind, other = layout.link_kind[link], layout.link_of[link]
        is_message = kind == MESSAGE
        small, starts = (lane.message, layout.message_start) if is_message else (x, layout.shift_start)
        sign, offset = (1.0, lane.peak[other]) if is_message else (float(kind), 0.0)
        add_to(lane.table, begin, sizes, strides, small, starts[other], sign, offset, lane.scratch)


@kernel_in_place
def forwards(layout, theta, size, roundings, x, main, matching, lane, flag):
    """How the pass ended, the bound but for the model's constant, and what rounding may have taken from it.

    `matching` says what is done about shifts on the way: zeros are written into theta, and shifts into x.  Shifts that
    are too large prove nothing: the error is infinite then.
    """
    num_cliques = layout.parent.size
    num_shifts = x.size - layout.parent.size
    fill_weights(layout, x[num_shifts:], main, lane.weight)
    if not largest(x) <= LARGEST_SHIFT:
        return DONE, np.inf, np.inf
    shift_size = lane.shift_size
    for p in range(shift_size.size):
        shift_size[p] = largest(x[layout.shift_start[p] : layout.shift_start[p + 1]])
    value, lost, sizes, error = 0.0, 0.0, 0.0, 0.0
    for t in range(main.size):
        if flag[0]:
            return STOPPED, np.inf, np.inf
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            fill_psi(layout, theta, x, c, lane)
        if matching != AS_THEY_ARE:
            for p in range(layout.pair_start[t], layout.pair_start[t + 1]):
                match(layout, theta, x, p, matching, lane)
                # what it was, and what was added to it
                shift_size[p] += shift_size[p] + largest(x[layout.shift_start[p] : layout.shift_start[p + 1]])
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            m = lane.message[layout.message_start[c] : layout.message_start[c + 1]]
            psi = lane.table[layout.table_start[c] : layout.table_start[c + 1]]
            K = layout.sizes[layout.scope_start[c]]
            entropy = lane.entropy[layout.message_start[c] : layout.message_start[c + 1]]
            w = lane.weight[c]
            power_sum(psi, K, w, m, entropy, lane.scratch.total)
            peak, lowest = ends(m)
            if peak == -np.inf:
                return NOTHING, -np.inf, 0.0
            lane.peak[c] = peak
            lane.spread[c] = peak - lowest
            terms = size[c]
            for link in range(layout.link_start[c], layout.link_start[c + 1]):
                other = layout.link_of[link]
                terms += lane.spread[other] if layout.link_kind[link] == MESSAGE else shift_size[other]
            error += EPS * (roundings[c] * terms + abs(w) * (K + MORE_ROUNDINGS) * (1.0 + math.log(float(K))))
            lost += lost_in_sum(value, peak)
            value += peak
            sizes += abs(peak)
    value += lost
    error += 4.0 * EPS * (abs(value) + num_cliques * EPS * num_cliques * sizes)
    return DONE, value, error * (1.0 + 4.0 * num_cliques * EPS)


@kernel_in_place
def backwards(layout, x, main, lane, gradient, flag):
    """Beliefs of all cliques, in place of p, and the derivative of the bound by the shifts and v."""
    num_shifts = x.size - layout.parent.size
    gradient[:] = 0.0
    for t in range(main.size - 1, -1, -1):
        if flag[0]:
            return STOPPED
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            begin = layout.table_start[c]
            table = lane.table[begin : layout.table_start[c + 1]]
            belief = lane.message[layout.message_start[c] : layout.message_start[c + 1]]
            if layout.parent[c] < 0:
                belief[0] = 1.0
            R = belief.size
            for k in range(layout.sizes[layout.scope_start[c]]):
                row = table[k * R : (k + 1) * R]
                for r in range(R):
                    row[r] *= belief[r]
            entropy = lane.entropy[layout.message_start[c] : layout.message_start[c + 1]]
            lane.clique_entropy[c] = dot(belief, entropy)
            sizes = layout.sizes[layout.scope_start[c] : layout.scope_start[c + 1]]
            at = layout.stride_start[c]
            for link in range(layout.link_start[c], layout.link_start[c + 1]):
                strides = layout.strides[at : at + sizes.size]
                at += sizes.size
                kind, other = layout.link_kind[link], layout.link_of[link]
                is_message = kind == MESSAGE
                if is_message:
                    lane.message[layout.message_start[other] : layout.message_start[other + 1]] = 0.0
                small, starts = (lane.message, layout.message_start) if is_message else (gradient, layout.shift_start)
                sign = 1.0 if is_message else float(kind)
                sum_onto(lane.table, begin, sizes, strides, small, starts[other], sign, lane.scratch)
        fill_weight_gradient(layout, t, main[t], lane, gradient[num_shifts:])
    return DONE


@inline
def fill_weight_gradient(layout, t, main, lane, gradient):
    """w_c (H_c - sum w H) for weights softmax(v), exp(v_c) (H_main - H_c) in a lower bound."""
    begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
    H, w = lane.clique_entropy, lane.weight
    mean = 0.0
    for c in range(begin, end):
        mean += w[c] * H[c]
    for c in range(begin, end):
        if main < 0:
            gradient[c] = w[c] * (H[c] - mean) if end > begin + 1 else 0.0
        else:
            gradient[c] = -w[c] * (H[main] - H[c]) if c != main else 0.0


@inline_with("reassoc", "nnan")
def dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += np.float64(a[j]) * b[j]
    return total


@reducing
def largest(values):
    """The largest absolute value."""
    found = 0.0
    for j in range(values.size):
        found = max(found, abs(values[j]))
    return found


@reducing
def largest_possible(values):
    """The largest absolute value of those that are no hard zeros."""
    found = 0.0
    for j in range(values.size):
        found = max(found, abs(values[j]) if values[j] > -np.inf else 0.0)
    return found


@reducing
def ends(m):
    """The largest entry, and the smallest one that is possible."""
    top, low = -np.inf, np.inf
    for j in range(m.size):
        top = max(top, m[j])
        low = min(low, m[j] if m[j] > -np.inf else np.inf)
    return top, low
