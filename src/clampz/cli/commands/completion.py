"""`clampz completion`: a script for a shell that completes commands, options and file names of clampz."""

import argparse
from pathlib import Path

from clampz.cli import arguments
from clampz.cli.exit_codes import OK, require

SUMMARY = "print what makes a shell complete clampz's arguments"
DESCRIPTION = "Print a script that makes a shell complete the commands, options and file names of clampz."
EXAMPLES = """\
  eval "$(clampz completion bash)"  in ~/.bashrc
  eval "$(clampz completion zsh)"   in ~/.zshrc, after compinit
  clampz completion fish > ~/.config/fish/completions/clampz.fish"""

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    require("shtab")
    import shtab

    complete_files(args.parser, shtab.FILE)
    print(shtab.complete(args.parser, shell=args.shell))
    return OK


def complete_files(parser: argparse.ArgumentParser, how: object) -> None:
    """Let the shell complete the arguments that are paths, in every command."""
    for action in parser._actions:
        if action.type is Path:
            action.complete = how  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                complete_files(command, how)
