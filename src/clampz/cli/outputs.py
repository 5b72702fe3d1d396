"""What commands give to programs and leave in files: JSON, CSV, models and pictures, whole or not at all.

A result has forms, such as "json" and "csv".  Which one is asked for, `--format` says, or the name of the file; `-` is
standard output.
"""

import argparse
import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from clampz.cli.exit_codes import CommandError
from clampz.display.atomic_write import written_whole
from clampz.display.formatting import name_of
from clampz.io import FORMATS, files
from clampz.model import Model
from clampz.plotting.canvas import let_go

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
# Standard input or output, in place of a file.
STANDARD = Path("-")
# What people read in place of its name.
STDIN = "standard input"
# Forms that no terminal can show.
BINARY = ("npz",)
MODEL_FORMS = tuple(suffix[1:] for suffix in FORMATS)


def called(path: Path) -> str:
    """A file that is read, as people know it."""
    return STDIN if path == STANDARD else str(path)


@dataclass(frozen=True)
class Output:
    """Where a command leaves its result, and in which form; without a path, nowhere."""

    path: Path | None
    form: str

    @property
    def is_standard(self) -> bool:
        """Whether it takes the place of what would be printed."""
        return self.path == STANDARD

    def give(self, made: Mapping[str, Callable[[], bytes]]) -> None:
        """Leave the result, in the form that is asked for."""
        if self.path is None:
            return
        data = made[self.form]()
        if not self.is_standard:
            files.replace(self.path, data)
            return
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def show(self, as_json: bool, data: dict[str, Any], print_tables: Callable[[], None]) -> None:
        """Print tables, or JSON if that is asked for and not left already; nothing where the result itself is there."""
        if self.is_standard or (as_json and self.form == "json"):
            return
        if as_json:
            give_json(data)
        else:
            print_tables()


def asked_for(
    args: argparse.Namespace,
    forms: Sequence[str],
    *,
    endings: Mapping[str, str] | None = None,
    option: str = "--out",
    with_what: str = "",
) -> Output:
    """The output that arguments `out` and `format` ask for, refused before anything is computed where it could not be
    written.  `endings` are the forms by how the name of a file may end: without them, each form is its own ending."""
    path: Path | None = args.out
    if args.format is not None and args.format not in forms:
        raise CommandError(f"--format {args.format}: expected {', '.join(forms)}{with_what and f' with {with_what}'}")
    if path is None:
        return Output(STANDARD if args.format else None, args.format or "")
    known = {f".{form}": form for form in forms} if endings is None else endings
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    form = args.format or next((form for ending, form in known.items() if ending.lower() == suffix), "")
    if path != STANDARD:
        check_file(path, option, () if form else [*known])
    elif not form:
        raise CommandError(f"{option} -: expected --format {', '.join(forms)}, as - has no name to say it, found none")
    elif form in BINARY and sys.stdout.isatty():
        raise CommandError(f"{option} -: expected a file or a pipe for {form}, found a terminal")
    return Output(path, form)


def model_forms(model: Model) -> dict[str, Callable[[], bytes]]:
    """A model in every format that it can be written in."""
    return {form: partial(FORMATS[f".{form}"].encode, model) for form in MODEL_FORMS}


def give_json(data: dict[str, Any]) -> None:
    """JSON to stdout."""
    print(json.dumps(data, allow_nan=False))


def as_json(data: dict[str, Any]) -> bytes:
    """JSON in a file."""
    return f"{json.dumps(data, allow_nan=False)}\n".encode()


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A line for each row under one of names, with all digits; what is not known is left empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_in_full(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def states_as_csv(model: Model, states: NDArray[Any], **more: Sequence[float]) -> bytes:
    """A line for each configuration (N, n), states by name where they have names, and more columns."""
    names = [name_of(model.names, i) for i in range(model.num_variables)]
    rows = states.tolist()
    if model.state_names is not None:
        rows = [[known[a] for known, a in zip(model.state_names, row, strict=True)] for row in rows]
    columns = [[float(value) for value in values] for values in more.values()]
    return as_csv([*names, *more], ([*row, *(column[k] for column in columns)] for k, row in enumerate(rows)))


def record_as_csv(data: Mapping[str, Any]) -> bytes:
    """What JSON has, in one row; of a list, blanks between its parts."""
    return as_csv(data, [[" ".join(map(str, each)) if isinstance(each, list) else each for each in data.values()]])


def _in_full(value: object) -> object:
    if isinstance(value, float):  # (of numpy too)
        return "" if math.isnan(value) else repr(float(value))
    return value


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
