"""Work that can be watched and stopped."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from clampz.bounding.bracket import Bracket
from clampz.cli.exit_codes import GivenUpError
from clampz.map_inference.results import ModeTrace
from clampz.runtime.budget import Budget, Progress, on_ctrl_c
from clampz.runtime.progress import Show, in_a_line, terminal_line

T = TypeVar("T")

# Seconds before progress is shown, between looks, and after Ctrl-C until work that does not stop is given up.
PATIENCE, LOOK, GRACE = 1.0, 0.1, 2.0


class Listener:
    """What a method tells its progress to; it may be asked to stop.  The last bracket is kept: it holds whatever
    becomes of the work."""

    def __init__(self) -> None:
        self.latest: Progress | Bracket | ModeTrace | None = None
        self.bracket: Bracket | None = None
        self.grace: Budget | None = None

    def __call__(self, progress: Progress | Bracket | ModeTrace) -> None:
        self.latest = progress
        if isinstance(progress, Bracket):
            self.bracket = progress
        if self.stop:
            raise StopIteration

    @property
    def stop(self) -> bool:
        """Whether it has been asked to stop."""
        return self.grace is not None

    def ask_to_stop(self) -> None:
        """Let the work stop with what it has; who asks twice does not want that either."""
        if self.stop:
            raise GivenUpError
        self.grace = Budget(GRACE)

    def text(self, what: str, taken: float) -> str:
        """How far it has come, in a line."""
        return in_a_line(what, self.latest, "stopping" if self.stop else f"{taken:.0f} s, Ctrl-C stops")


def watched(
    work: Callable[[], T],
    what: str,
    listener: Listener | None = None,
    display: Callable[[], AbstractContextManager[Show]] = terminal_line,
) -> tuple[T, bool]:
    """Do some work, show how far it has come if that takes over a second and somebody looks on, and say whether Ctrl-C
    stopped it.

    The work is in a thread of its own, so that Ctrl-C is heard at once.  The first one asks the listener to stop the
    work with what it has; work that goes on all the same, as one exact sum does, is given up after two seconds or at
    the second Ctrl-C.
    """
    listener, done = listener or Listener(), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again below, where somebody is to catch it
            errors.append(error)
        done.set()

    budget = Budget()
    threading.Thread(target=do, daemon=True).start()
    with display() as show, on_ctrl_c(listener.ask_to_stop):
        while not done.wait(LOOK):
            if budget.seconds > PATIENCE:
                show(listener.text(what, budget.seconds))
            if listener.grace is not None and listener.grace.must_stop():
                raise GivenUpError
    if errors:
        raise errors[0]
    return results[0], listener.stop


def completed(work: Callable[[], T], what: str, listener: Listener | None = None) -> T:
    """The same for work that is worth nothing unless it is done."""
    result, stopped = watched(work, what, listener)
    if stopped:
        raise KeyboardInterrupt
    return result
