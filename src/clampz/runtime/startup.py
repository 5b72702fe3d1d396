"""End the command without a traceback where Ctrl-C comes while it is still being imported.

This module is imported before everything else of the package, as importing the rest takes most of a second.  Only the
commands `clampz` and `python -m clampz` have this handler; programs that import clampz are left alone.
"""

import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

# The exit code that shells give a program that Ctrl-C ended.
INTERRUPTED = 130


def is_command() -> bool:
    """Return whether this process is the command, and not one of its workers."""
    asked, script = sys.orig_argv, sys.argv[0] if sys.argv else ""
    return ("-m", "clampz") in pairwise(asked) or (script in asked and Path(script).stem == "clampz")


def _end(signum: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def end_startup() -> None:
    """Give Ctrl-C its usual handler back, once everything is imported."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
