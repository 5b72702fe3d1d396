"""Covers: a set of a table's entries as few cubes, each of which becomes a clause.

A cube says of each axis of a table that it is anything (FREE), one state a (a), or any state but a (~a); an entry is in
it if all of that holds.  Tables of a model look alike (clauses, gates, inheritance), so covers are kept by what they
cover.
"""

import numpy as np
from numpy.typing import NDArray

Truths = NDArray[np.bool_]
Cube = tuple[int | None, ...]

FREE = None


def cover(must: Truths, may: Truths) -> list[Cube]:
    """Cubes inside of `may` that hold every entry of `must`.

    The first entry that no cube holds yet is widened along one axis after another as far as `may` goes; then the next:
    no cube is inside another, and most are as wide as can be.  The fewest cubes possible would cost exponential time.

    >>> gate = np.array([[[True, False], [True, False]], [[True, False], [False, True]]])  # c is a and b
    >>> cover(~gate, ~gate)
    [(0, None, 1), (None, 0, 1), (1, 1, 0)]
    """
    if np.count_nonzero(may) == 1 and min(must.shape) > 1:  # a clause, as most tables of some models are
        return list(zip(*(places.tolist() for places in np.nonzero(must)), strict=True))
    left = must.copy()
    cubes: list[Cube] = []
    for entry in zip(*(places.tolist() for places in np.nonzero(must)), strict=True):
        if left[entry]:
            cube = _widened(entry, may)
            left[inside(cube, must.shape)] = False
            cubes.append(cube)
    return cubes


def inside(cube: Cube, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
    """The entries of a cube, as an index into tables of this shape."""
    return np.ix_(*(_states(side, size) for side, size in zip(cube, shape, strict=True)))


def _states(side: int | None, size: int) -> NDArray[np.int64]:
    if side is FREE:
        return np.arange(size)
    return np.array([side]) if side >= 0 else np.delete(np.arange(size), ~side)


def _widened(entry: tuple[int, ...], may: Truths) -> Cube:
    """The cube that an entry grows to."""
    cube: list[int | None] = list(entry)
    for axis in reversed(range(len(entry))):
        size = may.shape[axis]
        cube[axis] = FREE
        along = np.moveaxis(may[inside(tuple(cube), may.shape)], axis, 0).reshape(size, -1).all(axis=1)
        refused = np.flatnonzero(~along)
        if len(refused):
            cube[axis] = ~int(refused[0]) if len(refused) == 1 and size > 2 else entry[axis]
    return tuple(cube)
