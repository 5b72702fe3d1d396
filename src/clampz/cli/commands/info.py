"""`clampz info`: what a model is like, and what each method would cost on it."""

import argparse
from pathlib import Path
from typing import Any

from clampz.approximations.cost import STARTS, TYPICAL_SWEEPS, seconds_per_sweep
from clampz.approximations.method_choice import prefers_mean_field
from clampz.cli import arguments
from clampz.cli.exit_codes import OK, require
from clampz.cli.live_progress import run_to_the_end
from clampz.cli.outputs import display_name, print_json
from clampz.cli.tables import facts, new_table, show
from clampz.display.formatting import counted, title
from clampz.exact_inference.running import ExactCost, exact_cost
from clampz.model import Model
from clampz.model.description import describe, in_words
from clampz.presolve.simplify import simplify
from clampz.runtime.options import bytes_in_words, memory_allowed

SUMMARY = "what a model is like, and what each method would cost"
DESCRIPTION = """Print the size, the graph, the width and the kind of a model, and about what each method would cost
on it.  Nothing is solved."""
EXAMPLES = """\
  clampz info model.uai
  clampz info model.uai --evidence model.uai.evid --json"""

ROWS = ("variables", "labels", "factors", "zeros", "simplified", "components", "core", "width", "kind", "strength")


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    arguments.add_memory(parser, "what exact inference may use")
    arguments.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the description of a model and the costs of methods."""
    if not args.json:
        require("rich")
    model = arguments.read_model(args)
    data = run_to_the_end(lambda _: model_data(model, args.memory), "looking for an elimination order")
    if args.json:
        print_json({"model": str(args.model), **data})
    else:
        print_description(args.model, data)
    return OK


def model_data(model: Model, memory: int | None) -> dict[str, Any]:
    """Return the description of a model, with estimated costs in bytes and seconds, as JSON can hold it."""
    cost, simplified = exact_cost(model), simplify(model, marginals=False)
    return describe(model) | {
        "simplified": {
            "variables": simplified.model.num_variables,
            "table_entries": simplified.model.num_entries,
            "done": list(simplified.words),
            "infeasibility": simplified.infeasibility,
        },
        "width": cost.width,
        "width_at_least": cost.at_least,
        "prefers_mean_field": prefers_mean_field(model),
        "cost": costs(model, cost, memory),
    }


def costs(model: Model, cost: ExactCost, memory: int | None) -> dict[str, dict[str, Any]]:
    """Return the cost of each method on one lane: bytes and table entries, or sweeps, and seconds."""
    exact = {
        "bytes": cost.num_bytes,
        "table_entries": cost.num_bytes // 16,
        "seconds": cost.seconds,
        "fits": cost.num_bytes <= memory_allowed(memory),
    }
    sweep = seconds_per_sweep(model)
    return {"exact": exact} | {
        name: {
            "sweeps": sweeps,
            "starts": STARTS[name],
            "seconds_per_sweep": sweep,
            "seconds": STARTS[name] * sweeps * sweep,
        }
        for name, sweeps in TYPICAL_SWEEPS.items()
    }


def print_description(path: Path, data: dict[str, Any]) -> None:
    """Print the description as tables."""
    words = in_words(data)
    words["strength"] += "; dense and strong: Bethe is far off" if data["prefers_mean_field"] else ""
    words["simplified"] = simplified_in_words(data["simplified"])
    at_least = "at least " if data["width_at_least"] else ""
    words["width"] = f"{at_least}{data['width']}, of the best elimination order found"
    show(facts([("model", display_name(path)), *((name, words[name]) for name in ROWS)]))
    columns = ("method", "gives", "takes about", "seconds")
    table = new_table(*columns, left=columns[1:3], wrapped=columns[2:3])
    exact = data["cost"]["exact"]
    too_much = "" if exact["fits"] else ", more than there is memory for"
    text = f"{bytes_in_words(exact['bytes'])}, {exact['table_entries']:,.3g} table entries{too_much}"
    table.add_row("exact", "log Z", text, as_seconds(exact["seconds"]))
    for name, gives in (("mean_field", "a lower bound"), ("bethe", "an estimate"), ("trw", "an upper bound")):
        found = data["cost"][name]
        starts = f" from each of {found['starts']} starts" if found["starts"] > 1 else ""
        text = f"{found['sweeps']} sweeps of {1e3 * found['seconds_per_sweep']:.2g} ms{starts}"
        table.add_row(title(name), gives, text, as_seconds(found["seconds"]))
    show()
    show(table)


def simplified_in_words(simplified: dict[str, Any]) -> str:
    """Return what the presolve does to the model, in words."""
    if simplified["infeasibility"]:
        return f"Z = 0: {simplified['infeasibility']}"
    if not simplified["done"]:
        return "nothing to simplify"
    left = f"{counted(simplified['variables'], 'variable')}, {simplified['table_entries']:,} table entries left"
    return f"{left}: {'; '.join(simplified['done'])}"


def as_seconds(value: float) -> str:
    """Return an estimated duration, in few digits."""
    if value >= 1e6:
        return "years" if value > 1e8 else "weeks"
    return "< 0.01" if value < 0.01 else f"{value:.2g}" if value < 10 else f"{value:,.0f}"
