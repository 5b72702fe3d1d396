"""Work on leaves, here or on another machine: bounds on lanes of a model, exact where that is cheap."""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bounding.leaves.mini_bucket_bounds import Ends, MiniBucketBounds, WarmStart
from clampz.bounding.options import BoundOptions
from clampz.errors import TooWideError
from clampz.exact_inference.slices import sum_lane
from clampz.exact_inference.slicing import Slicer
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.numerics import Floats
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled

# Seconds that an exact sum may take without being cut into pieces.
FINISH_SECONDS = 0.25
# Share of the time that mean field and TRW may each take.
METHOD_SHARE = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafWork:
    """Work on lanes of a model that a worker is asked for.

    Attributes
    ----------
    unary
        (S, B) the lanes' potentials.
    seconds
        What it may take.  Workers elsewhere have clocks of their own.
    mini_buckets
        To bound the lanes with; None: by mean field and TRW.
    start
        Where the bounds of every lane begin.
    num_evaluations, ends, beliefs
        Of the bounds by mini-buckets, which, and whether anybody asks for what they say of the variables.
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
    """Bounds that a worker found.

    Attributes
    ----------
    lower, upper, exact
        Of each lane, and whether they are exact.
    states
        Where the bounds of each lane have got to; None where no further than before.
    mini_buckets
        As they are now.
    seconds
        What the work took.
    """

    lower: Floats
    upper: Floats
    exact: list[bool]
    states: list[WarmStart | None]
    mini_buckets: MiniBucketBounds | None
    seconds: float


def solve_leaves(work: LeafWork, within: Budget = UNLIMITED) -> Solved:
    """Bound every lane: exactly where that is cheap, else by mini-buckets, or by mean field and TRW."""
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
    """Bound every lane by mean field and TRW, for `seconds` each."""
    batch = Batch(model, unary)
    limits = {"max_iter": options.max_iter, "threads": threads, "time": seconds}
    fields = mean_field.solve(batch, mean_field.options(None, limits | {"seed": options.seed}), within=budget)
    trees = trw.solve(batch, trw.options(None, limits), within=budget)
    states = map(WarmStart.at, trees.marginals_flat.T)
    return Solved(fields.lower, trees.upper, [False] * batch.num_lanes, list(states), None, budget.seconds)
