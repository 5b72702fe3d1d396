"""Small tools: numbers of things, unknown names, texts beside the code, whole files, a live line, and Ctrl-C."""

import secrets
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from clampz.errors import OptionError

# Seconds between two lines of a log.
LOG_SECONDS = 10.0


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with the things it counts.

    >>> counted(1, "family", "families"), counted(1200, "run")
    ('1 family', '1,200 runs')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def unknown_name(what: str, name: str, known: Collection[str]) -> OptionError:
    """Return the error for a name that nothing has: which are near to it, and which there are."""
    near = " or ".join(map(repr, get_close_matches(name, known)))
    hint = f"did you mean {near}? Expected" if near else "expected"
    return OptionError(f"unknown {what} {name!r}; {hint} one of {', '.join(known)}")


def text_of(package: str, name: str) -> str:
    """Return the text of a file that lies beside the modules of a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def texts_of(package: str, name: str) -> dict[str, Any]:
    """Return what a TOML file beside the modules of a package holds."""
    return tomllib.loads(text_of(package, name))


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of `path` if all goes well, and is gone otherwise."""
    partial = path.resolve().with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        yield partial
        partial.replace(path.resolve())
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def live_line(first: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line: on a terminal in place of the one before, in a log now and then."""
    from rich.console import Console

    console, shown = Console(stderr=True), time.monotonic()
    if console.is_terminal:
        with console.status(first) as status:
            yield status.update
        return

    def show(line: str) -> None:
        nonlocal shown
        if time.monotonic() > shown + LOG_SECONDS:
            shown = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    yield show


@contextmanager
def on_ctrl_c(act: Callable[[], object]) -> Iterator[None]:
    """Call a function on Ctrl-C, in place of what Python and the library's methods do then; it may raise.

    Only the main thread receives signals: elsewhere nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
