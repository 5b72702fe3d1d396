"""`clampz completion`: a script for a shell that completes commands, options and file names of clampz."""

import argparse
from pathlib import Path
from typing import Any

from clampz.cli.arguments import add_command
from clampz.cli.exit_codes import OK, require

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    parser = add_command(
        commands,
        "completion",
        run,
        summary="print what makes a shell complete clampz's arguments",
        description="Print a script that makes a shell complete the commands, options and file names of clampz.",
        examples='  eval "$(clampz completion bash)"  in ~/.bashrc\n'
        '  eval "$(clampz completion zsh)"   in ~/.zshrc, after compinit\n'
        "  clampz completion fish > ~/.config/fish/completions/clampz.fish",
    )
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
