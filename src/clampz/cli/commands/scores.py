"""`clampz scores`: the variables that each selector would clamp first."""

import argparse

import numpy as np

from clampz.clamping.selectors import Scores, scores, selectors
from clampz.cli import arguments
from clampz.cli.exit_codes import OK
from clampz.cli.live_progress import run_to_the_end
from clampz.cli.outputs import as_csv, requested_output
from clampz.cli.tables import new_table, show
from clampz.display.formatting import name_of
from clampz.numerics import Floats

SUMMARY = "the variables that each selector would clamp first"
DESCRIPTION = """Score the variables by the paper's heuristics, and print the best of each: what is gained most by
clamping."""
EXAMPLES = """\
  clampz scores model.uai
  clampz scores model.uai --select frustCycles --top 20"""

FORMS = ("csv", "json")


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    text, names = f"only this selector: {', '.join(selectors())}", tuple(selectors())
    parser.add_argument("--select", choices=names, metavar="NAME", help=text)
    text = "how many variables to print (default: %(default)s)"
    parser.add_argument("--top", type=arguments.whole_number(1), default=5, metavar="N", help=text)
    arguments.add_json(parser, ": for each selector all variables with their scores, best first")
    text = "write all scores to a file: .csv (a row for each variable) or .json; - for stdout"
    arguments.add_out(parser, text, forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Score the variables, and print and write the scores."""
    out = requested_output(args, FORMS)
    model = arguments.read_model(args)
    found = run_to_the_end(lambda _: scores(model, [args.select] if args.select else None), "scoring")
    names = [name_of(model.names, i) for i in range(model.num_variables)]
    ranked = {name: [[names[i], float(values[i])] for i in best(values)] for name, values in found.items()}
    data = {"model": str(args.model), "scores": ranked}
    rows = zip(names, *(values.tolist() for values in found.values()), strict=True)
    out.deliver(args, data, lambda: print_scores(found, args.top), csv=lambda: as_csv(["variable", *found], rows))
    return OK


def best(values: Floats) -> list[int]:
    """Return the variables, highest score first."""
    order: list[int] = np.argsort(-values, kind="stable").tolist()
    return order


def print_scores(found: Scores, top: int) -> None:
    """Print a row for each selector, with its best variables; for a single selector, a row for each variable."""
    names, top = found.model.names, min(top, found.model.num_variables)
    (name, values), *others = found.items()
    if not others:
        table = new_table("variable", name)
        for i in best(values)[:top]:
            table.add_row(name_of(names, i), f"{values[i]:.6g}")
        show(table)
        return
    table = new_table("selector", *(f"{rank}." for rank in range(1, top + 1)))
    missing = [name for name in selectors() if name not in found]
    for name in selectors():
        first = [i for i in best(found[name])[:top] if found[name][i] > 0] if name in found else []
        shown = [f"{name_of(names, i)} [dim]{found[name][i]:.4g}[/dim]" for i in first]
        table.add_row(name, *(["-"] if name in missing else shown))
    show(table)
    show("[dim]Variables, each with its score; higher gains more. Those that score 0 are left out.[/dim]")
    if missing:
        show(f"[dim]Not defined for this model (it takes two labels and no zeros): {', '.join(missing)}[/dim]")
