"""What is done about leaves, here or on another machine: bounds on some lanes of a model, exact where that is cheap."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bounding.leaves.mini_bucket_bounds import Ends, MiniBucketBounds, WarmStart
from clampz.bounding.options import BoundOptions
from clampz.elimination.slice_plans import Slicer
from clampz.elimination.slices import sum_lane
from clampz.errors import TooWideError
from clampz.map_inference.mode import best_found
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled

# Seconds that an exact sum may take without being cut into pieces.
FINISH_SECONDS = 0.25
# Share of the time that mean field and TRW may each take.
METHOD_SHARE = 0.25
# Share of the time that the best configuration is looked for, where mean field goes on from it.
BEST_SHARE = 0.8


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafWork:
    """What a worker is asked to do about some lanes of a model.

    Attributes
    ----------
    unary
        (S, B) the lanes' potentials.
    seconds
        What it may take.  Workers elsewhere have clocks of their own.
    regions
        To bound the lanes with; None: by mean field and TRW.
    start
        Where the bounds of every lane begin.
    num_evaluations, ends, beliefs
        Of the bounds by regions, which, and whether anybody asks for what they say of the variables.
    exact
        Whether lanes are summed where that is cheap, if the options allow it.
    """

    model: Model
    unary: Floats
    options: BoundOptions
    seconds: float
    mini_buckets: MiniBucketBounds | None = None
    start: WarmStart | None = None
    num_evaluations: int = 1
    ends: Ends = "both"
    beliefs: bool = True
    exact: bool = True


class Solved(NamedTuple):
    """What a worker found: bounds per lane, which of them are exact, where the bounds have got to (None: no further
    than before), the regions as they are now, and the seconds it took."""

    lower: Floats
    upper: Floats
    exact: list[bool]
    states: list[WarmStart | None]
    mini_buckets: MiniBucketBounds | None
    seconds: float


def solve_leaves(work: LeafWork, within: Budget = UNLIMITED) -> Solved:
    """Bounds on every lane: exact where that is cheap, else by regions, or by mean field and TRW."""
    budget = Budget(work.seconds, within=within)
    options, num_lanes = work.options, work.unary.shape[1]
    lower, upper = np.full(num_lanes, -np.inf), np.full(num_lanes, np.inf)
    done, states = [False] * num_lanes, list[WarmStart | None]([None] * num_lanes)
    slicer = Slicer(work.model)
    for lane in range(num_lanes) if work.exact and options.exact else ():
        if budget.must_stop():
            break
        plan = slicer.plan(work.unary[:, lane], min(FINISH_SECONDS, work.seconds), options.worker_bytes, budget=budget)
        if plan is not None:
            lower[lane], upper[lane] = sum_lane(work.model, work.unary[:, lane], plan, budget)
            done[lane] = bool(upper[lane] < np.inf)
    left = np.flatnonzero(~np.array(done))
    mini_buckets, begin = work.mini_buckets, work.start or WarmStart.even(work.model)
    if (
        mini_buckets is None
        and left.size
        and not budget.must_stop()
        and trw.fits(work.model, options.worker_bytes, left.size)
    ):
        found = solve_by_methods(work.model, work.unary[:, left], options, budget.left(METHOD_SHARE), 1, budget)
        lower[left], upper[left] = found.lower, found.upper
        for lane, state in zip(left.tolist(), found.states, strict=True):
            states[lane] = state
    if mini_buckets is not None and left.size:
        asked = (begin, work.num_evaluations, work.ends, budget)
        bounded = mini_buckets.bounds_of_lanes(work.unary[:, left], *asked, beliefs=work.beliefs)
        with suppress(Cancelled, TooWideError):
            for lane, bounds in zip(left.tolist(), bounded, strict=False):  # of fewer where time is over
                lower[lane], upper[lane], states[lane] = bounds
    return Solved(lower, upper, done, states, mini_buckets, budget.seconds)


def solve_by_methods(
    model: Model, unary: Floats, options: BoundOptions, seconds: float, threads: int | None, budget: Budget
) -> Solved:
    """Bounds on every lane by mean field and TRW, each in so many seconds."""
    batch = Batch(model, unary)
    limits = {"max_iter": options.max_iter, "threads": threads, "time": seconds}
    fields = mean_field.solve(batch, mean_field.options(None, limits | {"seed": options.seed}), within=budget)
    trees = trw.solve(batch, trw.options(None, limits), within=budget)
    states = map(WarmStart.at, fields.marginals_flat.T, trees.marginals_flat.T)
    return Solved(fields.lower, trees.upper, [False] * batch.num_lanes, list(states), None, budget.seconds)


def run_mean_field(
    model: Model, start: Floats | None, options: BoundOptions, seconds: float, within: Budget = UNLIMITED
) -> tuple[float, float]:
    """Ends of log Z by mean field that has time to settle, on from marginals (S,) found before, if any.  Where Bethe's
    value is a lower bound too it is the better one in the end, and has half of the time, on from there."""
    balanced, budget = model.is_balanced, Budget(seconds, within=within)
    limits: dict[str, Any] = {"threads": 1, "seed": options.seed}
    batch, half = Batch.of(model), budget.left(0.5 if balanced else 1.0)
    found = mean_field.solve(batch, mean_field.options(None, limits | {"time": half}), start, within=budget)
    lower, upper = float(found.lower[0]), float(found.upper[0])
    if balanced and lower > -math.inf and not budget.must_stop():
        limits |= {"time": budget.left(), "num_starts": 0, "from_mean_field": False}
        settled = bethe.solve(batch, bethe.options(None, limits), found.marginals_flat[:, 0], within=budget)
        lower = max(lower, float(settled.lower[0]))
    return lower, upper


def run_both(
    model: Model, start: Floats | None, options: BoundOptions, seconds: float, within: Budget = UNLIMITED
) -> tuple[float, float]:
    """Ends of log Z by one after the other, each in half of the time: where memory is too short for both at once."""
    budget = Budget(seconds, within=within)
    lower, upper = run_mean_field(model, start, options, budget.left(0.5), budget)
    by_then = run_trw(model, options, budget.left(), budget) if budget.left() else (-math.inf, math.inf)
    return max(lower, by_then[0]), min(upper, by_then[1])


def run_mode(
    model: Model, options: BoundOptions, methods: bool, seconds: float, within: Budget = UNLIMITED
) -> tuple[float, float]:
    """Ends of log Z by the best configuration that is found, which is one term of Z, and where `methods` may be used,
    by mean field on from it: of a model that is all but certain that is nearly all there is.  Where no configuration is
    possible, Z = 0."""
    budget = Budget(seconds, within=within)
    try:
        found = best_found(model, options.worker_bytes, 1 + options.seed, budget.share(BEST_SHARE if methods else 1.0))
    except TooWideError:
        return -math.inf, math.inf
    if found.states is None:
        return -math.inf, -math.inf if found.upper == -math.inf else math.inf
    lower = found.score - EPS * abs(found.score)
    if methods and not budget.must_stop():
        start = np.zeros(len(model.unary.flat))
        start[model.unary.start[:-1] + found.states] = 1.0
        limits = {"threads": 1, "num_starts": 0, "time": budget.left()}
        fields = mean_field.solve(Batch.of(model), mean_field.options(None, limits), start, within=budget)
        lower = max(lower, float(fields.lower[0]))
    return lower, math.inf


def run_trw(model: Model, options: BoundOptions, seconds: float, within: Budget = UNLIMITED) -> tuple[float, float]:
    """Ends of log Z by TRW with edge weights that have time to be optimized."""
    chosen = trw.options(None, {"threads": 1, "time": seconds, "edge_weights": "optimized"})
    found = trw.solve(Batch.of(model), chosen, within=within)
    return float(found.lower[0]), float(found.upper[0])
