"""Ctrl-C while the command line is still being imported ends it, without a traceback.

Imported before everything else of the package, as importing the rest takes most of a second.  Programs that import
clampz are left alone: this is for the commands `clampz` and `python -m clampz`.
"""

import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

# As shells have it for a program that Ctrl-C ended.
INTERRUPTED = 130


def is_command() -> bool:
    """Whether this process is the command, and not one of its workers."""
    asked, script = sys.orig_argv, sys.argv[0] if sys.argv else ""
    return ("-m", "clampz") in pairwise(asked) or (script in asked and Path(script).stem == "clampz")


def _end(signum: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def imported() -> None:
    """All is there: from now on Ctrl-C is heard as everywhere."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
