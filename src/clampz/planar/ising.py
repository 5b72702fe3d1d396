"""A binary model as couplings between spins: which models planar sums can be taken of.

With spins s = -1, 1 for states 0, 1 every binary pairwise model is

    score(s) = constant + sum_e J_e s_i s_j + sum_i h_i s_i.

Fields h become couplings to one more spin: its two states count the model twice.  A coupling may be infinite: a table
with hard zeros where the two variables differ, or where they agree, and a state that is ruled out.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.model import Model
from clampz.numerics import EPS, Floats, Integers

NOT_PLANAR = "the graph is not planar"
NOT_BINARY = "a variable has other than two states"
LARGER_FACTORS = "there are factors of three or more variables"
HARD_ZEROS = "a table has hard zeros that no coupling has"


class Unfit(NamedTuple):
    """Why there is no planar sum of a model."""

    reason: str


class Ising(NamedTuple):
    """log Z(model) = constant + log sum_s exp(sum_e J_e s_i s_j) - log 2 if there is a spin for fields, within `error`.

    Attributes
    ----------
    num_spins
        The model's variables, and one more if there are fields: the last.
    edges, J
        The model's edges that couple, and the fields.
    edge_of
        The model's edge of each coupling; those of fields come after them.
    field_of
        The variable of each field.
    """

    num_spins: int
    edges: NDArray[np.int32]
    J: Floats
    edge_of: Integers
    field_of: Integers
    constant: float
    error: float

    @property
    def has_fields(self) -> bool:
        return len(self.field_of) > 0


def as_ising(model: Model, *, marginals: bool = False) -> Ising | Unfit:
    """The spins of a model; edges without a coupling are left out unless their marginals are wanted, and with those a
    variable that has no field but is connected to one that has counts as one that has.

    Fields that are 0 but for rounding count as 0, and what they may come to is charged: log Z changes by at most the
    sum of the |h|.
    """
    if (model.num_states != 2).any():
        return Unfit(NOT_BINARY)
    if len(model.factors):
        return Unfit(LARGER_FACTORS)
    n = model.num_variables
    tables, unary = model.pairwise.flat.reshape(-1, 4), model.unary.flat.reshape(-1, 2)
    ruled_out, zeros = np.isneginf(unary), np.isneginf(tables)
    differ, agree = zeros[:, 1] & zeros[:, 2], zeros[:, 0] & zeros[:, 3]  # that the two do is ruled out
    if (zeros.sum(axis=1) != 2 * (differ | agree)).any() or ruled_out.all(axis=1).any():
        return Unfit(HARD_ZEROS)
    tables, unary = np.where(zeros, 0.0, tables), np.where(ruled_out, 0.0, unary)
    a, b, c, d = np.ascontiguousarray(tables.T)
    i, j = model.edges.T
    J = ((a - b) + (d - c)) / 4
    J[differ], J[agree] = np.inf, -np.inf
    edge_of = np.arange(model.num_edges) if marginals else np.flatnonzero(J)
    if len(edge_of) > max(3 * n - 6, 1):
        return Unfit(NOT_PLANAR)
    h = (unary[:, 1] - unary[:, 0]) / 2
    h += np.bincount(i, ((c - b) + (d - a)) / 4, n) + np.bincount(j, ((b - c) + (d - a)) / 4, n)
    # a few roundings of every term, and as many as there are terms for their sum: of what h is made of, and of the
    # tables that it was to cancel in
    degree = np.bincount(model.edges.ravel(), minlength=n)
    size, slant, own = np.abs(tables).sum(axis=1), np.abs(c - b) + np.abs(d - a), np.abs(unary).sum(axis=1)
    rounding, small = (
        EPS * (own + (degree + 4) * (np.bincount(i, part, n) + np.bincount(j, part, n))) for part in (slant, size)
    )
    small = np.abs(h) <= small
    error = float(rounding.sum() + np.abs(h[small]).sum() + 3 * EPS * size.sum())
    h[small] = 0.0
    up, down = ruled_out[:, 0], ruled_out[:, 1]  # fixed: what the field says of the one state left is a constant
    hard = zeros.any(axis=1)
    constants = [tables.sum(axis=1) / np.where(hard, 2, 4), unary.sum(axis=1) / 2, h[up], -h[down]]
    constant = math.fsum([model.constant, *np.concatenate(constants).tolist()])
    h[up], h[down] = np.inf, -np.inf
    field_of = np.flatnonzero(h)
    if marginals and len(field_of):  # a coupling to the fields' spin for all variables that these reach
        reached = np.isin(model.topology.components, model.topology.components[field_of])
        field_of = np.flatnonzero(reached)
    fields = np.stack([field_of, np.full(len(field_of), n)], axis=1)
    return Ising(
        n + (len(field_of) > 0),
        np.concatenate([model.edges[edge_of], fields]).astype(np.int32),
        np.concatenate([J[edge_of], h[field_of]]),
        edge_of,
        field_of,
        constant,
        error + EPS * float(abs(constant) + own.sum()),
    )
