"""`clampz solve --task MPE`: the best configuration of a model in a file, as a table or as JSON.

The JSON has score, lower and upper (natural logarithms), optimal, stopped_by, seconds, configuration (by the names that
the file has, or by number), states (by number), and with several configurations `best`, a list of states and score
each.  Where no configuration was found, these are null.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from clampz.cli.arguments import limits
from clampz.cli.exit_codes import INTERRUPTED, OK, CommandError
from clampz.cli.live_progress import run_interruptibly
from clampz.cli.outputs import Output, numbers_of, states_as_csv
from clampz.cli.tables import CTRL_C, facts, model_fact, new_table, num_shown, show
from clampz.display.formatting import DIGITS, counted, name_of, round_outward
from clampz.errors import EvidenceError
from clampz.io import results
from clampz.map_inference.mode import mode
from clampz.map_inference.results import Mode
from clampz.model import Model

# The most probable explanation: the best configuration of all variables; MAP, without a query, is another name for it.
TASKS = ("MPE", "MAP")
# Variables up to which a configuration is printed on a terminal.
MAX_ROWS = 60


def run(args: argparse.Namespace, model: Model, out: Output) -> int:
    """Find the best configurations, and print, write and draw them."""
    for option, value, usual in (("--method", args.method, "auto"), ("--clamp", args.clamp, None)):
        if value != usual:
            raise CommandError(f"{option} {value}: a choice of tasks PR and MAR, and {args.task} has none")
    found, interrupted = best(model, num_best=args.num_best, **limits(args))
    out.deliver(
        args,
        mode_data(found, args.model, args.task, args.num_best),
        lambda: print_mode(found, args.model),
        found,
        csv=lambda: configurations_as_csv(found),
        uai=lambda: result_file(found, args.task),
    )
    return INTERRUPTED if interrupted else OK


def best(model: Model, **options: Any) -> tuple[Mode, bool]:
    """Return the best configurations by `mode` with these options, and whether Ctrl-C ended the search for them."""
    return run_interruptibly(lambda listener: mode(model, progress=listener, **options), "maximising")


def result_file(found: Mode, task: str) -> bytes:
    """Encode a result file of the UAI competitions."""
    if found.states is None:
        raise EvidenceError(why_none(found))
    return results.encode_mpe(found.states, task)


def configurations_as_csv(found: Mode) -> bytes:
    """Encode a line for each configuration, the best one first, and its score last."""
    states = np.array([each.states for each in found.best], dtype=np.int64).reshape(-1, found.model.num_variables)
    return states_as_csv(found.model, states, score=[each.score for each in found.best])


def why_none(found: Mode) -> str:
    """Return why no configuration was found."""
    if found.upper == -math.inf:
        return "Z = 0: every configuration has probability zero, so there is no best one"
    return "no possible configuration was found: more time may help (--time)"


def mode_data(found: Mode, path: Path, task: str, num_best: int) -> dict[str, Any]:
    """Return the best configurations as JSON can hold them."""
    configuration = found.configuration
    data: dict[str, Any] = {
        "model": str(path),
        "task": task,
        **numbers_of(found, "score", "lower", "upper"),
        "optimal": found.is_optimal,
        "stopped_by": found.stopped_by,
        "seconds": round(found.seconds, 6),
        "configuration": None if configuration is None else {str(name): a for name, a in configuration.items()},
        "states": None if found.states is None else found.states.tolist(),
    }
    if num_best > 1:
        data["best"] = [{"states": each.states.tolist(), "score": each.score} for each in found.best]
    return data


def print_mode(found: Mode, path: Path) -> None:
    """Print the score with its proof, and the configurations."""
    upper = round_outward(found.upper, "upper", DIGITS)
    proven = "nothing is better" if found.is_optimal else f"nothing is better than {upper}, {found.gap:.3g} nats more"
    stopped = f"; {CTRL_C}" if found.stopped_by in ("interrupt", "callback") else ""
    rows = [
        model_fact(path, found.model),
        ("best score", f"{found.score:.{DIGITS}f}" if found.best else why_none(found)),
        *([("proven", proven)] if found.best or math.isfinite(found.upper) else []),
        *([("found", counted(len(found.best), "configuration"))] if len(found.best) > 1 else []),
        ("seconds", f"{found.seconds:.2f}{stopped}"),
    ]
    show(facts(rows))
    if found.best:
        print_configurations(found)


def print_configurations(found: Mode) -> None:
    """Print a row for each variable, a column for each configuration."""
    model = found.model
    shown = num_shown(model, MAX_ROWS)
    scores = [f"{each.score:.{DIGITS}f}" for each in found.best] if len(found.best) > 1 else ["state"]
    table = new_table("variable", *scores)
    for i in range(shown):
        table.add_row(name_of(model.names, i), *(model.state_name(i, int(each.states[i])) for each in found.best))
    show(table)
    if shown < model.num_variables:
        show("[dim]All of them: --json, or --out FILE[/dim]")
