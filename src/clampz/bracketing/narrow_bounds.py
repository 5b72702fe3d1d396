"""The two bounds from narrow parts.

The lower one is mean field over the parts.  q is a product of distributions q_P, each of them exact given its fields;
the edges between parts see means only,

    log Z >= sum_P H(q_P) + E_q[score],        q_P in proportion to exp( score inside P + fields of the cut edges ),

and updating one part after another can only raise it.  Parts of one variable make it naive mean field, one part makes
it exact.

The upper one is TRW over narrow subgraphs in place of trees.  With subgraphs k whose potentials theta_k average to
those of the model, convexity gives

    log Z(theta) <= mean_k log Z(theta_k),

for any such theta_k; the gradient in theta_k is the marginals of subgraph k, and where all subgraphs agree on them the
bound is lowest.
"""

import math
from contextlib import suppress

import numpy as np

from clampz._kernels.mean_field_tables import HARD
from clampz.bracketing.descent import descend
from clampz.bracketing.subgraphs import NarrowSums
from clampz.elimination.sums import Workspace
from clampz.model import Model
from clampz.model.tables import offsets
from clampz.numerics import EPS, ROUNDINGS, Floats
from clampz.watch import Overdue, Watch

# A field as low as this is that of a hard zero, and rules its state out.
FORBIDDEN = -HARD / 1e6
# Sweeps over the parts, and what a sweep must gain, in nats.
MAX_SWEEPS, LEAST_GAIN = 60, 1e-4


def lower_bound(
    model: Model, sums: NarrowSums, workspace: Workspace, unary: Floats, marginals: Floats, watch: Watch
) -> tuple[float, Floats]:
    """Mean field over the parts, from these marginals (S,): the bound less what rounding may have added, and the
    marginals reached; none before all parts have been updated once."""
    start, flat = model.unary.start, np.maximum(model.pairwise.flat, -HARD)
    entry, edge, a, b = model.pairwise.entries(sums.cut)
    i, j = model.edges[edge].T
    row_i, row_j, value = start[i] + a, start[j] + b, flat[entry]
    possible = (unary[row_i] > -np.inf) & (unary[row_j] > -np.inf)
    row_i, row_j, value = row_i[possible], row_j[possible], value[possible]
    num_rows = len(unary)
    owner = np.empty(num_rows, dtype=np.int64)
    place = np.empty(num_rows, dtype=np.int64)  # of a row among those of its part
    for number, part in enumerate(sums.parts):
        owner[part.rows], place[part.rows] = number, np.arange(len(part.rows))
    both = np.concatenate([owner[row_i], owner[row_j]])  # no part is at both ends of an edge that is cut
    mine = np.split(
        np.argsort(both, kind="stable") % max(len(row_i), 1),
        np.cumsum(np.bincount(both, minlength=len(sums.parts)))[:-1],
    )
    q = np.where(unary > -np.inf, np.nan_to_num(marginals, nan=0.5), 0.0)
    share, rounding = np.zeros(len(sums.parts)), np.zeros(len(sums.parts))
    best, best_q = -math.inf, q.copy()
    before = -math.inf
    with suppress(Overdue):  # what was found before counts
        for _ in range(MAX_SWEEPS):
            for number, part in enumerate(sums.parts):
                chosen = mine[number]
                into_i = owner[row_i[chosen]] == number
                near = np.where(into_i, row_i[chosen], row_j[chosen])
                far = np.where(into_i, row_j[chosen], row_i[chosen])
                fields = np.bincount(place[near], value[chosen] * q[far], len(part.rows)).astype(np.float64)
                inner = model.pairwise.flat[part.pairs]
                found = part.moments(
                    np.where(fields < FORBIDDEN, -np.inf, unary[part.rows] + fields), inner, workspace, watch
                )
                if found.log_z > -math.inf:
                    fields = np.where(fields < FORBIDDEN, 0.0, fields)  # q is 0 there
                else:
                    found = part.moments(unary[part.rows] + fields, inner, workspace, watch)
                if found.log_z == -math.inf:
                    return _proven(best), best_q
                q[part.rows] = found.marginals[: len(part.rows)]
                share[number] = found.log_z - float(fields @ q[part.rows])
                size = float(np.abs(fields * q[part.rows]).sum())
                rounding[number] = found.error + (ROUNDINGS * EPS + 4 * found.error) * (size + 1.0)
            terms = value * q[row_i] * q[row_j]
            total = float(model.constant + share.sum() + terms.sum())
            error = float(
                rounding.sum()
                + (ROUNDINGS * EPS + 8 * rounding.max(initial=0.0))
                * (np.abs(terms).sum() + np.abs(share).sum() + abs(model.constant))
            )
            if total - error > best:
                best, best_q = total - error, q.copy()
            if not total > before + LEAST_GAIN:
                break
            before = total
    return _proven(best), best_q


def _proven(bound: float) -> float:
    """A bound that has a hard zero in it proves nothing."""
    return bound if bound > -HARD / 2 else -math.inf


def upper_bound(
    model: Model,
    sums: NarrowSums,
    workspace: Workspace,
    unary: Floats,
    shifts: list[Floats],
    max_evaluations: int,
    watch: Watch,
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
            found = graph.moments(own[:num_rows], own[num_rows:], workspace, watch)
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

    with suppress(Overdue):  # what was found before counts
        descend(evaluate, best_shift, 1 if num_graphs == 1 else max_evaluations, watch)
    return best, best_beliefs, np.split(best_shift, ends[1:-1])
