"""The loop that mean field, Bethe and TRW share: sweep, evaluate, retire finished lanes, until none is left or a limit
is reached.

Every decision about a lane (when to evaluate, whether it is done, how much to damp it) follows from that lane's own
history, so a lane ends up with the same numbers in any batch.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.approximations.message_passing.binary import FULL_LANES
from clampz.approximations.lanes import Evaluation, Lanes
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled, StoppedBy
from clampz.runtime.options import Options
from clampz.runtime.workers import padded

NO_CONFIGURATION = "Z = 0: no configuration is possible"
# The lanes are looked at after 1, 2, 4, 7, 11, ... sweeps, each time half as many later again, and at the latest after
# MAX_INTERVAL: an evaluation costs as much as five to ten sweeps.
MAX_INTERVAL = 50
# Seconds of sweeps between two looks at the budget.
PACE = 0.05
# Seconds from which on a look is slow: time is kept for the last one, and for what follows from it, half as long again;
# and a run that is told to stop ends with what its last look has shown.
SLOW_LOOK = 0.05
LOOK_AND_RESULT = 1.5


@dataclass
class Endings:
    """How each lane of a run ended; filled in as lanes finish. `upper` is the lowest value + slack seen on the way;
    `value` is nan where a lane was never evaluated."""

    value: Floats
    rounding: Floats
    upper: Floats
    residual: Floats
    num_iter: Integers
    stopped_by: NDArray[np.object_]
    point: Floats

    @classmethod
    def pending(cls, lanes: Lanes) -> "Endings":
        """Start with no lane ended, each where it stands."""
        value, rounding, upper, residual = np.full((4, lanes.num_lanes), np.inf)
        value[:] = np.nan
        num_iter = np.zeros(lanes.num_lanes, dtype=np.int64)
        return cls(
            value, rounding, upper, residual, num_iter, np.full(lanes.num_lanes, None, dtype=object), lanes.point.copy()
        )

    def put(self, where: Integers, other: "Endings", taken: Integers | None = None) -> None:
        """Copy lanes of another ending (all, or those `taken`) to lanes `where` of this one."""
        chosen = slice(None) if taken is None else taken
        for name, mine in vars(self).items():
            mine[..., where] = getattr(other, name)[..., chosen]

    def take(self, lanes: Integers) -> "Endings":
        """Select lanes."""
        return Endings(**{name: np.take(mine, lanes, axis=-1) for name, mine in vars(self).items()})

    def interleaved(self, other: "Endings") -> "Endings":
        """Interleave with another ending: each lane of this one, followed by that of the other."""
        pairs = {name: np.stack([mine, getattr(other, name)], axis=-1) for name, mine in vars(self).items()}
        return Endings(**{name: pair.reshape(*pair.shape[:-2], 2 * len(self.value)) for name, pair in pairs.items()})

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(B,) True for lanes that were never evaluated."""
        return np.isnan(self.value)

    def stopped_for(self, reason: StoppedBy | None) -> NDArray[np.bool_]:
        """(B,) True for lanes that ended for this reason; None: a policy gave up on them."""
        return np.array([found == reason for found in self.stopped_by], dtype=np.bool_)

    @property
    def converged(self) -> NDArray[np.bool_]:
        return self.stopped_for("tol")


# Called after each look with the block, the numbers of the lanes still running in it, their residuals and the sweep
# count: may damp them, and says which of them to give up on; those end with `stopped_by` None.
Policy = Callable[[Any, Integers, Floats, int], NDArray[np.bool_]]


class Stagnation:
    """How long each lane has made no progress: its residual has not fallen to `share` of its best."""

    def __init__(self, num_lanes: int, share: float) -> None:
        self.share = share
        self.best = np.full(num_lanes, np.inf)
        self.since = np.zeros(num_lanes, dtype=np.int64)

    def waited(self, running: Integers, residual: Floats, num_iter: int) -> Integers:
        """Count the sweeps since the last progress of the running lanes."""
        better = residual <= self.share * self.best[running]
        self.best[running[better]] = residual[better]
        self.since[running[better]] = num_iter
        return num_iter - self.since[running]


def iterate(
    lanes: Lanes,
    options: Options,
    budget: Budget,
    *,
    method: str,
    residual_of: Callable[[Evaluation], Floats],
    policy: Policy | None = None,
    upper: bool = False,
    inner: int | None = None,
    begun: Integers | None = None,
    full: bool | None = None,
) -> Endings:
    """Run lanes until the residual of each is within `options.tol`, or a limit stops them all; the lanes are used up.

    Parameters
    ----------
    upper
        What the progress callback is told is the bound value + slack, not the value.
    inner
        Sweeps between two outer steps (`rebase`), for Bethe's double loop.
    begun
        (B,) sweeps that each lane has made before, which count towards the limit; it then stops at the last look that
        is within.
    full
        Whether these are lanes of a block that fills the vector registers, where their own number does not tell:
        kernels round differently for few lanes.
    """
    ending = Endings.pending(lanes)
    num_lanes, most = lanes.num_lanes, options.max_iter
    full = num_lanes >= FULL_LANES if full is None else full
    running = np.arange(num_lanes)
    before = np.zeros(num_lanes, dtype=np.int64) if begun is None else begun
    block = lanes if len(padded(running, full)) == num_lanes else lanes.take(padded(running, full))
    num_iter, pace = 0, 1
    look: Evaluation | None = None
    reserve = 0.0  # seconds to be kept for the last look
    while running.size:
        num_iter, pace = _advance(block, num_iter, min(next_look(num_iter), most), inner, pace, budget, reserve)
        if look is None or not reserve or not budget.must_stop():
            began = budget.used
            try:
                look = block.evaluate(budget)
            except Cancelled:
                if look is None:
                    ending.stopped_by[running] = budget.stopped_by
                    break
            took = budget.used - began
            reserve = LOOK_AND_RESULT * took if took > SLOW_LOOK else 0.0
        residual = residual_of(look)[: running.size]
        ending.upper[running] = np.fmin(
            ending.upper[running], (look.value + look.slack + look.rounding)[: running.size]
        )
        done = residual <= options.tol
        leaving = done if policy is None else done | policy(block, running, residual, num_iter)
        stop = budget.stopped_by if budget.must_stop() else "time" if budget.left() < reserve else None
        spent = num_iter >= most if begun is None else before[running] + next_look(num_iter) > most
        out = np.flatnonzero(leaving | spent | (stop is not None))
        if out.size:
            where = running[out]
            ending.value[where], ending.rounding[where] = look.value[out], look.rounding[out]
            ending.residual[where], ending.num_iter[where] = residual[out], before[where] + num_iter
            ending.stopped_by[where] = stop
            if stop is None:
                ending.stopped_by[running[np.broadcast_to(spent, running.shape)]] = "max_iter"
            ending.stopped_by[running[done]] = "tol"
            ending.point[:, where] = block.point[:, out]
        if budget.listening:
            worst = int(np.argmax(residual))
            budget.report(
                method,
                int(before[running[worst]]) + num_iter,
                residual=float(residual[worst]),
                log_z=float(ending.upper[running[worst]] if upper else look.value[worst]),
                num_lanes=num_lanes,
                num_finished=num_lanes - running.size + out.size,
            )
        if out.size:
            kept = np.delete(np.arange(running.size), out)
            running = running[kept]
            if running.size:
                kept = padded(kept, full)
                block, look = block.take(kept), Evaluation(*(part[kept] for part in look))
    return ending


def next_look(num_iter: int) -> int:
    """Return the sweep after which the lanes are evaluated next."""
    return num_iter + min(MAX_INTERVAL, 1 + num_iter // 2)


def _advance(
    block: Lanes, num_iter: int, target: int, inner: int | None, pace: int, budget: Budget, reserve: float
) -> tuple[int, int]:
    """Sweep until `target` sweeps are done, or the budget is over or has only `reserve` seconds left. Returns the
    number of sweeps, and how many to make before asking the budget again."""
    while num_iter < target:
        step = min(pace if inner is None else inner, target - num_iter)
        began = time.perf_counter()
        block.sweep(step, budget)
        num_iter += step
        if inner is not None:
            block.rebase()
        elif step == pace and (time.perf_counter() - began) * 2 < PACE:
            pace *= 2
        if budget.must_stop() or budget.left() < reserve:
            break
    return num_iter, pace
