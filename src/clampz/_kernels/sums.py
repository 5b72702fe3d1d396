"""Sums whose terms come in any order and size: what each addition loses is carried along.

target, lost   (places,)   the sums so far, and what they have lost to rounding
place          (terms,)    where each term goes
value          (terms,)    -inf for a hard zero, which no other term takes back
"""

import numpy as np

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import lost_in_sum


@kernel
def add_up(target, lost, place, value):
    for k in range(place.size):
        p = place[k]
        if value[k] == -np.inf or target[p] == -np.inf:
            target[p] = -np.inf
            lost[p] = 0.0
        else:
            lost[p] += lost_in_sum(target[p], value[k])
            target[p] += value[k]
