"""Atomic writes: a file is replaced whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a new path beside `path`, with its suffix, that replaces it on success and is removed on failure.

    Readers see the old file or the new one, and never a part.  Where `path` is a link, its target is replaced.
    """
    target = path.resolve()
    if target.is_symlink():  # links in a circle: an error of `resolve` before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    beside = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
