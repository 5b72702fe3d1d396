"""What is done about leaves, here or on another machine: bounds on some lanes of a model, exact where that is cheap."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bracketing.narrow import Narrow, NarrowState
from clampz.elimination.slices import Slicer
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.tables import Floats

# Seconds that an exact sum may take without being cut into pieces.
FINISH_SECONDS = 0.25
# Share of the time that partitions may take.
PARTITION_SHARE = 0.4
# Beyond so many edges partitions take longer than they are worth.
MOST_EDGES = 20_000


class Task(NamedTuple):
    """What a worker is asked to do about some lanes of a part."""

    model: Model
    unary: Floats
    narrow: Narrow | None
    limit: float
    starts: list[NarrowState | None]
    most_seconds: float
    exact: bool
    evaluations: int
    max_iter: int
    memory: float
    seed: int


class Solved(NamedTuple):
    """What a worker found: bounds per lane, which of them are exact, where the bounds have got to, the partition used,
    and the seconds it took."""

    lower: Floats
    upper: Floats
    exact: list[bool]
    states: list[NarrowState | None]
    narrow: Narrow | None
    seconds: float


def solve(task: Task, cancelled: Callable[[], bool] = lambda: False) -> Solved:
    """Bounds on every lane: exact where that is cheap, else the best of mean field, TRW and narrow parts."""
    began = time.perf_counter()

    def late(share: float = 1.0) -> bool:
        return cancelled() or time.perf_counter() - began > share * task.most_seconds

    num_lanes = task.unary.shape[1]
    lower, upper = np.full(num_lanes, -np.inf), np.full(num_lanes, np.inf)
    done, states = [False] * num_lanes, list(task.starts)
    slicer = Slicer(task.model)
    for lane in range(num_lanes):
        plan = (
            slicer.plan(task.unary[:, lane], min(FINISH_SECONDS, task.most_seconds), task.memory)
            if task.exact and not late()
            else None
        )
        if plan is not None:
            lower[lane], upper[lane] = slicer.total(task.unary[:, lane], plan)
            done[lane] = True
    left = np.flatnonzero(~np.array(done))
    narrow = task.narrow
    if not left.size:
        return Solved(lower, upper, done, states, narrow, time.perf_counter() - began)
    batch = Batch(task.model, task.unary[:, left])
    remaining = max(0.0, task.most_seconds - (time.perf_counter() - began))
    if narrow is None or narrow.limit < task.limit or task.limit == 0:
        fields = mean_field(batch, max_iter=task.max_iter, threads=1, time=remaining / 4, seed=task.seed)
        trees = trw(batch, max_iter=task.max_iter, threads=1, time=remaining / 4)
        lower[left], upper[left] = fields.lower, trees.upper
        starts = [np.nan_to_num(fields.marginals_flat[:, b], nan=0.5) for b in range(len(left))]
        beliefs = [np.nan_to_num(trees.marginals_flat[:, b], nan=0.5) for b in range(len(left))]
        for b, lane in enumerate(left.tolist()):
            states[lane] = NarrowState(starts[b], beliefs[b], [])
        if task.limit > 0 and task.model.num_edges <= MOST_EDGES and not late():
            narrow = Narrow.of(task.model, task.limit, task.seed, lambda: late(PARTITION_SHARE))
    if narrow is not None and task.limit > 0:
        for lane in left.tolist():
            if late():
                break
            state = states[lane]
            begin = (
                state
                if state is not None
                else NarrowState(np.full(len(task.unary), 0.5), np.full(len(task.unary), 0.5), [])
            )
            found = narrow.bounds(task.unary[:, lane], begin, [begin.beliefs], task.evaluations, late)
            lower[lane], upper[lane] = max(lower[lane], found.lower), min(upper[lane], found.upper)
            states[lane] = found.state
    return Solved(lower, upper, done, states, narrow, time.perf_counter() - began)
