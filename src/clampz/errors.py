"""Exceptions that clampz raises, each also the built-in that a caller would expect.

Only input raises.  Running out of iterations or time is data (`Estimate.converged`), never an exception.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Any

__all__ = [
    "ClampzError",
    "EdgeError",
    "EvidenceError",
    "FormatError",
    "MissingLibraryError",
    "ModelError",
    "OptionError",
    "TooWideError",
]

# Names that an unknown one is compared with at most: a tenth of a second.
MOST_COMPARED = 10_000


class ClampzError(Exception):
    """Base of all exceptions that clampz raises on purpose."""


class ModelError(ClampzError, ValueError):
    """A model whose parts do not fit together: shapes, NaN, +inf, self-loops, names."""


class EvidenceError(ClampzError, ValueError):
    """Evidence that names an unknown variable or state, or contradicts itself or the model."""


class EdgeError(ClampzError, KeyError):
    """Two variables that no edge joins, where the table of an edge is asked for."""

    __str__ = Exception.__str__  # (that of a KeyError is quoted)


class OptionError(ClampzError, ValueError):
    """An option out of range, or of a kind the method does not take."""


class FormatError(ClampzError, ValueError):
    """A file that is not what its format says; the message names the file and the place."""


class TooWideError(ClampzError, RuntimeError):
    """Exact inference would need more memory than allowed; carries the width and the bytes."""

    def __init__(self, message: str, *, width: int, num_bytes: int) -> None:
        super().__init__(message)
        self.width = width
        self.num_bytes = num_bytes


class MissingLibraryError(ClampzError, ImportError):
    """An optional library that is not installed; the message says how to install it."""


# Libraries whose models are converted by `from_` and their name.
LIBRARIES = ("dimod", "networkx", "pgmpy", "pyagrum")


def library(module: str) -> Any:
    """Import an optional library, or raise the error that says how to install it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingLibraryError(f"{package} is not installed: pip install {package}", name=package) from None


def another_library(found: object) -> str:
    """Return what an object of another library is, and which call makes a model of it; "" for other objects."""
    library = type(found).__module__.partition(".")[0].lower()
    return f"{library}'s {type(found).__name__}: cz.from_{library} makes one of it" if library in LIBRARIES else ""


def shown(value: object, longest: int = 80) -> str:
    """Return a value as messages show it: in one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def did_you_mean(name: str, known: Iterable[str], most: int = 3, before: str = ": ") -> str:
    """Return the question after known names that are near to an unknown one; "" where none is near.

    >>> did_you_mean("gras", ["rain", "grass"]), did_you_mean("num", ["num_samples"]), did_you_mean("qwx", ["rain"])
    (": did you mean 'grass'?", ": did you mean 'num_samples'?", '')
    """
    names = list(islice(known, MOST_COMPARED))
    near = get_close_matches(name, names, n=most) or [each for each in names if each.startswith(name)][:most]
    return f"{before}did you mean {' or '.join(map(repr, near))}?" if near else ""


def unknown_name(what: str, name: object, known: Collection[str], *, most: int = 3) -> OptionError:
    """Return the error for an unknown name, with the nearest names and the list of all."""
    hint = did_you_mean(str(name), known, most, before="; ") or "."
    plural = what if what.endswith("s") else f"{what.removesuffix('y')}ies" if what.endswith("y") else f"{what}s"
    return OptionError(f"unknown {what} {shown(name)}{hint} The {plural} are {', '.join(known)}")
