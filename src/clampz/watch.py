"""Watch: what holds a run to its limits and hears Ctrl-C.

A run ends because it is done ("tol"), or at an iteration limit ("max_iter"), a time limit ("time"), on Ctrl-C
("interrupt") or because the progress callback raised StopIteration ("callback").  In every case it returns what it has.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from clampz.options import Options

StoppedBy = Literal["tol", "max_iter", "time", "interrupt", "callback"]


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
