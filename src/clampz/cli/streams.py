"""Standard output and errors as they may be: closed, full, read by nobody, or unable to show a character."""

import errno
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path


def prepare_streams() -> None:
    """Have streams that can be asked whatever a stream is asked.  Where standard output is closed, writing to it fails;
    where standard error is, nothing is said."""
    null = Path(os.devnull)
    if sys.stdout is None:
        sys.stdout = null.open("r", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = null.open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # where a character cannot be shown, another takes its place
            stream.reconfigure(errors="replace")


def is_broken_pipe(error: OSError) -> bool:
    """Whether nobody reads the output any more, which Windows calls an invalid argument."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def forget_output() -> None:
    """What could not be written goes nowhere: Python would try once more, and complain, when it closes stdout."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as null:  # (it may be no stream of the system)
        os.dup2(null.fileno(), sys.stdout.fileno())
