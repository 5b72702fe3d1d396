"""`clampz bound`: a bracket on log Z that closes while one looks on, as a table, as JSON and as a picture; or intervals
for marginals.

The JSON has lower, upper, gap, estimate (natural logarithms; null where there is none, and why_no_estimate says why),
estimate_by, of an estimate by sampling its standard_error and statistical_interval_95 (else null), leaves, seconds,
stopped_by, interrupted, and the trace: every bracket on the way.  With --marginals it has widest, seconds, stopped_by,
interrupted, and for every variable the lower and upper ends of its states.  Infinities are "-inf", "inf".
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from clampz.bounding.bound import iter_bounds
from clampz.bounding.bracket import Bracket
from clampz.bounding.marginals.bound_marginals import bound_marginals
from clampz.bounding.marginals.marginal_bounds import MarginalBounds
from clampz.bounding.options import BoundOptions
from clampz.cli.arguments import (
    add_command,
    add_json,
    add_memory,
    add_model,
    add_out,
    add_seed,
    add_threads,
    not_negative,
    read_model,
    whole_number,
)
from clampz.cli.bracket_view import REASONS, Closing, live, print_bracket, statistical_data
from clampz.cli.exit_codes import INTERRUPTED, OK, CommandError, GivenUpError, need
from clampz.cli.live_progress import watched
from clampz.cli.outputs import (
    Output,
    as_csv,
    as_json,
    as_number,
    asked_for,
    check_file,
    check_picture_path,
    save_picture,
)
from clampz.cli.states import state_rows, variable_in
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.display.formatting import DIGITS, name_of, round_outward, rounded_up
from clampz.errors import ClampzError
from clampz.generators import as_seed
from clampz.model import Model
from clampz.runtime.progress import terminal_line

FORMS = ("json", "csv")


def add(commands: Any) -> None:
    defaults = BoundOptions()
    parser = add_command(
        commands,
        "bound",
        run,
        summary="certified bounds on log Z, or on marginals, that close while you watch",
        description="Bracket log Z: lower <= log Z <= upper, proven, by clamping best first, until the gap is as "
        "narrow as asked for or the time is over.  Ctrl-C stops it with what there is: the bracket holds whenever it "
        "is stopped.  Logarithms are natural ones.",
        examples="  clampz bound model.uai\n"
        "  clampz bound model.uai --gap 0.001 --time 600 --plot bracket.png\n"
        "  clampz bound model.uai --checkpoint model.bounds   the same goes on from there\n"
        "  clampz bound model.uai --marginals 3,7 --gap 0.05  intervals for P(X = state)\n"
        "  clampz bound model.uai --json | jq '.lower, .upper'\n\n"
        "JSON: lower, upper, gap, estimate (null: why_no_estimate), estimate_by, standard_error and "
        "statistical_interval_95 (of an estimate by sampling), leaves, seconds, stopped_by, interrupted, trace; "
        'infinities are "inf", "-inf"',
    )
    add_model(parser)
    for name, unit, default, text in (
        ("--gap", "NATS", defaults.gap, "upper - lower that is narrow enough"),
        ("--time", "SECONDS", defaults.time, "time at most"),
    ):
        help_text = f"{text} (default: {default:g})"
        parser.add_argument(name, type=not_negative, default=default, metavar=unit, help=help_text)
    add_memory(parser, "memory at most")
    parser.add_argument(
        "--leaves", type=whole_number(1), metavar="N", help="leaves of the tree of clamps at most (default: any number)"
    )
    parser.add_argument(
        "--max-table",
        type=whole_number(2),
        metavar="N",
        help="table entries of a region at most (default: as many as there is time for)",
    )
    parser.add_argument(
        "--no-exact", action="store_true", help="sum nothing exactly, however narrow it is: bounds of clamps alone"
    )
    add_threads(parser)
    add_seed(parser)
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="go on from this file if it is there, and leave the tree in it"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw how the bracket closed: .png, .svg or .pdf")
    parser.add_argument(
        "--marginals",
        metavar="VARIABLES",
        help="instead of log Z, bound the marginals of these, by number or name, as in 3,7, or of all; "
        "--gap is then their width",
    )
    add_json(parser, ", with the trace")
    add_out(parser, "write it to a file: .json, or .csv (the trace, or the marginals); - for stdout", forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Bound log Z or marginals, and print, write and draw what came of it."""
    out = asked_for(args, FORMS)
    if args.checkpoint is not None:
        check_file(args.checkpoint, "--checkpoint")
    if args.plot is not None:
        check_picture_path(args.plot, "--plot")
        need("matplotlib")
    if not args.json and not out.is_standard:
        need("rich")
    options = BoundOptions(
        gap=args.gap,
        time=args.time,
        memory=args.memory,
        leaves=args.leaves,
        max_table=args.max_table,
        exact=not args.no_exact,
        threads=args.threads,
        seed=as_seed(args.seed),
    )
    if args.marginals is not None:
        for name in ("checkpoint", "plot"):
            if getattr(args, name) is not None:
                raise CommandError(f"--{name}: expected none with --marginals, found {getattr(args, name)}")
        return bound_some(args, options, out)
    model = read_model(args)
    bracket, failed = closed(model, options, args.checkpoint)
    data = bracket_data(bracket, args.model)
    trace = [tuple(point.values()) for point in data["trace"]]
    out.give({"json": lambda: as_json(data), "csv": lambda: as_csv(("seconds", "lower", "upper", "leaves"), trace)})
    out.show(args.json, data, lambda: print_bracket(bracket, args.model))
    if args.plot is not None:
        save_picture(bracket.plot().figure, args.plot)
    if failed is not None:
        raise failed
    return INTERRUPTED if bracket.stopped_by == "interrupt" else OK


def closed(model: Model, options: BoundOptions, checkpoint: Path | None) -> tuple[Bracket, Exception | None]:
    """The last bracket, shown as it closes; and why the checkpoint could not be left, if so."""
    closing = Closing(options)

    def work() -> Exception | None:
        try:
            for bracket in iter_bounds(model, checkpoint=checkpoint, stop=lambda: closing.stop, options=options):
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


def bracket_data(bracket: Bracket, path: Path) -> dict[str, Any]:
    """The bracket as JSON can hold it."""
    return {
        "model": str(path),
        "lower": as_number(bracket.lower),
        "upper": as_number(bracket.upper),
        "gap": as_number(bracket.gap),
        "estimate": None if bracket.estimate is None else as_number(bracket.estimate),
        "estimate_by": bracket.estimate_by if bracket.estimate is not None else None,
        "why_no_estimate": bracket.why_no_estimate,
        **statistical_data(bracket),
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


# -- marginals --------------------------------------------------------------------------------------------------------


def bound_some(args: argparse.Namespace, options: BoundOptions, out: Output) -> int:
    """Intervals for the states of some variables."""
    model = read_model(args)
    variables = named(model, args.marginals)
    try:
        with terminal_line() as say:
            say(f"bounding marginals: {options.time:g} s at most, Ctrl-C stops")
            found = bound_marginals(model, variables, options=options)
    except KeyboardInterrupt:
        raise GivenUpError from None
    data = marginal_data(found, args.model)
    out.give({"json": lambda: as_json(data), "csv": lambda: intervals_as_csv(found)})
    out.show(args.json, data, lambda: print_intervals(found, args.model))
    return INTERRUPTED if found.stopped_by == "interrupt" else OK


def named(model: Model, text: str) -> list[int]:
    """Variables by number or name, with commas between them; "all" for all."""
    if text == "all":
        return list(range(model.num_variables))
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(variable_in(model, word, f"--marginals {text}") for word in words))


def marginal_data(found: MarginalBounds, path: Path) -> dict[str, Any]:
    """The intervals as JSON can hold them."""
    return {
        "model": str(path),
        "widest": found.widest,
        "seconds": round(found.seconds, 6),
        "stopped_by": found.stopped_by,
        "interrupted": found.stopped_by == "interrupt",
        "marginals": {
            name_of(found.model.names, i): {"lower": found.lower[i].tolist(), "upper": found.upper[i].tolist()}
            for i in found.lower
        },
    }


def intervals_as_csv(found: MarginalBounds) -> bytes:
    """A row for each state of each variable."""
    ends = ((lower, upper) for i in found.lower for lower, upper in zip(found.lower[i], found.upper[i], strict=True))
    states = state_rows(found.model, found.lower)
    rows = ([*row, *pair] for row, pair in zip(states, ends, strict=True))
    return as_csv(("variable", "state", "lower", "upper"), rows)


def print_intervals(found: MarginalBounds, path: Path) -> None:
    """A row for each state of each variable."""
    rows = [
        model_fact(path, found.model),
        ("widest", rounded_up(found.widest)),
        ("seconds", f"{found.seconds:.2f}"),
        ("stopped by", REASONS[found.stopped_by]),
    ]
    show(facts(rows))
    table = new_table("variable", "state", "lower", "upper")
    for i in found.lower:
        for state, (lower, upper) in enumerate(zip(found.lower[i], found.upper[i], strict=True)):
            table.add_row(
                name_of(found.model.names, i) if state == 0 else "",
                str(state),
                round_outward(float(lower), "lower", DIGITS),
                round_outward(float(upper), "upper", DIGITS),
            )
    show()
    show(table)
