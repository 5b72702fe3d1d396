"""Files to models and back.

`read` and `write` go by the file's suffix; the module of each format has both for files that are named otherwise, and
`parse` and `encode` for bytes without a file; `parse` here sees which format they have.  `evidence` and `results` read
and write what the UAI competitions put beside their models.
"""

import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from clampz.errors import FormatError
from clampz.io import evidence as evidence_files
from clampz.io import fg, files, json_model, npz_model, results, text_formats, uai
from clampz.io.files import AnyPath
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.model.model_checks import check_model


class Format(NamedTuple):
    """A file format: its parser of bytes to a model, the path being for messages, and its encoder."""

    parse: Callable[[AnyPath, bytes], Model]
    encode: Callable[[Model], bytes]


FORMATS = {
    ".uai": Format(uai.parse, uai.encode),
    ".fg": Format(fg.parse, fg.encode),
    ".json": Format(json_model.parse, json_model.encode),
    ".npz": Format(npz_model.parse, npz_model.encode),
}

# What comes before the first word of a text is white space and comments.
FIRST_WORD = re.compile(rb"(?:\s|" + text_formats.COMMENT + rb"[^\n]*)*([^\s#]*)")

__all__ = ["FORMATS", "fg", "json_model", "npz_model", "parse", "read", "results", "uai", "write"]


def read(path: AnyPath, evidence: AnyPath | Evidence | None = None) -> Model:
    """The model in a file: `.uai`, libDAI's `.fg`, or clampz's own `.json` and `.npz`, also compressed (`.uai.gz`), and
    what is known of its variables.

    Evidence is a file in either of the UAI dialects, or `{variable: state}`.  The model keeps its variables and their
    numbers, those of the evidence being certain, and its Z is that of the evidence: of a Bayesian network, its
    probability.

    Parameters
    ----------
    path
        The file: its suffix says which format it has.
    evidence
        What is known of its variables, as above; None for nothing.

    Returns
    -------
    Model
        With the logarithms of the values in the file; a value of zero is a hard zero.

    Raises
    ------
    FormatError
        Where the file is not what its format says, with the file, the line and what was expected there.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from clampz import generators
    >>> with TemporaryDirectory() as folder:
    ...     write(generators.cycle(3, rng=0), f"{folder}/ring.uai")
    ...     read(f"{folder}/ring.uai", evidence={0: 1})
    Model(3 variables of 2 states, 1 edge)
    """
    model = FORMATS[suffix_of(path)].parse(path, files.load(path))
    if not isinstance(evidence, str | PathLike):
        return given(model, evidence)
    return evidence_files.under(model, evidence)


def write(model: Model, path: AnyPath) -> None:
    """Write a model in the format of the file's suffix, compressed if `.gz` follows it; a file that is there already is
    replaced whole or not at all.

    clampz's own `.json`, for people, and `.npz`, for large models, keep all of it.  In `.uai` and `.fg` files names of
    variables and states are lost, and potentials are rounded.

    Parameters
    ----------
    model
        What to write.
    path
        The file: its suffix says in which format.

    Raises
    ------
    FormatError
        Where no format has that suffix.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from clampz import generators
    >>> with TemporaryDirectory() as folder:
    ...     write(generators.cycle(3, rng=0), f"{folder}/ring.fg")
    ...     print(Path(folder, "ring.fg").read_text().split()[0])  # libDAI's files begin with the number of factors
    6
    """
    check_model(model)
    files.replace(path, FORMATS[suffix_of(path)].encode(model))


def parse(name: str, data: bytes) -> Model:
    """Parse the bytes of a file of any format, also compressed, recognised by their content; the name is for
    messages."""
    data = files.decompressed(name, data)
    first = FIRST_WORD.match(data)
    word = first.group(1) if first else b""
    suffix = ".json" if word.startswith((b"{", b"[")) else ".fg" if word[:1].isdigit() else ".uai"
    return FORMATS[".npz" if data.startswith(b"PK") else suffix].parse(name, data)


def suffix_of(path: AnyPath) -> str:
    """Return the suffix that says which format a file has."""
    files.check_path(path)
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in FORMATS:
        known = " or ".join(f"{known} ({known}.gz)" for known in FORMATS)
        raise FormatError(f"{path}: expected a file name that ends in {known}, found {suffix or 'no suffix'!r}")
    return suffix
