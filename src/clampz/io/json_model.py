"""Models as JSON: clampz's own format, for people (see `own_formats`).

    {
    "format": "clampz model",
    "version": 1,
    "num_states": [2, 3],
    "names": ["rain", "grass"],
    "state_names": [["no", "yes"], ["dry", "damp", "wet"]],
    "constant": 0.5,
    "factors": [
    [["rain"], [0.0, -1.0]],
    [["rain", "grass"], [[1.0, 0.0, "-inf"], [-2.0, 0.0, 2.0]]]
    ]
    }

A factor is its variables, by name or index, and its table, a list for each state of the first variable, and so on.  A
hard zero is "-inf", for which JSON has no number.  A variable without a factor of its own has zeros.
"""

import json
from itertools import chain, pairwise
from typing import Any

import numpy as np

from clampz.errors import shown
from clampz.io import files, own_formats
from clampz.io.own_formats import fail
from clampz.model import Model
from clampz.model.tables import offsets, piece_of
from clampz.numerics import Floats, Integers

ZERO = "-inf"


def read(path: files.AnyPath) -> Model:
    """Read the model in a JSON file, plain or compressed with gzip; a FormatError names the file and the place of an
    error."""
    return parse(path, files.load(path))


def write(model: Model, path: files.AnyPath) -> None:
    """Write a model as JSON, compressed if its name ends in `.gz`, whole or not at all."""
    files.replace(path, encode(model))


def encode(model: Model) -> bytes:
    """Encode a model as JSON, a line for each factor; all of it comes back, floats to the last bit."""
    factors, head = own_formats.factors_of(model), own_formats.head_of(model)
    first = {"format": head.pop("format"), "version": head.pop("version"), "num_states": model.num_states.tolist()}
    lines = [f"{own_formats.as_text(key)}: {own_formats.as_text(value)}," for key, value in (first | head).items()]
    known = list(map(own_formats.as_text, model.names or range(model.num_variables)))
    said = [known[i] for i in factors.variables.tolist()]
    scopes = (", ".join(said[begin:end]) for begin, end in pairwise(factors.scope_start.tolist()))
    tables = (json.dumps(factor.table.tolist()).replace("-Infinity", f'"{ZERO}"') for factor in factors)
    texts = [f"[[{scope}], {table}]" for scope, table in zip(scopes, tables, strict=True)]
    return own_formats.as_bytes(["{", *lines, '"factors": [', ",\n".join(texts), "]", "}"])


def parse(path: files.AnyPath, data: bytes) -> Model:
    """Parse a model from a JSON file's bytes; the path is for messages."""
    found = own_formats.object_in(path, data, ("num_states", "factors"))
    num_states = _num_states(path, found["num_states"])
    own_formats.check_states(path, num_states, len(data))
    own_formats.check_names(path, found, num_states)
    factors = found["factors"]
    if type(factors) is not list:
        fail(path, f"expected a list of [variables, table], found {shown(factors)}", "factors")
    for f, item in enumerate(factors):
        if type(item) is not list or len(item) != 2 or type(item[0]) is not list:
            fail(path, f"expected [[variables], table], found {shown(item)}", f"factor {f}")
    scopes = [item[0] for item in factors]
    arity = np.fromiter(map(len, scopes), np.int64, len(scopes))
    variables = _variables(path, list(chain.from_iterable(scopes)), arity, found.get("names"))
    own_formats.check_scopes(path, len(num_states), arity, variables)
    values = _values(path, [item[1] for item in factors], num_states, arity, variables)
    return own_formats.model_of(path, found, num_states, arity, variables, values)


def _num_states(path: files.AnyPath, found: Any) -> Integers:
    if type(found) is not list:
        fail(path, f"expected a list of whole numbers, found {shown(found)}", "num_states")
    for i, size in enumerate(found):
        if type(size) is not int or not 1 <= size <= own_formats.MOST_STATES:
            fail(path, f"expected a number of states >= 1, found {shown(size)}", f"num_states, variable {i}")
    return np.array(found, dtype=np.int64)


def _variables(path: files.AnyPath, found: list[Any], arity: Integers, names: list[str] | None) -> Integers:
    """Look up the variables of all scopes by index or name; an index may be out of range."""
    index_of = {name: i for i, name in enumerate(names or ())}
    try:
        if not set(map(type, found)) <= {int}:
            found = [index_of[each] if isinstance(each, str) else each for each in found]
        if set(map(type, found)) <= {int}:
            return np.array(found, dtype=np.int64)
    except (KeyError, OverflowError):
        pass
    k = next(
        k for k, each in enumerate(found) if each not in index_of and not (type(each) is int and abs(each) < 2**62)
    )
    fail(
        path, f"expected a variable, by index or name, found {shown(found[k])}", f"factor {piece_of(offsets(arity), k)}"
    )


def _values(
    path: files.AnyPath, tables: list[Any], num_states: Integers, arity: Integers, variables: Integers
) -> Floats:
    """Return the entries of all tables end to end; tables of another shape than their variables have are refused."""
    states, entries, start = num_states[variables].tolist(), [], [0]
    for f, (begin, end) in enumerate(pairwise(offsets(arity).tolist())):
        level = [tables[f]]
        for size in states[begin:end]:
            if not all(type(each) is list and len(each) == size for each in level):
                shape = tuple(states[begin:end])
                fail(path, f"expected a table of shape {shape}, found {shown(tables[f])}", f"factor {f}")
            level = list(chain.from_iterable(level))
        entries += level
        start.append(len(entries))
    return _numbers(path, entries, np.array(start))


def _numbers(path: files.AnyPath, found: list[Any], start: Integers) -> Floats:
    """Convert numbers, or "-inf"; `start` says where the entries of each factor begin."""
    kinds = set(map(type, found))
    try:
        if kinds <= {int, float, str}:
            if str not in kinds:
                return np.array(found, dtype=np.float64)
            return np.array([-np.inf if each == ZERO else each + 0.0 for each in found])
    except (TypeError, OverflowError):
        pass
    k = next(k for k, each in enumerate(found) if not _is_number(each))
    f = piece_of(start, k)
    fail(path, f'expected a number or "{ZERO}", found {shown(found[k])}', f"factor {f}, entry {k - start[f]}")


def _is_number(found: object) -> bool:
    return found == ZERO or (type(found) in (int, float) and -1e300 < found < 1e300)  # type: ignore[operator]
