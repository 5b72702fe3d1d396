"""Factors laid end to end.

A model keeps its factors of three or more variables with the variables of each scope in order, one factor per scope,
none of them constant.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.model.tables import LazySequence, offsets, read_only
from clampz.numerics import Floats, Integers


class Factor(NamedTuple):
    """A table over some variables, an axis for each: of log potentials in a model, of probabilities in a result."""

    scope: tuple[int, ...]
    table: Floats


class FactorTables(LazySequence[Factor]):
    """Factors end to end: `factors[f].scope` and `factors[f].table`.

    Attributes
    ----------
    scope_start, variables
        The variables of factor f are `variables[scope_start[f] : scope_start[f + 1]]`; of a model, smallest first.
    flat, start
        The tables end to end, the last variable varying fastest.
    """

    __slots__ = ("flat", "num_states", "scope_start", "start", "variables")

    def __init__(self, num_states: Integers, scope_start: Integers, variables: Integers, flat: Floats) -> None:
        self.num_states = num_states
        self.scope_start = read_only(scope_start)
        self.variables = read_only(variables)
        self.flat = read_only(flat)
        self.start = read_only(offsets(table_sizes(num_states, scope_start, variables)))

    @classmethod
    def of(cls, num_states: Integers, factors: Sequence[Factor] = ()) -> "FactorTables":
        """Lay factors end to end."""
        arity = np.array([len(factor.scope) for factor in factors], dtype=np.int64)
        variables = np.array([i for factor in factors for i in factor.scope], dtype=np.int64)
        flat = np.concatenate([np.empty(0), *(factor.table.ravel() for factor in factors)])
        return cls(num_states, offsets(arity), variables, flat)

    @classmethod
    def joined(cls, num_states: Integers, parts: Sequence["FactorTables"]) -> "FactorTables":
        """Concatenate several sets of factors."""
        arity = np.concatenate([np.diff(part.scope_start) for part in parts])
        variables = np.concatenate([part.variables for part in parts])
        return cls(num_states, offsets(arity), variables, np.concatenate([part.flat for part in parts]))

    def with_flat(self, flat: Floats) -> "FactorTables":
        """Return tables of other values over the same scopes."""
        return FactorTables(self.num_states, self.scope_start, self.variables, flat)

    def __len__(self) -> int:
        return len(self.scope_start) - 1

    def take(self, chosen: NDArray[np.bool_]) -> "FactorTables":
        """Select factors by a mask."""
        arity, sizes = np.diff(self.scope_start), np.diff(self.start)
        variables, flat = self.variables[np.repeat(chosen, arity)], self.flat[np.repeat(chosen, sizes)]
        return FactorTables(self.num_states, offsets(arity[chosen]), variables, flat)

    def num_among(self, among: NDArray[np.bool_]) -> Integers:
        """Count the variables of each scope that are among these (n,)."""
        num: Integers = np.diff(offsets(among[self.variables])[self.scope_start])
        return num

    def given(self, state: Integers) -> "FactorTables":
        """Fix variables to states (n,), -1 meaning free, and drop them from scopes."""
        arity, sizes, strides, fixed = np.diff(self.scope_start), np.diff(self.start), self.strides, state >= 0
        place = np.arange(len(self.flat)) - np.repeat(self.start[:-1], sizes)
        agrees = np.ones(len(place), dtype=np.bool_)
        for p in range(int(arity.max(initial=0))):
            at = np.minimum(self.scope_start[:-1] + p, len(self.variables) - 1)
            i = self.variables[at]
            some = np.flatnonzero(np.repeat((arity > p) & fixed[i], sizes))
            stride, num_states, chosen = (
                np.repeat(each, sizes)[some] for each in (strides[at], self.num_states[i], state[i])
            )
            agrees[some] &= place[some] // stride % num_states == chosen
        left = arity - self.num_among(fixed)
        return FactorTables(self.num_states, offsets(left), self.variables[~fixed[self.variables]], self.flat[agrees])

    def holding(self, variables: Sequence[int]) -> Integers:
        """Find the factors over all of these variables, and perhaps others; smallest scopes first."""
        arity = np.diff(self.scope_start)
        factor = np.repeat(np.arange(len(self)), arity)[np.isin(self.variables, variables)]
        found = np.flatnonzero(np.bincount(factor, minlength=len(self)) == len(variables))
        return found[np.argsort(arity[found], kind="stable")]

    @property
    def strides(self) -> Integers:
        """Return the stride of each variable of each scope in its factor's table."""
        arity, left = np.diff(self.scope_start), np.diff(self.start)
        out = np.empty(len(self.variables), dtype=np.int64)
        for p in range(int(arity.max(initial=0))):
            some = np.flatnonzero(arity > p)
            at = self.scope_start[some] + p
            left[some] //= self.num_states[self.variables[at]]
            out[at] = left[some]
        return out

    def item(self, k: int) -> Factor:
        scope = tuple(self.variables[self.scope_start[k] : self.scope_start[k + 1]].tolist())
        return Factor(scope, self.flat[self.start[k] : self.start[k + 1]].reshape(self.num_states[list(scope)]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FactorTables):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("scope_start", "variables", "flat")
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return FactorTables, (self.num_states, self.scope_start, self.variables, self.flat)

    def __repr__(self) -> str:
        return f"FactorTables({len(self)} factors of up to {int(np.diff(self.scope_start).max(initial=0))} variables)"


def table_sizes(num_states: Integers, scope_start: Integers, variables: Integers) -> Integers:
    """Count the entries of each factor's table."""
    sizes = np.ones(len(scope_start) - 1, dtype=np.int64)
    factor = np.repeat(np.arange(len(sizes)), np.diff(scope_start))
    np.multiply.at(sizes, factor, num_states[variables])
    return sizes
