"""Mini-buckets in the limit of zero weights: an upper bound on the largest score.

    psi_c = theta_c + messages in + shifts,   m_c = max_x psi_c

A maximum of a sum is at most the sum of the maxima, so cliques of one bucket may each take their own: the sum of the
roots' messages is an upper bound, and the maximum itself where no bucket is split.  psi is kept, with m it bounds
the best that can become of any configuration of the variables eliminated last (see `best_first`).

theta, size, roundings, layout, lane, cancel_flag    see `passes`
x        (X,)   the shifts end to end
"""

import numpy as np

from clampz._kernels.jit import kernel_in_place
from clampz._kernels.mini_buckets.layout import DONE, MESSAGE, NOTHING, STOPPED
from clampz._kernels.mini_buckets.passes import LARGEST_SHIFT, extremes, fill_psi, largest
from clampz._kernels.simd_math import lost_in_sum
from clampz.numerics import EPS


@kernel_in_place
def fill_maxima(layout, theta, size, roundings, x, lane, cancel_flag):
    """Bound the maximum: how the pass ended, the bound but for the model's constant, and its rounding. The rounding
    holds for what psi and m say of any configuration too. Shifts that are too large prove nothing: the error is
    infinite then."""
    num_cliques = layout.parent.size
    if not largest(x) <= LARGEST_SHIFT:
        return DONE, np.inf, np.inf
    value, lost, sizes, error = 0.0, 0.0, 0.0, 0.0
    for c in range(num_cliques):
        if cancel_flag[0]:
            return STOPPED, np.inf, np.inf
        fill_psi(layout, theta, x, c, lane)
        m = lane.message[layout.message_start[c] : layout.message_start[c + 1]]
        psi = lane.table[layout.table_start[c] : layout.table_start[c + 1]]
        for r in range(m.size):
            m[r] = psi[r]
        for k in range(1, layout.sizes[layout.scope_start[c]]):
            row = psi[k * m.size : (k + 1) * m.size]
            for r in range(m.size):
                m[r] = max(m[r], row[r])
        peak, lowest = extremes(m)
        if peak == -np.inf:
            return NOTHING, -np.inf, 0.0
        lane.peak[c] = peak
        lane.spread[c] = peak - lowest
        terms = size[c]
        for link in range(layout.link_start[c], layout.link_start[c + 1]):
            other = layout.link_of[link]
            if layout.link_kind[link] == MESSAGE:
                terms += lane.spread[other]
            else:
                terms += largest(x[layout.shift_start[other] : layout.shift_start[other + 1]])
        error += EPS * roundings[c] * terms
        lost += lost_in_sum(value, peak)
        value += peak
        sizes += abs(peak)
    value += lost
    error += 4.0 * EPS * (abs(value) + num_cliques * EPS * num_cliques * sizes)
    return DONE, value, error * (1.0 + 4.0 * num_cliques * EPS)
