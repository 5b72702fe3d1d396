"""Scores from one cycle per edge outside a maximum spanning tree: frustCycles and strongCycles."""

import numpy as np

from clampz._kernels import graph as graphs
from clampz._kernels.clamping import cycles as kernels
from clampz.clamping.selectors.edge_strength import Remaining
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import NEVER

# Weights, and scores, that differ by less than this share are equal, and the first is taken: rounding does not decide.
TIE = 1e-12
# From this |W| on, -log tanh |W/4| is 2 e^{-|W|/2} to the last bit.
SATURATED = 100.0
# Sums of -log tanh below this have lost bits to underflow (it takes weights beyond 1300); they are added up again as
# logarithms.
UNDERFLOW = 1e-290


def cycle_scores(graph: Remaining, *, frustrated_only: bool) -> Floats:
    """Return (k,) |sum of cycScore| over all cycles through each variable, or those that are frustrated.

    Each edge outside the tree closes a cycle, and every variable of the cycle gets

    cycScore = log(1 + prod tanh(W / 4)) = log(1 +- e^-t),   t = sum -log tanh|W / 4|,   - if the cycle is frustrated.

    Balanced cycles (at most log 2) and frustrated ones (negative) have opposite signs.
    """
    form = graph.model.pair_form
    assert form is not None, "checked before: `check_defined`"
    W = form.W[graph.edge_numbers]
    taken = graphs.spanning_forest(graph.num_variables, graph.edges, _ranking(np.abs(W)), NEVER)
    in_tree = taken.astype(np.bool_)
    forest = kernels.root_forest(*graphs.neighbour_lists(graph.num_variables, graph.edges[in_tree]))
    negative = (W < 0).astype(np.uint8)
    parity = kernels.parities(forest, negative[in_tree])
    closing = np.flatnonzero(~in_tree)
    ends = graph.edges[closing]
    frustrated = (parity[ends[:, 0]] ^ parity[ends[:, 1]] ^ negative[closing]).astype(np.bool_)
    if frustrated_only:
        closing, ends = closing[frustrated], ends[frustrated]
        frustrated = frustrated[frustrated]
    cost = _cost(np.abs(W))
    t = cost[closing] + kernels.path_sums(forest, ends, cost[in_tree], False)
    score = np.empty(len(closing))
    score[~frustrated] = np.log1p(np.exp(-t[~frustrated]))
    score[frustrated] = _log_one_minus(t[frustrated])
    deep = np.flatnonzero(frustrated & (t < UNDERFLOW))
    if deep.size:  # log(1 - e^-t) is log t there
        log_cost = np.where(np.abs(W) > SATURATED, np.log(2.0) - np.abs(W) / 2, np.log(np.maximum(cost, UNDERFLOW)))
        score[deep] = np.logaddexp(
            log_cost[closing[deep]], kernels.path_sums(forest, ends[deep], log_cost[in_tree], True)
        )
    total: Floats = np.abs(kernels.add_along_paths(forest, ends, score))
    return total


def _ranking(strength: Floats) -> Integers:
    """Return the edges from the strongest to the weakest; |W| ranks as tanh|W/4| does, without saturating."""
    order = np.argsort(-strength, kind="stable")
    sorted_strength = strength[order]
    group = np.cumsum(np.diff(sorted_strength, prepend=np.inf) < -TIE * sorted_strength)
    return order[np.lexsort((order, group))]


def _cost(strength: Floats) -> Floats:
    """Return -log tanh(w / 4) = log(1 + 2 q / (1 - q)), q = e^{-w/2}, to the last bits for weak and strong edges."""
    with np.errstate(over="ignore", divide="ignore"):  # inf for subnormal weights
        cost: Floats = np.log1p(2 * np.exp(-strength / 2) / -np.expm1(-strength / 2))
    return cost


def _log_one_minus(t: Floats) -> Floats:
    """Return log(1 - e^-t) for t >= 0: by expm1 where e^-t is near 1, by log1p where it is small."""
    near = t < np.log(2.0)
    out = np.empty_like(t)
    out[near] = np.log(np.maximum(-np.expm1(-t[near]), UNDERFLOW))
    out[~near] = np.log1p(-np.exp(-t[~near]))
    return out
