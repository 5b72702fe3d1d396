"""Models as arrays: clampz's own format for large models (see `own_formats`), a zip file that numpy.load opens.

    model.json       format, version, names, state_names, constant
    num_states.npy   (n,) of each variable
    arity.npy        (f,) how many variables each factor has
    variables.npy    which, factor after factor
    values.npy       the tables end to end, the last variable of each varying fastest: log potentials

Arrays are of numbers; what numpy would have to unpickle is refused.
"""

import re
import struct
import zlib
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clampz.errors import FormatError, shown
from clampz.io import files, own_formats, text_formats
from clampz.io.own_formats import fail
from clampz.model import Model
from clampz.numerics import Floats, Integers

HEAD = "model.json"
WHOLE, FLOATS = ("num_states", "arity", "variables"), "values"
MEMBERS = (HEAD, *(f"{name}.npy" for name in (*WHOLE, FLOATS)))
# The least that zlib does: floats do not shrink much more by what takes five times as long.
LEVEL = 1
# What zipfile raises where a file is broken.
BROKEN = (BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, LookupError, OverflowError)
# How numpy's arrays begin, and what it says there of numbers along one axis.  (numpy's own reader takes anything for
# Python, and goes to great lengths with it.)
HEADER = re.compile(rb"\x93NUMPY(?:\x01\x00..|[\x02\x03]\x00....)(\{[^\n]*\}) *\n", re.DOTALL)
NUMBERS = re.compile(r"\{'descr': '([<>|]?(?:[iu][1248]|f[248]))', 'fortran_order': \w+, 'shape': \((\d{1,18}),\), \}")


def read(path: files.AnyPath) -> Model:
    """Read the model in an `.npz` file; a FormatError names the file and the place of an error."""
    return parse(path, files.load(path))


def write(model: Model, path: files.AnyPath) -> None:
    """Write a model as an `.npz` file, whole or not at all."""
    files.replace(path, encode(model))


def encode(model: Model) -> bytes:
    """Encode a model as an `.npz` file; all of it comes back, to the last bit, and equal models give equal bytes."""
    factors = own_formats.factors_of(model)
    head = own_formats.as_bytes([own_formats.as_text(own_formats.head_of(model))])
    whole = model.num_states, np.diff(factors.scope_start), factors.variables
    arrays = [array.astype(np.min_scalar_type(int(array.max(initial=0)))) for array in whole]
    members = [head, *map(_as_npy, (*arrays, factors.flat))]
    packed = _zipped(members, ZIP_DEFLATED)
    if sum(map(len, members)) > files.most_unpacked(len(packed)):  # larger ratios are refused on reading
        return _zipped(members, ZIP_STORED)
    return packed


def _as_npy(array: NDArray[Any]) -> bytes:
    out = BytesIO()
    npy.write_array(out, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
    return out.getvalue()


def _zipped(members: list[bytes], how: int) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w") as file:
        for name, data in zip(MEMBERS, members, strict=True):
            file.writestr(ZipInfo(name), data, how, LEVEL)  # (of no date)
    return out.getvalue()


def parse(path: files.AnyPath, data: bytes) -> Model:
    """Parse a model from an `.npz` file's bytes; the path is for messages."""
    members = _members(path, data)
    head = own_formats.object_in(path, members[HEAD], (), HEAD)
    arrays = {name: _array(path, name, members[f"{name}.npy"]) for name in (*WHOLE, FLOATS)}
    for name in WHOLE:
        if arrays[name].dtype.kind not in "iu":
            fail(path, f"expected whole numbers, found {arrays[name].dtype}", name)
    if arrays[FLOATS].dtype.kind != "f":
        fail(path, f"expected floats, found {arrays[FLOATS].dtype}", FLOATS)
    num_states, arity, variables = (_within(path, name, arrays[name]) for name in WHOLE)
    values: Floats = arrays[FLOATS].astype(np.float64)
    own_formats.check_states(path, num_states, sum(map(len, members.values())))
    own_formats.check_names(path, head, num_states)
    if arity.sum(dtype=np.float64) != len(variables):
        fail(path, f"expected {arity.sum(dtype=np.float64):.0f}, as arity says, found {len(variables)}", "variables")
    own_formats.check_scopes(path, len(num_states), arity, variables)
    total = text_formats.float_sizes(num_states, arity, variables).sum()
    if total != len(values):
        fail(path, f"expected {text_formats.count(total)}, as the factors say, found {len(values)}", FLOATS)
    return own_formats.model_of(path, head, num_states, arity, variables, values)


def _within(path: files.AnyPath, name: str, array: NDArray[Any]) -> Integers:
    """Check whole numbers for their range; whether variables exist is checked elsewhere."""
    least = 1 if name == "num_states" else 0
    wrong = np.flatnonzero((array < least) | (array > own_formats.MOST_STATES))
    if wrong.size:
        k = int(wrong[0])
        fail(
            path, f"expected a whole number from {least} to {own_formats.MOST_STATES}, found {array[k]}", f"{name}[{k}]"
        )
    return array.astype(np.int64)


def _members(path: files.AnyPath, data: bytes) -> dict[str, bytes]:
    """Unzip the expected members and no others, up to a limited size."""
    try:
        with ZipFile(BytesIO(data)) as file:
            listed, limit = file.infolist(), files.most_unpacked(len(data))
            names = [info.filename for info in listed]
            if sorted(names) != sorted(MEMBERS):
                fail(path, f"expected {', '.join(MEMBERS)}, found {', '.join(names) or 'nothing':.200}")
            total = sum(info.file_size for info in listed)
            if total > limit:
                fail(path, f"expected at most {limit} bytes out of {len(data)} compressed ones, found {total}")
            return {info.filename: file.read(info) for info in listed}
    except FormatError:
        raise
    except BROKEN as error:
        fail(path, f"expected a whole .npz file, found a broken one ({shown(str(error))[1:-1]})")


def _array(path: files.AnyPath, name: str, data: bytes) -> NDArray[Any]:
    """Parse an array of one axis, whose header is believed only if as many bytes follow."""
    header = HEADER.match(data)
    if header is None:
        fail(path, "expected an array of numpy, found something else", name)
    said = header.group(1).decode("ascii", "replace")
    if "O" in said.partition("fortran_order")[0]:
        fail(path, "expected numbers, found Python objects, which would have to be unpickled", name)
    numbers = NUMBERS.fullmatch(said)
    if numbers is None:
        fail(path, f"expected numbers in an array of one axis, found {shown(said)}", name)
    dtype, size = np.dtype(numbers.group(1)), int(numbers.group(2))
    if size * dtype.itemsize != len(data) - header.end():
        fail(path, f"expected as many numbers as its header says, {size}, found another number of bytes", name)
    return np.frombuffer(data, dtype, offset=header.end())
