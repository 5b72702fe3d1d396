"""Files, JSON, CSV and pictures that commands write, each whole or not at all.

A result has forms, such as "json" and "csv".  `--format` or the name of the file says which is asked for; `-` is
standard output.
"""

import argparse
import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from clampz.cli.exit_codes import CommandError, require
from clampz.display.atomic_write import written_whole
from clampz.display.formatting import name_of
from clampz.io import FORMATS, files
from clampz.model import Model
from clampz.plotting.figures import close_figure

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
# Standard input or output, in place of a file.
STANDARD_STREAM = Path("-")
# What people read in place of its name.
STDIN = "standard input"
# Forms that no terminal can show.
BINARY = ("npz",)
MODEL_FORMS = tuple(suffix[1:] for suffix in FORMATS)


def display_name(path: Path) -> str:
    """Return the name of an input file for people: "standard input" for `-`."""
    return STDIN if path == STANDARD_STREAM else str(path)


@dataclass(frozen=True)
class Output:
    """Where a command writes its result, and in which form; without a path, nowhere."""

    path: Path | None
    form: str

    @property
    def is_standard(self) -> bool:
        """Whether the result goes to standard output, in place of what would be printed."""
        return self.path == STANDARD_STREAM

    def write(self, encoders: Mapping[str, Callable[[], bytes]]) -> None:
        """Encode the result in the form that is asked for, and write it."""
        if self.path is None:
            return
        data = encoders[self.form]()
        if not self.is_standard:
            files.replace(self.path, data)
            return
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def deliver(
        self,
        args: argparse.Namespace,
        data: dict[str, Any],
        print_tables: Callable[[], None],
        result: Any = None,
        **encoders: Callable[[], bytes],
    ) -> None:
        """Write the result to the file, print it as tables or as JSON, and draw it where `--plot` asks for that.

        Nothing is printed where the result itself goes to standard output, nor JSON that is in the file already.
        """
        self.write({"json": lambda: as_json(data)} | encoders)
        if args.json and self.form != "json" and not self.is_standard:
            print_json(data)
        elif not args.json and not self.is_standard:
            print_tables()
        if result is not None and args.plot is not None:
            save_picture(result.plot().figure, args.plot)


def requested_output(
    args: argparse.Namespace,
    forms: Sequence[str],
    *,
    endings: Mapping[str, str] | None = None,
    option: str = "--out",
    with_what: str = "",
) -> Output:
    """Return the output that `--out` and `--format` ask for.

    Before anything is computed, files and pictures that could not be written are refused, and missing libraries.
    `endings` are the forms by how the name of a file may end; without them, each form is its own ending.
    """
    path, form, endings = args.out, args.format or "", endings or {f".{form}": form for form in forms}
    if form and form not in forms:
        raise CommandError(f"--format {form}: expected {', '.join(forms)}{with_what and f' with {with_what}'}")
    if path is None:
        path = STANDARD_STREAM if form else None
    else:
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        form = form or next((form for ending, form in endings.items() if ending.lower() == suffix), "")
        if path != STANDARD_STREAM:
            check_file(path, option, () if form else [*endings])
        elif not form:
            raise CommandError(
                f"{option} -: expected --format {', '.join(forms)}, as - has no name to say it, found none"
            )
        elif form in BINARY and sys.stdout.isatty():
            raise CommandError(f"{option} -: expected a file or a pipe for {form}, found a terminal")
    output = Output(path, form)
    if getattr(args, "plot", None) is not None:
        check_file(args.plot, "--plot", PICTURE_SUFFIXES)
        require("matplotlib")
    if not getattr(args, "json", True) and not output.is_standard:
        require("rich")
    return output


def model_encoders(model: Model) -> dict[str, Callable[[], bytes]]:
    """Return an encoder for every format that a model can be written in."""
    return {form: partial(FORMATS[f".{form}"].encode, model) for form in MODEL_FORMS}


def print_json(data: dict[str, Any]) -> None:
    """Print JSON on standard output."""
    print(json.dumps(data, allow_nan=False))


def as_json(data: dict[str, Any]) -> bytes:
    """Encode JSON for a file."""
    return f"{json.dumps(data, allow_nan=False)}\n".encode()


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    """Encode rows under a line of names, with all digits of numbers; unknown values (nan) are left empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_in_full(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def states_as_csv(model: Model, states: NDArray[Any], **more: Sequence[float]) -> bytes:
    """Encode configurations (N, n) as rows, states by name where they have names, with further columns."""
    names = [name_of(model.names, i) for i in range(model.num_variables)]
    rows = states.tolist()
    if model.state_names is not None:
        rows = [[known[a] for known, a in zip(model.state_names, row, strict=True)] for row in rows]
    columns = [[float(value) for value in values] for values in more.values()]
    return as_csv([*names, *more], ([*row, *(column[k] for column in columns)] for k, row in enumerate(rows)))


def record_as_csv(data: Mapping[str, Any]) -> bytes:
    """Encode the data of JSON as one row; entries of lists have blanks between them."""
    return as_csv(data, [[" ".join(map(str, each)) if isinstance(each, list) else each for each in data.values()]])


def state_rows(model: Model, variables: Iterable[int]) -> Iterator[list[object]]:
    """Yield a variable and a state, by name where there are names, for each state of some variables."""
    for i in variables:
        for state in model.state_names[i] if model.state_names else range(model.num_states[i]):
            yield [name_of(model.names, i), state]


def _in_full(value: object) -> object:
    if isinstance(value, float):  # (of numpy too)
        return "" if math.isnan(value) else repr(float(value))
    return value


def as_number(value: float | None) -> float | str | None:
    """Return a number as JSON can hold it: an infinity is its name, nan is null."""
    return None if value is None or math.isnan(value) else value if math.isfinite(value) else str(value)


def numbers_of(found: Any, *names: str) -> dict[str, float | str | None]:
    """Return attributes of a result as JSON can hold them."""
    return {name: as_number(getattr(found, name)) for name in names}


def check_file(path: Path, option: str = "--out", suffixes: Sequence[str] = ()) -> None:
    """Refuse a file that could not be written, or whose name ends in none of the suffixes."""
    if path.is_dir():
        raise CommandError(f"{option} {path}: expected a file, found a directory")
    if suffixes and path.suffix.lower() not in suffixes:
        expected, found = ", ".join(suffixes), path.suffix or "no suffix"
        raise CommandError(f"{option} {path}: expected a name that ends in {expected}, found {found!r}")
    if not path.parent.is_dir():
        raise CommandError(f"{option} {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{option} {path}: no permission to write there")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure over what is there, and close it."""
    try:
        with written_whole(path) as beside:
            figure.savefig(beside)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    finally:
        close_figure(figure)
