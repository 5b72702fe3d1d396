"""Several starts for each lane, solved side by side in blocks of lanes, of which the best ending counts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clampz.approximations.iteration import Endings
from clampz.approximations.lanes import PART, Lanes
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget
from clampz.runtime.workers import MIN_RANGE, Workers, lane_blocks

# Values that several starts may have together: beyond that they are tried one group after another, and as many as there
# is time for.
STARTS_AT_ONCE = 1 << 20
# Starts that lead to the same optimum differ in their last digits, and which of them is highest should not depend on
# rounding.
TIE = 1e-11


def best_of_starts(
    starts: Sequence[Callable[[], Floats]],
    num_lanes: int,
    num_rows: int,
    solve: Callable[[Floats], Endings],
    merit: Callable[[Endings], Floats],
    budget: Budget,
    at_once: int | None = None,
) -> Endings:
    """Return the best ending of each lane, by merit, among several starts. Each start makes a point (rows, lanes);
    `solve` is given every lane several times in a row. Starts are solved in groups of `at_once`, or else as large as
    memory allows, until time is up."""
    at_once = at_once or max(1, STARTS_AT_ONCE // max(1, num_lanes * num_rows))
    best: Endings | None = None
    for first in range(0, len(starts), at_once):
        if best is not None and budget.must_stop():
            break
        points: list[Floats] = []
        for start in starts[first : first + at_once]:
            if points and num_lanes * num_rows >= PART and budget.must_stop():
                break
            points.append(np.broadcast_to(start(), (num_rows, num_lanes)))
        ending = solve(np.stack(points, axis=2).reshape(num_rows, num_lanes * len(points)))
        found = ending.take(best_of(merit(ending), num_lanes)) if len(points) > 1 else ending
        if best is not None:
            found = best.interleaved(found)
            found = found.take(best_of(merit(found), num_lanes))
        best = found
    assert best is not None, "there is a start"
    return best


def best_of(values: Floats, num_lanes: int) -> Integers:
    """Return for each lane, run from several starts in a row, the index of its best; the first of ties."""
    starts = values.reshape(num_lanes, -1)
    top = starts.max(axis=1, keepdims=True)
    near = starts >= np.where(np.isfinite(top), top - TIE * (1 + np.abs(top)), top)
    best: Integers = np.arange(num_lanes) * starts.shape[1] + np.argmax(near, axis=1)
    return best


def solve_in_blocks(
    lanes: Lanes, solve: Callable[[Any, Integers], Endings], budget: Budget, max_block: int | None = None
) -> Endings:
    """Cut lanes into blocks and solve them side by side; `solve` takes a block and the numbers of its lanes.

    A single block has all threads to itself. Lanes with Z = 0 are left out, and lanes that there is no time for: their
    ending stays pending.
    """
    workers = lanes.workers
    possible = np.flatnonzero(lanes.layout.constant > -np.inf)
    num_threads = workers.num_threads if lanes.point.size >= MIN_RANGE else 1
    blocks = [possible[block] for block in lane_blocks(len(possible), num_threads, max_block)]
    if len(blocks) == 1 and len(possible) == lanes.num_lanes:
        return solve(lanes, possible)
    inside = workers if len(blocks) == 1 else Workers(1)
    ending = Endings.pending(lanes)

    def run(block: Integers) -> None:
        if budget.is_cancelled():
            ending.stopped_by[block] = budget.stopped_by
        else:
            ending.put(block, solve(lanes.take(block, inside), block))

    workers.map(run, blocks)  # (a single one in this thread)
    return ending
