"""How commands end: exit codes, errors of one line, and extras that are not there."""

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


class GivenUpError(KeyboardInterrupt):
    """Ctrl-C, and the work goes on in a thread that cannot be stopped."""


def in_options(text: object) -> str:
    """What the library says of its arguments, `memory=` or `method="auto"`, in options of the command line."""
    named = re.sub(r'\bmethod="(\w+)"', r"--method \1", str(text))
    named = re.sub(r"\bnum_best=(?!\w)", "--num-best", named)
    return re.sub(r"\b(time|memory|limit|threads|gap)=(?![\w\"'])", r"--\1", named)


def need(*modules: str) -> None:
    """Refuse to go on without the extras of the command line."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise CommandError(
                f"this command needs {' and '.join(modules)}, and {module} is not installed: pip install 'clampz[cli]'"
            ) from None
