"""The lower bound from narrow parts: mean field over the parts.

q is a product of distributions q_P, each of them exact given its fields; the edges between parts see means only,

    log Z >= sum_P H(q_P) + E_q[score],        q_P in proportion to exp( score inside P + fields of the cut edges ),

and updating one part after another can only raise it.  Parts of one variable make it naive mean field, one part makes
it exact.
"""

import math
from collections.abc import Callable

import numpy as np

from clampz._kernels.mean_field_tables import HARD
from clampz.bracketing.subgraphs import NarrowSums
from clampz.model import Model
from clampz.numerics import EPS, ROUNDINGS, Floats

# A field as low as this is that of a hard zero, and rules its state out.
FORBIDDEN = -HARD / 1e6
# Sweeps over the parts, and what a sweep must gain, in nats.
MAX_SWEEPS, LEAST_GAIN = 60, 1e-4


def lower_bound(
    model: Model, sums: NarrowSums, unary: Floats, marginals: Floats, must_stop: Callable[[], bool]
) -> tuple[float, Floats]:
    """Mean field over the parts, from these marginals (S,): the bound less what rounding may have added, and the
    marginals reached."""
    start, flat = model.unary.start, np.maximum(model.pairwise.flat, -HARD)
    entry, edge, a, b = model.pairwise.entries(sums.cut)
    i, j = model.edges[edge].T
    row_i, row_j, value = start[i] + a, start[j] + b, flat[entry]
    possible = (unary[row_i] > -np.inf) & (unary[row_j] > -np.inf)
    row_i, row_j, value = row_i[possible], row_j[possible], value[possible]
    num_rows = len(unary)
    owner = np.empty(num_rows, dtype=np.int64)
    for number, part in enumerate(sums.parts):
        owner[part.rows] = number
    mine = [np.flatnonzero((owner[row_i] == number) | (owner[row_j] == number)) for number in range(len(sums.parts))]
    q = np.where(unary > -np.inf, np.nan_to_num(marginals, nan=0.5), 0.0)
    share, rounding = np.zeros(len(sums.parts)), np.zeros(len(sums.parts))
    best, best_q = -math.inf, q.copy()
    before = -math.inf
    for _ in range(MAX_SWEEPS):
        for number, part in enumerate(sums.parts):
            if must_stop() and best > -math.inf:
                return _proven(best), best_q
            chosen = mine[number]
            into_i = owner[row_i[chosen]] == number
            near = np.where(into_i, row_i[chosen], row_j[chosen])
            far = np.where(into_i, row_j[chosen], row_i[chosen])
            fields = np.bincount(near, value[chosen] * q[far], num_rows).astype(np.float64)[part.rows]
            found = part.moments(
                np.where(fields < FORBIDDEN, -np.inf, unary[part.rows] + fields), model.pairwise.flat[part.pairs]
            )
            if found.log_z > -math.inf:
                fields = np.where(fields < FORBIDDEN, 0.0, fields)  # q is 0 there
            else:
                found = part.moments(unary[part.rows] + fields, model.pairwise.flat[part.pairs])
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
