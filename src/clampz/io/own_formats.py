"""The schema of clampz's own formats, which keep all of a model: names, constant, hard zeros, numbers to the last bit.

`json_model` and `npz_model` are two forms of it, the arguments of `Model.from_factors`:

    format         "clampz model"
    version        1
    num_states     of each variable
    names          of the variables, distinct; left out where they have none
    state_names    of the states of each variable; likewise
    constant       added to every score; 0 where it is left out
    factors        variables, and a table of log potentials over them, each; those over the same variables are added up

What is none of these is refused.
"""

import json
import sys
from collections.abc import Collection, Iterable
from typing import Any, NoReturn

import numpy as np

from clampz.errors import FormatError, ModelError, shown
from clampz.io import text_formats
from clampz.io.files import AnyPath
from clampz.model import Model
from clampz.model.checks import LARGEST_POTENTIAL, as_constant
from clampz.model.data import fold
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets, piece_of
from clampz.model.variables import Variables
from clampz.numerics import Floats, Integers, largest_size

FORMAT, VERSION = "clampz model", 1
REQUIRED, OPTIONAL = ("format", "version"), ("names", "state_names", "constant")
# States of a variable at most.
MOST_STATES = 2**31 - 1


def head_of(model: Model) -> dict[str, Any]:
    """Collect all that is no array: format, version, names and constant."""
    names = {"names": model.names, "state_names": model.state_names}
    said = {name: value for name, value in names.items() if value is not None}
    return {"format": FORMAT, "version": VERSION, **said, "constant": model.constant}


def factors_of(model: Model) -> FactorTables:
    """List all factors of a model in log potentials: of each variable, of each edge, and the larger ones."""
    factors = text_formats.all_factors(model)
    for name, largest in (("potentials", largest_size(factors.flat)), ("constant", abs(model.constant))):
        if largest > LARGEST_POTENTIAL:
            raise ModelError(f"{name}: expected at most {LARGEST_POTENTIAL:g} in size in a file, found {largest:g}")
    return factors


def as_text(value: Any) -> str:
    """Encode a value as one line of JSON, names as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def as_bytes(lines: Iterable[str]) -> bytes:
    """Encode lines as UTF-8."""
    try:
        return "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise ModelError(f"names: expected characters that text can have, found {half!a}") from None


def fail(path: AnyPath, message: str, where: str = "") -> NoReturn:
    """Raise a FormatError with the file and the place."""
    raise FormatError(f"{path}{where and f', {where}'}: {message}")


def object_in(path: AnyPath, data: bytes, required: Collection[str], where: str = "") -> dict[str, Any]:
    """Parse a JSON object that has the required keys, and check its head."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            fail(path, f"expected every key once, found {shown(max(keys, key=keys.count))} again", where)
        return found

    try:
        found = json.loads(data.decode(), object_pairs_hook=once)
    except FormatError:
        raise
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        fail(path, f"expected UTF-8, found the byte {data[error.start]:#04x}", where or f"line {line}")
    except json.JSONDecodeError as error:
        fail(path, f"expected JSON, found {error.msg} at character {error.colno}", where or f"line {error.lineno}")
    except RecursionError:
        fail(path, "expected JSON, found brackets inside each other without end", where)
    except ValueError:
        fail(path, f"expected numbers of at most {sys.get_int_max_str_digits()} digits, found a longer one", where)
    if not isinstance(found, dict):
        fail(path, f"expected an object, {{...}}, found {shown(found)}", where)
    wanted = (*REQUIRED, *required)
    for key in wanted:
        if key not in found:
            fail(path, f"expected {key!r}, found {', '.join(map(repr, found)) or 'nothing':.80}", where)
    if found["format"] != FORMAT:
        fail(path, f"expected the format {FORMAT!r}, found {shown(found['format'])}", where)
    if type(found["version"]) is not int or found["version"] != VERSION:
        fail(path, f"expected version {VERSION}, found {shown(found['version'])}", where)
    other = next((key for key in found if key not in (*wanted, *OPTIONAL)), None)
    if other is not None:
        fail(path, f"expected {', '.join((*wanted, *OPTIONAL))}, found {shown(other)}", where)
    constant = found.get("constant", 0.0)
    if type(constant) not in (int, float):
        fail(path, f"constant: expected a number, found {shown(constant)}", where)
    return found


def check_states(path: AnyPath, num_states: Integers, num_bytes: int) -> None:
    """Refuse more states than a file of this size can have a use for."""
    total, limit = num_states.sum(dtype=np.float64), num_bytes + text_formats.FREE_STATES
    if total > limit:
        fail(path, f"expected at most {limit} states in all in a file of this size, found {total:.0f}", "num_states")


def check_names(path: AnyPath, head: dict[str, Any], num_states: Integers) -> None:
    """Refuse names that are no distinct strings, or that files cannot hold."""
    names, state_names = head.get("names"), head.get("state_names")
    if not (names is None or _are_texts(names)):
        fail(path, f"names: expected a list of strings, found {shown(names)}")
    if not (state_names is None or (type(state_names) is list and all(map(_are_texts, state_names)))):
        fail(path, f"state_names: expected a list of strings for each variable, found {shown(state_names)}")
    try:
        Variables(num_states, names, state_names)
    except ModelError as error:
        fail(path, str(error))


def _are_texts(found: object) -> bool:
    if not isinstance(found, list) or not set(map(type, found)) <= {str}:
        return False
    try:
        return "".join(found).encode() is not None
    except UnicodeEncodeError:
        return False


def check_scopes(path: AnyPath, n: int, arity: Integers, variables: Integers) -> None:
    """Refuse variables that do not exist, or are twice in a scope."""
    start = offsets(arity)
    wrong = np.flatnonzero((variables < 0) | (variables >= n))
    if wrong.size:
        k = int(wrong[0])
        fail(path, f"expected a variable from 0 to {n - 1}, found {variables[k]}", f"factor {piece_of(start, k)}")
    twice = text_formats.first_again(arity, variables)
    if twice is not None:
        where = f"factor {piece_of(start, twice)}"
        fail(path, f"expected distinct variables, found {variables[twice]} twice", where)


def model_of(
    path: AnyPath, head: dict[str, Any], num_states: Integers, arity: Integers, variables: Integers, values: Floats
) -> Model:
    """Build the model of factors laid end to end, whose scopes and sizes are known to be sound."""
    wrong = np.flatnonzero(~((np.abs(values) <= LARGEST_POTENTIAL) | np.isneginf(values)))
    if wrong.size:
        k = int(wrong[0])
        start = offsets(text_formats.float_sizes(num_states, arity, variables).astype(np.int64))
        f = piece_of(start, k)
        expected = f"a log potential, at most {LARGEST_POTENTIAL:g} in size, or -inf"
        fail(path, f"expected {expected}, found {values[k]:g}", f"factor {f}, entry {k - start[f]}")
    try:
        factors = text_formats.within_axes(num_states, arity, variables, values)
        is_larger = np.diff(factors.scope_start) > 2
        larger = factors.take(is_larger)
        if _as_models_have_them(larger):  # to the last bit, also where a table is constant
            contents = fold(factors.take(~is_larger))._replace(factors=larger)
        else:
            contents = fold(factors)
        constant = contents.constant + as_constant(head.get("constant", 0.0))
        names, state_names = head.get("names"), head.get("state_names")
        return Model.from_contents(contents._replace(constant=constant, names=names, state_names=state_names))
    except ModelError as error:
        raise FormatError(f"{path}: {error}") from None


def _as_models_have_them(factors: FactorTables) -> bool:
    """Whether the variables of each scope are in order, and no two scopes are the same."""
    arity = np.diff(factors.scope_start)
    for size in np.unique(arity).tolist():
        scopes = factors.variables[np.repeat(arity == size, arity)].reshape(-1, size)
        if (np.diff(scopes, axis=1) <= 0).any() or len(np.unique(scopes, axis=0)) < len(scopes):
            return False
    return True
