"""Budget: holds a run to its limits and hears Ctrl-C.

A run ends because it is done ("tol"), or at an iteration limit ("max_iter"), a time limit ("time"), on Ctrl-C
("interrupt") or because the progress callback raised StopIteration ("callback").  In every case it returns what it has.
A method that was left out because there was not memory enough for it ended before it began ("memory").
Compiling kernels takes no time on its clock.
"""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import LOOK as LOOK
from clampz._kernels.jit import compiling
from clampz.display.formatting import title
from clampz.runtime.progress import says_stop

T = TypeVar("T")
Flag = NDArray[np.uint8]

# Seconds after its end from which a run has no time even for the least answer.
GRACE = 0.1

# A cancel flag that nobody raises.
NEVER: Flag = np.zeros(1, dtype=np.uint8)

StoppedBy = Literal["tol", "max_iter", "time", "interrupt", "callback", "memory"]


class Cancelled(Exception):  # noqa: N818 (no error, and seen by nobody outside)
    """Leaves work that is worth nothing half done, where the run is over.  No public call raises it."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come: what its progress callback is given.

    Attributes
    ----------
    method
        Who is at work.
    num_iter
        Sweeps so far.
    log_z, residual
        What it would return now, and what is left of the tolerance; with many lanes, of the one that has furthest to
        go.
    num_lanes, num_finished
        How many lanes there are, and how many of them are done.
    seconds
        Since the run began.
    """

    method: str
    num_iter: int
    residual: float
    log_z: float
    num_lanes: int
    num_finished: int
    seconds: float

    @property
    def progress_words(self) -> list[str]:
        """In words."""
        if self.method == "sample":
            drawn = f"{self.num_finished:,} of {self.num_lanes:,} samples after {self.num_iter:,} draws"
            return [drawn] if self.num_finished else []
        lanes = [f"{self.num_finished} of {self.num_lanes} lanes done"] if self.num_lanes > 1 else []
        sweeps = f"{title(self.method)}, {self.num_iter:,} sweeps"
        return [sweeps, *lanes, f"{self.residual:.2g} nats left to settle"]


class Budget:
    """Holds a run to its time, hears its callback and Ctrl-C.  `stopped_by` is None while the run may go on.

    Every deadline is a share of one clock: a run inside another gets `budget.share(...)`, which ends no later than the
    whole and stops when that does.  `stop` is asked whenever the run asks whether it must stop.  `cancel_flag[0]` is
    raised as soon as the run is seen to be over: kernels that take long look at it now and then (see `run`).
    `grace` seconds later there is no time left even for the least answer.
    """

    def __init__(
        self,
        time: float = math.inf,
        progress: Callable[[Progress], object] | None = None,
        *,
        within: "Budget | None" = None,
        stop: Callable[[], bool] | None = None,
        grace: float = GRACE,
    ) -> None:
        self.stopped_by: StoppedBy | None = None
        self._progress = progress
        self._within = within
        self._stop = stop
        self._grace = grace
        self._lock = threading.Lock()
        self._time = time
        self._began = perf_counter()
        self._compiled = compiling.seconds
        self._over: float | None = None  # when it was seen to be over
        self.cancel_flag = np.zeros(1, dtype=np.uint8)

    def share(self, share: float = 1.0) -> "Budget":
        """Return a budget of a share of the time left."""
        return Budget(self.left(share), within=self)

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return perf_counter() - self._began

    def left(self, share: float = 1.0) -> float:
        """Seconds that are left, or a share of them; none once the run is stopped."""
        return 0.0 if self.must_stop() else share * max(0.0, self._time - self.used)

    @property
    def used(self) -> float:
        """Time since the run began, but for compiling."""
        return perf_counter() - self._began - (compiling.seconds - self._compiled)

    def stop(self, reason: StoppedBy) -> None:
        """Stop this run, and the one that it is a share of."""
        self.stopped_by = reason
        if self._within is not None:
            self._within.stop(reason)

    def end(self) -> None:
        """Stop what still works within this budget; the run that it is a share of goes on."""
        self.stopped_by = self.stopped_by or "callback"

    def must_stop(self) -> bool:
        """Whether a limit other than the iterations has been reached."""
        if self.stopped_by is None and self._within is not None and self._within.must_stop():
            self.stopped_by, self._over = self._within.stopped_by, self._within._over
            self.cancel_flag[0] = 1
        if self.stopped_by is None and self._stop is not None and self._stop():
            self.stopped_by = "interrupt"
        if self.stopped_by is None and self.used > self._time:
            self.stopped_by = "time"
        if self.stopped_by is None:
            return False
        if self._over is None:
            self._over = perf_counter()
            self.cancel_flag[0] = 1
        return True

    def check_stop(self) -> None:
        """Raise Cancelled as soon as the run is over: in work that can be done without."""
        if self.must_stop():
            raise Cancelled

    def is_cancelled(self, after: float = 0.0) -> bool:
        """Return whether there is no time even for the least answer, now or `after` seconds from now.

        A share that is over is not cancelled, as long as the whole run has time for that answer.
        """
        is_over = self.must_stop()
        if math.isinf(self._grace) or not (is_over or after):
            return False
        if self._within is not None:
            return self._within.is_cancelled(after)
        ends = [self._time - self.used] if self._over is None else [self._time - self.used, self._over - perf_counter()]
        return min(ends) + self._grace < after

    def check_cancelled(self, after: float = 0.0) -> None:
        """Raise Cancelled if `is_cancelled(after)`: between the stages of work without which there is no answer."""
        if self.is_cancelled(after):
            raise Cancelled

    def run(self, work: Callable[..., T], *args: object) -> T:
        """Return work(*args, flag), done in a thread of its own while this one looks at the clock and hears Ctrl-C.

        For work that releases the GIL for long, and ends soon after `cancel_flag[0]` is raised with what it has.
        """
        future: Future[T] = Future()

        def do() -> None:
            try:
                future.set_result(work(*args, self.cancel_flag))
            except BaseException as error:  # raised again where it is waited for
                future.set_exception(error)

        thread = threading.Thread(target=do, daemon=True)
        try:
            thread.start()
            while not future.done():
                wait([future], LOOK)
                self.must_stop()
        except BaseException:
            self.cancel_flag[0] = 1
            if thread.is_alive():
                thread.join()
            self.cancel_flag[0] = self.stopped_by is not None  # others may use this budget again
            raise
        return future.result()

    @property
    def listening(self) -> bool:
        """Whether there is a callback to tell."""
        return self._progress is not None

    def report(
        self, method: str, num_iter: int, *, residual: float, log_z: float, num_lanes: int, num_finished: int
    ) -> None:
        """Tell the callback how far the run has come; StopIteration from it stops the run."""
        if self._progress is None:
            return
        with self._lock:
            progress = Progress(method, num_iter, residual, log_z, num_lanes, num_finished, self.seconds)
            if says_stop(self._progress, progress):
                self.stopped_by = "callback"

    @contextmanager
    def interruptible(self) -> Iterator["Budget"]:
        """Turn the first Ctrl-C into a stop that returns what there is; a second one interrupts as usual.

        Does nothing where the program deals with Ctrl-C in its own way.
        """

        def stop() -> None:
            self.stopped_by = "interrupt"

        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield self
            return
        with on_ctrl_c(stop, once=True):
            yield self


class _Unlimited(Budget):
    """A budget that is never over: what is stopped under it stops alone."""

    def stop(self, reason: StoppedBy) -> None:
        pass

    def end(self) -> None:
        pass

    def must_stop(self) -> bool:
        return False


# For work that is no part of a run.
UNLIMITED = _Unlimited()


def run_cancellable(budget: Budget | None, expected: float, work: Callable[..., T], *args: object) -> T:
    """Return work(*args, flag), held to a budget if there is one.

    What is expected to take less than passes between two looks at the clock is done at once, in this thread.
    """
    return work(*args, NEVER) if budget is None or expected < LOOK else budget.run(work, *args)


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
