"""Ragged tables: many small arrays of different shapes kept end to end in one flat array.

A model of a million variables has a million small unary tables.  As separate arrays they would cost a hundred bytes
each and a Python loop to touch; here they are one array with an offset per table, and a table is a view that is cut out
when asked for.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from clampz.errors import EdgeError, EvidenceError
from clampz.model.names import Names
from clampz.numerics import Floats, Integers

T = TypeVar("T")


def offsets(sizes: NDArray[Any]) -> Integers:
    """Return where each of consecutive pieces of these sizes begins, and where the last one ends.

    >>> offsets(np.array([2, 3, 1])).tolist()
    [0, 2, 5, 6]
    """
    start = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


def ranges(start: Integers, sizes: Integers) -> Integers:
    """Concatenate the ranges of `sizes` numbers from each start.

    >>> ranges(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    begin = offsets(sizes)
    return np.repeat(start - begin[:-1], sizes) + np.arange(begin[-1])


def distinct(keys: Integers) -> Integers:
    """Sort numbers and drop repetitions; for many large ones a hundred times as fast as np.unique, which hashes them.

    >>> distinct(np.array([5, 3, 5])).tolist()
    [3, 5]
    """
    ordered = np.sort(keys)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def piece_of(start: Integers, k: int) -> int:
    """Return the number of the consecutive piece that holds place k.

    >>> piece_of(np.array([0, 2, 2, 5]), 2)
    2
    """
    return int(np.searchsorted(start, k, side="right")) - 1


def take_lanes(array: Floats, lanes: Integers) -> Floats:
    """Copy some columns, with contiguous rows (indexing would leave lanes apart)."""
    return np.take(array, lanes, axis=1)


def lane_sums(array: Floats) -> Floats:
    """(B,) sum the rows of an (n, B) array, in pairs. Along the first axis NumPy adds one row after another, and n
    equal terms then err by n roundings, all in one direction."""
    sums: Floats = np.ascontiguousarray(array.T).sum(axis=1)
    return sums


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Close an array to writing, and return it."""
    array.flags.writeable = False
    return array


def has_hard_zeros(table: Floats) -> bool:
    """Whether a table has a hard zero, by its smallest entry: one more array of truth values may be too large."""
    return bool(table.min(initial=0.0) == -np.inf)


class LazySequence(Sequence[T]):
    """A sequence whose items are made on demand, by `item`; a slice is a list of them."""

    __slots__ = ()

    @abstractmethod
    def item(self, k: int) -> T:
        """Make item k, which exists."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        try:
            places = range(len(self))[index]
        except IndexError:
            raise IndexError(f"index {index}: expected one from 0 to {len(self) - 1}") from None
        except TypeError:
            raise TypeError(f"index {index!r}: expected a whole number or a slice") from None
        return self.item(places) if isinstance(places, int) else [self.item(k) for k in places]


class UnaryTables(LazySequence[Floats]):
    """One table per variable: `tables[i]` has an entry per state of variable i, given by index or name."""

    __slots__ = ("flat", "names", "start")

    def __init__(self, flat: Floats, start: Integers, names: Names | None = None) -> None:
        self.flat = flat
        self.start = start
        self.names = Names(len(start) - 1) if names is None else names

    def with_flat(self, flat: Floats) -> "UnaryTables":
        """Return tables of other values for the same states."""
        return UnaryTables(read_only(flat), self.start, self.names)

    @overload
    def __getitem__(self, index: int | str) -> Floats: ...
    @overload
    def __getitem__(self, index: slice) -> list[Floats]: ...
    def __getitem__(self, index: int | str | slice) -> Floats | list[Floats]:
        return super().__getitem__(self.names.index(index) if isinstance(index, str) else index)

    def __len__(self) -> int:
        return len(self.start) - 1

    def item(self, k: int) -> Floats:
        return self.flat[self.start[k] : self.start[k + 1]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Stack all tables as rows of one array, where every variable has as many states."""
        sizes = np.diff(self.start)
        if len(sizes) and sizes.min() != sizes.max():
            raise ValueError(
                f"variables have {sizes.min()} to {sizes.max()} states: no rectangular array holds their tables"
            )
        array = self.flat.reshape(len(sizes), sizes.max(initial=0))
        return array.astype(dtype) if dtype is not None or copy else array

    def __repr__(self) -> str:
        return _preview("UnaryTables", len(self), [np.array2string(t, precision=4) for t in self[:4]])


class PairTables(Mapping[tuple[int, int], Floats]):
    """One table per edge: `tables[i, j]` has shape (states of i, states of j), `tables[j, i]` is its transpose.
    Variables are given by index or name. Iteration runs over the edges in the model's order, smaller variable first."""

    __slots__ = ("_keys", "edges", "flat", "names", "num_states", "start")

    def __init__(
        self,
        flat: Floats,
        start: Integers,
        edges: NDArray[np.int32],
        num_states: Integers,
        names: Names | None = None,
    ) -> None:
        self.flat = flat
        self.start = start
        self.edges = edges
        self.num_states = num_states
        self.names = Names(len(num_states)) if names is None else names
        self._keys: Integers | None = None

    @classmethod
    def of(
        cls, flat: Floats, edges: NDArray[np.int32], num_states: Integers, names: Names | None = None
    ) -> "PairTables":
        """Lay out tables of edges in turn, as large as their variables' states ask for."""
        i, j = edges.T
        return cls(flat, read_only(offsets(num_states[i] * num_states[j])), edges, num_states, names)

    def with_flat(self, flat: Floats) -> "PairTables":
        """Return tables of other values for the same edges."""
        return PairTables(read_only(flat), self.start, self.edges, self.num_states, self.names)

    def at(self, k: int) -> Floats:
        """Return the table of edge number k."""
        i, j = self.edges[k]
        return self.flat[self.start[k] : self.start[k + 1]].reshape(self.num_states[i], self.num_states[j])

    def entries(self, chosen: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """List every entry of the tables of some edges: its place in `flat`, its edge, and its two states."""
        place = ranges(self.start[chosen], self.start[chosen + 1] - self.start[chosen])
        edge = np.repeat(chosen, self.start[chosen + 1] - self.start[chosen])
        first, second = np.divmod(place - self.start[edge], self.num_states[self.edges[edge, 1]])
        return place, edge, first, second

    def __getitem__(self, pair: tuple[int | str, int | str]) -> Floats:
        first, second = self._ends(pair)
        i, j = min(first, second), max(first, second)
        if self._keys is None:  # edges are sorted, so that a search replaces a dictionary of millions
            self._keys = self.edges[:, 0].astype(np.int64) * len(self.num_states) + self.edges[:, 1]
        key = i * len(self.num_states) + j
        k = int(np.searchsorted(self._keys, key))
        if k == len(self._keys) or self._keys[k] != key:
            raise EdgeError(
                f"no edge of the model joins {pair[0]!r} and {pair[1]!r}; an exact result has the joint marginal of "
                f"any variables: joint([{pair[0]!r}, {pair[1]!r}])"
            )
        table = self.at(k)
        return table if first == i else table.T

    def _ends(self, pair: object) -> tuple[int, int]:
        """Return the two variables of an edge by index."""
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(ends := tuple(pair)) != 2:
            raise EdgeError(f"an edge: expected two variables, by index or name, found {pair!r}")
        try:
            first, second = map(self.names.index, ends)
        except EvidenceError as error:
            raise EdgeError(f"edge {pair!r}: {error}") from None
        if first == second:
            raise EdgeError(f"edge {pair!r}: expected two variables, found one twice")
        return first, second

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Stack all tables (m, L, K) in the order of the edges, where all have the same shape."""
        shapes = np.unique(self.num_states[self.edges], axis=0)
        if len(shapes) > 1:
            raise ValueError(
                f"tables of edges have shapes from {tuple(shapes[0].tolist())} to {tuple(shapes[-1].tolist())}: no "
                "rectangular array holds them; tables[i, j] has one, and .flat all of them end to end"
            )
        array = self.flat.reshape(len(self.edges), *(shapes[0] if len(shapes) else (0, 0)))
        return array.astype(dtype) if dtype is not None or copy else array

    def __len__(self) -> int:
        return len(self.edges)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((int(i), int(j)) for i, j in self.edges)

    def __repr__(self) -> str:
        shown = [
            f"{(int(i), int(j))}: {np.array2string(self.at(k), precision=4)}" for k, (i, j) in enumerate(self.edges[:2])
        ]
        return _preview("PairTables", len(self), shown)


def _preview(name: str, num_tables: int, shown: list[str]) -> str:
    rest = num_tables - len(shown)
    return f"{name}({', '.join(shown)}{f', and {rest} more' if rest else ''})"
