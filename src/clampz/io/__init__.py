"""Files to models and back.

`read` and `write` go by the file's suffix; the module of each format has both for files that are named otherwise.
`evidence` and `results` read and write what the UAI competitions put beside their models.

May import: the model, and what every room may (errors, files, wording, numerics, options).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from clampz.errors import EvidenceError, FormatError
from clampz.io import evidence as evidence_files
from clampz.io import fg, results, uai
from clampz.io.files import AnyPath
from clampz.model import Evidence, Model
from clampz.model.fixing import given

FORMATS: dict[str, tuple[Callable[[AnyPath], Model], Callable[[Model, AnyPath], None]]] = {
    ".uai": (uai.read, uai.write),
    ".fg": (fg.read, fg.write),
}

__all__ = ["FORMATS", "fg", "read", "results", "uai", "write"]


def read(path: AnyPath, evidence: AnyPath | Evidence | None = None) -> Model:
    """The model in a file: `.uai` or libDAI's `.fg`, also compressed (`.uai.gz`), and what is known of its variables.

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
    model = FORMATS[_suffix(path)][0](path)
    if evidence is None:
        return model
    if isinstance(evidence, Mapping):
        return given(model, evidence)
    known = evidence_files.read(evidence, model)
    try:
        return given(model, known)
    except EvidenceError as error:
        raise EvidenceError(f"{evidence}: {error}") from None


def write(model: Model, path: AnyPath) -> None:
    """Write a model in the format of the file's suffix, compressed if `.gz` follows it; a file that is there already is
    replaced whole or not at all.

    Names of variables and states are lost: neither format has them.

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
    FORMATS[_suffix(path)][1](model, path)


def _suffix(path: AnyPath) -> str:
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in FORMATS:
        known = " or ".join(f"{known} ({known}.gz)" for known in FORMATS)
        raise FormatError(f"{path}: expected a file name that ends in {known}, found {suffix or 'no suffix'!r}")
    return suffix
