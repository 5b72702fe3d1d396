"""The loop that Bethe and TRW share: sweep, evaluate, let finished lanes go, until none is left or a limit is reached.

Every decision about a lane (when to look, whether it is done, how much to damp it) follows from that lane's own history, so a lane ends up with
the same numbers in any batch.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np

from clampz._kernels.messages import FULL_LANES
from clampz.executors import padded
from clampz.limits import Options, Progress, StoppedBy, Watch
from clampz.tables import Floats, Integers

# The lanes are looked at after 1, 2, 3, ... sweeps at first, then every quarter of the sweeps made, at the latest after so many:
# looking costs about as much as two sweeps.
MAX_INTERVAL = 50
# Seconds of sweeps between two questions to the watch whether to stop.
PACE = 0.05
EPSILON = float(np.finfo(np.float64).eps)
# Roundings per term of a sum, the polynomial exp and log included (each within 5e-16, about two units in the last place).
ROUNDINGS = 16.0


class Evaluation(NamedTuple):
    """What the current messages say, one entry per lane.

    value is the approximation's log Z if the messages are a fixed point; value + slack is an upper bound for any messages if the edge weights are TRW's;
    drift is the largest disagreement between a pairwise belief's marginal and the belief itself, in probability; rounding bounds the error made.
    """

    value: Floats
    slack: Floats
    drift: Floats
    rounding: Floats

    @classmethod
    def summed(cls, parts: list[Floats], constant: Floats) -> "Evaluation":
        """From the kernels' (value, slack, drift, magnitude) of all nodes and edges, part by part."""
        together = np.stack([np.zeros((4, len(constant))), *parts])
        value, slack, _, magnitude = together.sum(axis=0)
        rounding = ROUNDINGS * EPSILON * (magnitude + np.abs(constant))
        return cls(value + constant, slack, together[:, 2].max(axis=0), rounding)


class Lanes(Protocol):
    """A block of lanes that passes messages: `BinaryLanes` or `GeneralLanes`."""

    point: Floats  # what the sweeps update: messages, or mean-field probabilities
    keep: Floats

    @property
    def num_lanes(self) -> int: ...
    def take(self, lanes: Integers) -> Self: ...
    def set_counting(self, rho: Floats, inertia: Floats | None = None) -> None: ...
    def sweep(self, num_sweeps: int) -> None: ...
    def rebase(self) -> None: ...
    def evaluate(self) -> Evaluation: ...
    def mutual_information(self) -> Floats: ...


@dataclass
class Ending:
    """How each lane of a run ended; filled in as lanes finish."""

    value: Floats
    slack: Floats
    drift: Floats
    rounding: Floats
    upper: Floats
    residual: Floats
    num_iter: Integers
    stopped_by: list[StoppedBy | None]
    point: Floats

    @classmethod
    def empty(cls, lanes: Lanes) -> "Ending":
        size = lanes.num_lanes
        return cls(
            *(np.full(size, np.inf) for _ in range(6)),
            np.zeros(size, dtype=np.int64),
            [None] * size,
            lanes.point.copy(),
        )

    def put(self, where: Integers, other: "Ending", taken: Integers) -> None:
        """Copy lanes `taken` of another ending to lanes `where` of this one."""
        for mine, theirs in zip(self.arrays(), other.arrays(), strict=True):
            mine[..., where] = theirs[..., taken]
        for a, b in zip(where, taken, strict=True):
            self.stopped_by[a] = other.stopped_by[b]

    def arrays(self) -> tuple[Floats | Integers, ...]:
        return (self.value, self.slack, self.drift, self.rounding, self.upper, self.residual, self.num_iter, self.point)

    @property
    def converged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.array([s == "tol" for s in self.stopped_by])


def best_of(values: Floats, num_lanes: int) -> Integers:
    """For lanes that each ran from several starts, in a row: which of all of them is the best of each lane."""
    starts = values.reshape(num_lanes, -1)
    return np.arange(num_lanes) * starts.shape[1] + np.argmax(starts, axis=1)


def next_look(num_iter: int) -> int:
    """The sweep after which the lanes are looked at next."""
    return num_iter + min(MAX_INTERVAL, 1 + num_iter // 4)


def iterate(
    lanes: Lanes,
    options: Options,
    watch: Watch,
    *,
    method: str,
    residual_of: Callable[[Evaluation], Floats],
    adapt: Callable[[Lanes, Integers, Floats, int], Integers] | None = None,
    inner: int | None = None,
    max_iter: int | None = None,
) -> Ending:
    """Run lanes until each is within tolerance, or a limit stops them all.

    Parameters
    ----------
    residual_of
        What must fall below `options.tol`.
    adapt
        Called after each look with the lanes still running (their numbers in this run), their residuals and the sweep count: may damp them, and returns
        those to give up on, which end with `stopped_by` None.
    inner
        Sweeps between two outer steps (`rebase`), for Bethe's double loop.
    """
    ending = Ending.empty(lanes)
    full = lanes.num_lanes >= FULL_LANES
    running = np.arange(lanes.num_lanes)
    limit = options.max_iter if max_iter is None else max_iter
    block = lanes.take(padded(running, full))
    num_iter = 0
    while running.size:
        num_iter = _advance(block, num_iter, min(next_look(num_iter), limit), inner, watch)
        look = block.evaluate()
        size = running.size
        residual = residual_of(look)[:size]
        ending.upper[running] = np.minimum(ending.upper[running], (look.value + look.slack + look.rounding)[:size])
        given_up = adapt(block, running, residual, num_iter) if adapt is not None else np.empty(0, dtype=np.int64)
        done = residual <= options.tol
        reason: StoppedBy | None = None
        if watch.must_stop():
            reason = watch.stopped_by
        elif num_iter >= limit:
            reason = "max_iter"
        leaving = np.ones(size, dtype=np.bool_) if reason else done | np.isin(running, given_up)
        out = np.flatnonzero(leaving)
        if out.size:
            where = running[out]
            for mine, theirs in zip((ending.value, ending.slack, ending.drift, ending.rounding), look, strict=True):
                mine[where] = theirs[out]
            ending.residual[where] = residual[out]
            ending.num_iter[where] = num_iter
            ending.point[:, where] = block.point[:, out]
            for b in out:
                ending.stopped_by[running[b]] = "tol" if done[b] else reason
        worst = int(np.argmax(residual))
        watch.report(
            Progress(
                method=method,
                num_iter=num_iter,
                residual=float(residual[worst]),
                log_z=float(look.value[worst]),
                num_lanes=len(ending.value),
                num_finished=len(ending.value) - size + out.size,
                seconds=watch.seconds,
            )
        )
        if out.size:
            kept = np.flatnonzero(~leaving)
            running = running[kept]
            if running.size:
                block = block.take(padded(kept, full))
    return ending


def _advance(block: Lanes, num_iter: int, target: int, inner: int | None, watch: Watch) -> int:
    """Sweep up to `target` sweeps in all, or until the watch says stop; returns how many it is now."""
    step = 1 if inner is None else inner
    while num_iter < target:
        step = min(step, target - num_iter)
        began = time.perf_counter()
        block.sweep(step)
        num_iter += step
        if inner is not None:
            block.rebase()
        elif (time.perf_counter() - began) * 2 < PACE:
            step *= 2
        if watch.must_stop():
            break
    return num_iter
