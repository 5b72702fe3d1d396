"""Read data as rows of states, from arrays, frames or evidence sets; -1 where a value is missing.

States that are named by numbers (spins: "-1" and "1") are given by these, as in evidence: there -1 is a state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz.display.formatting import some
from clampz.errors import EvidenceError, shown
from clampz.model import Model
from clampz.model.variables import MISSING

Rows = NDArray[np.int32]


def as_rows(model: Model, data: Any) -> Rows:
    """Return (N, n) states by index, MISSING where there is none, from

    - an (N, n) array: states by index or name; nan and None are missing, and -1 where no state is named so;
    - a pandas DataFrame, a column per variable by name (or index); variables without a column are missing throughout;
    - a list of evidence sets `{variable: state}`, one per row.

    >>> as_rows(Model([[0.0, 0.0], [0.0, 0.0]]), [[0, 1], [None, 1]]).tolist()
    [[0, 1], [-1, 1]]
    """
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        rows = _of_frame(model, data)
    elif isinstance(data, Sequence) and len(data) and all(isinstance(row, Mapping) for row in data):
        rows = _of_evidence(model, data)
    else:
        rows = _of_array(model, data)
    if not len(rows):
        raise EvidenceError("data: expected at least one row, found none")
    return rows


def _of_array(model: Model, data: Any) -> Rows:
    """Return states by index from an array (N, n) of indices or names."""
    n = model.num_variables
    try:
        array = np.asarray(data)
        if array.dtype.kind not in "iuf":
            array = np.array(data, dtype=object)
    except (TypeError, ValueError):
        raise EvidenceError(f"data: expected rows of {n} states, found {shown(data)}") from None
    if array.ndim != 2 or array.shape[1] != n:
        raise EvidenceError(
            f"data: expected shape (rows, {n}), a state of each variable in a row, found {array.shape}; "
            "data of some of the variables may come as a DataFrame or as evidence sets"
        )
    rows = np.empty(array.shape, dtype=np.int32)
    for i in range(n):
        rows[:, i] = _column(model, i, array[:, i])
    return rows


def _of_frame(model: Model, frame: Any) -> Rows:
    """Return states by index from a DataFrame, whose columns are variables."""
    rows = np.full((len(frame), model.num_variables), MISSING, dtype=np.int32)
    column_of: dict[int, Any] = {}
    for k, label in enumerate(frame.columns):
        try:
            i = model.variable_index(label)
        except EvidenceError as error:
            raise EvidenceError(f"data, column {label!r}: {error}") from None
        if i in column_of:
            raise EvidenceError(f"data: columns {column_of[i]!r} and {label!r} are both variable {i}")
        column_of[i] = label
        rows[:, i] = _column(model, i, frame.iloc[:, k].to_numpy())
    return rows


def _of_evidence(model: Model, sets: Sequence[Mapping[Any, Any]]) -> Rows:
    """Return states by index from a list of evidence sets."""
    rows = np.full((len(sets), model.num_variables), MISSING, dtype=np.int32)
    for r, row in enumerate(sets):
        try:
            is_missing = {v: model.is_missing(v, state) for v, state in row.items()}
            known = model.as_evidence({v: state for v, state in row.items() if not is_missing[v]})
        except EvidenceError as error:
            raise EvidenceError(f"data, row {r}: {error}") from None
        rows[r, list(known)] = list(known.values())
    return rows


def _column(model: Model, i: int, values: NDArray[Any]) -> Rows:
    """Return states of one variable that are given by index, by name, or by numbers that are their names."""
    if values.dtype.kind not in "iuf":
        return _named(model, i, values.astype(object))
    numbers = model.numbers_of(i)
    if numbers is not None:
        return _named_by_number(model, i, numbers, values)
    known = np.where(np.isnan(values), MISSING, values) if values.dtype.kind == "f" else values
    bad = (known < MISSING) | (known >= model.num_states[i])
    if values.dtype.kind == "f":
        bad |= known != np.floor(known)
    if bad.any():
        r = int(bad.argmax())
        called = repr(model.names[i]) if model.names else str(i)
        raise EvidenceError(
            f"data, row {r}, variable {called}: expected a state from 0 to {model.num_states[i] - 1}, "
            f"or -1 or nan where it is missing, found {values[r]}"
        )
    return known.astype(np.int32)


def _named_by_number(model: Model, i: int, numbers: list[int], values: NDArray[Any]) -> Rows:
    """Return states of one variable that are given by numbers, which are their names."""
    order = np.argsort(numbers)
    place = np.minimum(np.searchsorted(numbers, values, sorter=order), len(numbers) - 1)
    found = order[place].astype(np.int32)
    for r in np.flatnonzero(np.array(numbers)[found] != values):
        if not model.is_missing(i, values[r]):
            called = repr(model.names[i]) if model.names else str(i)
            raise EvidenceError(
                f"data, row {r}, variable {called}: its states are named by numbers, {some(numbers)}, so a number is a "
                f"name, not an index, found {values[r]}; indices of states that were drawn come by name from to_frame()"
            )
        found[r] = MISSING
    return found


def _named(model: Model, i: int, values: NDArray[Any]) -> Rows:
    """Return states of one variable that are given by index or name, one by one."""
    out = np.empty(len(values), dtype=np.int32)
    for r, value in enumerate(values):
        if model.is_missing(i, value):
            out[r] = MISSING
            continue
        whole = int(value) if isinstance(value, float | np.floating) and value == np.floor(value) else value
        try:
            out[r] = model.state_index(i, whole)
        except EvidenceError as error:
            raise EvidenceError(f"data, row {r}: {error}") from None
    return out
