"""What commands share: exit codes, errors of one line, the model that most of them read, work that can be watched and
stopped, and files written whole."""

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import clampz
from clampz.bracketing import Bracket
from clampz.model import Model
from clampz.watch import Progress
from clampz.wording import counted, round_outward

if TYPE_CHECKING:
    from rich.table import Table

T = TypeVar("T")

OK, CUT_OFF, BAD_INPUT, TOO_LARGE, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = """exit codes:
  0    done
  1    cut off: not all of it could be done, or nobody read the output
  2    bad input: one line on stderr says what was expected, and where
  3    the model is too large for the memory there is
  130  interrupted by Ctrl-C; `solve`, `bound` and `uai` still give what they have"""

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
# Seconds before progress is shown, between looks, and after Ctrl-C until work that does not stop is given up.
PATIENCE, LOOK, GRACE = 1.0, 0.1, 2.0
# Columns of what goes to a pipe or a file: more than any line has.
PIPE_WIDTH = 10_000


class CommandError(Exception):
    """Bad input to a command; the message is all the user sees."""


class GivenUpError(KeyboardInterrupt):
    """Ctrl-C, and the work goes on in a thread that cannot be stopped."""


# -- parsers ----------------------------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help keeps the lines of its examples."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], *, summary: str, description: str, examples: str
) -> Parser:
    """Declare a command."""
    parser: Parser = commands.add_parser(name, help=summary, description=description, epilog=f"examples:\n{examples}")
    parser.set_defaults(run=run)
    return parser


def add_model(parser: Parser) -> None:
    """The arguments of commands that read a model."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file: .uai or libDAI's .fg, also compressed (.gz)")
    parser.add_argument(
        "--evidence", type=Path, metavar="FILE", help="what is known of some variables, in the UAI competitions' format"
    )


def read_model(args: argparse.Namespace) -> Model:
    """The model that a command was given, with its evidence."""
    return finished(lambda listener: clampz.read(args.model, args.evidence), f"reading {args.model}")


def number_range(text: str) -> float | tuple[float, float]:
    """A number, or two with a comma between them."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"expected a number or two, as in -6,6, found {text!r}")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def whole_number(least: int) -> Callable[[str], int]:
    """A whole number, `least` or more."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, found {text!r}")
        return number

    return convert


def positive(text: str) -> float:
    """A number above zero, as of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number > 0:
        raise argparse.ArgumentTypeError(f"expected a number > 0, found {text!r}")
    return number


def not_negative(text: str) -> float:
    """A number that is not below zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"expected a number >= 0, found {text!r}")
    return number


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


# -- work that is watched ------------------------------------------------------------------------------------------------------------


class Listener:
    """What a method tells its progress to; it may be asked to stop.  The last bracket is kept: it holds whatever
    becomes of the work."""

    def __init__(self) -> None:
        self.latest: Progress | Bracket | None = None
        self.bracket: Bracket | None = None
        self.stop = False

    def __call__(self, progress: Progress | Bracket) -> None:
        self.latest = progress
        if isinstance(progress, Bracket):
            self.bracket = progress
        if self.stop:
            raise StopIteration

    def ask_to_stop(self) -> None:
        self.stop = True

    def text(self, what: str, taken: float) -> str:
        """How far it has come, in a line."""
        progress = self.latest
        words = [what]
        if isinstance(progress, Bracket):
            lower, upper = round_outward(progress.lower, "lower", 3), round_outward(progress.upper, "upper", 3)
            words += [
                f"log Z in [{lower}, {upper}]",
                f"gap {progress.gap:.3g} nats",
                counted(progress.num_leaves, "leaf", "leaves"),
            ]
        elif progress is not None:
            words.append(f"{progress.method.replace('_', ' ')}, {progress.num_iter:,} sweeps")
            if progress.num_lanes > 1:
                words.append(f"{progress.num_finished} of {progress.num_lanes} lanes done")
            words.append(f"{progress.residual:.2g} nats left to settle")
        words.append("stopping" if self.stop else f"{taken:.0f} s, Ctrl-C stops")
        return " · ".join(words)


L = TypeVar("L", bound=Listener)


def watched(
    work: Callable[[L], T],
    what: str,
    listener: L | None = None,
    display: Callable[[], AbstractContextManager[Callable[[str], None]]] | None = None,
) -> tuple[T, bool]:
    """Do some work, show how far it has come if that takes over a second and somebody looks on, and say whether Ctrl-C
    stopped it.

    The work is in a thread of its own, so that Ctrl-C is heard at once.  The first one asks the work to stop with what
    it has; work that goes on all the same, as one exact sum does, is given up after two seconds or at the second
    Ctrl-C.  `display` shows how far it has come, by default in a line.
    """
    listener, finished = listener or cast("L", Listener()), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            results.append(work(listener))
        except BaseException as error:  # raised again below, where somebody is to catch it
            errors.append(error)
        finished.set()

    began = time.perf_counter()
    patience = math.inf
    threading.Thread(target=do, daemon=True).start()
    with (display or progress_line)() as show:
        while not finished.is_set():
            try:
                if not finished.wait(LOOK):
                    taken = time.perf_counter() - began
                    if taken > PATIENCE:
                        show(listener.text(what, taken))
                    if taken > patience:
                        raise GivenUpError
            except GivenUpError:
                raise
            except KeyboardInterrupt:
                if listener.stop:
                    raise GivenUpError from None
                listener.ask_to_stop()
                patience = time.perf_counter() - began + GRACE
    if errors:
        raise errors[0]
    return results[0], listener.stop


def finished(work: Callable[[Listener], T], what: str) -> T:
    """The same for work that is worth nothing unless it is done."""
    result, stopped = watched(work, what)
    if stopped:
        raise KeyboardInterrupt
    return result


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A line on the terminal that can be changed, and is gone in the end; nothing where stderr is no terminal or rich
    is not installed."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status("")
    try:

        def show(text: str) -> None:
            status.update(escape(text))
            status.start()

        yield show
    finally:
        status.stop()


@contextmanager
def ctrl_c_ends() -> Iterator[None]:
    """Let Ctrl-C end the command at once, where by default a method would stop early and return what it has."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


# -- output --------------------------------------------------------------------------------------------------------------------------


def show(*what: Any) -> None:
    """Print tables and texts: in colours and as wide as it is on a terminal, plain and without line breaks or blanks at
    the end of lines elsewhere."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(*what)
        return
    text = StringIO()
    Console(file=text, highlight=False, width=PIPE_WIDTH).print(*what)
    print("\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n")))


def new_table(*columns: str, left: Sequence[str] = (), wrapped: Sequence[str] = ()) -> "Table":
    """A table with a line under its head, numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(
            column, justify="left" if number == 0 or column in left else "right", no_wrap=column not in wrapped
        )
    return table


def facts(rows: Sequence[tuple[str, str]]) -> "Table":
    """A table of names and what they are."""
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(name, escape(text))
    return table


def name_of(model: Model, variable: int) -> str:
    """A variable as the user knows it."""
    return model.names[variable] if model.names is not None else str(variable)


def as_number(value: float) -> float | str | None:
    """A number as JSON can hold it: for an infinity its name."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def need(*modules: str) -> None:
    """Refuse to go on without the extras of the command line."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise CommandError(
                f"this command needs {' and '.join(modules)}, and {module} is not installed: pip install 'clampz[cli]'"
            ) from None


def check_file(path: Path, option: str = "--out") -> None:
    """Refuse, before anything is computed, a file that could not be written."""
    if path.is_dir():
        raise CommandError(f"{option} {path}: expected a file, found a directory")
    if not path.parent.is_dir():
        raise CommandError(f"{option} {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{option} {path}: no permission to write there")


def check_picture_path(path: Path, option: str = "--out") -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    if not path.is_dir() and path.suffix.lower() not in PICTURE_SUFFIXES:
        raise CommandError(
            f"{option} {path}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}, found {path.suffix or 'no suffix'!r}"
        )
    check_file(path, option)


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure, whole or not at all, over what is there."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        figure.savefig(partial)
        partial.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
