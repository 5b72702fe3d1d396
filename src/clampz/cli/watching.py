"""Work that can be watched and stopped."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TypeVar

from clampz._kernels.jit import compiling_anew
from clampz.bracketing import Bracket
from clampz.cli.exits import GivenUpError
from clampz.maximising import Moment
from clampz.watch import Progress, Watch, on_ctrl_c
from clampz.wording import counted, round_outward, title, with_error

T = TypeVar("T")
# What shows how far some work has come, in words.
Show = Callable[[str], None]

# Between two things that are said, and columns of what turns before them.
BETWEEN, SPINNER = " · ", 3
# Seconds before progress is shown, between looks, and after Ctrl-C until work that does not stop is given up.
PATIENCE, LOOK, GRACE = 1.0, 0.1, 2.0


class Listener:
    """What a method tells its progress to; it may be asked to stop.  The last bracket is kept: it holds whatever
    becomes of the work."""

    def __init__(self) -> None:
        self.latest: Progress | Bracket | Moment | None = None
        self.bracket: Bracket | None = None
        self.grace: Watch | None = None

    def __call__(self, progress: Progress | Bracket | Moment) -> None:
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
        self.grace = Watch(GRACE)

    def text(self, what: str, taken: float) -> str:
        """How far it has come, in a line."""
        progress = self.latest
        words = [what]
        if isinstance(progress, Bracket):
            lower, upper = round_outward(progress.lower, "lower", 3), round_outward(progress.upper, "upper", 3)
            words += [f"log Z in [{lower}, {upper}]", f"gap {progress.gap:.3g} nats"]
            if progress.estimate is not None and progress.standard_error is not None:
                words.append(f"about {with_error(progress.estimate, progress.standard_error)} (statistical)")
            words.append(counted(progress.num_leaves, "leaf", "leaves"))
        elif isinstance(progress, Moment):
            lower, upper = round_outward(progress.lower, "lower", 3), round_outward(progress.upper, "upper", 3)
            words.append(f"best score in [{lower}, {upper}]")
        elif progress is not None:
            words.append(f"{title(progress.method)}, {progress.num_iter:,} sweeps")
            if progress.num_lanes > 1:
                words.append(f"{progress.num_finished} of {progress.num_lanes} lanes done")
            words.append(f"{progress.residual:.2g} nats left to settle")
        words += compiling_in_words()
        words.append("stopping" if self.stop else f"{taken:.0f} s, Ctrl-C stops")
        return BETWEEN.join(words)


def compiling_in_words() -> list[str]:
    """What to say while kernels are compiled that are not on disk yet, if that takes over a second."""
    new = compiling_anew.now and compiling_anew.seconds > PATIENCE
    return ["compiling kernels, once after installation"] if new else []


def somebody_looks_on() -> bool:
    """Whether stderr is a terminal, and rich is there to draw on it."""
    return sys.stderr.isatty() and find_spec("rich") is not None


def in_lines(text: str, width: int) -> str:
    """What is said of some work, in lines as wide as a terminal: broken between two things that are said, if they fit.

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


@contextmanager
def progress_line() -> Iterator[Show]:
    """A line on the terminal that can be changed, and is gone in the end."""
    if not somebody_looks_on():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    status = console.status("")
    try:

        def show(text: str) -> None:
            status.update(escape(in_lines(text, console.width - SPINNER)))
            status.start()

        yield show
    finally:
        status.stop()


def watched(
    work: Callable[[], T],
    what: str,
    listener: Listener | None = None,
    display: Callable[[], AbstractContextManager[Show]] = progress_line,
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

    watch = Watch()
    threading.Thread(target=do, daemon=True).start()
    with display() as show, on_ctrl_c(listener.ask_to_stop):
        while not done.wait(LOOK):
            if watch.seconds > PATIENCE:
                show(listener.text(what, watch.seconds))
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
