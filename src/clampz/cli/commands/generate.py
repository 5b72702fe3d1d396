"""`clampz generate`: the paper's random models, as files."""

import argparse
from collections.abc import Callable
from typing import Any

from clampz import generators, io
from clampz.cli import arguments
from clampz.cli.exit_codes import OK, CommandError
from clampz.cli.outputs import MODEL_FORMS, model_encoders, requested_output
from clampz.generators import THETA, WEIGHTS
from clampz.model import Model
from clampz.runtime.budget import end_at_once, on_ctrl_c

SUMMARY = "make a random model of the paper's kinds"
DESCRIPTION = """Draw a random model and write it to a file: theta_i x_i + W_ij / 2 [x_i = x_j], with theta and W
uniform over ranges.  The same seed gives the same model."""
EXAMPLES = """\
  clampz generate grid --size 9 --weights -6,6 --theta -2,2 --seed 1 -o grid.uai
  clampz generate grid --size 4x20 --planar --seed 1 -o strip.fg
  clampz generate complete --size 15 --weights -12,12 --seed 1 -o k15.uai.gz
  clampz generate er --size 50 --degree 3 --labels 4 --potentials table -o r.uai"""

# What makes each graph, and what it takes beside the seed and theta; all but barbell take what `DRAWING` has.
DRAWING = ("weights", "labels", "potentials")
GRAPHS: dict[str, tuple[Callable[..., Model], tuple[str, ...]]] = {
    "grid": (generators.grid, ("size", "planar", *DRAWING)),
    "er": (generators.erdos_renyi, ("size", "degree", *DRAWING)),
    "regular": (generators.regular, ("size", "degree", *DRAWING)),
    "complete": (generators.complete, ("size", *DRAWING)),
    "cycle": (generators.cycle, ("size", *DRAWING)),
    "lamp": (generators.lamp, DRAWING),
    "barbell": (generators.barbell, ("weights",)),
}


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "graph",
        choices=tuple(GRAPHS),
        metavar="GRAPH",
        help=f"{', '.join(GRAPHS)} (er: Erdős-Rényi; the last two are the paper's examples)",
    )
    parser.add_argument("--size", metavar="N", help="variables; of a grid its side, or ROWSxCOLUMNS")
    for name, what, default in (("--weights", "W", WEIGHTS), ("--theta", "theta", THETA)):
        shown = "{:g},{:g}".format(*default)  # type: ignore[misc]
        text = f"range of {what}, or one number (default: {shown})"
        parser.add_argument(name, type=arguments.number_range, metavar="LOW,HIGH", help=text)
    text, count = "neighbours of each variable; for er on average (default: 4)", arguments.whole_number
    parser.add_argument("--degree", type=float, metavar="D", help=text)
    parser.add_argument("--labels", type=count(2), metavar="L", help="states of each variable (default: 2)")
    text = "with more labels: W/2 [x_i = x_j], or every table entry at random (default: potts)"
    parser.add_argument("--potentials", choices=("potts", "table"), help=text)
    parser.add_argument("--planar", action="store_const", const=True, help="a grid that is not wrapped around")
    text = "whole number (default: a new model each time)"
    parser.add_argument("--seed", type=count(0), metavar="N", help=text)
    text = f"the file: {', '.join(io.FORMATS)}, also .gz; - for standard output"
    arguments.add_out(parser, text, "-o", required=True, forms=MODEL_FORMS)


def run(args: argparse.Namespace) -> int:
    """Draw a random model and write it."""
    out = requested_output(args, MODEL_FORMS)
    takes = GRAPHS[args.graph][1]
    for option in ("size", "degree", "planar", *DRAWING):
        if getattr(args, option) is not None and option not in takes:
            others = ", ".join(f"--{name}" for name in (*takes, "theta", "seed"))
            raise CommandError(f"--{option}: {args.graph} has no such option; it takes {others}")
    if "size" in takes and args.size is None:
        raise CommandError(f"--size: expected how large the {args.graph} is to be, as in --size 9")
    with on_ctrl_c(end_at_once):
        out.write(model_encoders(random_model(args)))
    return OK


def random_model(args: argparse.Namespace) -> Model:
    """Return the random model that the arguments ask for."""
    drawing: dict[str, Any] = {"rng": args.seed}
    drawing |= {name: getattr(args, name) for name in ("theta", *DRAWING) if getattr(args, name) is not None}
    make, takes = GRAPHS[args.graph]
    if args.graph == "barbell":
        weight = drawing.pop("weights", None)
        if isinstance(weight, tuple):
            found = f"{weight[0]:g},{weight[1]:g}"
            raise CommandError(f"--weights: barbell has one weight, as in --weights 6, found {found}")
        return make(**drawing) if weight is None else make(weight, **drawing)
    if "size" not in takes:
        return make(**drawing)
    rows, columns = parse_size(args.size, args.graph)
    if args.graph == "grid":
        return make(rows, columns, toroidal=not args.planar, **drawing)
    if args.degree is not None:
        drawing["degree"] = int(args.degree) if args.graph == "regular" and args.degree.is_integer() else args.degree
    return make(rows, **drawing)


def parse_size(text: str, graph: str) -> tuple[int, int]:
    """Parse the rows and columns of a grid, or the number of variables, which is returned twice."""
    parts = text.lower().split("x") if graph == "grid" else [text]
    if len(parts) > 2 or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        expected = "a whole number >= 1 or two, as in 9 or 4x20" if graph == "grid" else "a whole number >= 1"
        raise CommandError(f"--size: expected {expected}, found {text!r}")
    return int(parts[0]), int(parts[-1])
