"""Files of plain arrays end to end, under a checksum.  Nothing in one is ever run.

    a line of text | SHA-256 of all the rest | the length of each array | the arrays, each of the kind that is agreed on

Numbers are little-endian.  A file that was damaged in any bit or cut short is refused, and one that says it has more
than it has takes no memory.  Its author can make the checksum fit anything: it proves that nothing was damaged since.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from clampz.display.atomic_write import written_whole

Kind = np.dtype[Any]
FLOATS, INTEGERS, BYTES = np.dtype("<f8"), np.dtype("<i8"), np.dtype("u1")
# Bytes of the checksum.
DIGEST = 32


class CorruptFileError(Exception):
    """A file that cannot be used: says what was expected, and what was found."""


def write(path: Path, line: bytes, arrays: Sequence[NDArray[Any]], kinds: Sequence[Kind]) -> None:
    """Write arrays to a file, whole or not at all."""
    plain = [np.ascontiguousarray(array, kind) for array, kind in zip(arrays, kinds, strict=True)]
    lengths = np.array([len(array) for array in plain], dtype=INTEGERS)
    with written_whole(path) as beside, beside.open("wb") as file:
        file.write(line)
        file.write(_digest(line, lengths, *plain))
        for array in (lengths, *plain):
            file.write(array.data)


def read(file: BinaryIO, line: bytes, kinds: Sequence[Kind], most_bytes: int) -> list[NDArray[Any]]:
    """Read the arrays of a file that is open after its first line.

    Raises `CorruptFileError` where they are not what was written, or take more than `most_bytes`.
    """
    digest = file.read(DIGEST)
    lengths = np.fromfile(file, INTEGERS, len(kinds))
    size = os.fstat(file.fileno()).st_size
    declared = file.tell() + sum(kind.itemsize * n for kind, n in zip(kinds, lengths.tolist(), strict=False))
    if len(lengths) != len(kinds) or (lengths < 0).any() or declared != size:
        raise CorruptFileError("expected as many bytes as it says it has, found a file that is damaged or incomplete")
    if size > most_bytes:
        raise CorruptFileError(f"expected at most {most_bytes:,} bytes, as memory= allows, found {size:,}")
    arrays = [np.fromfile(file, kind, n) for kind, n in zip(kinds, lengths.tolist(), strict=True)]
    if digest != _digest(line, lengths, *arrays):
        raise CorruptFileError("expected what its checksum was made of, found a file that is damaged")
    return arrays


def _digest(line: bytes, *arrays: NDArray[Any]) -> bytes:
    found = hashlib.sha256(line)
    for array in arrays:
        found.update(array.data)
    return found.digest()
