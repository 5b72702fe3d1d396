"""Factors laid end to end, and how factors of any size become unary, pairwise and larger ones.

A model keeps its factors of three or more variables with the variables of each scope in order, one factor per scope,
none of them constant.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import ModelError
from clampz.model.checks import as_table
from clampz.model.tables import Floats, Integers, Listed, offsets, ranges, read_only


class Factor(NamedTuple):
    """A log table over some variables, one axis for each, in this order."""

    scope: tuple[int, ...]
    table: Floats


class FactorTables(Listed[Factor]):
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
        """From factors one by one."""
        arity = np.array([len(factor.scope) for factor in factors], dtype=np.int64)
        variables = np.array([i for factor in factors for i in factor.scope], dtype=np.int64)
        flat = np.concatenate([np.empty(0), *(factor.table.ravel() for factor in factors)])
        return cls(num_states, offsets(arity), variables, flat)

    def __len__(self) -> int:
        return len(self.scope_start) - 1

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


class Folded(NamedTuple):
    """Factors sorted by size: unary tables end to end, edges with their tables end to end, larger factors, and what is
    constant."""

    unary: Floats
    edges: Integers
    pairwise: Floats
    factors: FactorTables
    constant: float


def table_sizes(num_states: Integers, scope_start: Integers, variables: Integers) -> Integers:
    """Entries of the table of each factor."""
    sizes = np.ones(len(scope_start) - 1, dtype=np.int64)
    factor = np.repeat(np.arange(len(sizes)), np.diff(scope_start))
    np.multiply.at(sizes, factor, num_states[variables])
    return sizes


def as_factors(num_states: Integers, factors: Iterable[tuple[Sequence[int], ArrayLike]]) -> FactorTables:
    """What a user gives as factors: known variables, none of them twice in a scope, and tables of the right shapes."""
    found = []
    for f, (given, values) in enumerate(factors):
        scope = tuple(given)
        where = f"factor {f} over {scope}"
        if len(set(scope)) != len(scope):
            raise ModelError(f"{where}: expected distinct variables from 0 to {len(num_states) - 1}")
        found.append(Factor(scope, as_table(values, num_states[list(scope)], where, "a table of ")))
    return FactorTables.of(num_states, found)


def fold(factors: FactorTables) -> Folded:
    """Sort factors of any size into those of no, one, two and more variables; factors over the same variables are added
    up.

    Factors of up to two variables are dealt with all at once: files have millions of them.
    """
    num_states, variables, flat = factors.num_states, factors.variables, factors.flat
    arity, sizes = np.diff(factors.scope_start), np.diff(factors.start)
    first = np.zeros((len(arity), 2), dtype=np.int64)
    for p in range(2):
        first[arity > p, p] = variables[factors.scope_start[:-1][arity > p] + p]
    of = np.repeat(np.minimum(arity, 3).astype(np.int8), sizes)  # small: there is one for every entry
    unary_start = offsets(num_states)
    unary = np.zeros(unary_start[-1])
    single = arity == 1
    np.add.at(unary, ranges(unary_start[first[single, 0]], sizes[single]), flat[of == 1])
    constant = float(flat[of == 0].sum())
    by_scope: dict[tuple[int, ...], Floats] = {}
    for f in np.flatnonzero(arity > 2).tolist():
        scope, table = factors[f]
        order = np.argsort(scope)
        key = tuple(scope[i] for i in order)
        table = table.transpose(order)
        by_scope[key] = by_scope[key] + table if key in by_scope else table
    larger = []
    for key, table in by_scope.items():
        low = float(table.min())
        if low == float(table.max()) and low > -np.inf:
            constant += low
        else:
            larger.append(Factor(key, table))
    return Folded(unary, first[arity == 2], flat[of == 2], FactorTables.of(num_states, larger), constant)


def sliced(factor: Factor, known: Mapping[int, int]) -> Factor:
    """A factor with some of its variables fixed to a state, and gone from its scope."""
    place: tuple[Any, ...] = tuple(known.get(i, slice(None)) for i in factor.scope)
    return Factor(tuple(i for i in factor.scope if i not in known), np.asarray(factor.table[place]))
