"""Compensated sums: what each addition loses is carried along, for terms in any order and size.

target, lost   (places,)   the sums so far, and what they have lost to rounding
unsure         (places,)   1 where what is lost has itself lost something
place          (terms,)    where each term goes
value          (terms,)    -inf for a hard zero, which no other term takes back
"""

import numpy as np

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import lost_in_sum


@kernel
def add_compensated(target, lost, unsure, place, value):
    """Add terms to the sums, with what they lose, and flag the sums whose carry is inexact too."""
    for k in range(place.size):
        p = place[k]
        if value[k] == -np.inf or target[p] == -np.inf:
            target[p] = -np.inf
            lost[p] = 0.0
        else:
            more = lost_in_sum(target[p], value[k])
            if lost_in_sum(lost[p], more) != 0.0:
                unsure[p] = 1
            lost[p] += more
            target[p] += value[k]
