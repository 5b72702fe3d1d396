"""Results as pandas frames, and lanes as xarray datasets, by the names of variables and states.

Both libraries are imported when they are asked for: `pip install "clampz[frames]"`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz.errors import library
from clampz.model.model import Model
from clampz.model.tables import PairTables, ranges
from clampz.numerics import Integers

Columns = Mapping[str, Any]


def states_frame(model: Model, columns: Columns, variables: Integers | None = None) -> Any:
    """Make a frame with a row for each state of each variable, or of some variables, and these columns."""
    return library("pandas").DataFrame({**_states(model, variables), **columns})


def edges_frame(model: Model, tables: PairTables) -> Any:
    """Make a frame with a row for each entry of the table of each edge."""
    _, edge, first, second = tables.entries(np.arange(len(tables)))
    ends = tables.edges[edge].astype(np.int64)
    known, start = _states(model)["state"], model.unary.start
    columns = {
        "variable": _variables(model)[ends[:, 0]],
        "other": _variables(model)[ends[:, 1]],
        "state": known[start[ends[:, 0]] + first],
        "other_state": known[start[ends[:, 1]] + second],
        "probability": tables.flat,
    }
    return library("pandas").DataFrame(columns)


def configurations_frame(model: Model, states: NDArray[np.integer[Any]], columns: Columns) -> Any:
    """Make a frame with a row for each configuration (N, n): a column for each variable, by state names, and others
    after them."""
    pd = library("pandas")
    found: dict[Any, Any] = {}
    for i, variable in enumerate(model.names or range(model.num_variables)):
        own = states[:, i]
        if model.state_names is not None:
            own = pd.Categorical.from_codes(own, categories=list(model.state_names[i]))
        found[variable] = own
    return pd.DataFrame({**found, **columns}, index=range(len(states)))


def records_frame(fields: Sequence[str], records: Sequence[Any]) -> Any:
    """Make a frame with a row for each record and a column for each of these fields."""
    return library("pandas").DataFrame({name: [getattr(record, name) for record in records] for name in fields})


def named_variables(model: Model, variables: Sequence[int | None]) -> Any:
    """Make a column of variables by name, or by number, some of them missing."""
    if model.names is None:
        return library("pandas").array(variables, dtype="Int64")
    return [None if i is None else model.names[i] for i in variables]


def lanes_dataset(model: Model, columns: Columns, marginals: NDArray[np.float64], known: Columns) -> Any:
    """Make a dataset over the dimension "lane", with `marginals` (S, B) over that and "entry". Entries are the states
    of all variables in turn, which `sel(variable=..., state=...)` finds by name. What is `known` of lanes beforehand
    are coordinates."""
    xr, pd = library("xarray"), library("pandas")
    entries = pd.MultiIndex.from_arrays(list(_states(model).values()), names=["variable", "state"])
    coordinates = xr.Coordinates.from_pandas_multiindex(entries, "entry")
    lanes = {"lane": np.arange(marginals.shape[1])} | {name: ("lane", values) for name, values in known.items()}
    data = {name: ("lane", values) for name, values in columns.items()}
    return xr.Dataset({**data, "marginals": (("lane", "entry"), marginals.T)}, coords=coordinates.assign(lanes))


def variable_index(model: Model) -> Any:
    """Return all variables by name, or by number, as a pandas Index."""
    return library("pandas").Index(_variables(model), name="variable")


def _variables(model: Model) -> NDArray[Any]:
    """(n,) return the variables by name, or by number."""
    return np.arange(model.num_variables) if model.names is None else _objects(model.names)


def _states(model: Model, variables: Integers | None = None) -> dict[str, NDArray[Any]]:
    """List the states of some variables, or of all: whose they are, and which."""
    chosen = np.arange(model.num_variables) if variables is None else variables
    num_states = model.num_states[chosen]
    state: NDArray[Any] = ranges(np.zeros(len(chosen), dtype=np.int64), num_states)
    if model.state_names is not None:
        state = _objects([name for i in chosen.tolist() for name in model.state_names[i]])
    return {"variable": np.repeat(_variables(model)[chosen], num_states), "state": state}


def _objects(values: Sequence[str]) -> NDArray[Any]:
    """Make an array of Python's own strings, however long one of them is."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
