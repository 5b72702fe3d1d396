"""Power sums over the first axis of a table: m(r) = w log sum_k exp(psi(k, r) / w), for w of either sign.

psi      (K * R,)  replaced by p(k, r) = exp((psi - m) / w), which adds up to 1 over k
m        (R,)      -inf where all states are impossible, or one of them and w < 0
entropy  (R,)      of p over k

Hard zeros are brought to LOWEST, where differences are still numbers, so that nothing here is ever nan.
"""

import numpy as np

from clampz._kernels.jit import part_in_place
from clampz._kernels.simd_math import EXP_LIMIT, exp, log, twice_atanh

# Below all that finite potentials add up to.
LOWEST = -1e300
# 1 + e is taken for near 2, and not near 1, from sqrt(2) - 1 on.
NEARER_TWO = 0.41421356237309503
LN2 = 0.6931471805599453


@part_in_place
def power_sum(psi, num_states, weight, m, entropy, total):
    if num_states == 2:
        power_sum_of_two(psi, weight, m, entropy)
    else:
        power_sum_of_many(psi, num_states, weight, m, entropy, total)


@part_in_place
def power_sum_of_two(psi, weight, m, entropy):
    """With e = exp(-|psi_0 - psi_1| / |w|): m = M + w log(1 + e), M the larger one, or for w < 0 the smaller: the first
    where (psi_0 - psi_1) / w >= 0, which is told without a choice between two calls that this compiler's vectors may
    get wrong.

    log(1 + e) = 2 atanh(z), z = e / (2 + e), or ln 2 more of z = (e - 1) / (3 + e): with 1 / (1 + e), for p, that
    is one division in all.
    """
    R = m.size
    first, second = psi[:R], psi[R:]
    inverse = 1.0 / weight
    for r in range(R):
        a = max(first[r], LOWEST)
        b = max(second[r], LOWEST)
        d = (a - b) * inverse
        t = -min(abs(d), EXP_LIMIT)
        e = exp(t)
        s = 1.0 + e
        near_two = e > NEARER_TWO
        below = e + (3.0 if near_two else 2.0)
        divided = 1.0 / (s * below)
        z = (e - (1.0 if near_two else 0.0)) * (s * divided)
        log_s = twice_atanh(z) + (LN2 if near_two else 0.0)
        M = a if d >= 0.0 else b
        m[r] = M + weight * log_s if M > LOWEST else -np.inf
        larger = below * divided
        smaller = e * larger
        first[r] = larger if d >= 0.0 else smaller
        second[r] = smaller if d >= 0.0 else larger
        entropy[r] = log_s - smaller * t


@part_in_place
def power_sum_of_many(psi, num_states, weight, m, entropy, total):
    """M largest psi (w < 0: smallest), t_k = (psi_k - M) / w, s = sum_k exp(t_k): m = M + w log s.

    As many entries of m at a time as `total` has, so that K rows of psi stay in the first cache.
    """
    R = m.size
    inverse = 1.0 / weight
    for begin in range(0, R, total.size):
        end = min(begin + total.size, R)
        size = end - begin
        M, H, s = m[begin:end], entropy[begin:end], total[:size]
        row = psi[begin:end]
        for r in range(size):
            M[r] = max(row[r], LOWEST)
        for k in range(1, num_states):
            row = psi[k * R + begin : k * R + end]
            for r in range(size):
                x = max(row[r], LOWEST)
                M[r] = x if (x - M[r]) * inverse > 0.0 else M[r]
        for r in range(size):
            H[r] = 0.0
            s[r] = 0.0
        for k in range(num_states):
            row = psi[k * R + begin : k * R + end]
            for r in range(size):
                t = max(min((max(row[r], LOWEST) - M[r]) * inverse, 0.0), -EXP_LIMIT)
                e = exp(t)
                row[r] = e
                s[r] += e
                H[r] += e * t
        for r in range(size):
            log_s = log(s[r])
            s[r] = 1.0 / s[r]
            H[r] = log_s - H[r] * s[r]
            M[r] = M[r] + weight * log_s if M[r] > LOWEST else -np.inf
        for k in range(num_states):
            row = psi[k * R + begin : k * R + end]
            for r in range(size):
                row[r] *= s[r]
