"""The command line.

Every command is a module with a function `add(commands)` that declares its arguments and a function `run(args)` that
returns the exit code: 0 when done, 2 for bad input (one line on stderr that says what was expected), 3 for a model that
does not fit in memory, 130 after Ctrl-C; 1 if its output cannot be written, or nobody reads it (`| head`).  Results go
to stdout, everything else to stderr.  Only argparse is imported at the top: rich and matplotlib are extras, and slow to
import.

May import: everything.
"""

import os
import sys
from collections.abc import Sequence

from clampz._version import __version__
from clampz.cli import jit_warmup
from clampz.cli.arguments import Parser, with_negative_values
from clampz.cli.commands import (
    bound,
    completion,
    convert,
    demo,
    generate,
    info,
    plot,
    sample,
    scores,
    solve,
    sweep,
    uai,
)
from clampz.cli.exit_codes import (
    BAD_INPUT,
    CUT_OFF,
    EXIT_CODES,
    INTERRUPTED,
    TOO_LARGE,
    CommandError,
    GivenUpError,
    in_options,
)
from clampz.cli.streams import forget_output, is_broken_pipe, prepare_streams
from clampz.errors import ClampzError, TooWideError
from clampz.runtime.startup import imported

# Where the reproduction of the paper has gone.
MOVED = "moved out of the package: run `python -m reproduction` in a clone of the repository"
# Those that answer at once, if the model is small.
QUICK_COMMANDS = {"solve", "bound", "sample", "info", "scores", "demo"}
COMMANDS = (solve, bound, sample, sweep, info, scores, plot, convert, generate, uai, demo, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    prepare_streams()
    said_by = "clampz"

    def say(what: object) -> None:
        print(f"{said_by}: {what}", file=sys.stderr)

    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["paper"]:
        print(f"clampz paper: {MOVED}", file=sys.stderr)
        return BAD_INPUT
    try:
        args = make_parser().parse_args(with_negative_values(words))
        if args.run is None:
            args.parser.print_help(sys.stderr)
            return BAD_INPUT
        said_by = f"clampz {args.command}"
        imported()
        first = argv is None and args.command in QUICK_COMMANDS and "-" not in sys.argv and jit_warmup.is_first()
        answered = jit_warmup.run_first(sys.argv[1:]) if first else None
        code: int = args.run(args) if answered is None else answered
        sys.stdout.flush()
        return code
    except TooWideError as error:
        say(in_options(error))
        return TOO_LARGE
    except MemoryError:
        say("the model does not fit in memory")
        return TOO_LARGE
    except (CommandError, ClampzError) as error:
        say(in_options(error))
        return BAD_INPUT
    except GivenUpError:
        say("stopped before there was anything to show")
        if argv is None:  # as a program: Python would wait for the threads
            os._exit(INTERRUPTED)
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if not is_broken_pipe(error):
            say(f"{error.filename or 'standard output'}: {error.strerror or 'closed'}")
        forget_output()
        return CUT_OFF


def make_parser() -> Parser:
    """The parser of every command."""
    parser = Parser(
        prog="clampz",
        description="Log-partition functions and marginals of discrete graphical models, with bounds you can trust.",
        epilog=f"example:\n  clampz solve model.uai --task MAR\n\n{EXIT_CODES}",
    )
    parser.add_argument("--version", action="version", version=f"clampz {__version__}")
    parser.set_defaults(run=None, parser=parser, of_command=parser)
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for command in COMMANDS:
        command.add(commands)
    return parser
