"""The command line: `main` parses the arguments, runs a command, and turns errors into exit codes.

The code is 0 when done, 2 for bad input (one line on stderr says what was expected), 3 for a model that does not fit in
memory, 130 after Ctrl-C, and 1 if the output cannot be written, or nobody reads it (`| head`).  Results go to stdout,
everything else to stderr.  Only argparse is imported at the top: rich and matplotlib are extras, and slow to import.
"""

import os
import sys
from collections.abc import Sequence

from clampz._version import __version__
from clampz.cli import exit_codes, jit_warmup
from clampz.cli.arguments import CommandParser
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
from clampz.cli.standard_streams import discard_output, is_broken_pipe, prepare_streams
from clampz.errors import ClampzError, TooWideError
from clampz.runtime.startup import end_startup

# Where the reproduction of the paper has gone.
MOVED = "moved out of the package: run `python -m reproduction` in a clone of the repository"
# Commands that answer at once, if the model is small.
QUICK_COMMANDS = {"solve", "bound", "sample", "info", "scores", "demo"}
COMMANDS = (solve, bound, sample, sweep, info, scores, plot, convert, generate, uai, demo, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    prepare_streams()
    speaker = "clampz"

    def say(what: object) -> None:
        print(f"{speaker}: {what}", file=sys.stderr)

    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["paper"]:
        print(f"clampz paper: {MOVED}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    try:
        args = make_parser().parse_args(words)
        if args.run is None:
            args.parser.print_help(sys.stderr)
            return exit_codes.BAD_INPUT
        speaker = f"clampz {args.command}"
        end_startup()
        is_quick = argv is None and args.command in QUICK_COMMANDS and "-" not in sys.argv
        first = is_quick and jit_warmup.nothing_is_compiled()
        answered = jit_warmup.run_first(sys.argv[1:]) if first else None
        code: int = args.run(args) if answered is None else answered
        sys.stdout.flush()
        return code
    except TooWideError as error:
        say(exit_codes.as_flags(error))
        return exit_codes.TOO_LARGE
    except MemoryError:
        say("the model does not fit in memory")
        return exit_codes.TOO_LARGE
    except (exit_codes.CommandError, ClampzError) as error:
        say(exit_codes.as_flags(error))
        return exit_codes.BAD_INPUT
    except exit_codes.AbandonedError:
        say("stopped before there was anything to show")
        if argv is None:  # as a program: Python would wait for the threads
            os._exit(exit_codes.INTERRUPTED)
        return exit_codes.INTERRUPTED
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except OSError as error:
        if not is_broken_pipe(error):
            say(f"{error.filename or 'standard output'}: {error.strerror or 'closed'}")
        discard_output()
        return exit_codes.CUT_OFF


def make_parser() -> CommandParser:
    """Return the parser of all commands."""
    parser = CommandParser(
        prog="clampz",
        description="Log-partition functions and marginals of discrete graphical models, with bounds you can trust.",
        epilog=f"example:\n  clampz solve model.uai --task MAR\n\n{exit_codes.EXIT_CODES}",
    )
    parser.add_argument("--version", action="version", version=f"clampz {__version__}")
    parser.set_defaults(run=None, parser=parser, of_command=parser)
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for command in COMMANDS:
        name, texts = command.__name__.rpartition(".")[2], {"help": command.SUMMARY, "description": command.DESCRIPTION}
        one = commands.add_parser(name, epilog=f"examples:\n{command.EXAMPLES}", **texts)
        one.set_defaults(run=command.run, of_command=one)
        command.add_arguments(one)
    return parser
