"""Evidence applied to model data: variables with known states keep their places, but are in no edge and no factor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz.errors import EvidenceError
from clampz.model.data import ModelData, fold
from clampz.model.evidence import Evidence
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets
from clampz.model.variables import Findings
from clampz.numerics import Floats, Integers


def conditioned(contents: ModelData, found: Findings, said: Evidence) -> ModelData:
    """Apply evidence: certain variables keep their places but lose their edges and factors, likelihoods multiply
    potentials. `said` is the evidence in the user's words, for the error where it is seen to be impossible."""
    start = offsets(contents.num_states)
    left = with_fixed_states(contents, found.states, said) if found.states else contents
    unary = left.unary.copy()
    for i, likelihoods in found.likelihoods.items():
        unary[start[i] : start[i + 1]] += log_of(likelihoods)
    if len(contents.num_states):
        before, after = (np.maximum.reduceat(flat, start[:-1]) for flat in (contents.unary, unary))
        gone = np.flatnonzero((after == -np.inf) & (before > -np.inf))
        if gone.size:
            raise EvidenceError(
                f"evidence {dict(said)!r:.200} is impossible: it leaves no state for variable {gone[0]}, "
                "so Z = 0 under it"
            )
    return left._replace(unary=unary)


def log_of(likelihoods: Floats) -> Floats:
    """Take logarithms, -inf of 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(likelihoods)
    return logs


def with_fixed_states(contents: ModelData, known: Mapping[int, int], said: Evidence) -> ModelData:
    """Fix the states of some variables, which keep their places but are in no edge and no factor. What they leave of
    tables is folded as factors are. `said` is the evidence in the user's words, for the error where it is seen to be
    impossible."""
    num_states, tables, start = contents.num_states, contents.tables, offsets(contents.num_states)
    state = np.full(len(num_states), -1, dtype=np.int64)
    state[list(known)] = list(known.values())
    free = state < 0
    i, j = contents.edges.T
    inside = free[i] & free[j]
    entry, edge, a, b = tables.entries(np.flatnonzero(~inside))
    state_i, state_j, value = state[i[edge]], state[j[edge]], contents.pairwise[entry]
    cut, beside = _cut(contents.factors, free)
    pieces = contents.factors.take(cut).given(state)
    near = np.zeros(len(num_states), dtype=np.bool_)  # free variables that something is left for
    near[contents.edges[~inside]] = near[pieces.variables] = True
    near &= free
    of_near = np.repeat(near, num_states)
    of_known = [contents.unary[start[:-1][~free] + state[~free]], value[(state_i == a) & (state_j == b)]]
    constants = np.concatenate([[contents.constant], *of_known])
    left = [
        FactorTables(num_states, np.zeros(len(constants) + 1, dtype=np.int64), np.empty(0, dtype=np.int64), constants),
        _of_one(num_states, np.flatnonzero(near), contents.unary[of_near]),
        _of_one(num_states, j[free[j] & ~free[i]], value[(state_i == a) & (state_j < 0)]),
        _of_one(num_states, i[free[i] & ~free[j]], value[(state_j == b) & (state_i < 0)]),
        pieces,
        contents.factors.take(beside),
    ]
    folded = fold(FactorTables.joined(num_states, left))
    if folded.constant == -np.inf:
        raise EvidenceError(
            f"evidence {dict(said)!r:.200} is impossible: the model gives it probability zero, so Z = 0 under it"
        )
    unary = np.where(of_near, folded.unary, contents.unary)
    unary[np.repeat(~free, num_states)] = -np.inf
    unary[start[:-1][~free] + state[~free]] = 0.0
    return contents._replace(
        unary=unary,
        edges=np.concatenate([contents.edges[inside], folded.edges]),
        pairwise=np.concatenate([contents.pairwise[np.repeat(inside, np.diff(tables.start))], folded.pairwise]),
        factors=FactorTables.joined(num_states, [contents.factors.take(~(cut | beside)), folded.factors]),
        constant=folded.constant,
    )


def _cut(factors: FactorTables, free: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the factors that have fixed variables, and whole ones over what these leave of a scope."""
    arity, num_free = np.diff(factors.scope_start), factors.num_among(free)
    cut = num_free < arity
    left = np.zeros(len(free), dtype=np.bool_)
    left[factors.variables[np.repeat(cut & (num_free > 2), arity)]] = True
    return cut, ~cut & (factors.num_among(left & free) == arity)


def _of_one(num_states: Integers, variables: NDArray[Any], values: Floats) -> FactorTables:
    """Make factors of one variable each."""
    return FactorTables(num_states, np.arange(len(variables) + 1), variables.astype(np.int64), values)
