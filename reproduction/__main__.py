"""`python -m reproduction`, in a clone of the repository: the arguments, and what an ending means as an exit code.

0 when done, 1 if some runs could not be made or the output could not be written, 2 for bad input, which one line on
stderr explains, and 130 after Ctrl-C.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from clampz.errors import ClampzError, MissingLibraryError

OK, CUT_OFF, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
NEEDED = ("rich", "matplotlib")
EXAMPLES = """\
examples:
  python -m reproduction --quick                           a few runs of each family
  python -m reproduction                                   everything, 100 runs of each
  python -m reproduction --models 'mine/*.uai' --clamps 8  the same study of your models
  python -m reproduction --figure success --family grid --size 49 --weights=-6,6 --runs 20
  python -m reproduction --scheduler tcp://host:8786       on Dask, of 'clampz[cluster]'

exit codes:
  0 done, 1 some runs could not be made, 2 bad input, 130 interrupted by Ctrl-C"""


class OneLineParser(argparse.ArgumentParser):
    """Parse arguments, with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"reproduction: {message} (see {self.prog} --help)\n")


def make_parser() -> OneLineParser:
    """Return the parser; what is not asked for is not in what it finds."""
    parser = OneLineParser(
        prog="python -m reproduction",
        description="""\
Make the runs of Weller & Domke, 'Clamping Improves TRW and Mean Field Approximations'
(2016), draw its figures and check its claims.  Every finished run is kept at once:
the same command goes on where it was stopped.""",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a few runs of each family")
    runs = "100, 40 for times, 10 for optimal sequences, 25 and 5 for what goes beyond the paper"
    add("--runs", type=int, metavar="N", help=f"runs of each family, as in --runs 20 (default: {runs})")
    figures = "only this figure, as in --figure success; may be repeated"
    add("--figure", action="append", metavar="NAME", help=figures)
    graphs = "only grid, er, regular or complete, or one family: --family 'grid49[-6,6]'; may be repeated"
    add("--family", action="append", metavar="NAME", help=graphs)
    sizes = "only models with this number of variables, as in --size 49; may be repeated"
    add("--size", action="append", type=int, metavar="N", help=sizes)
    ranges = "only this range of W, as in --weights=-6,6; may be repeated"
    add("--weights", action="append", metavar="LOW,HIGH", help=ranges)
    files = "in place of the paper's families your own models, as in --models 'mine/*.uai'; may be repeated"
    add("--models", action="append", metavar="FILES", help=files)
    clamps = "variables that heuristics clamp at most, as in --clamps 8 (default: 5)"
    add("--clamps", type=int, metavar="K", help=clamps)
    add("--draw", action="store_true", help="make no runs: only draw those that are in FOLDER")
    add("--latex", action="store_true", help="also tables and figures as LaTeX, in FOLDER/latex")
    folder = "where results go, as in --out results/grid49 (default: results/paper)"
    add("--out", type=Path, metavar="FOLDER", help=folder)
    add("--jobs", type=int, metavar="N", help="processes, as in --jobs 4 (default: all cores)")
    cluster = "of a Dask cluster to run on, as in --scheduler tcp://host:8786"
    add("--scheduler", metavar="ADDRESS", help=cluster)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Reproduce the paper as the arguments ask, and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    given = vars(make_parser().parse_args(with_negative_ranges(words)))
    try:
        for name in NEEDED:
            if find_spec(name) is None:
                needed = " and ".join(NEEDED)
                raise MissingLibraryError(f"needs {needed}, and {name} is not installed: pip install 'clampz[cli]'")
        from reproduction.pipeline import reproduce  # not for --help
        from reproduction.request import Request

        ending = reproduce(Request(**given))
        if ending.report is not None:
            print(f"Report: {ending.report}", flush=True)
        return INTERRUPTED if ending.interrupted else CUT_OFF if ending.num_failed else OK
    except ClampzError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"reproduction: {error.filename or 'standard output'}: {error.strerror or 'closed'}", file=sys.stderr)
        return CUT_OFF
    except KeyboardInterrupt:
        return INTERRUPTED


def with_negative_ranges(words: Sequence[str]) -> list[str]:
    """Return arguments in which `--weights -6,6` is `--weights=-6,6`: argparse would take -6,6 for an option.

    >>> with_negative_ranges(["--weights", "-6,6", "--quick"])
    ['--weights=-6,6', '--quick']
    """
    return re.sub(r"(?m)^--weights\n(?=-[\d.])", "--weights=", "\n".join(words)).split("\n") if words else []


if __name__ == "__main__":
    sys.exit(main())
