"""`clampz sweep`: log Z, energy, entropy and heat capacity over inverse temperatures, as a table, as JSON, as CSV and
as a picture.

The JSON has beta, lower, upper, log_z, energy, entropy, heat_capacity and by as lists, an entry for each beta, and
reason, seconds, stopped_by and interrupted; what is not known is null, and infinities are "-inf", "inf".
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from clampz.cli.arguments import (
    add_command,
    add_json,
    add_memory,
    add_model,
    add_out,
    add_seed,
    add_threads,
    checked,
    positive,
    read_model,
)
from clampz.cli.commands.solve import METHODS
from clampz.cli.exit_codes import INTERRUPTED, OK, need
from clampz.cli.live_progress import Listener, watched
from clampz.cli.outputs import as_csv, as_json, as_number, asked_for, check_picture_path, save_picture
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.display.formatting import round_outward
from clampz.temperature_sweep.result import Sweep
from clampz.temperature_sweep.sweep import sweep

DIGITS = 6
FORMS = ("csv", "json")
# Inverse temperatures at most: a slip of the hand in their number should not be a day's work.
MOST_BETAS = 100_000


def as_betas(text: str) -> list[float]:
    """Numbers with commas between them, or FROM:TO:HOW_MANY, both ends included."""
    if ":" not in text:
        return [float(part) for part in text.split(",")]
    first, last, number = text.split(":")
    ends = float(first), float(last)
    if not (1 <= int(number) <= MOST_BETAS and all(map(math.isfinite, ends))):
        raise ValueError
    return [float(beta) for beta in np.linspace(*ends, int(number))]


betas = checked(
    as_betas,
    "numbers >= 0 as in 0:2:64 (from, to, how many) or 0.5,1,2",
    lambda found: all(0 <= beta < math.inf for beta in found),
)


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "sweep",
        run,
        summary="log Z, energy and heat capacity over inverse temperatures",
        description="Multiply all log potentials by each of several inverse temperatures beta, and bracket log Z "
        "there: exactly where there is time and memory for it, and by certified bounds elsewhere.  The energy is "
        "minus the mean score.  At beta = 0 every possible configuration counts alike.",
        examples="  clampz sweep model.uai --beta 0:2:64 --plot sweep.png\n"
        "  clampz sweep model.uai --beta 0.5,1,2 --method trw --out sweep.csv\n"
        "  clampz sweep model.uai --beta 0:2:64 --time 60 --json | jq .heat_capacity",
    )
    add_model(parser)
    parser.add_argument(
        "--beta",
        type=betas,
        required=True,
        metavar="FROM:TO:N",
        help="inverse temperatures: N of them from FROM to TO, or numbers with commas between them",
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="auto: exact or a bracket; others are run alone (default: %(default)s)",
    )
    parser.add_argument(
        "--time",
        type=positive,
        metavar="SECONDS",
        help="time at most, in even shares (default: 30, or 60 if all of it can be solved exactly in that)",
    )
    add_memory(parser, "memory to use")
    add_threads(parser)
    add_seed(parser)
    add_json(parser)
    add_out(parser, "write the result to a file, .csv or .json; - for standard output", forms=FORMS)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")


def run(args: argparse.Namespace) -> int:
    """Sweep, and print, write and draw what was found."""
    out = asked_for(args, FORMS)
    if args.plot is not None:
        check_picture_path(args.plot, "--plot")
        need("matplotlib")
    if not args.json and not out.is_standard:
        need("rich")
    model, listener = read_model(args), Listener()

    def work() -> Sweep:
        return sweep(
            model,
            args.beta,
            method=args.method,
            time=args.time,
            memory=args.memory,
            threads=args.threads,
            rng=args.seed,
            progress=listener,
        )

    found, interrupted = watched(work, "sweeping", listener)
    data, columns = data_of(found, args.model, interrupted), found.columns
    rows = zip(*columns.values(), strict=True)
    out.give({"json": lambda: as_json(data), "csv": lambda: as_csv(columns, rows)})
    if args.plot is not None:
        save_picture(found.plot().figure, args.plot)
    out.show(args.json, data, lambda: print_sweep(found, args.model, interrupted))
    return INTERRUPTED if interrupted else OK


def data_of(found: Sweep, path: Path, interrupted: bool) -> dict[str, Any]:
    """The result as JSON can hold it."""
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
    """A row for each beta."""
    stopped = "; stopped by Ctrl-C: this is what there was" if interrupted else ""
    show(
        facts(
            [model_fact(path, found.model), ("why", found.reason), ("seconds", f"{found.seconds:.2f}{stopped}")],
        )
    )
    table = new_table("beta", "lower", "log Z", "upper", "energy", "entropy", "heat capacity", "by")
    for k, beta in enumerate(found.beta.tolist()):
        rest = (found.energy[k], found.entropy[k], found.heat_capacity[k])
        table.add_row(
            f"{beta:g}",
            round_outward(float(found.lower[k]), "lower", DIGITS),
            f"{found.log_z[k]:.{DIGITS}f}",
            round_outward(float(found.upper[k]), "upper", DIGITS),
            *(f"{value:.{DIGITS}f}" for value in rest),
            found.by[k] or "-",
        )
    show(table)
