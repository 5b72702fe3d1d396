"""Run work in a thread, show its progress on the terminal, and stop it at Ctrl-C."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from threading import Thread
from typing import TypeVar

from clampz.bounding.bracket import Bracket
from clampz.cli.exit_codes import AbandonedError
from clampz.map_inference.results import ModeTrace
from clampz.runtime.budget import Budget, Progress, on_ctrl_c
from clampz.runtime.progress import Show, in_a_line, terminal_line

T = TypeVar("T")

# Seconds before progress is shown, between looks, and after Ctrl-C until work that does not stop is abandoned.
PATIENCE, LOOK, GRACE = 1.0, 0.1, 2.0


class ProgressListener:
    """A progress callback that keeps the latest report and the last bracket, and stops the run when asked to."""

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
        """Whether the run has been asked to stop."""
        return self.grace is not None

    def ask_to_stop(self) -> None:
        """Let the run stop with what it has; a second call abandons it."""
        if self.stop:
            raise AbandonedError
        self.grace = Budget(GRACE)

    def text(self, what: str, taken: float) -> str:
        """Return the progress of the run as one line."""
        return in_a_line(what, self.latest, "stopping" if self.stop else f"{taken:.0f} s, Ctrl-C stops")


def run_interruptibly(
    work: Callable[[ProgressListener], T],
    what: str,
    listener: ProgressListener | None = None,
    display: Callable[[], AbstractContextManager[Show]] = terminal_line,
) -> tuple[T, bool]:
    """Run work with progress shown after a second; return its result, and whether Ctrl-C stopped it.

    The work has a thread of its own, so that Ctrl-C is heard at once.  The first one asks the listener, which the work
    is given, to stop it with what it has.  Work that cannot stop, such as one exact sum, is abandoned two seconds later
    or at the second Ctrl-C.
    """
    heard, future, budget = listener or ProgressListener(), Future[T](), Budget()

    def run() -> None:
        try:
            future.set_result(work(heard))
        except BaseException as error:  # raised again below, where it is caught
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    with display() as show, on_ctrl_c(heard.ask_to_stop):
        while not wait([future], LOOK).done:
            if budget.seconds > PATIENCE:
                show(heard.text(what, budget.seconds))
            if heard.grace is not None and heard.grace.must_stop():
                raise AbandonedError
    return future.result(), heard.stop


def run_to_the_end(work: Callable[[ProgressListener], T], what: str) -> T:
    """Run work that is worth nothing unless it is finished: Ctrl-C raises KeyboardInterrupt."""
    result, stopped = run_interruptibly(work, what)
    if stopped:
        raise KeyboardInterrupt
    return result


@contextmanager
def announced(what: str, seconds: float) -> Iterator[None]:
    """Say on the terminal what is done, and for how long at most; Ctrl-C before there is anything abandons it."""
    try:
        with terminal_line() as say:
            say(f"{what}: {seconds:g} s at most, Ctrl-C stops")
            yield
    except KeyboardInterrupt:
        raise AbandonedError from None
