"""Power sums over the first axis of a table: m(r) = w log sum_k exp(psi(k, r) / w), for w of either sign.

psi      (K * R,)  replaced by p(k, r) = exp((psi - m) / w), which adds up to 1 over k
m        (R,)      -inf where all states are impossible, or one of them and w < 0; of several lanes, the lane last
entropy  (R,)      of p over k
weight, inverse    w and 1 / w: numbers, or arrays of what each of as many entries has as are done at a time

Hard zeros are brought to LOWEST, where differences are still numbers, so that nothing here is ever nan.
"""

import numpy as np
from numba import types
from numba.extending import overload

from clampz._kernels.jit import inline, part_in_place
from clampz._kernels.simd_math import EXP_LIMIT, LN2, exp, log, twice_atanh

# Below all that finite potentials add up to.
LOWEST = -1e300
# 1 + e is taken for near 2, and not near 1, from sqrt(2) - 1 on.
NEARER_TWO = 0.41421356237309503


@inline
def power_sums(psi, num_states, weight, m, entropy, W, scratch):
    """Compute the power sums of W lanes, each with a weight of its own."""
    if W == 1:
        power_sum(psi, num_states, weight[0], 1.0 / weight[0], m, entropy, scratch.total)
        return
    tile = scratch.tile
    for at in range(0, min(m.size, tile.shape[1]), W):
        own, inverse = tile[0, at : at + W], tile[1, at : at + W]
        for b in range(W):
            own[b] = weight[b]
            inverse[b] = 1.0 / weight[b]
    power_sum(psi, num_states, tile[0], tile[1], m, entropy, scratch.total)


@part_in_place
def power_sum(psi, num_states, weight, inverse, m, entropy, total):
    """Compute as many entries of m at a time as `total` has, so that rows of psi stay in the first cache."""
    for begin in range(0, m.size, total.size):
        end = min(begin + total.size, m.size)
        if num_states == 2:
            power_sum_of_two(psi, weight, inverse, m, entropy, begin, end)
        else:
            power_sum_of_many(psi, num_states, weight, inverse, m, entropy, begin, end, total)


def entry_of(value, r):
    """Return entry r of an array, or the number that all entries have."""
    return value[r] if np.ndim(value) else value


@overload(entry_of, inline="always")
def _entry_of(value, r):
    if isinstance(value, types.Array):
        return lambda value, r: value[r]
    return lambda value, r: value


@part_in_place
def power_sum_of_two(psi, weight, inverse, m, entropy, begin, end):
    """Compute power sums over two states.

    With e = exp(-|psi_0 - psi_1| / |w|): m = M + w log(1 + e), M the larger one, or for w < 0 the smaller. It is the
    first where (psi_0 - psi_1) / w >= 0, which is told without a choice between two calls that this compiler's vectors
    may get wrong.

    log(1 + e) = 2 atanh(z), z = e / (2 + e), or ln 2 more of z = (e - 1) / (3 + e): with 1 / (1 + e), for p, that is
    one division in all.
    """
    R = m.size
    first, second = psi[begin:end], psi[R + begin : R + end]
    out, H = m[begin:end], entropy[begin:end]
    for r in range(end - begin):
        a = max(first[r], LOWEST)
        b = max(second[r], LOWEST)
        d = (a - b) * entry_of(inverse, r)
        t = -min(abs(d), EXP_LIMIT)
        e = exp(t)
        s = 1.0 + e
        near_two = e > NEARER_TWO
        below = e + (3.0 if near_two else 2.0)
        divided = 1.0 / (s * below)
        z = (e - (1.0 if near_two else 0.0)) * (s * divided)
        log_s = twice_atanh(z) + (LN2 if near_two else 0.0)
        M = a if d >= 0.0 else b
        out[r] = M + entry_of(weight, r) * log_s if M > LOWEST else -np.inf
        larger = below * divided
        smaller = e * larger
        first[r] = larger if d >= 0.0 else smaller
        second[r] = smaller if d >= 0.0 else larger
        H[r] = log_s - smaller * t


@part_in_place
def power_sum_of_many(psi, num_states, weight, inverse, m, entropy, begin, end, total):
    """Compute power sums over K states: M largest psi (w < 0: smallest), s = sum_k exp((psi_k - M) / w), m = M + w log
    s."""
    R = m.size
    size = end - begin
    M, H, s = m[begin:end], entropy[begin:end], total[:size]
    row = psi[begin:end]
    for r in range(size):
        M[r] = max(row[r], LOWEST)
    for k in range(1, num_states):
        row = psi[k * R + begin : k * R + end]
        for r in range(size):
            x = max(row[r], LOWEST)
            M[r] = x if (x - M[r]) * entry_of(inverse, r) > 0.0 else M[r]
    for r in range(size):
        H[r] = 0.0
        s[r] = 0.0
    for k in range(num_states):
        row = psi[k * R + begin : k * R + end]
        for r in range(size):
            t = max(min((max(row[r], LOWEST) - M[r]) * entry_of(inverse, r), 0.0), -EXP_LIMIT)
            e = exp(t)
            row[r] = e
            s[r] += e
            H[r] += e * t
    for r in range(size):
        log_s = log(s[r])
        s[r] = 1.0 / s[r]
        H[r] = log_s - H[r] * s[r]
        M[r] = M[r] + entry_of(weight, r) * log_s if M[r] > LOWEST else -np.inf
    for k in range(num_states):
        row = psi[k * R + begin : k * R + end]
        for r in range(size):
            row[r] *= s[r]
