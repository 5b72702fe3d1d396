"""The upper bound from narrow parts: TRW over narrow subgraphs in place of trees.

With subgraphs k whose potentials theta_k average to those of the model, convexity gives

    log Z(theta) <= mean_k log Z(theta_k),

for any such theta_k; the gradient in theta_k is the marginals of subgraph k, and where all subgraphs agree on them the
bound is lowest.
"""

import math
from collections.abc import Callable

import numpy as np

from clampz.bracketing.descent import descend
from clampz.bracketing.subgraphs import NarrowSums
from clampz.model import Model
from clampz.model.tables import offsets
from clampz.numerics import EPS, ROUNDINGS, Floats


def upper_bound(
    model: Model,
    sums: NarrowSums,
    unary: Floats,
    shifts: list[Floats],
    max_evaluations: int,
    must_stop: Callable[[], bool],
) -> tuple[float, Floats, list[Floats]]:
    """The mean over subgraphs, minimised over how the potentials are shared out; also the mean marginals and the shifts
    of the potentials reached."""
    subgraphs, num_graphs = sums.subgraphs, len(sums.subgraphs)
    num_rows, num_entries = len(unary), len(unary) + len(model.pairwise.flat)
    whole = np.concatenate([unary, model.pairwise.flat])
    finite = np.isfinite(whole)
    states, entries = model.num_states, np.diff(model.pairwise.start)
    table = np.repeat(np.arange(model.num_variables + model.num_edges), np.concatenate([states, entries]))
    # each subgraph has an equal share of the unary potentials, and each edge is shared by the subgraphs that have it
    shared = np.concatenate([unary, model.pairwise.flat * (num_graphs / np.repeat(sums.counts, entries))])
    owned = [np.concatenate([np.arange(num_rows), num_rows + graph.pairs]) for graph in subgraphs]
    ends = offsets(np.array([len(mine) for mine in owned]))
    every = np.concatenate(owned)
    weight = 1.0 / np.maximum(np.bincount(every, minlength=num_entries), 1)
    best, best_beliefs = math.inf, np.zeros(num_rows)
    known = len(shifts) == num_graphs and sum(map(len, shifts)) == ends[-1]
    best_shift = np.concatenate(shifts) if known else np.zeros(int(ends[-1]))

    def centred(x: Floats) -> Floats:
        """Less the mean over the subgraphs, of each entry: what is added to some is taken from others."""
        out: Floats = x - (np.bincount(every, x, num_entries) * weight)[every]
        return out

    def evaluate(x: Floats) -> tuple[float, Floats]:
        nonlocal best, best_beliefs, best_shift
        shift = centred(x)
        total, error, gradient = 0.0, 0.0, np.empty(len(x))
        used, largest = np.zeros(num_entries), np.zeros(num_entries)
        for k, (graph, mine) in enumerate(zip(subgraphs, owned, strict=True)):
            here = slice(ends[k], ends[k + 1])
            own = shared[mine] + np.where(finite[mine], shift[here], 0.0)
            found = graph.moments(own[:num_rows], own[num_rows:])
            total += found.log_z / num_graphs
            error += found.error / num_graphs
            gradient[here] = found.marginals / num_graphs
            safe = np.where(finite[mine], own, 0.0)
            used[mine] += safe / num_graphs
            largest[mine] = np.maximum(largest[mine], np.abs(safe))
        if not math.isfinite(total):
            if total == -math.inf and np.isfinite(x).all():  # no configuration is possible
                best = -math.inf
            return total, np.zeros(len(x))
        # what the shares add up to is the model only up to rounding, and that is added to the bound
        roundings = (ROUNDINGS + num_graphs) * EPS
        worst = np.zeros(model.num_variables + model.num_edges)
        off = np.abs(np.where(finite, whole, 0.0) - used) + roundings * largest
        np.maximum.at(worst, table, np.where(finite, off, 0.0))
        bound = total + model.constant + error + float(worst.sum()) + roundings * (abs(total) + abs(model.constant))
        if bound < best or math.isinf(best):
            best, best_shift = min(best, bound), shift
            best_beliefs = np.mean([gradient[first : first + num_rows] * num_graphs for first in ends[:-1]], axis=0)
        return total, np.where(finite[every], centred(gradient), 0.0)

    descend(evaluate, best_shift, 1 if num_graphs == 1 else max_evaluations, must_stop)
    return best, best_beliefs, np.split(best_shift, ends[1:-1])
