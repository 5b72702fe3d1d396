"""`clampz plot`: a picture of a model."""

import argparse
from typing import Any

from clampz.clamping.clamp import clamp
from clampz.clamping.selectors import selectors
from clampz.cli import arguments
from clampz.cli.exit_codes import OK, require
from clampz.cli.live_progress import ProgressListener, run_to_the_end
from clampz.cli.outputs import PICTURE_SUFFIXES, check_file, save_picture
from clampz.model import Model
from clampz.plotting import plot_model
from clampz.solving.clamps import QUICK
from clampz.solving.solve import solve

SUMMARY = "draw a model's graph"
DESCRIPTION = """Draw the graph of a model: attractive edges solid and blue, repulsive ones dashed and red, strong
ones wide, factors of three and more variables as squares, all outside the core pale; and, if asked for, the
variables to clamp first, framed and numbered.  Of some thousands of variables, an image or a density."""
EXAMPLES = """\
  clampz plot model.uai -o model.png
  clampz plot model.uai -o model.pdf --clamp 5 --select maxW+TRE
  clampz plot model.uai -o model.svg --shade marginals"""

SHADES = ("none", "marginals", *selectors())


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    arguments.add_out(parser, "the picture: .png, .svg or .pdf", "-o", required=True)
    text, count = "mark the first K variables to clamp (for TRW)", arguments.whole_number(0)
    parser.add_argument("--clamp", type=count, default=0, metavar="K", help=text)
    text = "how to choose them, as for solve (default: %(default)s)"
    parser.add_argument("--select", choices=arguments.SELECTORS, default=QUICK, metavar="NAME", help=text)
    text = "shade variables by their marginals or by a selector's score"
    parser.add_argument("--shade", choices=SHADES, default="none", metavar="WHAT", help=text)
    parser.add_argument("--names", action="store_true", help="write names or numbers on the variables")


def run(args: argparse.Namespace) -> int:
    """Draw the model and write the picture."""
    check_file(args.out, suffixes=PICTURE_SUFFIXES)
    require("matplotlib")
    model = arguments.read_model(args)
    save_picture(run_to_the_end(lambda listener: draw(model, args, listener), "drawing"), args.out)
    return OK


def draw(model: Model, args: argparse.Namespace, listener: ProgressListener) -> Any:
    """Return the figure, with the clamped variables and the shades that are asked for."""
    clamped = clamp(model, "trw", k=args.clamp, select=args.select, progress=listener).variables if args.clamp else ()
    marginals = solve(model, k=0, progress=listener) if args.shade == "marginals" else None
    scores = args.shade if args.shade in selectors() else None
    return plot_model(model, clamped=clamped, marginals=marginals, scores=scores, names=args.names or None).figure
