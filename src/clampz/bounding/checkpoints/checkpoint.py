"""Checkpoints: a search left in a file, to be resumed later.

A file is arrays under a checksum (`file`), and all that is restored from one is checked against the model and the
schema first (`restore`).  So whatever its bytes are, it is refused with a reason, or it is a search to resume; nothing
in it is ever run.  What no check can show is that the bounds of a file that somebody else made are true: it proves what
its author claims.
"""

from pathlib import Path

from clampz._version import __version__
from clampz.bounding.checkpoints import file as checkpoint_file
from clampz.bounding.checkpoints.file import CorruptFileError
from clampz.bounding.checkpoints.restore import SPARE_BYTES, restore
from clampz.bounding.checkpoints.schema import KINDS, SavedSearch, saved_search
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.errors import ModelError, OptionError
from clampz.model import Model

# The first line of a file; the number changes with the schema.
MARK = b"clampz checkpoint "
TITLE = MARK + b"6, version "
LINE = TITLE + __version__.encode() + b"\n"
# The longest first line that is looked at, and how pickles begin, which earlier versions left.
LONGEST_LINE, PICKLE = 200, b"\x80"
REMEDY = "give another file, or delete this one to begin anew"


def save(problem: Problem, path: Path) -> None:
    """Write the tree of a search to a file, whole or not at all."""
    try:
        checkpoint_file.write(path, LINE, saved_search(problem), KINDS)
    except OSError as error:
        raise OptionError(f"checkpoint {path}: {error.strerror or error}") from None


def resumed(model: Model, options: BoundOptions, path: Path) -> Problem:
    """Resume the search left in a file; begin a new one if there is none."""
    if not path.exists():
        if not path.parent.is_dir():
            raise OptionError(f"checkpoint {path}: expected a folder that exists")
        return Problem(model, options)
    try:
        saved = _read(path, options.num_bytes + SPARE_BYTES)
        problem = restore(model, options, saved)
    except OSError as error:
        raise OptionError(f"checkpoint {path}: {error.strerror or error}") from None
    except (CorruptFileError, ModelError) as error:
        raise OptionError(f"checkpoint {path}: {error}; {REMEDY}") from None
    return problem


def _read(path: Path, most_bytes: int) -> SavedSearch:
    if not path.is_file():
        raise CorruptFileError("expected a file that bound() left, found no file")
    with path.open("rb") as file:
        _check_line(file.readline(LONGEST_LINE))
        return SavedSearch(*checkpoint_file.read(file, LINE, KINDS, most_bytes))


def _check_line(line: bytes) -> None:
    if line.startswith(MARK) and line != LINE:
        found = line.removeprefix(TITLE).removeprefix(MARK).strip().decode("ascii", "replace")
        raise CorruptFileError(f"expected one of version {__version__}, found {found!r:.40}")
    if line.startswith(PICKLE):
        raise CorruptFileError(
            "expected a file that bound() left, found a pickle, as earlier versions left them: these are not read any "
            "more, for a pickle may run whatever its author likes"
        )
    if line != LINE:
        raise CorruptFileError("expected a file that bound() left, found something else")
