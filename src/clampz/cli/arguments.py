"""The argument parser, and the arguments that several commands take."""

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn, TypeVar

import clampz
from clampz import io
from clampz.clamping.clamp import META_SELECTORS
from clampz.clamping.selectors import selectors
from clampz.cli.assignments import parse_evidence
from clampz.cli.exit_codes import BAD_INPUT, CommandError
from clampz.cli.live_progress import ProgressListener, run_to_the_end
from clampz.cli.outputs import STANDARD_STREAM, STDIN, display_name
from clampz.io import evidence as evidence_files
from clampz.model import Model
from clampz.runtime.options import as_bytes

T = TypeVar("T")

SELECTORS = (*selectors(), *META_SELECTORS)


class HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal that never breaks at hyphens; paragraphs with indented lines keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(part if "\n " in part else "\n".join(self._split_lines(part, width)) for part in paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, and to which -6,6 is a value and no option."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, "allow_abbrev": False, **settings})
        self._negative_number_matcher = re.compile(r"-[\d.]")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse would pass over a file that cannot be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def parse_args(self, words: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """Parse all arguments; a command itself reports those that it does not know."""
        args, unknown = self.parse_known_args(words)
        if unknown:
            args.of_command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


# -- what several commands take ---------------------------------------------------------------------------------------


def add_model(parser: CommandParser) -> None:
    """Add the file of a model, and evidence."""
    help_text = (
        "a file: .uai, libDAI's .fg, or clampz's own .json and .npz, also compressed (.gz); - for standard input, in "
        "any of these formats"
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help=help_text)
    help_text = (
        "what is known of some variables: a file in the UAI competitions' format (- for standard input), or states, as "
        "in 3=1,7=0"
    )
    parser.add_argument("--evidence", type=Path, metavar="FILE", help=help_text)


def read_model(args: argparse.Namespace) -> Model:
    """Read the model that a command was given, and condition it on the evidence, a file or `variable=state`."""
    known: Path | None = args.evidence
    if known == args.model == STANDARD_STREAM:
        raise CommandError("--evidence -: expected a file, found standard input, which the model is read from")

    def read(_: ProgressListener) -> Model:
        model = io.parse(STDIN, read_stdin()) if args.model == STANDARD_STREAM else clampz.read(args.model)
        if known == STANDARD_STREAM:
            return evidence_files.under(model, STDIN, read_stdin())
        if known is None or "=" not in known.name or known.exists():
            return model if known is None else evidence_files.under(model, known)
        return model.condition(parse_evidence(model, str(known), "--evidence"))

    return run_to_the_end(read, f"reading {display_name(args.model)}")


def read_stdin() -> bytes:
    """Read standard input to its end."""
    if sys.stdin is None:
        raise CommandError("-: expected standard input, found it closed")
    return sys.stdin.buffer.read()


def add_memory(parser: CommandParser, what: str) -> None:
    help_text = f"{what}, as in 2GB or 500MB, or a number of bytes (default: half of what is free)"
    parser.add_argument("--memory", type=memory_size, metavar="SIZE", help=help_text)


def add_threads_and_seed(parser: CommandParser) -> None:
    parser.add_argument("--threads", type=whole_number(1), metavar="N", help="threads to use (default: all cores)")
    help_text = "of whatever has chance in it: the same seed gives the same result, unless time ends it (default: 0)"
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help=help_text)


def limits(args: argparse.Namespace) -> dict[str, Any]:
    """Return the time, memory, threads and seed of a command as the library's calls take them."""
    return {"time": args.time, "memory": args.memory, "threads": args.threads, "rng": args.seed}


def add_json(parser: CommandParser, what: str = "") -> None:
    parser.add_argument("--json", action="store_true", help=f"print JSON{what}")


def add_plot(parser: CommandParser, what: str) -> None:
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"{what}: .png, .svg or .pdf")


def add_out(parser: CommandParser, text: str, *flags: str, forms: Sequence[str] = (), **settings: Any) -> None:
    """Add the file that a command writes, and the choice of its form."""
    parser.add_argument(*flags, "--out", type=Path, metavar="FILE", help=text, **settings)
    if forms:
        add_format(parser, forms)


def add_format(parser: CommandParser, forms: Sequence[str]) -> None:
    help_text = f"{', '.join(forms)}: where the name of the file does not say it, or for standard output"
    parser.add_argument("--format", choices=tuple(forms), metavar="FORMAT", help=help_text)


# -- types of arguments -----------------------------------------------------------------------------------------------


def checked(read: Callable[[str], T], expected: str, holds: Callable[[T], bool]) -> Callable[[str], T]:
    """Return a type of argument: what `read` makes of a text, refused unless `holds` is true of it."""

    def convert(text: str) -> T:
        try:
            value = read(text)
        except ValueError:
            pass
        else:
            if holds(value):
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")

    return convert


def whole_number(least: int) -> Callable[[str], int]:
    """Return the type of whole numbers that are `least` or more."""
    return checked(int, f"a whole number >= {least}", lambda number: number >= least)


positive = checked(float, "a number > 0", lambda number: number > 0)
not_negative = checked(float, "a number >= 0", lambda number: number >= 0)
memory_size = checked(as_bytes, "a size such as 2GB or 500MB, or a number of bytes", lambda size: True)
one_or_two_numbers = checked(
    lambda text: tuple(float(part) for part in text.split(",")),
    "a number or two, as in -6,6",
    lambda numbers: len(numbers) <= 2 and all(map(math.isfinite, numbers)),
)


def number_range(text: str) -> float | tuple[float, ...]:
    """Parse a number, or two with a comma between them."""
    numbers = one_or_two_numbers(text)
    return numbers if len(numbers) == 2 else numbers[0]
