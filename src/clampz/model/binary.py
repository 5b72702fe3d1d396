"""The paper's binary form of a model, balance, and flips of states."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz.model.data import ModelData
from clampz.model.factors import Factor, FactorTables
from clampz.model.tables import PairTables, offsets, read_only
from clampz.numerics import Floats

Kind = Literal["attractive", "balanced", "mixed"]


class BinaryForm(NamedTuple):
    """The paper's form of a binary model: score(x) = constant + sum theta_i x_i + sum W_ij / 2 [x_i = x_j].

    Attributes
    ----------
    theta
        (n,) what state 1 of each variable adds.
    W
        (m,) the weights, in the order of the model's edges: attractive where they are positive.
    constant
        Added to every score.
    """

    theta: Floats
    W: Floats
    constant: float


def pair_form(tables: PairTables) -> BinaryForm | None:
    """Return the binary form of pairwise potentials alone, or None unless they are finite and over two states each.

    A table [[a, b], [c, d]] has W = a + d - b - c, and adds (c - b + d - a)/2 to theta_i, (b - c + d - a)/2 to theta_j,
    (a + b + c - d)/2 to the constant.
    """
    if (tables.num_states != 2).any() or not np.isfinite(tables.flat).all():
        return None
    a, b, c, d = tables.flat.reshape(-1, 4).T
    i, j = tables.edges.T
    n = len(tables.num_states)
    theta = np.bincount(i, (c - b + d - a) / 2, n) + np.bincount(j, (b - c + d - a) / 2, n)
    return BinaryForm(read_only(theta), read_only(a + d - b - c), float(((a + b + c - d) / 2).sum()))


def balancing(num_variables: int, edges: NDArray[np.int32], W: Floats) -> tuple[NDArray[np.bool_], bool]:
    """Find the variables (n,) whose flip makes every weight of a balanced model >= 0, and whether it is balanced."""
    kept = W != 0  # an edge without weight couples nothing
    start, neighbour, edge_of = graph.neighbour_lists(num_variables, edges[kept])
    flip, balanced = graph.balance(start, neighbour, edge_of, (W[kept] < 0).astype(np.int8))
    return read_only(flip.astype(np.bool_)), bool(balanced)


def flipped(contents: ModelData, mask: NDArray[np.bool_]) -> ModelData:
    """Exchange the two states of some binary variables."""
    num_states, tables = contents.num_states, contents.tables
    first = offsets(num_states)[:-1][mask]
    unary, flat = contents.unary.copy(), contents.pairwise.copy()
    unary[first], unary[first + 1] = contents.unary[first + 1], contents.unary[first]
    i, j = contents.edges.T
    entry, edge, a, b = tables.entries(np.flatnonzero(mask[i] | mask[j]))
    a, b = np.where(mask[i[edge]], 1 - a, a), np.where(mask[j[edge]], 1 - b, b)
    flat[entry] = contents.pairwise[tables.start[edge] + a * num_states[j[edge]] + b]
    names = contents.state_names
    factors = [
        Factor(scope, np.flip(table, tuple(p for p, v in enumerate(scope) if mask[v])))
        for scope, table in contents.factors
    ]
    return contents._replace(
        unary=unary,
        pairwise=flat,
        factors=FactorTables.of(num_states, factors),
        state_names=names and [known[::-1] if mask[v] else known for v, known in enumerate(names)],
    )
