"""`clampz plot`: a picture of a model."""

import argparse
from typing import Any

from clampz.clamping.clamp import clamp
from clampz.clamping.selectors import selectors
from clampz.cli.arguments import SELECTORS, add_command, add_model, add_out, read_model, whole_number
from clampz.cli.exit_codes import OK, need
from clampz.cli.live_progress import Listener, completed
from clampz.cli.outputs import check_picture_path, save_picture
from clampz.model import Model
from clampz.plotting import plot_model
from clampz.solving.clamps import QUICK
from clampz.solving.solve import solve

SHADES = ("none", "marginals", *selectors())


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "plot",
        run,
        summary="draw a model's graph",
        description="Draw the graph of a model: attractive edges solid and blue, repulsive ones dashed and red, "
        "strong ones wide, factors of three and more variables as squares, all outside the core pale; and, if asked "
        "for, the variables to clamp first, framed and numbered.  Of some thousands of variables, an image or a "
        "density.",
        examples="  clampz plot model.uai -o model.png\n"
        "  clampz plot model.uai -o model.pdf --clamp 5 --select maxW+TRE\n"
        "  clampz plot model.uai -o model.svg --shade marginals",
    )
    add_model(parser)
    add_out(parser, "the picture: .png, .svg or .pdf", "-o", required=True)
    parser.add_argument(
        "--clamp", type=whole_number(0), default=0, metavar="K", help="mark the first K variables to clamp (for TRW)"
    )
    parser.add_argument(
        "--select",
        choices=SELECTORS,
        default=QUICK,
        metavar="NAME",
        help="how to choose them, as for solve (default: %(default)s)",
    )
    parser.add_argument(
        "--shade",
        choices=SHADES,
        default="none",
        metavar="WHAT",
        help="shade variables by their marginals or by a selector's score",
    )
    parser.add_argument("--names", action="store_true", help="write names or numbers on the variables")


def run(args: argparse.Namespace) -> int:
    """Draw the model and write the picture."""
    check_picture_path(args.out)
    need("matplotlib")
    model, listener = read_model(args), Listener()
    save_picture(completed(lambda: draw(model, args, listener), "drawing", listener), args.out)
    return OK


def draw(model: Model, args: argparse.Namespace, listener: Listener) -> Any:
    """The figure."""
    clamped = clamp(model, "trw", k=args.clamp, select=args.select, progress=listener).variables if args.clamp else ()
    marginals = solve(model, k=0, progress=listener) if args.shade == "marginals" else None
    scores = args.shade if args.shade in selectors() else None
    return plot_model(model, clamped=clamped, marginals=marginals, scores=scores, names=args.names or None).figure
