"""Batched descent: the tables of many lanes lie side by side, so that a pass's overhead is shared and vectors are full.

Every lane comes to what it would have come to alone, to the last bit: passes do the same in the same order, and each
lane has a descent of its own, which requests them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from clampz._kernels.mini_buckets import passes
from clampz._kernels.mini_buckets.layout import AS_THEY_ARE, DONE, Pass
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import (
    LEAST_SLOPE,
    BackwardPass,
    BoundState,
    Descent,
    ForwardPass,
    descend,
    record_bound,
    resume,
    run_descent,
    seconds_of_pass,
)
from clampz.approximations.mini_buckets.structure import LANE_ENTRY, LANE_NUMBER, Structure
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, run_cancellable

# Lanes that are side by side at most: vectors are full by then, and with more, tables are further away (32 lanes of a
# 20 x 20 grid at 2^6: 236 us an evaluation one by one, 141 by eights, 129 by sixteens, 177 all at once).
TOGETHER = 16
# Entries of a clique, on average, for each lane, up to which several are quicker than one after another: with more, one
# lane fills vectors too (by sixteens and fours: 3.7 and 1.9 times as fast at 8 entries, 1.8 and 1.2 at 48, 1.3 and 1.0
# at 105, 1.0 and 0.8 at 256).
ENTRIES_PER_LANE = 8


def is_faster_batched(structure: Structure, num_lanes: int) -> bool:
    """Whether lanes are quicker side by side than one after another."""
    return num_lanes > 1 and structure.num_entries <= ENTRIES_PER_LANE * num_lanes * structure.num_cliques


def bytes_together(structure: Structure, num_threads: int, num_lanes: int) -> int:
    """Estimate the memory of `num_lanes` lanes in each thread, with tables, shifts and gradients side by side."""
    lanes = num_threads * num_lanes if is_faster_batched(structure, num_lanes) else num_threads
    numbers = structure.num_shifted + structure.num_cliques
    copied = LANE_ENTRY * structure.num_entries + LANE_NUMBER * numbers
    return structure.num_bytes(lanes, lanes) + (lanes * copied if lanes > num_threads else 0)


def optimise_together(
    states: Sequence[BoundState],
    num_evaluations: int,
    budget: Budget,
    *,
    tol: float = LEAST_SLOPE,
    on_step: Callable[[BoundState], object] | None = None,
) -> None:
    """Optimise every state: one side of lanes that share their tables."""
    going: list[_ActiveLane] = []
    for state in states:
        descent = descend(state, num_evaluations, budget, tol, on_step)
        request = next(descent, None)
        if isinstance(request, ForwardPass):
            going.append(_ActiveLane(state, descent, request))
    going.sort(key=lambda each: -each.request.matching)
    while going:
        size = min(TOGETHER, sum(each.request.matching == going[0].request.matching for each in going))
        now, going = going[:size], going[size:]
        if is_faster_batched(now[0].state.tables.structure, len(now)):
            going += _side_by_side(now, budget)  # what is left of a block waits for what is left of others
        else:
            for state, descent, request in now:
                run_descent(state, descent, request, state.tables.new_pass(), budget)


class _ActiveLane(NamedTuple):
    """A lane, its descent, and the forward pass that it requests."""

    state: BoundState
    descent: Descent
    request: ForwardPass


def _side_by_side(going: list[_ActiveLane], budget: Budget) -> list[_ActiveLane]:
    """Serve the passes of lanes all at once until half of them have ended; returns the lanes that have not."""
    block, matching = _Block.of([each.state for each in going]), going[0].request.matching
    lanes = dict(enumerate(going))
    while len(lanes) > len(going) // 2:
        for lane, each in lanes.items():
            block.x[:, lane] = each.request.x
        status = block.forwards(matching, budget)
        if matching != AS_THEY_ARE:
            for lane, (state, _, request) in lanes.items():
                state.theta[:], request.x[:] = block.theta[:, lane], block.x[:, lane]
            matching = AS_THEY_ARE
        values, errors = block.work.value.tolist(), block.work.error.tolist()
        following = {
            lane: resume(each.descent, record_bound(each.state, status, values[lane], errors[lane]))
            for lane, each in lanes.items()
        }
        turning = {lane: request for lane, request in following.items() if isinstance(request, BackwardPass)}
        is_done = bool(turning) and block.backwards(budget) == DONE
        for lane, back in turning.items():
            state, descent, _ = lanes[lane]
            np.multiply(block.gradient[:, lane], state.sign, out=back.gradient)
            following[lane] = resume(descent, is_done)
        lanes = {
            lane: lanes[lane]._replace(request=request)
            for lane, request in following.items()
            if isinstance(request, ForwardPass)
        }
    return list(lanes.values())


class _Block(NamedTuple):
    """Lanes side by side: every array of a state, with the lanes as one more, last axis."""

    tables: Tables
    theta: Floats
    size: Floats
    main: Integers
    x: Floats
    gradient: Floats
    work: Pass

    @classmethod
    def of(cls, states: list[BoundState]) -> "_Block":
        tables = states[0].tables
        theta, size, main, x = (
            np.stack([getattr(state, name) for state in states], axis=1) for name in ("theta", "size", "main", "x")
        )
        return cls(tables, theta, size, main, x, np.empty_like(x), tables.new_pass(len(states)))

    def forwards(self, matching: int, budget: Budget) -> int:
        """Run a forward pass of every lane where it stands in x; returns how it ended."""
        theta, size, x, main = (array.ravel() for array in (self.theta, self.size, self.x, self.main))
        arguments = (self.tables.layout, theta, size, self.tables.roundings, x, main, matching, self.work)
        return int(run_cancellable(budget, self._expected, passes.forwards, *arguments))

    def backwards(self, budget: Budget) -> int:
        """Run the backward pass after it."""
        x, main, gradient = self.x.ravel(), self.main.ravel(), self.gradient.ravel()
        return int(
            run_cancellable(budget, self._expected, passes.backwards, self.tables.layout, x, main, self.work, gradient)
        )

    @property
    def _expected(self) -> float:
        return len(self.work.value) * seconds_of_pass(self.tables)
