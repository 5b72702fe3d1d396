"""`clampz bound`: a bracket on log Z that closes over time, or intervals for marginals.

The JSON has lower, upper, gap, estimate (natural logarithms; null where there is none, and why_no_estimate says why),
estimate_by, of an estimate by sampling its standard_error and statistical_interval_95 (else null), leaves, seconds,
stopped_by, interrupted, the gains (which strategy moved which end when), nats_by_strategy (how far each moved the lower
and the upper end), and the trace: every bracket on the way.  With --marginals it has widest, seconds, stopped_by,
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
from clampz.cli import arguments
from clampz.cli.assignments import parse_variable
from clampz.cli.bracket_view import (
    REASONS,
    LiveBracket,
    ending_data,
    live_on_terminal,
    print_bracket,
    statistical_data,
)
from clampz.cli.exit_codes import INTERRUPTED, OK, AbandonedError, CommandError
from clampz.cli.live_progress import ProgressListener, announced, run_interruptibly
from clampz.cli.outputs import Output, as_csv, check_file, numbers_of, requested_output, state_rows
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.display.formatting import DIGITS, interval_outward, name_of, rounded_up
from clampz.errors import ClampzError
from clampz.model import Model
from clampz.runtime.seeds import as_seed

SUMMARY = "certified bounds on log Z, or on marginals, that close over time"
DESCRIPTION = """Bracket log Z: lower <= log Z <= upper, proven, by clamping best first, until the gap is as narrow
as asked for or the time is over.  Ctrl-C stops it with what there is: the bracket holds whenever it is stopped.
Logarithms are natural ones."""
EXAMPLES = """\
  clampz bound model.uai
  clampz bound model.uai --gap 0.001 --time 600 --plot bracket.png
  clampz bound model.uai --checkpoint model.bounds   the same goes on from there
  clampz bound model.uai --marginals 3,7 --gap 0.05  intervals for P(X = state)
  clampz bound model.uai --json | jq '.lower, .upper'

JSON: lower, upper, gap, estimate (null: why_no_estimate), estimate_by, standard_error and statistical_interval_95
(of an estimate by sampling), leaves, seconds, stopped_by, interrupted, gains, nats_by_strategy, trace; infinities are
"inf", "-inf"
"""

FORMS = ("json", "csv")


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    defaults = BoundOptions()
    arguments.add_model(parser)
    for name, unit, default, text in (
        ("--gap", "NATS", defaults.gap, "upper - lower that is narrow enough"),
        ("--time", "SECONDS", defaults.time, "time at most"),
    ):
        help_text = f"{text} (default: {default:g})"
        parser.add_argument(name, type=arguments.not_negative, default=default, metavar=unit, help=help_text)
    arguments.add_memory(parser, "memory at most")
    for name, least, text in (
        ("--leaves", 1, "leaves of the tree of clamps at most (default: any number)"),
        ("--max-table", 2, "table entries of a mini-bucket at most (default: as many as there is time for)"),
    ):
        parser.add_argument(name, type=arguments.whole_number(least), metavar="N", help=text)
    help_text = "sum nothing exactly, however narrow it is: bounds of clamps alone"
    parser.add_argument("--no-exact", action="store_true", help=help_text)
    arguments.add_threads_and_seed(parser)
    help_text = "go on from this file if it is there, and leave the tree in it"
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help=help_text)
    arguments.add_plot(parser, "draw how the bracket closed")
    help_text = (
        "instead of log Z, bound the marginals of these, by number or name, as in 3,7, or of all; --gap is then their "
        "width"
    )
    parser.add_argument("--marginals", metavar="VARIABLES", help=help_text)
    arguments.add_json(parser, ", with the trace")
    help_text = "write it to a file: .json, or .csv (the trace, or the marginals); - for stdout"
    arguments.add_out(parser, help_text, forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Bound log Z or marginals, and print, write and draw the result."""
    out = requested_output(args, FORMS)
    if args.checkpoint is not None:
        check_file(args.checkpoint, "--checkpoint")
    given = {name: getattr(args, name) for name in ("gap", "time", "memory", "leaves", "max_table", "threads")}
    options = BoundOptions(exact=not args.no_exact, seed=as_seed(args.seed), **given)
    if args.marginals is not None:
        for name in ("checkpoint", "plot"):
            if getattr(args, name) is not None:
                raise CommandError(f"--{name}: expected none with --marginals, found {getattr(args, name)}")
        return run_marginals(args, options, out)
    bracket, failed = last_bracket(arguments.read_model(args), options, args.checkpoint)
    data = bracket_data(bracket, args.model)
    trace = [tuple(point.values()) for point in data["trace"]]

    def csv() -> bytes:
        return as_csv(("seconds", "lower", "upper", "leaves"), trace)

    out.deliver(args, data, lambda: print_bracket(bracket, args.model), bracket, csv=csv)
    if failed is not None:
        raise failed
    return INTERRUPTED if bracket.stopped_by == "interrupt" else OK


def last_bracket(model: Model, options: BoundOptions, checkpoint: Path | None) -> tuple[Bracket, Exception | None]:
    """Return the last bracket, shown live as it closes, and why the checkpoint could not be written, if so."""
    live = LiveBracket(options)

    def work(_: ProgressListener) -> Exception | None:
        try:
            for bracket in iter_bounds(model, checkpoint=checkpoint, stop=lambda: live.stop, options=options):
                live.latest = bracket
        except ClampzError as error:
            if live.latest is None:
                raise
            return error
        return None

    try:
        failed, _ = run_interruptibly(work, "bounding", live, lambda: live_on_terminal(live))
    except AbandonedError:
        if not isinstance(live.latest, Bracket):
            raise
        return replace(live.latest, stopped_by="interrupt"), None
    assert isinstance(live.latest, Bracket)
    return live.latest, failed


def bracket_data(bracket: Bracket, path: Path) -> dict[str, Any]:
    """Return the bracket as JSON can hold it."""
    return {
        "model": str(path),
        **numbers_of(bracket, "lower", "upper", "gap", "estimate"),
        "estimate_by": bracket.estimate_by if bracket.estimate is not None else None,
        "why_no_estimate": bracket.why_no_estimate,
        **statistical_data(bracket),
        "leaves": bracket.num_leaves,
        **ending_data(bracket),
        "gains": [
            {
                **{"seconds": round(gain.seconds, 6), "strategy": gain.strategy, "end": gain.end},
                **numbers_of(gain, "before", "after"),
            }
            for gain in bracket.gains
        ],
        "nats_by_strategy": bracket.gains.by_strategy(),
        "trace": [
            {"seconds": round(point.seconds, 6), **numbers_of(point, "lower", "upper"), "leaves": point.num_leaves}
            for point in bracket.trace
        ],
    }


# -- marginals --------------------------------------------------------------------------------------------------------


def run_marginals(args: argparse.Namespace, options: BoundOptions, out: Output) -> int:
    """Bound the marginals of some variables, and print and write the intervals."""
    model = arguments.read_model(args)
    variables = parse_variables(model, args.marginals)
    with announced("bounding marginals", options.time):
        found = bound_marginals(model, variables, options=options)
    data = marginal_data(found, args.model)
    out.deliver(args, data, lambda: print_intervals(found, args.model), csv=lambda: intervals_as_csv(found))
    return INTERRUPTED if found.stopped_by == "interrupt" else OK


def parse_variables(model: Model, text: str) -> list[int]:
    """Return variables given by number or name, with commas between them; "all" for all."""
    if text == "all":
        return list(range(model.num_variables))
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(parse_variable(model, word, f"--marginals {text}") for word in words))


def marginal_data(found: MarginalBounds, path: Path) -> dict[str, Any]:
    """Return the intervals as JSON can hold them."""
    intervals = {
        name_of(found.model.names, i): {"lower": found.lower[i].tolist(), "upper": found.upper[i].tolist()}
        for i in found.lower
    }
    return {"model": str(path), "widest": found.widest, **ending_data(found), "marginals": intervals}


def intervals_as_csv(found: MarginalBounds) -> bytes:
    """Encode a row for each state of each variable."""
    ends = ((lower, upper) for i in found.lower for lower, upper in zip(found.lower[i], found.upper[i], strict=True))
    rows = ([*row, *pair] for row, pair in zip(state_rows(found.model, found.lower), ends, strict=True))
    return as_csv(("variable", "state", "lower", "upper"), rows)


def print_intervals(found: MarginalBounds, path: Path) -> None:
    """Print a row for each state of each variable."""
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
            ends = interval_outward(float(lower), float(upper), DIGITS)
            table.add_row(name_of(found.model.names, i) if state == 0 else "", str(state), *ends)
    show()
    show(table)
