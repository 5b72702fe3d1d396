"""Model data from arrays that users pass in, checked."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import ModelError
from clampz.model.checks import as_constant, as_edges, as_log_potentials, as_num_states, as_weights
from clampz.model.data import ModelData
from clampz.model.factors import FactorTables

Names = Sequence[str] | None
StateNames = Sequence[Sequence[str]] | None


def of_arrays(
    unary: ArrayLike, edges: ArrayLike, pairwise: ArrayLike, constant: float, names: Names, state_names: StateNames
) -> ModelData:
    """Check a model whose variables have L states: unary (n, L), edges (m, 2), pairwise (m, L, L)."""
    tables = as_log_potentials(unary, "unary")
    if tables.ndim != 2 or tables.shape[1] == 0:
        raise ModelError(f"unary: expected shape (variables, states), found {tables.shape}")
    n, num_labels = tables.shape
    pairs = as_edges(edges, n)
    pair_tables = as_log_potentials(pairwise, "pairwise")
    wanted = (len(pairs), num_labels, num_labels)
    if pair_tables.shape != wanted and (pair_tables.size or len(pairs)):
        raise ModelError(
            f"pairwise: expected shape {wanted} for {len(pairs)} edges of {num_labels} states, "
            f"found {pair_tables.shape}"
        )
    states, flat, pair_flat = np.full(n, num_labels), tables.ravel(), pair_tables.ravel()
    factors = FactorTables.of(states)
    return ModelData(states, flat, pairs, pair_flat, factors, as_constant(constant), names, state_names)


def of_flat(
    num_states: ArrayLike,
    unary: ArrayLike,
    edges: ArrayLike,
    pairwise: ArrayLike,
    constant: float,
    names: Names,
    state_names: StateNames,
) -> ModelData:
    """Check a model of tables laid end to end, the second variable of an edge varying fastest."""
    states = as_num_states(num_states)
    flat = as_log_potentials(unary, "unary")
    if flat.shape != (states.sum(),):
        raise ModelError(
            f"unary: expected shape ({states.sum()},), a number per state of each variable in turn, found {flat.shape}"
        )
    pairs = as_edges(edges, len(states))
    pair_flat = as_log_potentials(pairwise, "pairwise")
    num_entries = int(states[pairs].prod(axis=1).sum())
    if pair_flat.shape != (num_entries,):
        raise ModelError(
            f"pairwise: expected shape ({num_entries},), the tables of {len(pairs)} edges in turn, "
            f"found {pair_flat.shape}"
        )
    factors = FactorTables.of(states)
    return ModelData(states, flat, pairs, pair_flat, factors, as_constant(constant), names, state_names)


def of_binary(theta: ArrayLike, W: ArrayLike, edges: ArrayLike | None, constant: float, names: Names) -> ModelData:
    """Check the paper's binary form: theta (n,), and W as (m,) with edges (m, 2) or as a symmetric (n, n) matrix."""
    fields = as_log_potentials(theta, "theta", finite=True)
    weights = as_log_potentials(W, "W", finite=True)
    if fields.ndim != 1:
        raise ModelError(f"theta: expected shape (variables,), found {fields.shape}")
    pairs, weights = as_weights(weights, edges, len(fields))
    unary = np.stack([np.zeros(len(fields)), fields], axis=1)
    pairwise = np.zeros((len(pairs), 2, 2))
    pairwise[:, 0, 0] = pairwise[:, 1, 1] = weights / 2
    return of_arrays(unary, pairs, pairwise, constant, names, None)
