"""Slow twin of the passes: arrays with an axis per variable, one bucket after another, in extended precision."""

import numpy as np


def naive_bound(model, unary, structure, x, main, least=1e-6):
    """(bound, beliefs of cliques), at shifts and v; `main` has -1 for an upper bound, else each bucket's positive
    clique."""
    n = model.num_variables
    K = [int(k) for k in model.num_states]
    C = len(structure.parent)

    def wide(scope, table):
        """A table with an axis for every variable of the model, in order of number."""
        order = np.argsort(scope)
        shape = [K[i] if i in set(scope) else 1 for i in range(n)]
        return np.transpose(np.asarray(table, dtype=np.longdouble), order).reshape(shape)

    def scope_of(c):
        return structure.scope[structure.scope_start[c] : structure.scope_start[c + 1]].tolist()

    psi = [wide(scope_of(c), np.zeros([K[i] for i in scope_of(c)])) for c in range(C)]
    for i in range(n):
        start = model.unary.start
        psi[structure.unary_clique[i]] = psi[structure.unary_clique[i]] + wide([i], unary[start[i] : start[i + 1]])
    for e, (i, j) in enumerate(model.edges.tolist()):
        psi[structure.edge_clique[e]] = psi[structure.edge_clique[e]] + wide([i, j], model.pairwise.at(e))
    for f, factor in enumerate(model.factors):
        psi[structure.factor_clique[f]] = psi[structure.factor_clique[f]] + wide(list(factor.scope), factor.table)
    for p in range(len(structure.pair_left)):
        scope = structure.pair_scope[structure.pair_scope_start[p] : structure.pair_scope_start[p + 1]].tolist()
        table = x[structure.shift_start[p] : structure.shift_start[p + 1]].reshape([K[i] for i in scope])
        psi[structure.pair_left[p]] = psi[structure.pair_left[p]] + wide(scope, table)
        psi[structure.pair_right[p]] = psi[structure.pair_right[p]] - wide(scope, table)
    v = x[structure.shift_start[-1] :]
    bound = np.longdouble(model.constant)
    for t, i in enumerate(structure.order.tolist()):
        cliques = range(structure.bucket_start[t], structure.bucket_start[t + 1])
        weights = naive_weights(v[list(cliques)], main[t] - cliques[0] if main[t] >= 0 else None, least)
        for c, w in zip(cliques, weights, strict=True):
            message = power_sum(psi[c], i, w)
            if structure.parent[c] >= 0:
                psi[structure.parent[c]] = psi[structure.parent[c]] + message
            else:
                bound = bound + message.ravel()[0]
    return bound


def naive_weights(v, main, least):
    if main is None:
        w = np.exp(v - v.max())
        return np.maximum(w / w.sum(), least) if len(v) > 1 else [1.0]
    w = -np.maximum(np.exp(v), least)
    w[main] = 0.0
    w[main] = 1.0 - w.sum()
    return w


def power_sum(psi, axis, w):
    """w log sum exp(psi / w)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = psi / np.longdouble(w)
        top = scaled.max(axis=axis, keepdims=True)
        total = np.exp(np.where(np.isfinite(top), scaled - top, -np.inf)).sum(axis=axis, keepdims=True)
        return np.where(np.isfinite(top), np.longdouble(w) * (top + np.log(total)), -np.inf)
