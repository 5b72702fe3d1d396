"""What commands give to programs and leave in files: JSON and pictures, whole or not at all."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clampz.cli.exits import CommandError
from clampz.files import written_whole
from clampz.io import files
from clampz.plotting.canvas import let_go

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


def give_json(data: dict[str, Any], out: Path | None = None) -> None:
    """JSON to a file, or to stdout."""
    text = json.dumps(data, allow_nan=False)
    if out is None:
        print(text)
    else:
        files.replace(out, f"{text}\n".encode())


def as_number(value: float) -> float | str | None:
    """A number as JSON can hold it: for an infinity its name."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def check_file(path: Path, option: str = "--out", suffixes: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a file that could not be written, or whose name ends in none of these."""
    if path.is_dir():
        raise CommandError(f"{option} {path}: expected a file, found a directory")
    if suffixes and path.suffix.lower() not in suffixes:
        expected, found = ", ".join(suffixes), path.suffix or "no suffix"
        raise CommandError(f"{option} {path}: expected a name that ends in {expected}, found {found!r}")
    if not path.parent.is_dir():
        raise CommandError(f"{option} {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{option} {path}: no permission to write there")


def check_picture_path(path: Path, option: str = "--out") -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    check_file(path, option, PICTURE_SUFFIXES)


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure over what is there; nobody is to see it but in the file."""
    try:
        with written_whole(path) as beside:
            figure.savefig(beside)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    finally:
        let_go(figure)
