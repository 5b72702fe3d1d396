"""Files written whole or not at all: what is there stays until what replaces it is complete."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A new path beside `path` to write to, with its suffix; moved over it once that has succeeded, gone if it has not.

    Readers see the old file or the new one, and never a part.  Of a link, what it points to is replaced.
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
