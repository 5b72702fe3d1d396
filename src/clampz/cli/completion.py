"""`clampz completion`: what makes a shell complete clampz's commands, options and file names, made from the parser
itself."""

import argparse
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from clampz.cli.common import OK, add_command

SHELLS = ("bash", "zsh", "fish")


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "completion",
        completion,
        summary="print what makes a shell complete clampz's arguments",
        description="Print a script that makes a shell complete the commands, options and file names of clampz.",
        examples='  eval "$(clampz completion bash)"                                     in ~/.bashrc\n'
        '  eval "$(clampz completion zsh)"                                      in ~/.zshrc, after compinit\n'
        "  clampz completion fish > ~/.config/fish/completions/clampz.fish",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def completion(args: argparse.Namespace) -> int:
    """Print the script."""
    from clampz.cli import make_parser

    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](list(commands_of(make_parser()))))
    return OK


class Option(NamedTuple):
    """An option or a place, by its names (none for a place), and the values it may have (none: a file, or whatever it
    says)."""

    names: list[str]
    values: list[str]
    has_value: bool
    help: str


class Command(NamedTuple):
    name: str
    help: str
    options: list[Option]


def commands_of(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """Every command of the parser with what it takes."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield Command(name, helps.get(name, ""), [_option(command, option) for option in command._actions])


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> Option:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return Option(
        list(action.option_strings), [str(choice) for choice in action.choices or ()], action.nargs != 0, text
    )


def _words(command: Command) -> str:
    """The options, and the values of places."""
    return " ".join(
        [name for option in command.options for name in option.names]
        + [value for option in command.options if not option.names for value in option.values]
    )


def _cases(command: Command) -> Iterator[tuple[str, str]]:
    """Of options with a value, their names as a pattern of the shell, and the values they may have."""
    for option in command.options:
        if option.names and option.has_value:
            yield "|".join(option.names), " ".join(option.values)


def bash(commands: list[Command]) -> str:
    """A function that looks at the command and the word before, and `complete`."""
    lines = [
        "_clampz() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "  COMPREPLY=()",
    ]
    lines += [
        "  if [[ $COMP_CWORD -eq 1 ]]; then",
        f'    words="{" ".join(command.name for command in commands)} --help --version"',
        "  else",
        '    case "${COMP_WORDS[1]}" in',
    ]
    for command in commands:
        lines += [f"      {command.name})", '        case "$before" in']
        lines += [f'          {names}) words="{values}" ;;' for names, values in _cases(command)]
        lines += [f'          *) words="{_words(command)}" ;;', "        esac ;;"]
    lines += [
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o default -F _clampz clampz",
    ]
    return "\n".join(lines)


def zsh(commands: list[Command]) -> str:
    """The same for zsh, where commands have descriptions; what is not known is a file."""
    described = " ".join(shlex.quote(f"{command.name}:{command.help.replace(':', ' -')}") for command in commands)
    lines = [
        "_clampz() {",
        "  local -a options",
        "  if (( CURRENT == 2 )); then",
        f"    options=({described})",
        "    _describe command options",
        "    return",
        "  fi",
    ]
    lines += ['  case "$words[2]" in']
    for command in commands:
        lines += [f"    {command.name})", '      case "$words[CURRENT-1]" in']
        lines += [f"        {names}) options=({values}) ;;" for names, values in _cases(command)]
        lines += [f"        *) options=({_words(command)}) ;;", "      esac ;;"]
    lines += [
        "  esac",
        '  [[ -n "$options" ]] && compadd -- $options',
        '  [[ "$words[CURRENT]" == -* ]] || _files',
        "}",
        "compdef _clampz clampz",
    ]
    return "\n".join(lines)


def fish(commands: list[Command]) -> str:
    """A `complete` for every command and option."""
    lines = ["complete -c clampz -f"]
    lines += [
        f"complete -c clampz -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}"
        for command in commands
    ]
    for command in commands:
        when = f"-n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            values = (
                f" -x -a {_quoted(' '.join(option.values))}"
                if option.values
                else " -r -F"
                if option.has_value and names
                else ""
                if names
                else " -F"
            )
            lines.append(f"complete -c clampz {when} {names}{values} -d {_quoted(option.help)}".replace("  ", " "))
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A string of fish: in single quotes, with quotes and backslashes escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
