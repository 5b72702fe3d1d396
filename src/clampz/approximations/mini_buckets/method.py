"""Weighted mini-buckets as a method: an upper bound on log Z with a lower one beside it."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Unpack, overload

import numpy as np

from clampz.approximations.iteration import NO_CONFIGURATION
from clampz.approximations.mean_field import MeanFieldOptions, mean_field
from clampz.approximations.mini_buckets.batched import TOGETHER, bytes_together, is_faster_batched, optimise_together
from clampz.approximations.mini_buckets.beliefs import beliefs
from clampz.approximations.mini_buckets.clique_tables import Tables, has_zeros
from clampz.approximations.mini_buckets.descent import BoundState, optimise_lanes
from clampz.approximations.mini_buckets.end_state import Lane, MiniBucketsLayout, MiniBucketsState, sums_exactly
from clampz.approximations.mini_buckets.structure import Structure
from clampz.errors import TooWideError
from clampz.method import AnyBeta, AnySets, CallKeywords, Method, OneBeta, OneSet, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import NO_RESULT, Estimate, Estimates
from clampz.model.warm_starts import Start, start_marginals
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled, StoppedBy
from clampz.runtime.options import OptionKeywords, Options, bytes_in_words, check_flag, check_whole, memory_allowed
from clampz.runtime.workers import Workers

# Evaluations after which the better half of several structures is kept; twice as many each time.
FIRST_EVALUATIONS = 15
# Shares of the time that is left: of the choice between structures, of the one of the lower bound, of mean field at the
# end, and, of a lower bound, of the upper one that it begins at.
CHOICE_SHARE, BELOW_SHARE, MEAN_FIELD_SHARE, BEGINNING_SHARE = 0.3, 0.3, 0.2, 0.4
# Starts of mean field beside the beliefs, which may be a saddle point.
NUM_STARTS = 4
# Evaluations for which time is kept, so that beliefs follow the last step: of a lane by itself, and of several side by
# side, whose beliefs take longer, one after another.
LAST_EVALUATIONS, LAST_EVALUATIONS_ALONE = 1.5, 4.5
NO_MARGINALS = "stopped before there were marginals"


class MiniBucketsKeywords(OptionKeywords, total=False):
    """The fields of `MiniBucketsOptions`, as a call takes them by name."""

    max_table: int
    num_structures: int
    seed: int
    marginals: bool


@dataclass(frozen=True, kw_only=True)
class MiniBucketsOptions(Options):
    """Options of mini-buckets.

    Attributes
    ----------
    tol
        In nats: what the next step promises to gain at most.
    max_iter
        Evaluations at most, of each bound: most of what there is to gain comes with the first hundred.
    max_table
        Table entries of a clique at most: the more, the tighter and the slower.  A larger factor is a clique of its
        own.
    num_structures
        Orders of elimination to try, with some chance in them: by what they make of the model itself, all its lanes
        have the best one.
    seed
        Of that chance; there is none in the first order if it is 0.
    memory
        What it may use, in bytes or as text such as "2GB"; None for half of what is free.  TooWideError where that is
        not enough for this limit, before anything is allocated.
    marginals
        False computes bounds only: unary marginals are nan.
    """

    max_iter: int = 100
    max_table: int = 2**14
    num_structures: int = 1
    seed: int = 0
    marginals: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("max_table", self.max_table, 2)
        check_whole("num_structures", self.num_structures, 1)
        check_whole("seed", self.seed, 0)
        check_flag("marginals", self.marginals)


class MiniBucketsCall(MiniBucketsKeywords, CallKeywords, total=False):
    """What a call of `mini_buckets` takes by name, beside evidence and beta."""

    options: MiniBucketsOptions | None


class MiniBucketsMethod(Method[MiniBucketsOptions]):
    """The method `mini_buckets`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(  # type: ignore[overload-overlap]
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[MiniBucketsCall]
    ) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Unpack[MiniBucketsCall]
    ) -> Estimates: ...
    def __call__(self, *unnamed: Any, **given: Any) -> Any:
        return super().__call__(*unnamed, **given)


@approximation(MiniBucketsMethod, MiniBucketsOptions, takes_factors=True, plans_memory=True)
def mini_buckets(batch: Batch, options: MiniBucketsOptions, start: Start | None, budget: Budget) -> Estimates:
    """Weighted mini-buckets: `log_z` is an upper bound on log Z, and `lower` a lower one, at every evaluation.

    Variables are eliminated one after another in tables of at most `max_table` entries. Where these are not enough,
    tables are split, which Hölder's inequality makes a bound; shifts between them and their weights are optimised. A
    model narrow enough is summed exactly. The lower bound is the same with weights below zero, where no table has hard
    zeros, or mean field's, begun at the beliefs, whichever is higher.

    An earlier estimate by mini-buckets, with the same limit, is continued; any other `start` is mean field's.  Of an
    estimate's lane, `state.cliques(lane)` are the beliefs, and `state.losses(lane)` says at which variables the upper
    bound is loose.  Options: see `MiniBucketsOptions`.

    >>> from clampz import generators, mini_buckets
    >>> found = mini_buckets(generators.grid(9, 9, weights=(-1, 1), rng=0), max_table=2**6)
    >>> found.bound, found.upper - found.lower < 0.5
    ('upper', True)
    """
    given = None if start is None else start_marginals(batch, start)
    begin = _warm_start(batch, options, start)
    with Workers(options.num_threads) as pool:
        layout, point = (begin[0].layout, None) if begin else _choose_structures(batch.model, options, budget, pool)
        budget.check_cancelled()
        threads, together = _work_that_fits(layout, batch, options)
    begin = begin or [Lane(layout, batch.unary[:, b], above=point) for b in range(batch.num_lanes)]
    begin = [lane._replace(unary=np.ascontiguousarray(batch.unary[:, b])) for b, lane in enumerate(begin)]
    with Workers(threads) as pool:
        ends = _both_bounds(begin, options, budget, pool, together)
    estimates = _estimates(batch, begin, options, ends)
    if layout.is_exact:
        return estimates
    marginals = np.nan_to_num(estimates.marginals_flat, nan=0.5) if given is None else np.nan_to_num(given, nan=0.5)
    field = MeanFieldOptions(
        max_iter=options.max_iter, time=budget.left(), threads=options.threads, num_starts=NUM_STARTS, seed=options.seed
    )
    below = mean_field.solve(batch, field, marginals, within=budget)
    return replace(estimates, lower=np.maximum(estimates.lower, below.lower))


# -- structures --------------------------------------------------------------------------------------------------------


def _warm_start(batch: Batch, options: MiniBucketsOptions, start: Start | None) -> list[Lane] | None:
    """Return the lanes of an earlier run with the same tables and limit, to continue from; None without one."""
    if not isinstance(start, Estimate | Estimates) or not isinstance(start.state, MiniBucketsState):
        return None
    lanes = [start.state.lanes[start.lane]] if isinstance(start, Estimate) else list(start.state.lanes)
    first = lanes[0].layout
    layout = first.of_model(batch.model)
    if layout is None or layout.max_table != options.max_table or any(lane.layout is not first for lane in lanes):
        return None
    return [lane._replace(layout=layout) for lane in (lanes * batch.num_lanes if len(lanes) == 1 else lanes)]


def _choose_structures(
    model: Model, options: MiniBucketsOptions, budget: Budget, pool: Workers
) -> tuple[MiniBucketsLayout, Floats | None]:
    """Choose the structures of a model, with the shifts and weights that the choice has led to."""
    allowed = memory_allowed(options.memory)

    def structure(seed: int, grow: bool = True, within: Budget = budget) -> Structure:
        return Structure.of(model, options.max_table, seed=seed, grow=grow, most_bytes=allowed, budget=within)

    above, point = structure(options.seed), None
    if options.num_structures > 1 and not sums_exactly(above, model):
        others = range(options.seed + 1, options.seed + options.num_structures)
        above, point = _successive_halving(model, above, (structure(seed) for seed in others), allowed, budget, pool)
    below = above if sums_exactly(above, model) else None
    if below is None and not has_zeros(model):
        with suppress(Cancelled):  # an upper bound alone is better than none
            below = structure(0, grow=False, within=budget.share(BELOW_SHARE))
    return MiniBucketsLayout(model, options.max_table, above, below), point


def _successive_halving(
    model: Model, first: Structure, others: Iterator[Structure], allowed: int, budget: Budget, pool: Workers
) -> tuple[Structure, Floats]:
    """Choose a structure by successive halving on the model itself, among as many as memory and time allow."""
    share = budget.share(CHOICE_SHARE)
    states = [BoundState.upper(Tables.of(model, first, budget), model.unary.flat, budget=budget)]
    taken = first.num_bytes()
    while not share.must_stop() and (other := next(others, None)) is not None:
        taken += other.num_bytes()
        if taken > allowed:
            break
        with suppress(Cancelled):
            states.append(BoundState.upper(Tables.of(model, other, share), model.unary.flat, budget=share))
    num_evaluations = FIRST_EVALUATIONS
    while len(states) > 1:
        optimise_lanes(states, num_evaluations, share, pool)
        states = sorted(states, key=lambda state: state.bound)[: len(states) // 2]
        num_evaluations *= 2
    return states[0].tables.structure, states[0].x


def _work_that_fits(layout: MiniBucketsLayout, batch: Batch, options: MiniBucketsOptions) -> tuple[int, int]:
    """Return how many threads can work at once, and on how many lanes each; TooWideError where memory is too small for
    one."""
    allowed = memory_allowed(options.memory)
    kept = 8 * batch.num_lanes * sum(s.num_shifted + s.num_cliques for s in layout.structures) + 4 * batch.unary.nbytes
    most = min(options.num_threads, 2 * batch.num_lanes)
    lanes = min(TOGETHER, -(-batch.num_lanes // most))
    fewer = [(most, lanes >> k) for k in range(lanes.bit_length())]
    for threads, together in [*fewer, *((threads, 1) for threads in range(most - 1, 0, -1))]:
        needed = kept + sum(bytes_together(structure, threads, together) for structure in layout.structures)
        if needed <= allowed:
            return threads, together
    raise TooWideError(
        f"tables of up to {options.max_table:,} entries need {bytes_in_words(needed)} for {batch.num_lanes} lanes, "
        f"and {bytes_in_words(allowed)} are allowed: lower max_table=, or allow more with memory=",
        width=int(options.max_table).bit_length() - 1,
        num_bytes=needed,
    )


# -- lanes -------------------------------------------------------------------------------------------------------------


class _End(NamedTuple):
    """How one side of a lane ended: its bound and objective, where it stands, and why it stopped."""

    bound: float
    value: float = math.nan
    x: Floats | None = None
    main: Integers | None = None
    marginals: Floats | None = None
    num_iter: int = 0
    settled: bool = False
    residual: float = math.inf
    stopped_by: StoppedBy = "time"


@dataclass
class _ProgressReporter:
    """Reports the upper bounds to the progress callback."""

    budget: Budget
    num_lanes: int
    num_finished: int = 0

    def __call__(self, state: BoundState) -> None:
        if not self.budget.listening or not math.isfinite(state.bound):
            return
        lanes = {"num_lanes": self.num_lanes, "num_finished": self.num_finished}
        self.budget.report("mini_buckets", state.num_evaluations, residual=state.residual, log_z=state.bound, **lanes)

    def finished(self, state: BoundState) -> None:
        self.num_finished += 1
        self(state)


def _both_bounds(
    lanes: list[Lane], options: MiniBucketsOptions, budget: Budget, pool: Workers, together: int
) -> list[tuple[_End, _End]]:
    """Optimise upper bounds, then lower ones, in even shares of the time. One side of some lanes, together where that
    is quicker, is work for one thread."""
    layout, num_lanes = lanes[0].layout, len(lanes)
    on_step = _ProgressReporter(budget, num_lanes)
    whole = budget if layout.is_exact else budget.share(1.0 - MEAN_FIELD_SHARE)
    layout.lay_out(budget)

    def cut(structure: Structure) -> list[list[Lane]]:
        size = together if is_faster_batched(structure, together) else 1
        return [lanes[begin : begin + size] for begin in range(0, num_lanes, size)]

    above, below = cut(layout.above), [] if layout.below is None else cut(layout.below)
    num_left = np.cumsum([len(block) for block in (*above, *below)][::-1])[::-1]

    def work(k: int) -> list[_End]:
        is_above, block = k < len(above), (*above, *below)[k]
        nothing = [_End(math.inf if is_above else -math.inf)] * len(block)
        if whole.is_cancelled():
            return nothing
        share = whole.share(min(1.0, pool.num_threads * len(block) / num_left[k]))
        with suppress(Cancelled):
            return _upper(block, options, share, on_step) if is_above else _lower(block, options, share)
        return nothing

    ends = list(chain.from_iterable(pool.map(work, list(range(len(num_left))))))
    return list(zip(ends[:num_lanes], ends[num_lanes:] or [_End(-math.inf)] * num_lanes, strict=True))


def _upper(lanes: list[Lane], options: MiniBucketsOptions, budget: Budget, on_step: _ProgressReporter) -> list[_End]:
    """Optimise the upper bounds of some lanes, keeping time for their beliefs."""
    states = [BoundState.upper(lane.layout.tables_above, lane.unary, lane.above, budget=budget) for lane in lanes]
    began = budget.used
    optimise_together(states, 1, budget, on_step=on_step)
    for state in states:
        on_step(state)
    last = LAST_EVALUATIONS if len(states) == 1 else LAST_EVALUATIONS_ALONE
    kept = last * (budget.used - began) if options.marginals else 0.0
    rest = Budget(max(0.0, budget.left() - kept), within=budget)
    optimise_together(states, options.max_iter - 1, rest, tol=options.tol, on_step=on_step)
    return [_upper_end(state, options, budget, on_step) for state in states]


def _upper_end(state: BoundState, options: MiniBucketsOptions, budget: Budget, on_step: _ProgressReporter) -> _End:
    """Collect the result of an upper bound, with marginals."""
    num_iter = state.num_evaluations
    done: StoppedBy = "tol" if state.settled else "max_iter" if num_iter >= options.max_iter else "time"
    if done == "time" and budget.must_stop():
        done = budget.stopped_by or done
    on_step.finished(state)
    marginals = None
    if options.marginals and state.gradient is not None:
        with suppress(Cancelled):
            marginals = beliefs(state, budget).marginals
    if state.bound == -math.inf:
        return _End(-math.inf, -math.inf, state.x, None, None, num_iter, True, 0.0, "tol")
    value = state.value if state.gradient is not None else math.nan
    return _End(state.bound, value, state.x, None, marginals, num_iter, state.settled, state.residual, done)


def _lower(lanes: list[Lane], options: MiniBucketsOptions, budget: Budget) -> list[_End]:
    """Optimise the lower bounds of some lanes, each from an upper one where it is new."""
    tables = lanes[0].layout.tables_below
    new = {k: BoundState.upper(tables, lane.unary, budget=budget) for k, lane in enumerate(lanes) if lane.below is None}
    if not lanes[0].layout.is_exact:
        optimise_together(list(new.values()), options.max_iter, budget.share(BEGINNING_SHARE), tol=options.tol)
    starts = [new[k].x if lane.below is None else lane.below for k, lane in enumerate(lanes)]
    states = [
        BoundState.lower(tables, lane.unary, x, lane.main, budget=budget) for lane, x in zip(lanes, starts, strict=True)
    ]
    optimise_together(states, options.max_iter, budget, tol=options.tol)
    return [_End(state.bound, x=state.x, main=state.main) for state in states]


def _estimates(
    batch: Batch, begin: list[Lane], options: MiniBucketsOptions, ends: list[tuple[_End, _End]]
) -> Estimates:
    """Make the estimates of lanes whose bounds have ended."""
    above = [upper for upper, _ in ends]
    seen = np.array([end.num_iter > 0 for end in above])
    upper = np.array([end.bound for end in above])
    none = np.full(len(batch.unary), np.nan)
    marginals = np.stack([none if end.marginals is None else end.marginals for end in above], axis=1)
    lanes = tuple(
        lane._replace(above=up.x if up.num_iter else lane.above, below=low.x, main=low.main)
        for lane, (up, low) in zip(begin, ends, strict=True)
    )
    size = max(int(np.diff(start).max(initial=1)) for start in (batch.model.pairwise.start, batch.model.factors.start))
    note = f"a factor of {size:,} entries is more than max_table={options.max_table:,}, and a clique of its own"
    of_all = note if size > options.max_table else ""
    notes = []
    for end in above:
        late = NO_MARGINALS if options.marginals and end.marginals is None else ""
        said = "; ".join(filter(None, (of_all, late)))
        notes.append(NO_CONFIGURATION if end.bound == -np.inf else said if end.num_iter else NO_RESULT)
    return Estimates(
        method="mini_buckets",
        model=batch.model,
        log_z=np.where(seen, upper, np.nan),
        bound="upper",
        lower=np.array([low.bound for _, low in ends]),
        upper=upper,
        value=np.array([end.value for end in above]),
        marginals_flat=marginals,
        converged=np.array([end.settled for end in above]),
        num_iter=np.array([end.num_iter for end in above]),
        residual=np.array([end.residual for end in above]),
        stopped_by=[end.stopped_by for end in above],
        options=options,
        notes=notes,
        state=MiniBucketsState(lanes),
    )
