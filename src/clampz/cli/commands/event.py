"""`clampz solve --event`: the probability that variables are in some states, between proven ends.

The JSON has lower, upper and estimate of the probability, log_lower and log_upper (natural logarithms; "-inf" where it
is 0), the event with its states by number, seconds, stopped_by and interrupted.
"""

import argparse
import math
from pathlib import Path
from typing import Any

from clampz.cli.bracket_view import REASONS
from clampz.cli.exit_codes import INTERRUPTED, OK, CommandError, GivenUpError
from clampz.cli.outputs import Output, as_json, as_number, record_as_csv
from clampz.cli.states import states_in
from clampz.cli.tables import facts, model_fact, show
from clampz.display.formatting import name_of, round_outward
from clampz.model import Model
from clampz.queries.probability import Probability, probability
from clampz.runtime.progress import terminal_line
from clampz.solving.run import DEFAULT_TIME

# Width of an interval that is narrow enough, and decimals.
GAP, DIGITS = 1e-4, 6
FORMS = ("json", "csv")


def run(args: argparse.Namespace, model: Model, out: Output) -> int:
    """Bound the probability of the event, and print or write the interval."""
    usual = {"method": "auto", "clamp": None, "select": None, "task": "PR", "num_best": 1, "plot": None}
    for option, default in usual.items():
        value = getattr(args, option)
        if value != default:
            raise CommandError(f"--{option.replace('_', '-')}: expected none with --event, found {value}")
    event = states_in(model, args.event, "--event")
    if not event:
        raise CommandError("--event: expected states of at least one variable, as in 3=1,7=0|2, found none")
    seconds = DEFAULT_TIME if args.time is None else args.time
    try:
        with terminal_line() as say:
            say(f"bounding the probability: {seconds:g} s at most, Ctrl-C stops")
            limits = {"time": seconds, "memory": args.memory, "threads": args.threads}
            found = probability(model, event, gap=GAP, rng=args.seed, **limits)
    except KeyboardInterrupt:
        raise GivenUpError from None
    data = event_data(found, args.model)
    out.give({"json": lambda: as_json(data), "csv": lambda: record_as_csv(data | {"event": args.event})})
    out.show(args.json, data, lambda: print_event(found, args.model, args.event))
    return INTERRUPTED if found.stopped_by == "interrupt" else OK


def event_data(found: Probability, path: Path) -> dict[str, Any]:
    """The interval as JSON can hold it."""
    return {
        "model": str(path),
        "event": {name_of(found.model.names, i): list(states) for i, states in found.event.items()},
        "lower": found.lower,
        "upper": found.upper,
        "estimate": found.estimate,
        "log_lower": as_number(found.log_lower),
        "log_upper": as_number(found.log_upper),
        "seconds": round(found.seconds, 6),
        "stopped_by": found.stopped_by,
        "interrupted": found.stopped_by == "interrupt",
    }


def print_event(found: Probability, path: Path, text: str) -> None:
    """The interval as a table."""
    lower, upper = round_outward(found.lower, "lower", DIGITS), round_outward(found.upper, "upper", DIGITS)
    ends = [round_outward(found.log_lower, "lower", DIGITS), round_outward(found.log_upper, "upper", DIGITS)]
    rows = [
        model_fact(path, found.model),
        ("event", text),
        ("proven", f"{lower} <= P <= {upper}"),
        ("estimate", f"{found.estimate:.{DIGITS}g}"),
        *([("log P", f"{ends[0]} <= log P <= {ends[1]}")] if found.log_upper > -math.inf else []),
        ("seconds", f"{found.seconds:.2f}"),
        ("stopped by", REASONS[found.stopped_by]),
    ]
    show(facts(rows))
