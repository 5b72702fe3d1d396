"""`clampz solve --event`: the probability that variables are in some states, between proven ends.

The JSON has lower, upper and estimate of the probability, log_lower and log_upper (natural logarithms; "-inf" where it
is 0), the event with its states by number, seconds, stopped_by and interrupted.
"""

import argparse
import math
from pathlib import Path
from typing import Any

from clampz.cli.arguments import limits
from clampz.cli.assignments import parse_assignments
from clampz.cli.bracket_view import REASONS, ending_data
from clampz.cli.exit_codes import INTERRUPTED, OK, CommandError
from clampz.cli.live_progress import announced
from clampz.cli.outputs import Output, numbers_of, record_as_csv
from clampz.cli.tables import facts, model_fact, show
from clampz.display.formatting import DIGITS, interval_outward, name_of
from clampz.model import Model
from clampz.queries.probability import Probability, probability
from clampz.solving.run import DEFAULT_TIME

# Width of an interval that is narrow enough.
GAP = 1e-4
FORMS = ("json", "csv")


def run(args: argparse.Namespace, model: Model, out: Output) -> int:
    """Bound the probability of the event, and print or write the interval."""
    usual = {"method": "auto", "clamp": None, "select": None, "task": "PR", "num_best": 1, "plot": None}
    for option, default in usual.items():
        value = getattr(args, option)
        if value != default:
            raise CommandError(f"--{option.replace('_', '-')}: expected none with --event, found {value}")
    event = parse_assignments(model, args.event, "--event")
    if not event:
        raise CommandError("--event: expected states of at least one variable, as in 3=1,7=0|2, found none")
    seconds = DEFAULT_TIME if args.time is None else args.time
    with announced("bounding the probability", seconds):
        found = probability(model, event, gap=GAP, **{**limits(args), "time": seconds})
    data = event_data(found, args.model)
    out.deliver(
        args,
        data,
        lambda: print_event(found, args.model, args.event),
        csv=lambda: record_as_csv(data | {"event": args.event}),
    )
    return INTERRUPTED if found.stopped_by == "interrupt" else OK


def event_data(found: Probability, path: Path) -> dict[str, Any]:
    """Return the interval as JSON can hold it."""
    return {
        "model": str(path),
        "event": {name_of(found.model.names, i): list(states) for i, states in found.event.items()},
        **numbers_of(found, "lower", "upper", "estimate", "log_lower", "log_upper"),
        **ending_data(found),
    }


def print_event(found: Probability, path: Path, text: str) -> None:
    """Print the interval as a table."""
    low, high = interval_outward(found.lower, found.upper, DIGITS)
    log_low, log_high = interval_outward(found.log_lower, found.log_upper, DIGITS)
    rows = [
        model_fact(path, found.model),
        ("event", text),
        ("proven", f"{low} <= P <= {high}"),
        ("estimate", f"{found.estimate:.{DIGITS}g}"),
        *([("log P", f"{log_low} <= log P <= {log_high}")] if found.log_upper > -math.inf else []),
        ("seconds", f"{found.seconds:.2f}"),
        ("stopped by", REASONS[found.stopped_by]),
    ]
    show(facts(rows))
