"""Files to models and back.

`read` and `write` go by the file's suffix; the module of each format has both for files that are named otherwise.
"""

import os
from collections.abc import Callable
from pathlib import Path

from clampz.errors import FormatError
from clampz.io import uai
from clampz.model import Model

FORMATS: dict[str, tuple[Callable[[str | os.PathLike[str]], Model], Callable[[Model, str | os.PathLike[str]], None]]] = {
    ".uai": (uai.read, uai.write),
}

__all__ = ["FORMATS", "read", "uai", "write"]


def read(path: str | os.PathLike[str]) -> Model:
    """The model in a file: `.uai`, also compressed (`.uai.gz`)."""
    return FORMATS[_suffix(path)][0](path)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model in the format of the file's suffix, compressed if `.gz` follows it; a file that is there already is replaced whole or not at all."""
    FORMATS[_suffix(path)][1](model, path)


def _suffix(path: str | os.PathLike[str]) -> str:
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in FORMATS:
        known = " or ".join(f"{known} ({known}.gz)" for known in FORMATS)
        raise FormatError(f"{path}: expected a file name that ends in {known}, found {suffix or 'no suffix'!r}")
    return suffix
