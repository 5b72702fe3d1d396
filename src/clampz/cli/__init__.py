"""The command line.

Every command is a module with a function `add(commands)` that declares its arguments and a function that runs it and
returns the exit code: 0 when done, 2 for bad input (one line on stderr that says what was expected), 3 for a model that
does not fit in memory, 130 after Ctrl-C; 1 if the reader of its output goes away (`| head`).  Results go to stdout,
everything else to stderr.  Only argparse is imported at the top: rich and matplotlib are extras, and slow to import.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from clampz._version import __version__
from clampz.cli import bound, completion, convert, demo, generate, info, paper, plot, scores, solve, uai
from clampz.cli.common import (
    BAD_INPUT,
    CUT_OFF,
    EXIT_CODES,
    INTERRUPTED,
    OK,
    TOO_LARGE,
    CommandError,
    GivenUpError,
    Parser,
    check_picture_path,
    ctrl_c_ends,
    need,
    save_picture,
    with_negative_values,
)
from clampz.errors import ClampzError, TooWideError

__all__ = [
    "BAD_INPUT",
    "INTERRUPTED",
    "OK",
    "CommandError",
    "check_picture_path",
    "ctrl_c_ends",
    "main",
    "make_parser",
    "need",
    "save_picture",
]

COMMANDS = (solve, bound, info, scores, plot, convert, generate, uai, demo, paper, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, TextIOWrapper
        ):  # a terminal or a locale without some character shows another in its place
            stream.reconfigure(errors="replace")
    parser = make_parser()
    args = parser.parse_args(with_negative_values(sys.argv[1:] if argv is None else argv))
    if args.run is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except TooWideError as error:
        print(f"clampz {args.command}: {error}", file=sys.stderr)
        return TOO_LARGE
    except MemoryError:
        print(f"clampz {args.command}: the model does not fit in memory", file=sys.stderr)
        return TOO_LARGE
    except (CommandError, ClampzError) as error:
        print(f"clampz {args.command}: {error}", file=sys.stderr)
        return BAD_INPUT
    except GivenUpError:
        print(f"clampz {args.command}: stopped before there was anything to show", file=sys.stderr)
        if argv is None:  # as a program: Python would wait for the threads
            os._exit(INTERRUPTED)
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # as rich does it; Python would complain once more when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF


def make_parser() -> Parser:
    """The parser of every command."""
    parser = Parser(
        prog="clampz",
        description="Log-partition functions and marginals of discrete graphical models, with bounds you can trust.",
        epilog=f"example:\n  clampz solve model.uai --task MAR\n\n{EXIT_CODES}",
    )
    parser.add_argument("--version", action="version", version=f"clampz {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for command in COMMANDS:
        command.add(commands)
    return parser
