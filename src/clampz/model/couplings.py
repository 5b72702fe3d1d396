"""How strongly variables are coupled: the strength of edges, and of all pairs that share a factor."""

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.coupling_strength import spreads
from clampz.model.factors import FactorTables
from clampz.model.tables import PairTables, offsets, ranges, read_only
from clampz.numerics import Floats

# Strength of an edge with hard zeros: beyond any finite weight that matters, yet safe to add up and to compare.
HARD_STRENGTH = 1e4


def interactions(tables: Floats) -> Floats:
    """(K,) measure each table (K, rows, columns) by its largest |t(a,b) + t(c,d) - t(a,d) - t(c,b)|. At most
    HARD_STRENGTH, which is also what hard zeros count for."""
    strength = np.full(len(tables), HARD_STRENGTH)
    finite = np.isfinite(tables).all(axis=(1, 2))
    tables = tables[finite]
    strength[finite] = np.minimum(spreads(np.ascontiguousarray(tables)), HARD_STRENGTH)
    return strength


def strengths(tables: PairTables) -> Floats:
    """(m,) measure the strength of every edge: see `interactions`."""
    strength = np.empty(len(tables))
    shapes, kind = np.unique(tables.num_states[tables.edges], axis=0, return_inverse=True)
    order, bounds = np.argsort(kind.ravel(), kind="stable"), offsets(np.bincount(kind.ravel(), minlength=len(shapes)))
    for k, (rows, columns) in enumerate(shapes):
        chosen = order[bounds[k] : bounds[k + 1]]
        cut = tables.flat[ranges(tables.start[chosen], np.full(len(chosen), rows * columns))]
        strength[chosen] = interactions(cut.reshape(-1, rows, columns))
    return strength


def couplings(edges: NDArray[np.int32], strength: Floats, factors: FactorTables) -> tuple[NDArray[np.int32], Floats]:
    """List every pair of variables that share an edge or a factor, in lexicographic order, and its strength."""
    if not factors:
        return edges, strength
    tied = dict(zip(map(tuple, edges.tolist()), strength.tolist(), strict=True))
    for scope, table in factors:
        for b in range(len(scope)):
            for a in range(b):
                pair = scope[a], scope[b]
                faces = np.moveaxis(table, (a, b), (-2, -1)).reshape(-1, table.shape[a], table.shape[b])
                tied[pair] = min(tied.get(pair, 0.0) + float(interactions(faces).max()), HARD_STRENGTH)
    pairs = sorted(tied)
    return read_only(np.array(pairs, dtype=np.int32).reshape(-1, 2)), read_only(np.array([tied[p] for p in pairs]))
