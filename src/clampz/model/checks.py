"""Checks of what users pass in: arrays out, or a ModelError that says what was expected, what came, and where."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import ModelError, another_library, shown
from clampz.numerics import Floats, Integers

T = TypeVar("T")

# Sums of potentials beyond this would drown what stands for a hard zero in a sum (1e30 in mean field).
LARGEST_POTENTIAL = 1e20
# Kernels number variables and messages, two for each edge, with 32 bits.
MOST_MESSAGES = 2**31 - 1


def check_counts(num_variables: int, num_edges: int) -> None:
    """Refuse a model whose graph 32-bit numbers cannot index."""
    if max(num_variables, 2 * num_edges) > MOST_MESSAGES:
        raise ModelError(
            f"expected at most {MOST_MESSAGES} variables and half as many edges, found {num_variables} and {num_edges}"
        )


def as_columns(unary: Sequence[ArrayLike] | ArrayLike) -> list[Floats]:
    """Coerce unary potentials to one array per variable."""
    if isinstance(unary, np.ndarray) and unary.ndim != 2 and unary.dtype != object:
        raise ModelError(f"unary: expected one list of numbers per variable, found an array of shape {unary.shape}")
    theirs = another_library(unary)
    named = isinstance(unary, Mapping) or hasattr(unary, "columns")  # type: ignore[redundant-expr]
    if theirs or named or not hasattr(unary, "__len__"):
        found = theirs or f"{type(unary).__name__}{': names of variables are an option, names=[...]' if named else ''}"
        raise ModelError(f"unary: expected one list of numbers per variable, found {found}")
    columns = []
    for i, table in enumerate(unary):  # type: ignore[arg-type]
        where = f"unary potentials of variable {i}"
        columns.append(column := as_log_potentials(table, where))
        if column.ndim != 1 or column.size == 0:
            raise ModelError(f"{where}: expected a list with one number per state, found shape {column.shape}")
    return columns


def as_iterable(found: Iterable[T], where: str, expected: str) -> Iterable[T]:
    """Refuse what cannot be iterated over, and mappings."""
    try:
        iter(found)
    except TypeError:
        taken = False
    else:
        taken = not isinstance(found, Mapping)
    if not taken:
        raise ModelError(f"{where}: expected {expected}, found {shown(found)}")
    return found


def as_tables(
    found: Mapping[Any, ArrayLike] | Iterable[tuple[Any, ArrayLike]], where: str, expected: str
) -> Iterable[tuple[Any, ArrayLike]]:
    """Coerce a mapping, or pairs, to pairs of scopes and tables."""
    return found.items() if isinstance(found, Mapping) else as_iterable(found, where, expected)


def as_pairs(
    pairwise: Mapping[tuple[Any, Any], ArrayLike] | Iterable[tuple[tuple[Any, Any], ArrayLike]],
) -> Iterator[tuple[tuple[Any, Any], ArrayLike]]:
    """Coerce pairwise potentials to pairs of variables with their tables."""
    if isinstance(pairwise, np.ndarray):
        hint = "Model.from_binary takes weights, and Model.from_arrays tables, as arrays"
        raise ModelError(f"pairwise: expected {{(i, j): table}}, found an array of shape {pairwise.shape}: {hint}")
    for item in as_tables(pairwise, "pairwise", "{(i, j): table}"):
        pair, table = as_pair(item, "pairwise", "a pair of variables and their table")
        yield as_pair(pair, "edge", "a pair of variables"), table


def as_table(values: ArrayLike, shape: Sequence[int] | Integers, where: str, what: str = "") -> Floats:
    """Coerce a table of log potentials of this shape."""
    array = as_log_potentials(values, where)
    if array.shape != (wanted := tuple(map(int, shape))):
        raise ModelError(f"{where}: expected {what}shape {wanted}, found {array.shape}")
    return array


def as_pair(item: Any, where: str, expected: str) -> tuple[Any, Any]:
    """Split a pair into its halves."""
    if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 2:
        raise ModelError(f"{where} {shown(item)}: expected {expected}")
    return item[0], item[1]


def as_floats(values: ArrayLike, where: str) -> Floats:
    """Copy numbers into a new float array."""
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ModelError(f"{where}: expected numbers in a rectangular array, found {shown(values)}") from None


def as_log_potentials(values: ArrayLike, where: str, *, finite: bool = False) -> Floats:
    """Copy log potentials into a new array without NaN and +inf, and without -inf where they must be finite."""
    array = as_floats(values, where)
    # (nan fails every comparison)
    bad = ~((np.abs(array) <= LARGEST_POTENTIAL) | (np.isneginf(array) & (not finite)))
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        wanted = "numbers" if finite else "log potentials or -inf (a hard zero)"
        raise ModelError(
            f"{where}{list(place) if place else ''}: expected finite {wanted}, at most {LARGEST_POTENTIAL:g} in size, "
            f"found {array[place]}"
        )
    return array


def as_edges(edges: ArrayLike, num_variables: int) -> Integers:
    """Coerce (m, 2) pairs of variables that exist."""
    try:
        array = np.asarray(edges)
    except ValueError:
        raise ModelError(f"edges: expected pairs of variables, found {shown(edges)}") from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ModelError(f"edges: expected integers of shape (edges, 2), found {array.dtype} of shape {array.shape}")
    bad = np.flatnonzero(((array < 0) | (array >= num_variables)).any(axis=1))
    if bad.size:
        raise ModelError(
            f"edges[{bad[0]}] = {tuple(array[bad[0]].tolist())}: expected variables from 0 to {num_variables - 1}"
        )
    return array.astype(np.int64)


def as_weights(weights: Floats, edges: ArrayLike | None, n: int) -> tuple[Integers, Floats]:
    """Coerce edges (m, 2) and weights (m,), or a symmetric (n, n) matrix of weights."""
    if edges is not None:
        edge_array = as_edges(edges, n)
        if weights.shape != (len(edge_array),):
            raise ModelError(f"W: expected one weight per edge, shape ({len(edge_array)},), found {weights.shape}")
        return edge_array, weights
    if weights.shape != (n, n):
        raise ModelError(f"W without edges: expected a symmetric ({n}, {n}) matrix, found shape {weights.shape}")
    if not np.array_equal(weights, weights.T) or np.diagonal(weights).any():
        i, j = np.argwhere((weights != weights.T) | np.diag(np.diagonal(weights) != 0))[0]
        wanted = f"W[{j}, {i}] = {weights[j, i]}" if i != j else "0 on the diagonal"
        raise ModelError(
            f"W[{i}, {j}] = {weights[i, j]}: expected a symmetric matrix with a zero diagonal, here {wanted}"
        )
    edge_array = np.argwhere(np.triu(weights))
    return edge_array, weights[edge_array[:, 0], edge_array[:, 1]]


def as_num_states(num_states: ArrayLike) -> Integers:
    """Coerce (n,) whole numbers >= 1."""
    array = np.asarray(num_states)
    if array.dtype == object:
        raise ModelError(f"num_states: expected a whole number per variable, found {shown(num_states)}")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ModelError(
            f"num_states: expected a whole number per variable, found {array.dtype} of shape {array.shape}"
        )
    if array.min() < 1:
        raise ModelError(f"num_states[{array.argmin()}]: expected a whole number >= 1, found {array.min()}")
    return array.astype(np.int64)


def as_constant(constant: float) -> float:
    """Coerce a constant no larger than a potential may be; more would drown what stands for a hard zero in a sum."""
    try:
        number = float(constant)
    except (TypeError, ValueError):
        number = np.nan
    if not abs(number) <= LARGEST_POTENTIAL:
        raise ModelError(
            f"constant: expected a finite number, at most {LARGEST_POTENTIAL:g} in size, found {shown(constant)}"
        )
    return number
