"""Watch: what holds a run to its limits and hears Ctrl-C.

A run ends because it is done ("tol"), or at an iteration limit ("max_iter"), a time limit ("time"), on Ctrl-C
("interrupt") or because the progress callback raised StopIteration ("callback").  In every case it returns what it has.
"""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Literal

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
    """Holds a run to its time, hears its callback and Ctrl-C.  `stopped_by` is None while the run may go on.

    Every deadline is a share of one clock: a run inside another gets `watch.share(...)`, which ends no later than the
    whole and stops when that does.  `stop` is asked whenever the run asks whether it must stop.
    """

    def __init__(
        self,
        time: float = math.inf,
        progress: Callable[[Progress], object] | None = None,
        *,
        within: "Watch | None" = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.stopped_by: StoppedBy | None = None
        self._progress = progress
        self._within = within
        self._stop = stop
        self._lock = threading.Lock()
        self._began = perf_counter()
        self._end = self._began + time

    def share(self, share: float = 1.0) -> "Watch":
        """A watch over a share of the time left."""
        return Watch(self.left(share), within=self)

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return perf_counter() - self._began

    def left(self, share: float = 1.0) -> float:
        """Seconds that are left, or a share of them; none once the run is stopped."""
        return 0.0 if self.must_stop() else share * max(0.0, self._end - perf_counter())

    def stop(self, reason: StoppedBy) -> None:
        """Stop this run, and the one that it is a share of."""
        self.stopped_by = reason
        if self._within is not None:
            self._within.stop(reason)

    def must_stop(self) -> bool:
        """Whether a limit other than the iterations has been reached."""
        if self.stopped_by is None and self._within is not None and self._within.must_stop():
            self.stopped_by = self._within.stopped_by
        if self.stopped_by is None and self._stop is not None and self._stop():
            self.stopped_by = "interrupt"
        if self.stopped_by is None and perf_counter() > self._end:
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

        Does nothing where the program deals with Ctrl-C in its own way.
        """

        def stop() -> None:
            self.stopped_by = "interrupt"

        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        with on_ctrl_c(stop, once=True):
            yield


@contextmanager
def on_ctrl_c(act: Callable[[], object], *, once: bool = False) -> Iterator[None]:
    """Do something else on Ctrl-C, always or only the first time; it may raise KeyboardInterrupt.

    Only the main thread receives signals; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(signum: int, frame: FrameType | None) -> None:
        if once:
            signal.signal(signal.SIGINT, previous)
        act()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def end_at_once() -> None:
    """For `on_ctrl_c`: end the program's work, where by default a method would stop early and return what it has."""
    raise KeyboardInterrupt
