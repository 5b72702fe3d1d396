"""A certified lower bound from Bethe on attractive and balanced models.

The Bethe log Z of an attractive binary model, a maximum over the local polytope, is at most log Z [Ruozzi 2012], and
flipping variables changes neither.  So the Bethe objective at *any* point of the local polytope is a lower bound.
Given the beliefs of the variables, the best pairwise marginals have a closed form: their odds ratio is e^W, which is a
quadratic equation in the probability that both ends are in state 1.
"""

import numpy as np

from clampz.approximations.layouts import BinaryLayout
from clampz.model.tables import lane_sums
from clampz.numerics import EPS, ROUNDINGS, Floats
from clampz.runtime.budget import Budget
from clampz.runtime.workers import sum_blocks

# Weight beyond which e^W - 1 and e^W are the same number to all digits that matter.
LARGEST_W = 300.0
# Size of p log p's error in units of rounding: p is within an ulp of 1, and |log p| below this where it matters.
LOG_SIZE = 40.0


def bethe_lower_bound(layout: BinaryLayout, total: Floats, budget: Budget) -> Floats:
    """(B,) evaluate the Bethe objective at beliefs of these log-odds (n, B), less its rounding error. A lower bound on
    log Z if the model is balanced. Raises Cancelled where that takes too long."""
    odds = np.clip(total, -LARGEST_W, LARGEST_W)
    high, low = 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds))
    entropy = _entropy(high, low)
    node = layout.theta * high + entropy
    if layout.free.size:
        node = node * layout.free
    sums = [layout.constant, lane_sums(node)]
    for first, last in sum_blocks(len(layout.W)):
        budget.check_cancelled()
        i, j = layout.topology.slot_of[layout.topology.edges[first:last]].T
        pair = _pair_terms(layout.W[first:last, None], high[i], (high[j], low[j])) - entropy[i] - entropy[j]
        if layout.free.size:
            pair = pair * layout.free[i] * layout.free[j]
        sums.append(lane_sums(pair))
    size = layout.magnitude + (np.abs(layout.theta) + LOG_SIZE).sum(axis=0) + (np.abs(layout.W) + 4 * LOG_SIZE).sum()
    bound: Floats = np.sum(sums, axis=0) - (ROUNDINGS + len(sums)) * EPS * size
    return bound


def _pair_terms(W: Floats, high: Floats, ends_j: tuple[Floats, Floats]) -> Floats:
    """(m, B) average W/2 [x_i = x_j] plus the entropy, under the best pairwise marginals with these unary ones."""
    # a repulsive edge is an attractive one with the states of j exchanged
    repulsive = W < 0
    high_j, low_j = (np.where(repulsive, *states) for states in (ends_j[::-1], ends_j))
    joint = _both_high(high, high_j, np.minimum(np.abs(W), LARGEST_W))
    joint = np.clip(joint, np.maximum(0.0, high - low_j), np.minimum(high, high_j))
    cells = [joint, high - joint, high_j - joint, np.maximum(0.0, low_j - (high - joint))]
    agree = cells[0] + cells[3]
    terms: Floats = np.where(repulsive, np.abs(W) / 2 * (agree - 1.0), np.abs(W) / 2 * agree) + _entropy(*cells)
    return terms


def _both_high(p: Floats, q: Floats, W: Floats) -> Floats:
    """Solve x (1 - p - q + x) = e^W (p - x)(q - x) for x between 0 and min(p, q), W >= 0. With a = 1 / (e^W - 1),

    x = 2 (1 + a) p q / (a + p + q + sqrt((a + p + q)^2 - 4 (1 + a) p q)).
    """
    a = 1 / np.expm1(np.maximum(W, EPS))
    s = a + p + q
    x: Floats = 2 * (1 + a) * p * q / (s + np.sqrt(np.maximum(0.0, s * s - 4 * (1 + a) * p * q)))
    return x


def _entropy(*cells: Floats) -> Floats:
    tiny = np.finfo(np.float64).tiny
    return -sum((p * np.log(np.maximum(p, tiny)) for p in cells), start=np.zeros_like(cells[0]))
