"""A certified lower bound from Bethe on attractive and balanced models.

The Bethe log Z of an attractive binary model, a maximum over the local polytope, is at most log Z [Ruozzi 2012], and
flipping variables changes neither.  So the Bethe objective at *any* point of the local polytope is a lower bound.
Given the beliefs of the variables, the best pairwise marginals have a closed form: their odds ratio is e^W, which is a
quadratic equation in the probability that both ends are in state 1.
"""

import numpy as np

from clampz.approximations.layouts import BinaryLayout
from clampz.model.tables import Floats, lane_sums
from clampz.numerics import EPS, ROUNDINGS

# Weight beyond which e^W - 1 and e^W are the same number to all digits that matter.
LARGEST_W = 300.0
# Size of p log p's error in units of rounding: p is within an ulp of 1, and |log p| below this where it matters.
LOG_SIZE = 40.0


def bethe_lower_bound(layout: BinaryLayout, total: Floats) -> Floats:
    """(B,) the Bethe objective at beliefs with these log-odds (n, B), less its rounding error: a lower bound on log Z
    if the model is balanced."""
    i, j = layout.topology.slot_of[layout.topology.edges].T
    odds = np.clip(total, -LARGEST_W, LARGEST_W)
    high, low = 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds))
    W = layout.W[:, None]
    # a repulsive edge is an attractive one with the states of j exchanged
    repulsive = W < 0
    high_j, low_j = np.where(repulsive, low[j], high[j]), np.where(repulsive, high[j], low[j])
    joint = _both_high(high[i], high_j, np.minimum(np.abs(W), LARGEST_W))
    joint = np.clip(joint, np.maximum(0.0, high[i] - low_j), np.minimum(high[i], high_j))
    cells = [joint, high[i] - joint, high_j - joint, np.maximum(0.0, low_j - (high[i] - joint))]
    agree = cells[0] + cells[3]
    node_entropy = _entropy(high, low)
    pair = np.where(repulsive, np.abs(W) / 2 * (agree - 1.0), np.abs(W) / 2 * agree)  # W/2 [x_i = x_j]
    pair += _entropy(*cells) - node_entropy[i] - node_entropy[j]
    node = layout.theta * high + node_entropy
    if layout.free.size:
        node = node * layout.free
        pair = pair * layout.free[i] * layout.free[j]
    size = layout.magnitude + (np.abs(layout.theta) + LOG_SIZE).sum(axis=0) + (np.abs(W) + 4 * LOG_SIZE).sum(axis=0)
    bound: Floats = layout.constant + lane_sums(node) + lane_sums(pair) - ROUNDINGS * EPS * size
    return bound


def _both_high(p: Floats, q: Floats, W: Floats) -> Floats:
    """The x between 0 and min(p, q) with x (1 - p - q + x) = e^W (p - x)(q - x), for W >= 0; with a = 1 / (e^W - 1),

    x = 2 (1 + a) p q / (a + p + q + sqrt((a + p + q)^2 - 4 (1 + a) p q)).
    """
    a = 1 / np.expm1(np.maximum(W, EPS))
    s = a + p + q
    x: Floats = 2 * (1 + a) * p * q / (s + np.sqrt(np.maximum(0.0, s * s - 4 * (1 + a) * p * q)))
    return x


def _entropy(*cells: Floats) -> Floats:
    tiny = np.finfo(np.float64).tiny
    return -sum((p * np.log(np.maximum(p, tiny)) for p in cells), start=np.zeros_like(cells[0]))
