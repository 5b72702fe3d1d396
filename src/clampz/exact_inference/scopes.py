"""What is summed over: the scopes of factors, the states that are left of them, and where entries move to when fixed
variables change their states."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz._kernels.contraction.tree import Tree, tree_of_order
from clampz._kernels.elimination.plan import kept_entries
from clampz.errors import TooWideError
from clampz.exact_inference.orders import EliminationOrder
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.tables import distinct, offsets
from clampz.numerics import Integers
from clampz.runtime.options import fits_into, memory_allowed

# Words of eight bytes that a sum takes beside its messages and scratch, for plan, values and results: per variable,
# factor, variable of a factor and entry of the factors' tables.  Measured as peaks of resident memory on a chain of a
# million variables and on 3,000 components, where they are nearly all and an eighth of it, and of entries on a chain of
# fifty labels and on a table of 2^20.
WORDS = np.array([19, 8, 6, 6])
# For plans that are held to a limit elsewhere, or only counted.
NO_LIMIT = 2**62


class Scopes(NamedTuple):
    """Which variables each factor is about: factor f is over variables `variables[start[f] : start[f + 1]]`, its table
    row-major in that order."""

    num_states: Integers
    start: Integers
    variables: Integers
    table_start: Integers

    @classmethod
    def of(cls, model: Model) -> "Scopes":
        """A factor per variable, then one per edge, then the larger ones."""
        pairwise, larger = cls.of_pairwise(model.num_states, model.edges), model.factors
        return Scopes(
            pairwise.num_states,
            np.concatenate([pairwise.start, pairwise.start[-1] + larger.scope_start[1:]]),
            np.concatenate([pairwise.variables, larger.variables]),
            np.concatenate([pairwise.table_start, pairwise.table_start[-1] + larger.start[1:]]),
        )

    @classmethod
    def of_pairwise(cls, num_states: Integers, edges: NDArray[Any]) -> "Scopes":
        """A factor per variable, then one per edge."""
        n, m = len(num_states), len(edges)
        arity = np.ones(n + m, dtype=np.int64)
        arity[n:] = 2
        variables = np.concatenate([np.arange(n), edges.ravel()])
        sizes = np.concatenate([num_states, num_states[edges[:, 0]] * num_states[edges[:, 1]]])
        # a copy: kernels would be compiled a second time for the model's own array, which is closed to writing
        return cls(np.array(num_states, dtype=np.int64), offsets(arity), variables, offsets(sizes))

    @property
    def num_factors(self) -> int:
        return len(self.start) - 1

    @property
    def num_bytes(self) -> int:
        """Memory that a sum over these factors takes whatever the order."""
        return _num_bytes(len(self.num_states), self.num_factors, len(self.variables), int(self.table_start[-1]))

    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor, once."""
        arity = np.diff(self.start)
        n = len(self.num_states)
        pairs = [np.empty((0, 2), dtype=np.int64)]
        for size in (np.flatnonzero(np.bincount(arity, minlength=2)[2:]) + 2).tolist():
            members = self.variables[self.start[:-1][arity == size][:, None] + np.arange(size)]
            pairs.append(
                members if size == 2 else members[:, np.stack(np.triu_indices(size, 1), axis=1)].reshape(-1, 2)
            )
        found = pairs[-1] if len(pairs) == 2 else np.concatenate(pairs)
        if not (found[:, 0] < found[:, 1]).all():
            found.sort(axis=1)
        keys = found[:, 0] * n + found[:, 1]
        if (keys[1:] > keys[:-1]).all():
            return found
        keys = distinct(keys)
        return np.stack([keys // max(n, 1), keys % max(n, 1)], axis=1)

    def neighbours(self) -> tuple[Integers, NDArray[np.int32]]:
        """Neighbour lists of the graph of these factors: those of variable i are neighbour[start[i] : start[i + 1]]."""
        start, neighbour, _ = graph.neighbour_lists(len(self.num_states), self.edges().astype(np.int32))
        return start, neighbour

    def tree(self, order: EliminationOrder) -> Tree:
        """The tree of contractions that follows an order."""
        found: Tree = tree_of_order(order.variables, np.log2(self.num_states), self.start, self.variables)
        return found


def least_bytes(model: Model) -> int:
    """Memory that a sum over a model takes whatever the order, known before anything is laid out."""
    n, m, larger = model.num_variables, model.num_edges, model.factors
    entries = len(model.unary.flat) + len(model.pairwise.flat) + len(larger.flat)
    return _num_bytes(n, n + m + len(larger), n + 2 * m + len(larger.variables), entries)


def _num_bytes(*counts: int) -> int:
    """Return the bytes for counts of variables, factors, variables of factors and entries of tables."""
    return int(8 * WORDS @ counts)


class Restriction(NamedTuple):
    """Factors cut down to the states that are still possible, and variables with one state dropped from the scopes:
    what evidence leaves to sum over.

    Attributes
    ----------
    scopes
        The same variables and factors; scopes may be empty.
    states, entries
        Which states of all variables, and which table entries, are left.
    """

    scopes: Scopes
    states: Integers
    entries: Integers

    @classmethod
    def none(cls, scopes: Scopes) -> "Restriction":
        """Rule nothing out."""
        return cls(scopes, np.arange(int(scopes.num_states.sum())), np.arange(scopes.table_start[-1]))

    @classmethod
    def of_lanes(cls, batch: Batch) -> "Restriction":
        """Keep the states that some lane of a batch allows."""
        return cls.of(Scopes.of(batch.model), np.logical_or.reduce(batch.possible, axis=1))

    @classmethod
    def of(cls, scopes: Scopes, possible: NDArray[np.bool_]) -> "Restriction":
        """Keep the states with `possible[state]`; a variable that has none keeps its first (its factors say that Z =
        0)."""
        state_start = offsets(scopes.num_states)
        if possible.all() and (scopes.num_states > 1).all():
            return cls.none(scopes)
        kept = possible.copy()
        left = states_left(kept, state_start)
        kept[state_start[:-1][left == 0]] = True
        left = np.maximum(left, 1)
        entries, table_start = kept_entries(kept, state_start, *scopes)
        used = left[scopes.variables] > 1
        factor_of = np.repeat(np.arange(scopes.num_factors), np.diff(scopes.start))
        arity = np.bincount(factor_of[used], minlength=scopes.num_factors)
        return cls(Scopes(left, offsets(arity), scopes.variables[used], table_start), np.flatnonzero(kept), entries)


class Moves(NamedTuple):
    """Where table entries move to when variables that are fixed to one state are fixed to another.

    Attributes
    ----------
    variables, states
        Those that are fixed, and to which states they are.
    factor, fixed, stride
        For each fixed variable of each factor: the factor, which of the variables it is, and how far apart in the
        factor's table two entries are that differ in its state by one.
    """

    variables: Integers
    states: Integers
    factor: Integers
    fixed: Integers
    stride: Integers

    @classmethod
    def of(cls, scopes: Scopes, variables: Integers, states: Integers) -> "Moves":
        number = np.full(len(scopes.num_states), -1, dtype=np.int64)
        number[variables] = np.arange(len(variables))
        places = np.flatnonzero(number[scopes.variables] >= 0)
        factor = np.searchsorted(scopes.start, places, side="right") - 1
        stride, after, end = np.ones(len(places), dtype=np.int64), places + 1, scopes.start[factor + 1]
        while (inside := after < end).any():
            stride[inside] *= scopes.num_states[scopes.variables[after[inside]]]
            after += 1
        return cls(variables, states, factor, number[scopes.variables[places]], stride)

    def entries(self, restricted: Restriction, states: Integers) -> Integers:
        """The table entries that are left when the variables are fixed to other states."""
        table_start = restricted.scopes.table_start
        by = np.bincount(
            self.factor, (self.stride * (states - self.states)[self.fixed]), minlength=len(table_start) - 1
        )
        moved: Integers = restricted.entries + np.repeat(by.astype(np.int64), table_start[1:] - table_start[:-1])
        return moved


def check_memory(width: int, needed: int, memory: int | str | None, more: str = "") -> None:
    """Refuse a sum that needs more bytes than are allowed."""
    if not fits_into(memory, needed):
        raise too_wide(width, needed, memory, more)


def too_large(batch: Batch, memory: int | str | None) -> TooWideError | None:
    """Why no sum over a batch fits into the memory, whatever its order, seen before anything is laid out; None where it
    may fit.  Lanes that rule states out may leave less to sum than that."""
    model, least = batch.model, least_bytes(batch.model)
    if fits_into(memory, least) or not batch.possible.all():
        return None
    widest = max(1, 2 if model.num_edges else 1, int(np.diff(model.factors.scope_start).max(initial=1)))
    return too_wide(widest - 1, least, memory, "at least ")


def too_wide(width: int, num_bytes: int, memory: int | str | None, more: str = "") -> TooWideError:
    """Say how wide a sum is, and what it would take."""
    return TooWideError(
        f"exact inference needs {more}{num_bytes:,} bytes (width {more}{width}), and {memory_allowed(memory):,} are "
        "allowed: bound and solve bracket log Z without it, clamping or evidence makes it narrower, or allow more with "
        "memory=",
        width=width,
        num_bytes=num_bytes,
    )
