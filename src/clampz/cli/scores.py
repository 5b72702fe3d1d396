"""`clampz scores`: the variables that each selector would clamp first."""

import argparse
from typing import Any

import numpy as np

from clampz.clamping.selectors import scores, selectors
from clampz.clamping.selectors.entropy import trw_entropies
from clampz.cli.arguments import add_command, add_json, add_model, read_model, whole_number
from clampz.cli.exits import OK, need
from clampz.cli.outputs import give_json
from clampz.cli.tables import new_table, show
from clampz.cli.watching import completed
from clampz.errors import ClampzError
from clampz.model import Model
from clampz.numerics import Floats
from clampz.wording import name_of


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "scores",
        run,
        summary="the variables that each selector would clamp first",
        description="Score the variables by the paper's heuristics, and print the best of each:\n"
        "what is gained most by clamping.",
        examples="  clampz scores model.uai\n  clampz scores model.uai --select frustCycles --top 20",
    )
    add_model(parser)
    parser.add_argument(
        "--select", choices=tuple(selectors()), metavar="NAME", help=f"only this selector: {', '.join(selectors())}"
    )
    parser.add_argument(
        "--top", type=whole_number(1), default=5, metavar="N", help="how many variables to print (default: %(default)s)"
    )
    add_json(parser, ": for each selector all variables with their scores, best first")


def run(args: argparse.Namespace) -> int:
    """Print the best variables."""
    if not args.json:
        need("rich")
    model = read_model(args)
    names = [args.select] if args.select else list(selectors())
    found = completed(lambda: all_scores(model, names), "scoring")
    if args.select and isinstance(failure := found[args.select], str):
        raise ClampzError(failure)
    if args.json:
        ranked = {
            name: [[name_of(model.names, i), float(values[i])] for i in best(values)]
            for name, values in found.items()
            if not isinstance(values, str)
        }
        give_json({"model": str(args.model), "scores": ranked})
    else:
        print_table(model, found, args.top)
    return OK


def all_scores(model: Model, names: list[str]) -> dict[str, Floats | str]:
    """The scores by each selector, or why it has none."""
    entropy = trw_entropies(model) if any(name.endswith("+TRE") for name in names) else None
    found: dict[str, Floats | str] = {}
    for name in names:
        try:
            found[name] = scores(model, name, entropy=entropy)
        except ClampzError as error:
            found[name] = str(error)
    return found


def best(values: Floats) -> list[int]:
    """The variables, highest score first."""
    order: list[int] = np.argsort(-values, kind="stable").tolist()
    return order


def print_table(model: Model, found: dict[str, Floats | str], top: int) -> None:
    """A row for each selector, its best variables with their scores in a column each; a single selector has a row for
    each variable."""
    top = min(top, model.num_variables)
    (name, values), *others = found.items()
    if not others and not isinstance(values, str):
        table = new_table("variable", name)
        for i in best(values)[:top]:
            table.add_row(name_of(model.names, i), f"{values[i]:.6g}")
        show(table)
        return
    table = new_table("selector", *(f"{rank}." for rank in range(1, top + 1)))
    for name, values in found.items():
        if isinstance(values, str):
            table.add_row(name, "-")
            continue
        first = [i for i in best(values)[:top] if values[i] > 0]
        table.add_row(name, *(f"{name_of(model.names, i)} [dim]{values[i]:.4g}[/dim]" for i in first))
    show(table)
    show("[dim]Variables, each with its score; higher gains more. Those that score 0 are left out.[/dim]")
    missing = [name for name, values in found.items() if isinstance(values, str)]
    if missing:
        show(f"[dim]Not defined for this model (it takes two labels and no zeros): {', '.join(missing)}[/dim]")
