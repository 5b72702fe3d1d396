"""`clampz bound`: a bracket on log Z that closes while one looks on, as a table, as JSON and as a picture; or intervals
for marginals.

The JSON has lower, upper, gap, estimate (natural logarithms), leaves, seconds, stopped_by, interrupted, and the trace:
every bracket on the way.  With --marginals it has widest, seconds, stopped_by, interrupted, and for every variable the
lower and upper ends of its states.  Infinities are "-inf", "inf".
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clampz.bracketing import BoundOptions, Bracket, MarginalBounds, bound_marginals, bounds
from clampz.cli.common import (
    INTERRUPTED,
    OK,
    CommandError,
    GivenUpError,
    Listener,
    add_command,
    add_model,
    as_number,
    check_file,
    check_picture_path,
    facts,
    name_of,
    need,
    new_table,
    not_negative,
    progress_line,
    read_model,
    save_picture,
    show,
    watched,
    whole_number,
)
from clampz.errors import ClampzError
from clampz.io import files
from clampz.model import Model
from clampz.wording import round_outward

if TYPE_CHECKING:
    from rich.table import Table

# Decimals: at least, and at most (doubles of a few hundred have thirteen).
DIGITS, MOST_DIGITS = 6, 12
# Seconds before the bracket is shown live, times a second that it is drawn, and columns of the bar.
PATIENCE, REFRESH, BAR = 0.3, 8, 40
# A gap that counts as none where none is asked for.
CLOSED = 1e-9
REASONS = {
    "gap": "gap: as narrow as asked for",
    "exact": "exact: nothing is left to do",
    "time": "time",
    "leaves": "leaves",
    "memory": "memory",
    "interrupt": "Ctrl-C: this is what there was",
}


def add(commands: Any) -> None:
    defaults = BoundOptions()
    parser = add_command(
        commands,
        "bound",
        bound,
        summary="certified bounds on log Z, or on marginals, that close while you watch",
        description="Bracket log Z: lower <= log Z <= upper, proven, by clamping best first, until the gap is as narrow as asked for or the time is over.\n"
        "Ctrl-C stops it with what there is: the bracket holds whenever it is stopped.  Logarithms are natural ones.",
        examples="  clampz bound model.uai\n"
        "  clampz bound model.uai --gap 0.001 --time 600 --plot bracket.png\n"
        "  clampz bound model.uai --time 3600 --checkpoint model.bounds          the same again goes on from there\n"
        "  clampz bound model.uai --marginals 3,7 --gap 0.05                     intervals for P(X = state)\n"
        "  clampz bound model.uai --json | jq '.lower, .upper'\n\n"
        'JSON: lower, upper, gap, estimate, leaves, seconds, stopped_by, interrupted, trace; infinities are "inf", "-inf"',
    )
    add_model(parser)
    parser.add_argument(
        "--gap",
        type=not_negative,
        default=defaults.gap,
        metavar="NATS",
        help="upper - lower that is narrow enough (default: %(default)s)",
    )
    parser.add_argument(
        "--time",
        type=not_negative,
        default=defaults.time,
        metavar="SECONDS",
        help="time at most (default: %(default)g)",
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory at most, as in 2GB or 500MB (default: half of what is free)"
    )
    parser.add_argument(
        "--leaves", type=whole_number(1), metavar="N", help="leaves of the tree of clamps at most (default: any number)"
    )
    parser.add_argument(
        "--no-exact", action="store_true", help="sum nothing exactly, however narrow it is: bounds of clamps alone"
    )
    parser.add_argument("--threads", type=whole_number(1), metavar="N", help="threads to use (default: all cores)")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="go on from this file if it is there, and leave the tree in it"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw how the bracket closed: .png, .svg or .pdf")
    parser.add_argument(
        "--marginals",
        metavar="VARIABLES",
        help="instead of log Z, bound the marginals of these, by number or name, as in 3,7, or of all; --gap is then their width",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with the trace")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON to a file")


def bound(args: argparse.Namespace) -> int:
    """Bound log Z or marginals, and print, write and draw what came of it."""
    for path, option in ((args.out, "--out"), (args.checkpoint, "--checkpoint")):
        if path is not None:
            check_file(path, option)
    if args.plot is not None:
        check_picture_path(args.plot, "--plot")
        need("matplotlib")
    if not args.json:
        need("rich")
    options = BoundOptions(
        gap=args.gap,
        time=args.time,
        memory=args.memory,
        leaves=args.leaves,
        exact=not args.no_exact,
        threads=args.threads,
    )
    if args.marginals is not None:
        for name in ("checkpoint", "plot"):
            if getattr(args, name) is not None:
                raise CommandError(f"--{name}: expected none with --marginals, found {getattr(args, name)}")
        return bound_some(args, options)
    model = read_model(args)
    bracket, failed = closed(model, options, args.checkpoint)
    deliver(as_data(bracket, args.model), args)
    if not args.json:
        print_bracket(bracket, args.model)
    if args.plot is not None:
        save_picture(bracket.plot().figure, args.plot)
    if failed is not None:
        raise failed
    return INTERRUPTED if bracket.stopped_by == "interrupt" else OK


def closed(model: Model, options: BoundOptions, checkpoint: Path | None) -> tuple[Bracket, Exception | None]:
    """The last bracket, shown as it closes; and why the checkpoint could not be left, if so."""
    closing = Closing(options)

    def work(closing: Closing) -> Exception | None:
        try:
            for bracket in bounds(model, checkpoint=checkpoint, stop=lambda: closing.stop, options=options):
                closing.latest = bracket
        except ClampzError as error:
            if closing.latest is None:
                raise
            return error
        return None

    try:
        failed, _ = watched(work, "bounding", closing, lambda: live(closing))
    except GivenUpError:
        if not isinstance(closing.latest, Bracket):
            raise
        return replace(closing.latest, stopped_by="interrupt"), None
    assert isinstance(closing.latest, Bracket)
    return closing.latest, failed


def deliver(data: dict[str, Any], args: argparse.Namespace) -> None:
    """JSON to a file or to stdout, as asked for."""
    if args.json or args.out is not None:
        text = json.dumps(data, allow_nan=False)
        if args.out is None:
            print(text)
        else:
            files.replace(args.out, f"{text}\n".encode())


def as_data(bracket: Bracket, path: Path) -> dict[str, Any]:
    """The bracket as JSON can hold it."""
    return {
        "model": str(path),
        "lower": as_number(bracket.lower),
        "upper": as_number(bracket.upper),
        "gap": as_number(bracket.gap),
        "estimate": as_number(bracket.estimate),
        "leaves": bracket.num_leaves,
        "seconds": round(bracket.seconds, 6),
        "stopped_by": bracket.stopped_by,
        "interrupted": bracket.stopped_by == "interrupt",
        "trace": [
            {
                "seconds": round(point.seconds, 6),
                "lower": as_number(point.lower),
                "upper": as_number(point.upper),
                "leaves": point.num_leaves,
            }
            for point in bracket.trace
        ],
    }


# -- for people -----------------------------------------------------------------------------------------------------------------------


def print_bracket(bracket: Bracket, path: Path) -> None:
    """The bracket as a table."""
    rows = [
        ("model", f"{path}: {repr(bracket.model).removeprefix('Model(').removesuffix(')')}"),
        *ends(bracket),
        ("leaves", f"{bracket.num_leaves:,}"),
        ("seconds", f"{bracket.seconds:.2f}"),
        ("stopped by", REASONS[bracket.stopped_by] + ("; Z = 0" if bracket.upper == -math.inf else "")),
    ]
    show(facts(rows))


def ends(bracket: Bracket) -> list[tuple[str, str]]:
    """Both bounds, rounded outwards, with the gap and the estimate; more decimals for a narrower gap."""
    digits = digits_for(bracket)
    return [
        ("lower", round_outward(bracket.lower, "lower", digits)),
        ("upper", round_outward(bracket.upper, "upper", digits)),
        ("gap", f"{rounded_up(bracket.gap)} nats"),
        ("estimate", f"{bracket.estimate:.{digits}f}"),
    ]


def digits_for(bracket: Bracket) -> int:
    """Decimals that show two digits of the gap, as far as doubles have them."""
    if not 0 < bracket.gap < math.inf:
        return DIGITS
    known = 14 - math.ceil(math.log10(max(abs(bracket.lower), abs(bracket.upper), 1.0)))
    return max(DIGITS, min(1 - math.floor(math.log10(bracket.gap)), known, MOST_DIGITS))


def rounded_up(gap: float) -> str:
    """Three digits of a gap, none of it left out.

    >>> rounded_up(0.0120401), rounded_up(12.0), rounded_up(0.0)
    ('0.0121', '12', '0')
    """
    if not 0 < gap < math.inf:
        return f"{gap:g}"
    unit = 10.0 ** (math.floor(math.log10(gap)) - 2)
    return f"{math.ceil(gap / unit * (1 - 1e-12)) * unit:.3g}"


class Closing(Listener):
    """The bracket as it closes, for a terminal: rich asks for it again and again."""

    def __init__(self, options: BoundOptions) -> None:
        super().__init__()
        self._began = time.perf_counter()
        self._options = options

    def __rich__(self) -> "Table | str":
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        taken = time.perf_counter() - self._began
        if taken < PATIENCE:
            return ""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(no_wrap=True)
        bracket = self.latest
        if isinstance(bracket, Bracket):
            for name, text in ends(bracket):
                table.add_row(name, text)
            table.add_row("closed", ProgressBar(total=1.0, completed=self.share_closed(bracket), width=BAR))
            table.add_row("leaves", f"{bracket.num_leaves:,}")
        table.add_row(
            "seconds", f"{taken:.0f} of {self._options.time:g}, {'stopping' if self.stop else 'Ctrl-C stops'}"
        )
        return table

    def share_closed(self, bracket: Bracket) -> float:
        """How far the gap has come from the first one to the one asked for, on a log scale."""
        widest = next(
            (point.upper - point.lower for point in bracket.trace if math.isfinite(point.upper - point.lower)), math.inf
        )
        target = max(self._options.gap, CLOSED)
        if bracket.gap <= target:
            return 1.0
        return math.log(widest / bracket.gap) / math.log(widest / target) if widest < math.inf else 0.0


@contextmanager
def live(closing: Closing) -> Iterator[Callable[[str], None]]:
    """The bracket on the terminal while it closes, and gone in the end; nothing where stderr is no terminal or rich is
    not installed."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda text: None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(
        get_renderable=lambda: closing,
        console=console,
        transient=True,
        refresh_per_second=REFRESH,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield lambda text: None


# -- marginals ------------------------------------------------------------------------------------------------------------------------


def bound_some(args: argparse.Namespace, options: BoundOptions) -> int:
    """Intervals for the states of some variables."""
    model = read_model(args)
    variables = named(model, args.marginals)
    try:
        with progress_line() as say:
            say(f"bounding marginals: {options.time:g} s at most, Ctrl-C stops")
            found = bound_marginals(model, variables, options=options)
    except KeyboardInterrupt:
        raise GivenUpError from None
    deliver(marginal_data(found, args.model), args)
    if not args.json:
        print_intervals(found, args.model)
    return INTERRUPTED if found.stopped_by == "interrupt" else OK


def named(model: Model, text: str) -> list[int]:
    """Variables by number or name, with commas between them; "all" for all."""
    if text == "all":
        return list(range(model.num_variables))
    found = []
    for word in (word.strip() for word in text.split(",")):
        known = model.names is not None and word in model.names
        if not known and not (word.isdecimal() and int(word) < model.num_variables):
            raise CommandError(
                f"--marginals {text}: expected variables from 0 to {model.num_variables - 1} or their names, found {word!r}"
            )
        found.append(model.variable_index(word if known else int(word)))
    return list(dict.fromkeys(found))


def marginal_data(found: MarginalBounds, path: Path) -> dict[str, Any]:
    """The intervals as JSON can hold them."""
    return {
        "model": str(path),
        "widest": found.widest,
        "seconds": round(found.seconds, 6),
        "stopped_by": found.stopped_by,
        "interrupted": found.stopped_by == "interrupt",
        "marginals": {
            name_of(found.model, i): {"lower": found.lower[i].tolist(), "upper": found.upper[i].tolist()}
            for i in found.lower
        },
    }


def print_intervals(found: MarginalBounds, path: Path) -> None:
    """A row for each state of each variable."""
    rows = [
        ("model", f"{path}: {repr(found.model).removeprefix('Model(').removesuffix(')')}"),
        ("widest", rounded_up(found.widest)),
        ("seconds", f"{found.seconds:.2f}"),
        ("stopped by", REASONS[found.stopped_by]),
    ]
    show(facts(rows))
    table = new_table("variable", "state", "lower", "upper")
    for i in found.lower:
        for state, (lower, upper) in enumerate(zip(found.lower[i], found.upper[i], strict=True)):
            table.add_row(
                name_of(found.model, i) if state == 0 else "",
                str(state),
                round_outward(float(lower), "lower", DIGITS),
                round_outward(float(upper), "upper", DIGITS),
            )
    show()
    show(table)
