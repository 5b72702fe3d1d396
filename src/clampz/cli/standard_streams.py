"""Standard output and error where they are closed, full, read by nobody, or cannot encode a character."""

import errno
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path


def prepare_streams() -> None:
    """Replace closed standard streams, and characters that cannot be encoded.

    Where standard output is closed, writing to it fails; where standard error is, nothing is said.
    """
    null = Path(os.devnull)
    if sys.stdout is None:
        sys.stdout = null.open("r", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = null.open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def is_broken_pipe(error: OSError) -> bool:
    """Return whether nobody reads the output any more, which Windows calls an invalid argument."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def discard_output() -> None:
    """Send unwritten output nowhere: Python would try to write it again at exit, and complain."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as null:  # (it may be no stream of the system)
        os.dup2(null.fileno(), sys.stdout.fileno())
