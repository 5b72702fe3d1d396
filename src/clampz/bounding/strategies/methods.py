"""Methods that bound the reduced model beside the tree: mean field, Bethe, TRW, the best configuration."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies.exact_sum import WholeWork
from clampz.bounding.strategies.initial_bounds import MANY_EDGES, InitialBounds, bethe_leads
from clampz.bounding.strategies.successive_halving import may_begin
from clampz.errors import TooWideError
from clampz.map_inference.mode import best_found
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.workers import Crew, Job

# The share of the time that mean field and TRW each have to converge beside mini-buckets, and without them.
LONG_SHARE, LONGEST_SHARE = 0.1, 0.95
# The share of the time for the best configuration while none of positive probability is known; else seconds at most.
POSSIBLE_SHARE, BEST_SECONDS = 0.4, 1.0
# Seconds per edge of the last certificate of such a method, which comes after its time.
LOOK_SECONDS = 2.5e-7
# Share of the time that the best configuration is looked for, where mean field goes on from it.
BEST_SHARE = 0.8


def begin_methods(
    whole: WholeWork,
    rest: Model,
    options: BoundOptions,
    quick: InitialBounds | None,
    crew: Crew,
    budget: Budget,
    *,
    slowed: float,
    known: bool,
) -> None:
    """Have mean field, the best configuration and TRW bound the reduced model beside the tree.

    Their shares of the time are small where mini-buckets can be begun, which then do better.  `slowed` is how many
    times longer work takes than the processor is at it; `known` is whether any lower end is.
    """
    room = options.worker_bytes
    by_mini_buckets = may_begin(rest, options, budget.left() / slowed)
    share = LONG_SHARE if by_mini_buckets else LONGEST_SHARE
    last_look = slowed * LOOK_SECONDS * rest.num_edges

    def add(method: Callable[..., tuple[float, float]], share: float, most: float = math.inf) -> None:
        def begin() -> Job[tuple[float, float]]:
            seconds = max(0.0, min(budget.left(share), budget.left() - last_look, most))
            return crew.submit(method, rest, options, seconds, local_args=(budget,))

        whole.add(begin)

    start = None if quick is None or np.isnan(quick.marginals).any() else quick.marginals
    if not by_mini_buckets and not trw.fits(rest, room) and trw.fits(rest, options.num_threads * room):
        add(partial(run_both, start=start), share)
    elif quick is not None and (not quick.converged or rest.is_balanced) and mean_field.fits(rest, room):
        most = LONGEST_SHARE if bethe_leads(rest) else share
        alone = crew.num_threads == 1 and most == LONGEST_SHARE  # TRW has the other half
        add(partial(run_mean_field, start=start), most / 2 if alone else most)
    if not options.in_order and not bethe_leads(rest):
        add(run_mode, share if known else max(share, POSSIBLE_SHARE), BEST_SECONDS if known else math.inf)
    # where edges are many, TRW's share of the time is as good as lost: it goes to mini-buckets
    by_trw_too = not by_mini_buckets or rest.num_edges <= MANY_EDGES
    if by_trw_too and trw.fits(rest, room) and not budget.must_stop():
        add(run_trw, share)


def run_mean_field(
    model: Model, options: BoundOptions, seconds: float, within: Budget = UNLIMITED, *, start: Floats | None = None
) -> tuple[float, float]:
    """Bound log Z by mean field until it converges, from marginals (S,) found before, if any.

    On balanced models Bethe goes on from there in half of the time: its value is the better lower bound in the end.
    """
    balanced, budget = model.is_balanced, Budget(seconds, within=within)
    limits: dict[str, Any] = {"threads": 1, "seed": options.seed}
    batch, half = Batch.of(model), budget.left(0.5 if balanced else 1.0)
    found = mean_field.solve(batch, mean_field.options(None, limits | {"time": half}), start, within=budget)
    lower, upper = float(found.lower[0]), float(found.upper[0])
    if balanced and lower > -math.inf and not budget.must_stop():
        limits |= {"time": budget.left(), "num_starts": 0, "from_mean_field": False}
        by_bethe = bethe.solve(batch, bethe.options(None, limits), found.marginals_flat[:, 0], within=budget)
        lower = max(lower, float(by_bethe.lower[0]))
    return lower, upper


def run_trw(model: Model, options: BoundOptions, seconds: float, within: Budget = UNLIMITED) -> tuple[float, float]:
    """Bound log Z by TRW with optimized edge weights."""
    chosen = trw.options(None, {"threads": 1, "time": seconds, "edge_weights": "optimized"})
    found = trw.solve(Batch.of(model), chosen, within=within)
    return float(found.lower[0]), float(found.upper[0])


def run_both(
    model: Model, options: BoundOptions, seconds: float, within: Budget = UNLIMITED, *, start: Floats | None = None
) -> tuple[float, float]:
    """Bound log Z by mean field, then by TRW, each in half of the time: memory is too short for both at once."""
    budget = Budget(seconds, within=within)
    lower, upper = run_mean_field(model, options, budget.left(0.5), budget, start=start)
    by_trw = run_trw(model, options, budget.left(), budget) if budget.left() else (-math.inf, math.inf)
    return max(lower, by_trw[0]), min(upper, by_trw[1])


def run_mode(model: Model, options: BoundOptions, seconds: float, within: Budget = UNLIMITED) -> tuple[float, float]:
    """Bound log Z from below by the best configuration found, and by mean field from there if memory allows.

    Of a model that is all but certain that is nearly all of Z.  Where no configuration is possible, Z = 0.
    """
    budget, memory = Budget(seconds, within=within), options.worker_bytes
    has_room = mean_field.fits(model, memory)
    try:
        found = best_found(model, memory, 1 + options.seed, budget.share(BEST_SHARE if has_room else 1.0))
    except TooWideError:
        return -math.inf, math.inf
    if found.states is None:
        return -math.inf, -math.inf if found.upper == -math.inf else math.inf
    lower = found.score - EPS * abs(found.score)
    if has_room and not budget.must_stop():
        start = np.zeros(len(model.unary.flat))
        start[model.unary.start[:-1] + found.states] = 1.0
        limits = {"threads": 1, "num_starts": 0, "time": budget.left()}
        fields = mean_field.solve(Batch.of(model), mean_field.options(None, limits), start, within=budget)
        lower = max(lower, float(fields.lower[0]))
    return lower, math.inf
