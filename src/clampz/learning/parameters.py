"""Features and tied parameters: which potentials are learned, and which of them are equal.

theta (E,) are the tables of a model end to end: unary, pairwise and larger ones.  With features F (K, E) and
parameters w (K,),

    theta = base + w F,        d log Z / d w = F mu

where base are the potentials of the model given, and mu its marginals in the order of theta.  Hard zeros stay.
"""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.errors import OptionError, shown
from clampz.model import Model
from clampz.model.model_checks import check_model
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers
from clampz.runtime.options import knows_its_options


def tables_of(model: Model) -> tuple[Floats, Floats, Floats]:
    """Return the entries of a model's tables: of variables, of edges, of larger factors."""
    return model.unary.flat, model.pairwise.flat, model.factors.flat


class Features:
    """Features of a model's tables: a sparse matrix (K, E), or None where every entry is a parameter of its own."""

    def __init__(self, model: Model, parameters: Any) -> None:
        self.num_parameters = num_entries = sum(map(len, tables_of(model)))
        self.matrix: Any = None
        if parameters is None:
            return
        from scipy.sparse import csr_array  # slow to import, and few who solve models also learn them

        try:
            self.matrix = csr_array(parameters, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError(f"parameters: expected a matrix of features, found {shown(parameters)}") from None
        if self.matrix.ndim != 2 or self.matrix.shape[1] != num_entries:
            raise OptionError(
                f"parameters: expected {num_entries} columns, one per entry of unary.flat, pairwise.flat and "
                f"factors.flat in turn, found shape {self.matrix.shape}"
            )
        if not np.isfinite(self.matrix.data).all():
            raise OptionError("parameters: expected finite features, found nan or inf")
        self.num_parameters = int(self.matrix.shape[0])

    def learned(self, model: Model, parameters: Floats) -> Model:
        """Return the model with the learned potentials added to its tables."""
        added = parameters if self.matrix is None else self.matrix.T @ parameters
        unary, pairwise, factors = tables_of(model)
        ends = [len(unary), len(unary) + len(pairwise)]
        more = np.split(added, ends)
        return model.with_tables(unary + more[0], pairwise + more[1], factors + more[2])

    def by_parameters(self, by_tables: Floats) -> Floats:
        """Return derivatives by the parameters, from those by the tables end to end."""
        found: Floats = by_tables if self.matrix is None else self.matrix @ by_tables
        return found


@knows_its_options
def tied_parameters(
    model: Model,
    *,
    variables: str | ArrayLike = "each",
    edges: str | ArrayLike = "all",
    factors: str | ArrayLike = "all",
) -> Any:
    """Return features for `fit` under which tables share their parameters: a sparse (K, E) matrix of ones.

    Parameters
    ----------
    model
        That the features are for.
    variables, edges, factors
        Of these tables: "each" has parameters of its own, "all" of a shape have the same, "none" are learned; or a
        whole number per table, in the model's order: those with the same number have the same parameters, those below
        zero are not learned.

    Returns
    -------
    scipy.sparse matrix
        (K, E), a row for each parameter and a column for each table entry: what `fit` takes as `parameters`.

    Raises
    ------
    OptionError
        Where there is not one number per table, or tables of different shapes have the same.

    Examples
    --------
    >>> model = Model.from_binary([0.0, 0.0, 0.0], [1.0, 1.0], [(0, 1), (1, 2)])
    >>> tied_parameters(model).shape, tied_parameters(model, variables="none").shape
    ((10, 14), (4, 14))
    >>> tied_parameters(model, variables="none", edges=[0, 1]).shape
    (8, 14)
    """
    check_model(model)
    states = model.num_states
    tables: tuple[tuple[str, str | ArrayLike, Integers, list[tuple[int, ...]]], ...] = (
        ("variables", variables, model.unary.start, [(k,) for k in states.tolist()]),
        ("edges", edges, model.pairwise.start, [tuple(pair) for pair in states[model.edges].tolist()]),
        ("factors", factors, model.factors.start, [factor.table.shape for factor in model.factors]),
    )
    rows, columns, num_parameters, num_entries = [], [], 0, 0
    for kind, groups, start, shapes in tables:
        first, used = _first_parameters(kind, groups, shapes, np.diff(start))
        table = np.repeat(np.arange(len(first)), np.diff(start))
        entry = np.arange(start[-1])
        learned = first[table] >= 0
        rows.append((num_parameters + first[table] + entry - start[table])[learned])
        columns.append((num_entries + entry)[learned])
        num_parameters, num_entries = num_parameters + used, num_entries + int(start[-1])
    from scipy.sparse import csr_array

    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(len(row)), (row, column)), shape=(num_parameters, num_entries))


def _first_parameters(
    kind: str, groups: str | ArrayLike, shapes: list[tuple[int, ...]], sizes: Integers
) -> tuple[Integers, int]:
    """Return where the parameters of each table begin (-1: not learned), and how many there are."""
    number_of: dict[tuple[int, ...], int] = {}
    if isinstance(groups, str):
        if groups not in ("each", "all", "none"):
            raise OptionError(f'{kind}: expected "each", "all", "none" or a number per table, found {shown(groups)}')
        by_shape = [number_of.setdefault(shape, len(number_of)) for shape in shapes]
        known = {"each": list(range(len(shapes))), "all": by_shape, "none": [-1] * len(shapes)}
        numbers: NDArray[Any] = np.array(known[groups], dtype=np.int64)
    else:
        numbers = np.array([None])
        with suppress(ValueError):  # of lists of different lengths
            numbers = np.asarray(groups)
        if numbers.shape != (len(shapes),) or not (numbers.dtype.kind in "iu" or numbers.size == 0):
            expected = f"a whole number for each of {len(shapes)} tables"
            raise OptionError(f"{kind}: expected {expected}, found {shown(groups)}")
    first = np.full(len(shapes), -1, dtype=np.int64)
    learned = np.flatnonzero(numbers >= 0)
    if not learned.size:
        return first, 0
    _, example, group = np.unique(numbers[learned], return_index=True, return_inverse=True)
    for t, g in zip(learned.tolist(), group.tolist(), strict=True):
        like = int(learned[example[g]])
        if shapes[t] != shapes[like]:
            raise OptionError(
                f"{kind}: tables {like} and {t} are to have the same parameters, "
                f"but are of shapes {shapes[like]} and {shapes[t]}"
            )
    begin = offsets(sizes[learned[example]])
    first[learned] = begin[group]
    return first, int(begin[-1])
