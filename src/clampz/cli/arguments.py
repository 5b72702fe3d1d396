"""The parser, and the arguments that several commands take."""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn, TypeVar

import clampz
from clampz import io
from clampz.clamping.clamp import META_SELECTORS
from clampz.clamping.selectors import selectors
from clampz.cli.exit_codes import BAD_INPUT, CommandError
from clampz.cli.live_progress import completed
from clampz.cli.outputs import STANDARD, STDIN, called
from clampz.cli.states import one_state_each
from clampz.io import evidence as evidence_files
from clampz.model import Model
from clampz.runtime.options import as_bytes

T = TypeVar("T")

SELECTORS = (*selectors(), *META_SELECTORS)


class Help(argparse.HelpFormatter):
    """Help as wide as the terminal, in which names with hyphens stay whole; paragraphs with lines that are indented, as
    examples are, keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(part if "\n " in part else "\n".join(self._split_lines(part, width)) for part in paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False, **settings})

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse would pass over a file that cannot be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def parse_args(self, words: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """The arguments of a command, which says itself what it does not know."""
        args, unknown = self.parse_known_args(words)
        if unknown:
            args.of_command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], *, summary: str, description: str, examples: str
) -> Parser:
    """Declare a command."""
    parser: Parser = commands.add_parser(name, help=summary, description=description, epilog=f"examples:\n{examples}")
    parser.set_defaults(run=run, of_command=parser)
    return parser


def with_negative_values(argv: Sequence[str]) -> list[str]:
    """Arguments in which `--weights -6,6` is `--weights=-6,6`: argparse would take -6,6 for an option."""
    joined: list[str] = []
    for word in argv:
        is_value = len(word) > 1 and word[0] == "-" and (word[1].isdigit() or word[1] == ".")
        if is_value and joined and joined[-1].startswith("--") and len(joined[-1]) > 2 and "=" not in joined[-1]:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


# -- what several commands take ---------------------------------------------------------------------------------------


def add_model(parser: Parser) -> None:
    """The model that a command reads."""
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a file: .uai, libDAI's .fg, or clampz's own .json and .npz, also compressed (.gz); - for standard input, "
        "in any of these formats",
    )
    parser.add_argument(
        "--evidence",
        type=Path,
        metavar="FILE",
        help="what is known of some variables: a file in the UAI competitions' format (- for standard input), or "
        "states, as in 3=1,7=0",
    )


def read_model(args: argparse.Namespace) -> Model:
    """The model that a command was given, with its evidence, from a file or as it is said."""
    said: Path | None = args.evidence
    if said == args.model == STANDARD:
        raise CommandError("--evidence -: expected a file, found standard input, which the model is read from")

    def read() -> Model:
        model = io.parse(STDIN, standard_input()) if args.model == STANDARD else clampz.read(args.model)
        if said == STANDARD:
            return evidence_files.under(model, STDIN, standard_input())
        if said is None or "=" not in said.name or said.exists():
            return model if said is None else evidence_files.under(model, said)
        return model.condition(one_state_each(model, str(said), "--evidence"))

    return completed(read, f"reading {called(args.model)}")


def standard_input() -> bytes:
    """All of it."""
    if sys.stdin is None:
        raise CommandError("-: expected standard input, found it closed")
    return sys.stdin.buffer.read()


def add_memory(parser: Parser, what: str) -> None:
    help_text = f"{what}, as in 2GB or 500MB, or a number of bytes (default: half of what is free)"
    parser.add_argument("--memory", type=memory_size, metavar="SIZE", help=help_text)


def add_threads(parser: Parser) -> None:
    parser.add_argument("--threads", type=whole_number(1), metavar="N", help="threads to use (default: all cores)")


def add_seed(parser: Parser) -> None:
    help_text = "of whatever has chance in it: the same seed gives the same result, unless time ends it (default: 0)"
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help=help_text)


def add_json(parser: Parser, what: str = "") -> None:
    parser.add_argument("--json", action="store_true", help=f"print JSON{what}")


def add_out(parser: Parser, text: str, *flags: str, forms: Sequence[str] = (), **settings: Any) -> None:
    """The file that a command writes, and which of several forms it has."""
    parser.add_argument(*flags, "--out", type=Path, metavar="FILE", help=text, **settings)
    if forms:
        add_format(parser, forms)


def add_format(parser: Parser, forms: Sequence[str]) -> None:
    help_text = f"{', '.join(forms)}: where the name of the file does not say it, or for standard output"
    parser.add_argument("--format", choices=tuple(forms), metavar="FORMAT", help=help_text)


# -- what they may be -------------------------------------------------------------------------------------------------


def checked(read: Callable[[str], T], expected: str, holds: Callable[[T], bool]) -> Callable[[str], T]:
    """A type of argument: what `read` makes of a text, if that holds."""

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
    """A whole number, `least` or more."""
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
    """A number, or two with a comma between them."""
    numbers = one_or_two_numbers(text)
    return numbers if len(numbers) == 2 else numbers[0]
