"""Show the progress of a run: to the caller's function, or with `progress=True` as a live line.

In a notebook the line is an output of the cell, which every front end can change (rich and tqdm need widgets for that);
on a terminal rich draws it, if it is there, and it is gone in the end; in a log there is a line now and then.  All of
these are imported when somebody asks.
"""

import contextvars
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Protocol, TypeVar

from clampz._kernels.jit import compiling_anew
from clampz.errors import library
from clampz.runtime.options import check_option

# Separator of parts of a line, and columns of the spinner before it.
BETWEEN, SPINNER = " · ", 3
# Seconds before a line is shown, between looks, and between the lines of a log.
PATIENCE, LOOK, BETWEEN_LINES = 0.5, 0.1, 10.0
# Seconds from which on it is worth a word that kernels are compiled.
LONG_COMPILING = 1.0


class ProgressText(Protocol):
    """A progress report of a run, which has words for people."""

    @property
    def progress_words(self) -> list[str]:
        """The progress in a few words each."""


ToldT = TypeVar("ToldT", bound=ProgressText)
# What `progress=` takes: a function, or True for a live line.
Listener = Callable[[ToldT], object] | bool | None
# What shows a line, in place of the one before.
Show = Callable[[str], None]


@contextmanager
def as_callback(progress: Listener[ToldT], what: str) -> Iterator[Callable[[ToldT], object] | None]:
    """Yield the progress callback of a run: the caller's function, a live line for True, or None."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        check_option(callable(progress), "progress", "True, or a function that is called now and then", progress)
        yield progress
    else:
        live = _Live(what)
        thread = threading.Thread(target=contextvars.copy_context().run, args=(live.show_all,), daemon=True)
        thread.start()  # (with this thread's context, which says which cell of a notebook the output is of)
        try:
            yield live
        finally:
            live.done.set()
            thread.join()


def says_stop(listener: Callable[[ToldT], object] | None, told: ToldT) -> bool:
    """Tell a caller's callback; return whether it raised StopIteration, which asks the run to stop."""
    try:
        if listener is not None:
            listener(told)
    except StopIteration:
        return True
    return False


class _Live:
    """A progress callback that keeps the last report, and shows it until the run is done."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.latest: ProgressText | None = None
        self.done = threading.Event()
        self._began = perf_counter()

    def __call__(self, told: ProgressText) -> None:
        self.latest = told

    def show_all(self) -> None:
        if self.done.wait(PATIENCE):
            return
        with _line() as show:
            while not self.done.wait(LOOK):
                show(self.text)

    @property
    def text(self) -> str:
        return in_a_line(self.what, self.latest, f"{perf_counter() - self._began:.0f} s")


def in_a_line(what: str, latest: ProgressText | None, ending: str) -> str:
    """Return the line on a run: what is done, its progress, and a note while kernels are compiled for long."""
    return BETWEEN.join([what, *([] if latest is None else latest.progress_words), *compiling_in_words(), ending])


def compiling_in_words() -> list[str]:
    """Return a note while kernels that are not on disk yet are compiled for over a second, else nothing."""
    new = compiling_anew.now and compiling_anew.seconds > LONG_COMPILING
    return ["compiling kernels, once after installation"] if new else []


def is_interactive() -> bool:
    """Return whether stderr is a terminal, and rich is installed to draw on it."""
    return sys.stderr.isatty() and find_spec("rich") is not None


def in_lines(text: str, width: int) -> str:
    """Break a progress line into lines of this width, between its parts where these fit.

    >>> in_lines("solving · gap 3.1 nats · 4 leaves · 12 s", 24)
    'solving · gap 3.1 nats\\n4 leaves · 12 s'
    """
    lines: list[str] = []
    for said in text.split(BETWEEN):
        if lines and len(lines[-1]) + len(BETWEEN) + len(said) <= width:
            lines[-1] += BETWEEN + said
        else:
            lines.append(said)
    return "\n".join(lines)


def _line() -> AbstractContextManager[Show]:
    """Return what shows a line in a notebook, on a terminal or in a log."""
    if _in_notebook():
        return _notebook_line()
    if is_interactive():
        return terminal_line()
    return _plain_line() if sys.stderr.isatty() else _log_lines()


def _in_notebook() -> bool:
    """Return whether this is a kernel of Jupyter."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _notebook_line() -> Iterator[Show]:
    """Show a line as an output of the notebook cell, which stays."""
    display = library("IPython.display").display
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        bundle = {"text/plain": text, "text/html": f"<span style='opacity:.65'>{escape(text)}</span>"}
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)
        else:
            handle.update(bundle, raw=True)

    yield show


@contextmanager
def terminal_line() -> Iterator[Show]:
    """Show a line on the terminal by rich, and remove it in the end; nothing where `is_interactive` is false."""
    if not is_interactive():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape as as_it_is

    console = Console(stderr=True)
    status = console.status("")
    try:

        def show(text: str) -> None:
            status.update(as_it_is(in_lines(text, console.width - SPINNER)))
            status.start()

        yield show
    finally:
        status.stop()


@contextmanager
def _plain_line() -> Iterator[Show]:
    """Show a line on the terminal without rich, and remove it in the end."""

    def show(text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{text[:width]}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _log_lines() -> Iterator[Show]:
    """Print a line to stderr every few seconds."""
    last = perf_counter() - BETWEEN_LINES

    def show(text: str) -> None:
        nonlocal last
        if perf_counter() >= last + BETWEEN_LINES:
            last = perf_counter()
            print(text, file=sys.stderr, flush=True)

    yield show
