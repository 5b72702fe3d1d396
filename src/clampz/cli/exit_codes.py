"""Exit codes of commands, errors that end them with one line, and a check for optional libraries."""

import re
from importlib import import_module

from clampz.runtime.startup import INTERRUPTED as INTERRUPTED

OK, CUT_OFF, BAD_INPUT, TOO_LARGE = 0, 1, 2, 3
EXIT_CODES = """exit codes:
  0    done
  1    cut off: not all of it could be done, or the output could not be written
  2    bad input: one line on stderr says what was expected, and where
  3    the model is too large for the memory there is
  130  interrupted by Ctrl-C; most commands still give what they have"""


class CommandError(Exception):
    """Bad input to a command; the message is all the user sees."""


class AbandonedError(KeyboardInterrupt):
    """Ctrl-C, while the work goes on in a thread that cannot be stopped."""


def as_flags(message: object) -> str:
    """Return a message of the library with its arguments, `memory=` or `method="auto"`, as command-line flags."""
    named = re.sub(r'\bmethod="(\w+)"', r"--method \1", str(message))
    flag = r"\b(time|memory|max_table|num_best|threads|gap)=(?![\w\"'])"
    return re.sub(flag, lambda found: f"--{found[1].replace('_', '-')}", named)


def require(*modules: str) -> None:
    """Refuse to go on where an optional library of the command line is missing."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise CommandError(
                f"this command needs {' and '.join(modules)}, and {module} is not installed: pip install 'clampz[cli]'"
            ) from None
