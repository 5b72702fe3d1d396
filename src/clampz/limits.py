"""What stops a run: options every method shares, and the watch that holds a run to them.

A run ends because it is done ("tol"), or at an iteration limit ("max_iter"), a time limit ("time"), on Ctrl-C ("interrupt") or because the
progress callback raised StopIteration ("callback").  In every case it returns what it has.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, Self

from clampz.errors import OptionError, unknown_name

StoppedBy = Literal["tol", "max_iter", "time", "interrupt", "callback"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Limits that every approximation takes.

    Attributes
    ----------
    tol
        In nats: stop when what is left to gain is below it (each method says what it measures).
    max_iter
        Sweeps over the model at most.
    time
        Seconds at most.
    threads
        Threads to use; None for all cores.  No result depends on it.
    """

    tol: float = 1e-6
    max_iter: int = 10_000
    time: float = math.inf
    threads: int | None = None

    def __post_init__(self) -> None:
        check_option(is_number(self.tol) and self.tol >= 0, "tol", "a number of nats >= 0", self.tol)
        check_option(is_whole(self.max_iter) and self.max_iter >= 1, "max_iter", "a whole number >= 1", self.max_iter)
        check_option(is_number(self.time) and self.time >= 0, "time", "seconds >= 0", self.time)
        check_option(self.threads is None or (is_whole(self.threads) and self.threads >= 1), "threads", "None or a whole number >= 1", self.threads)

    @property
    def num_threads(self) -> int:
        return self.threads or os.cpu_count() or 1

    def in_branches(self) -> Self:
        """For sub-models that also start from the solution of the model they come from."""
        return self

    def with_changes(self, changes: dict[str, Any]) -> Self:
        """These options with some of them changed; an unknown name is refused with the nearest ones."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise unknown_name("option", name, known, most=1)
        try:
            return replace(self, **changes)
        except TypeError as error:
            raise OptionError(f"options {changes!r}: {error}") from None


def is_whole(value: object) -> bool:
    """Whether this is a whole number of any integer type, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether this is a real number of any type, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_option(holds: bool, name: str, expected: str, found: object) -> None:
    if not holds:
        raise OptionError(f"{name}: expected {expected}, found {found!r}")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come: what its progress callback is given.

    With many lanes `log_z` and `residual` are those of the lane that has furthest to go.
    """

    method: str
    num_iter: int
    residual: float
    log_z: float
    num_lanes: int
    num_finished: int
    seconds: float


class Watch:
    """Holds a run to its limits.  `stopped_by` is None while the run may go on."""

    def __init__(self, options: Options, progress: Callable[[Progress], object] | None = None) -> None:
        self.options = options
        self.stopped_by: StoppedBy | None = None
        self._progress = progress
        self._lock = threading.Lock()
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self._started

    def must_stop(self) -> bool:
        """Whether a limit other than the iterations has been reached."""
        if self.stopped_by is None and self.seconds > self.options.time:
            self.stopped_by = "time"
        return self.stopped_by is not None

    @property
    def listening(self) -> bool:
        """Whether there is a callback to tell."""
        return self._progress is not None

    def report(self, progress: Progress) -> None:
        """Tell the callback; StopIteration from it stops the run."""
        if self._progress is None:
            return
        with self._lock:
            try:
                self._progress(progress)
            except StopIteration:
                self.stopped_by = "callback"

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Turn the first Ctrl-C into a stop that returns what there is; a second one interrupts as usual.

        Only the main thread receives signals; elsewhere this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.getsignal(signal.SIGINT)

        def stop(signum: int, frame: Any) -> None:
            self.stopped_by = "interrupt"
            signal.signal(signal.SIGINT, previous)

        if previous is not signal.default_int_handler:  # the program deals with Ctrl-C in its own way
            yield
            return
        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)
