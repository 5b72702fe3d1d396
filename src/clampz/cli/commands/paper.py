"""`clampz paper`: the arguments, and what its ending means as an exit code."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clampz.cli.arguments import add_command
from clampz.cli.exit_codes import CUT_OFF, INTERRUPTED, OK, need

if TYPE_CHECKING:
    from clampz.paper.request import Request


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "paper",
        run,
        summary="reproduce the paper: its runs, its figures, and a report on its claims",
        description="Make the runs of Weller & Domke, 'Clamping Improves TRW and Mean Field Approximations' (2016), "
        "draw its figures and check its claims. "
        "Every finished run is kept at once: the same command goes on where it was stopped.",
        examples="""\
  clampz paper --quick                           a few runs of each family
  clampz paper                                   everything, 100 runs of each
  clampz paper --models 'mine/*.uai' --clamps 8  the same study of your models
  clampz paper --figure success --family grid --size 49 --weights=-6,6 --runs 20
  clampz paper --scheduler tcp://host:8786       on Dask, of 'clampz[cluster]'
""",
    )
    parser.add_argument("--quick", action="store_true", help="a few runs of each family")
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="runs of each family, as in --runs 20 (default: 100, 40 for times, 10 for optimal sequences, 25 and 5 for "
        "what goes beyond the paper)",
    )
    parser.add_argument(
        "--figure", action="append", metavar="NAME", help="only this figure, as in --figure success; may be repeated"
    )
    parser.add_argument(
        "--family",
        action="append",
        metavar="NAME",
        help="only grid, er, regular or complete, or one family: --family 'grid49[-6,6]'; may be repeated",
    )
    parser.add_argument(
        "--size",
        action="append",
        type=int,
        metavar="N",
        help="only models of so many variables, as in --size 49; may be repeated",
    )
    parser.add_argument(
        "--weights",
        action="append",
        metavar="LOW,HIGH",
        help="only this range of W, as in --weights=-6,6; may be repeated",
    )
    parser.add_argument(
        "--models",
        action="append",
        metavar="FILES",
        help="in place of the paper's families your own models, as in --models 'mine/*.uai'; may be repeated",
    )
    parser.add_argument(
        "--clamps", type=int, metavar="K", help="variables that heuristics clamp at most, as in --clamps 8 (default: 5)"
    )
    parser.add_argument("--draw", action="store_true", help="make no runs: only draw those that are in FOLDER")
    parser.add_argument("--latex", action="store_true", help="also tables and figures as LaTeX, in FOLDER/latex")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where results go, as in --out results/grid49 (default: results/paper)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes, as in --jobs 4 (default: all cores)")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster to run on, as in --scheduler tcp://host:8786"
    )


def run(args: argparse.Namespace) -> int:
    """Reproduce the paper; 1 if some runs could not be made, and the rest is drawn."""
    from clampz.paper.reproduction import reproduce  # twenty modules that no other command needs

    need("rich", "matplotlib")
    ending = reproduce(requested(args))
    if ending.report is not None:
        print(f"Report: {ending.report}")
    return INTERRUPTED if ending.interrupted else CUT_OFF if ending.num_failed else OK


def requested(args: argparse.Namespace) -> "Request":
    """What the arguments ask for; what they leave open is as the paper has it."""
    from clampz.paper.request import Request

    asked = {field.name: getattr(args, field.name) for field in fields(Request)}
    return Request(**{name: value for name, value in asked.items() if value is not None})
