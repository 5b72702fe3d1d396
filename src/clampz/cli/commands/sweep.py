"""`clampz sweep`: log Z, energy, entropy and heat capacity over inverse temperatures.

The JSON has beta, lower, upper, log_z, energy, entropy, heat_capacity and by as lists, an entry for each beta, and
reason, seconds, stopped_by and interrupted; what is not known is null, and infinities are "-inf", "inf".
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from clampz.cli import arguments
from clampz.cli.commands.solve import METHODS
from clampz.cli.exit_codes import INTERRUPTED, OK
from clampz.cli.live_progress import run_interruptibly
from clampz.cli.outputs import as_csv, as_number, requested_output
from clampz.cli.tables import CTRL_C, facts, model_fact, new_table, show
from clampz.display.formatting import DIGITS, interval_outward
from clampz.temperature_sweep.result import Sweep
from clampz.temperature_sweep.sweep import sweep

SUMMARY = "log Z, energy and heat capacity over inverse temperatures"
DESCRIPTION = """Multiply all log potentials by each of several inverse temperatures beta, and bracket log Z there:
exactly where there is time and memory for it, and by certified bounds elsewhere.  The energy is minus the mean
score.  At beta = 0 every possible configuration counts alike."""
EXAMPLES = """\
  clampz sweep model.uai --beta 0:2:64 --plot sweep.png
  clampz sweep model.uai --beta 0.5,1,2 --method trw --out sweep.csv
  clampz sweep model.uai --beta 0:2:64 --time 60 --json | jq .heat_capacity"""

FORMS = ("csv", "json")
# Inverse temperatures at most: a slip of the hand in their number should not be a day's work.
MOST_BETAS = 100_000


def parse_betas(text: str) -> list[float]:
    """Parse numbers with commas between them, or FROM:TO:N, both ends included."""
    if ":" not in text:
        return [float(part) for part in text.split(",")]
    first, last, number = text.split(":")
    ends = float(first), float(last)
    if not (1 <= int(number) <= MOST_BETAS and all(map(math.isfinite, ends))):
        raise ValueError
    return [float(beta) for beta in np.linspace(*ends, int(number))]


betas = arguments.checked(
    parse_betas,
    "numbers >= 0 as in 0:2:64 (from, to, how many) or 0.5,1,2",
    lambda found: all(0 <= beta < math.inf for beta in found),
)


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    text = "inverse temperatures: N of them from FROM to TO, or numbers with commas between them"
    parser.add_argument("--beta", type=betas, required=True, metavar="FROM:TO:N", help=text)
    text = "auto: exact or a bracket; others are run alone (default: %(default)s)"
    parser.add_argument("--method", choices=METHODS, default="auto", help=text)
    text = "time at most, in even shares (default: 30, or 60 if all of it can be solved exactly in that)"
    parser.add_argument("--time", type=arguments.positive, metavar="SECONDS", help=text)
    arguments.add_memory(parser, "memory to use")
    arguments.add_threads_and_seed(parser)
    arguments.add_json(parser)
    arguments.add_out(parser, "write the result to a file, .csv or .json; - for standard output", forms=FORMS)
    arguments.add_plot(parser, "draw it")


def run(args: argparse.Namespace) -> int:
    """Sweep over the inverse temperatures, and print, write and draw the results."""
    out = requested_output(args, FORMS)
    model, options = arguments.read_model(args), {"method": args.method, **arguments.limits(args)}
    found, interrupted = run_interruptibly(
        lambda listener: sweep(model, args.beta, progress=listener, **options), "sweeping"
    )
    data, columns = sweep_data(found, args.model, interrupted), found.columns
    rows = zip(*columns.values(), strict=True)
    out.deliver(
        args, data, lambda: print_sweep(found, args.model, interrupted), found, csv=lambda: as_csv(columns, rows)
    )
    return INTERRUPTED if interrupted else OK


def sweep_data(found: Sweep, path: Path, interrupted: bool) -> dict[str, Any]:
    """Return the sweep as JSON can hold it."""
    columns = {
        name: list(values) if name == "by" else [as_number(float(value)) for value in values]
        for name, values in found.columns.items()
    }
    return {
        "model": str(path),
        **columns,
        "reason": found.reason,
        "seconds": round(found.seconds, 6),
        "stopped_by": found.stopped_by,
        "interrupted": interrupted,
    }


def print_sweep(found: Sweep, path: Path, interrupted: bool) -> None:
    """Print a row for each beta."""
    seconds = f"{found.seconds:.2f}" + (f"; {CTRL_C}" if interrupted else "")
    show(facts([model_fact(path, found.model), ("why", found.reason), ("seconds", seconds)]))
    table = new_table("beta", "lower", "log Z", "upper", "energy", "entropy", "heat capacity", "by")
    for k, beta in enumerate(found.beta.tolist()):
        low, high = interval_outward(float(found.lower[k]), float(found.upper[k]), DIGITS)
        values = (found.log_z[k], found.energy[k], found.entropy[k], found.heat_capacity[k])
        log_z, *rest = (f"{value:.{DIGITS}f}" for value in values)
        table.add_row(f"{beta:g}", low, log_z, high, *rest, found.by[k] or "-")
    show(table)
