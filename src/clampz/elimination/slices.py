"""Exact sums in slices: a few variables are fixed so that what is left is narrow, and the sum over the rest is taken
for each of their joint states.

The slices of a sum are lanes of one topology and share one plan.  They can be done in any order, by anyone, with little
memory, and left at any time: those that are done are a lower bound, and with upper bounds on the others there is an
upper one too.  Marginals of the whole are those of the slices, mixed by their sums.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from clampz.elimination import cost
from clampz.elimination.cuts import Cuts
from clampz.elimination.exact import ExactOptions, ExactState, exact_estimates, not_reached, run_exact
from clampz.elimination.orders import Order, quick_order
from clampz.elimination.plans import NO_LIMIT, ExactPlan, Restriction, Scopes
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.fixing import states_left
from clampz.model.results import Estimates
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers, log_sum_exp
from clampz.watch import Overdue, Progress, Watch
from clampz.workers import Crew, Job, finished

# Entries beyond which a sum by a quick order is not taken in one go, and a plan is not made to see what it takes.
MOST_ENTRIES, MOST_PLANNED = 2.0**31, 2.0**40
# Seconds that a sum may take without a look for variables to fix, and that looking for them may take.
QUICK_SECONDS, PLANNING_SECONDS = 0.05, 0.1
# Seconds from which on the slices of a sum are worth a second order, where one was found for the whole.
THOROUGH_SECONDS = 1.0
# Slices of a sum at most, and those that are laid out at once, each in so many arrays.
MOST_SLICES, MOST_AT_ONCE, LANE_ARRAYS = 2**16, 256, 3
# A slice of a long sum takes about so many seconds if that does not make it much longer: who looks on sees it move, and
# workers end at about the same time.
SLICE_SECONDS, NOT_MUCH = 0.25, 1.25
# Seconds between two looks at the workers.
PATIENCE = 0.05


@dataclass(frozen=True, eq=False)
class SlicedPlan:
    """How to sum a lane exactly.

    Attributes
    ----------
    fixed
        Variables to fix.
    entries
        Table entries of each sum then, along its order.
    num_sums
        How many there are.
    order
        Of each, where one was looked for.
    num_workers
        How many may do one at a time.
    pace, bytes_per_entry
        How long a sum takes, for a sweep over the entries of its order, and how much memory: less of both, if the plan
        that is made of the order has a better way.
    memory
        For each worker, in bytes.
    how
        The plan of the one sum, where nothing is fixed and it has been made.
    """

    fixed: tuple[int, ...]
    entries: float
    num_sums: int
    order: Order | None = None
    num_workers: int = 1
    pace: float = 1.0
    bytes_per_entry: float = 8.0
    memory: float = math.inf
    how: ExactPlan | None = None

    @property
    def seconds(self) -> float:
        """What all of it takes one worker, without marginals."""
        return self.num_sums * self.slice_seconds

    @property
    def slice_seconds(self) -> float:
        """What each sum takes."""
        return self.pace * cost.seconds(self.entries)

    @property
    def duration(self) -> float:
        """Seconds until all workers are done."""
        return math.ceil(self.num_sums / self.num_workers) * self.slice_seconds

    @property
    def num_at_once(self) -> int:
        """Sums that a worker is given at most: as many as take a moment, and leave something for the others."""
        share = self.num_sums if self.num_workers == 1 else self.num_sums // (2 * self.num_workers)
        return max(1, min(int(SLICE_SECONDS / self.slice_seconds), MOST_AT_ONCE, share))

    def fits(self, most_seconds: float, memory: float, beside: int, num_states: int) -> bool:
        """Whether it keeps to so many seconds and bytes, with what each worker takes beside its tables, and its lanes
        of so many states."""
        lanes = LANE_ARRAYS * 8 * num_states * self.num_at_once if self.fixed else 0
        return (
            self.num_workers * (self.bytes_per_entry * self.entries + beside + lanes) <= memory
            and self.duration <= most_seconds
        )


class Slicer:
    """Exact sums over lanes of one model; what it knows of the model is computed when it is first needed."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes.of(self.model)

    @cached_property
    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor."""
        return self.scopes.edges() if self.model.factors else self.model.edges.astype(np.int64)

    def plan(
        self,
        unary: Floats,
        most_seconds: float,
        memory: float = math.inf,
        *,
        thorough: bool = False,
        how: ExactPlan | None = None,
        marginals: bool = False,
        num_workers: int = 1,
        watch: Watch | None = None,
    ) -> SlicedPlan | None:
        """The quickest way found to sum the lane with these unary potentials (S,) exactly, with or without marginals,
        within so many seconds and bytes, by so many workers; None if there is none, or the watch was over first.

        `thorough` spends up to a second on finding a narrow order, which the plan then carries; `how` is a plan made
        before.
        """
        most_seconds /= cost.WITH_MARGINALS if marginals else 1.0  # plans count what a sum takes without
        left = np.maximum(states_left(unary > -np.inf, self.model.unary.start), 1)
        try:
            direct = self._direct(unary, left, thorough, how, marginals, watch)
        except Overdue:
            return None

        def fits(plan: SlicedPlan) -> bool:
            return plan.fits(most_seconds, memory, self.scopes.num_bytes, len(unary))

        if direct.entries <= cost.CACHED_ENTRIES or (direct.seconds < QUICK_SECONDS and fits(direct)):
            return direct if fits(direct) else None
        planning = Watch(min(PLANNING_SECONDS, most_seconds / 4), within=watch)
        enough = min(cost.CACHED_ENTRIES / 8, memory / (2 * direct.bytes_per_entry * num_workers))
        sliced = list(self._sliced(left, direct, enough, most_seconds * num_workers, planning))
        while True:
            among = [replace(plan, num_workers=min(num_workers, plan.num_sums)) for plan in sliced]
            found = _that_moves([plan for plan in (direct, *among) if fits(plan)])
            if found is not None or num_workers == 1:
                break
            num_workers //= 2  # for fewer of them there may be memory enough
        if found is None:
            return None
        found = replace(found, memory=memory / found.num_workers)
        if not found.fixed or (direct.order is not None and found.seconds < THOROUGH_SECONDS):
            return found
        return self._with_order(unary, found, watch)

    def _direct(
        self,
        unary: Floats,
        left: Integers,
        thorough: bool,
        how: ExactPlan | None,
        marginals: bool,
        watch: Watch | None,
    ) -> SlicedPlan:
        """The plan of the lane in one go; Overdue where the watch is over first."""
        entry_bytes = 16.0 if marginals else 8.0
        order = None if how is None else how.elimination.order
        if how is None and thorough:
            order = Restriction.of(self.scopes, unary > -np.inf).scopes.order(watch)
        if order is None:
            entries = self._quick_order(left, MOST_ENTRIES, watch).total
            return SlicedPlan((), entries, 1, None, bytes_per_entry=entry_bytes)
        direct = SlicedPlan((), order.total, 1, order, bytes_per_entry=entry_bytes)
        if how is None and direct.seconds >= QUICK_SECONDS and order.total < MOST_PLANNED:
            how = ExactPlan.of(
                Batch(self.model, unary[:, None]), NO_LIMIT, marginals=marginals, order=order, watch=watch
            )
        if how is None:
            return direct
        pace = min(1.0, cost.elimination_seconds(how.elimination, marginals=False) / direct.seconds)
        return replace(
            direct, how=how, pace=pace, bytes_per_entry=how.elimination.thread_bytes(marginals) / order.total
        )

    def _sliced(
        self, left: Integers, direct: SlicedPlan, enough: float, most_seconds: float, watch: Watch
    ) -> Iterator[SlicedPlan]:
        """Plans that fix one variable more each time, until the tables of a slice are small enough."""
        known = direct.order is not None and direct.order.total < math.inf
        order = direct.order if known else self._quick_order(left, math.inf, watch)
        if order is None or math.isinf(order.total) or watch.must_stop():
            return
        cuts = Cuts(order, left, self.edges)
        num_sums = 1
        while cuts.order.total > enough and not watch.must_stop() and (variable := cuts.fix_one()) is not None:
            num_sums *= int(left[variable])
            if num_sums > MOST_SLICES or num_sums * cost.SECONDS_PER_SUM > most_seconds:
                return
            fixed, order = tuple(cuts.fixed), cuts.order
            yield replace(direct, fixed=fixed, entries=order.total, num_sums=num_sums, order=order, how=None)

    def _with_order(self, unary: Floats, plan: SlicedPlan, watch: Watch | None) -> SlicedPlan:
        """The same with a better order for its slices, if one is found."""
        one = unary > -np.inf
        for i in plan.fixed:
            own = one[self.model.unary.start[i] : self.model.unary.start[i + 1]]
            own[int(np.argmax(own)) + 1 :] = False
        found = Restriction.of(self.scopes, one).scopes.order(watch)
        return replace(plan, entries=found.total, order=found) if found.total < plan.entries else plan

    def total(self, unary: Floats, plan: SlicedPlan, watch: Watch | None = None) -> tuple[float, float]:
        """Lower and upper end of log Z of the lane: apart by rounding only, unless the watch was over before all of it
        was summed; then the lower one has what was, and the upper one is inf."""
        slices = Slices(self.model, unary, plan)
        try:
            slices.begin(watch)
        except (Overdue, TooWideError):
            return -math.inf, math.inf
        while (some := slices.next()).size:
            slices.take(sum_slices(*slices.work(some), watch))
            if watch is not None and slices.waiting.size and watch.must_stop():
                break
        return slices.ends

    def _quick_order(self, left: Integers, limit: float, watch: Watch | None) -> Order:
        """Of the elimination of the variables with a choice of states, after the others; incomplete from `limit` on, or
        where the watch was over first."""
        return quick_order(self.edges[(left[self.edges] > 1).all(axis=1)], np.log2(left), left > 1, limit, watch)


def _that_moves(plans: Sequence[SlicedPlan]) -> SlicedPlan | None:
    """The quickest plan, if there is any; or, where that is long, the first that takes little longer in slices of a
    moment each."""
    quickest = min(plans, key=lambda plan: plan.duration, default=None)
    if quickest is None or quickest.slice_seconds <= SLICE_SECONDS:
        return quickest
    moving = [plan for plan in plans if plan.duration <= NOT_MUCH * quickest.duration]
    return next((plan for plan in moving if plan.slice_seconds <= SLICE_SECONDS), moving[-1])


class Mixture(NamedTuple):
    """Marginals of several sums, each as heavy as its sum: exp(`log_weight`) is the weight of all, and `unary` and
    `tables` have the marginals of variables, and of edges and larger factors, for a weight of 1."""

    log_weight: float
    unary: Floats
    tables: Floats

    @classmethod
    def of(cls, log_weight: Floats, unary: Floats, tables: Floats) -> "Mixture":
        """Of sums whose marginals are the columns (S, B) and rows (B, T)."""
        total = log_sum_exp(log_weight)
        share = np.exp(log_weight - total)
        return cls(total, unary @ share, share @ tables)

    def join(self, other: "Mixture") -> "Mixture":
        """Both together."""
        stacked = np.stack([self.unary, other.unary], axis=1), np.stack([self.tables, other.tables])
        return Mixture.of(np.array([self.log_weight, other.log_weight]), *stacked)


class SliceSums(NamedTuple):
    """What was found of some slices: which were summed, the ends of their log Z, and their marginals if asked for."""

    slices: Integers
    lower: Floats
    upper: Floats
    mixture: Mixture | None


class Slices:
    """The slices of a sum over a lane (S,) of a model, numbered by the joint states of the fixed variables, the last
    one fastest; what is known of each, and so of the whole.

    Attributes
    ----------
    lower, upper
        (K,) ends of log Z of each.
    waiting
        Those that nobody has begun with, in the order in which they will be.
    """

    def __init__(self, model: Model, unary: Floats, plan: SlicedPlan, *, marginals: bool = False) -> None:
        self.model, self.unary, self.plan, self.marginals = model, unary, plan, marginals
        start = model.unary.start
        self.states = [np.flatnonzero(unary[start[i] : start[i + 1]] > -np.inf) for i in plan.fixed]
        impossible = not states_left(unary > -np.inf, start).all()
        num_slices = 0 if impossible else math.prod(len(left) for left in self.states)
        self.lower, self.upper = np.full(num_slices, -np.inf), np.full(num_slices, np.inf)
        self.waiting = np.arange(num_slices)
        self.is_done = np.zeros(num_slices, dtype=np.bool_)
        self.mixture: Mixture | None = None
        self.how = plan.how

    @property
    def complete(self) -> bool:
        """Whether all of them are summed, or have nothing to sum."""
        return bool((self.is_done | (self.upper == -np.inf)).all())

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of log Z of the whole: apart by rounding only where all slices are done."""
        lower, upper = log_sum_exp(self.lower), log_sum_exp(self.upper)
        return lower - self._rounding(lower), upper + self._rounding(upper)

    def _rounding(self, end: float) -> float:
        """Bound on that in a log-sum-exp.  An exponential is off by its argument's rounding, d eps / 2 for one that is
        d below the largest, and these d are log K on average at most; NumPy adds up in blocks; the logarithm and the
        last addition round once each."""
        if len(self.lower) < 2 or not math.isfinite(end):
            return 0.0
        return EPS * (2 * ROUNDINGS + math.log2(len(self.lower)) + 2 * abs(end))

    def begin(self, watch: Watch | None = None) -> None:
        """Lay out the plan that all of them share; Overdue where the watch is over first, TooWideError where it takes
        more memory than was thought."""
        if self.how is None and len(self.lower):
            batch, plan = Batch(self.model, self.lanes(np.zeros(1, dtype=np.int64))), self.plan
            memory = int(min(plan.memory, NO_LIMIT))
            self.how = ExactPlan.of(
                batch, memory, marginals=self.marginals, order=plan.order, fixed=plan.fixed, watch=watch
            )

    def lanes(self, some: Integers) -> Floats:
        """(S, B) the unary potentials of some slices."""
        lanes = np.repeat(self.unary[:, None], len(some), axis=1)
        joint = np.unravel_index(some, [len(left) for left in self.states]) if self.states else ()
        for i, left, row in zip(self.plan.fixed, self.states, joint, strict=True):
            begin, end = self.model.unary.start[i : i + 2]
            lanes[begin:end] = -np.inf
            lanes[begin + left[row], np.arange(len(some))] = self.unary[begin + left[row]]
        return lanes

    def next(self) -> Integers:
        """Slices to be summed next, which from now on do not wait; none if none waits that has anything to sum."""
        self.waiting = self.waiting[self.upper[self.waiting] > -np.inf]
        fair = -(-len(self.waiting) // self.plan.num_workers)
        size = max(1, min(self.plan.num_at_once, fair))
        some, self.waiting = self.waiting[:size], self.waiting[size:]
        return some

    def work(self, some: Integers) -> tuple[Model, Floats, ExactPlan, Integers, bool]:
        """What `sum_slices` has to know about some of them."""
        self.begin()
        assert self.how is not None
        return self.model, self.lanes(some), self.how, some, self.marginals

    def take(self, found: SliceSums) -> None:
        """Take what was summed."""
        self.bound(found.slices, found.lower, found.upper)
        self.is_done[found.slices] = True
        if found.mixture is not None:
            self.mixture = found.mixture if self.mixture is None else self.mixture.join(found.mixture)

    def bound(self, some: Integers, lower: Floats, upper: Floats) -> None:
        """Take bounds on some of them; those that wait go in the order of their upper bounds, likeliest first."""
        self.lower[some], self.upper[some] = np.maximum(self.lower[some], lower), np.minimum(self.upper[some], upper)
        self.waiting = self.waiting[np.argsort(-self.upper[self.waiting], kind="stable")]


def sum_slices(
    model: Model, lanes: Floats, how: ExactPlan, some: Integers, marginals: bool, watch: Watch | None = None
) -> SliceSums:
    """Sum some slices, those lanes (S, B), as far as the watch allows: here, or on another machine."""
    found = run_exact(Batch(model, lanes), ExactOptions(marginals=marginals, threads=1), watch, how)
    done, mixture = np.flatnonzero(found.converged), None
    possible = done[found.log_z[done] > -np.inf]
    if marginals and possible.size:
        state = found.state
        assert isinstance(state, ExactState)
        tables = np.stack([state.both(int(lane)) for lane in possible])
        mixture = Mixture.of(found.log_z[possible], found.marginals_flat[:, possible], tables)
    return SliceSums(some[done], found.lower[done], found.upper[done], mixture)


def run_slices(slices: Slices, crew: Crew, watch: Watch) -> Iterator[tuple[float, float]]:
    """Have a crew sum the slices, as far as the watch allows; yields the ends of log Z of the whole whenever they have
    changed."""
    pending: set[Job[SliceSums]] = set()
    while True:
        while len(pending) < crew.num_at_once and not watch.must_stop():
            some = slices.next()
            if not some.size:
                break
            pending.add(crew.submit(sum_slices, *slices.work(some), here=(watch,)))
        if not pending or watch.overdue():
            return
        for job in finished(pending, PATIENCE):
            pending.remove(job)
            slices.take(job.result())
            yield slices.ends


def sum_in_slices(model: Model, plan: SlicedPlan, options: ExactOptions, watch: Watch) -> Estimates:
    """What `exact` finds of a model, by slices on all threads: all or nothing."""
    batch = Batch.of(model)
    slices = Slices(model, model.unary.flat, plan, marginals=options.marginals)
    try:
        slices.begin(watch)
    except (Overdue, TooWideError):
        return not_reached(batch, options, watch)
    if not plan.fixed:
        return run_exact(batch, options, watch, slices.how)
    with watch.interruptible(), Crew(None, min(options.num_threads, plan.num_workers)) as crew:
        for lower, upper in run_slices(slices, crew, watch.share()):
            watch.report(
                Progress(
                    method="exact",
                    num_iter=1,
                    residual=upper - lower if lower < upper else 0.0,
                    log_z=lower,
                    num_lanes=len(slices.lower),
                    num_finished=int(np.count_nonzero(slices.is_done)),
                    seconds=watch.seconds,
                )
            )
    if not slices.complete:
        return not_reached(batch, options, watch)
    lower, upper = slices.ends
    num_pairs, num_tables = len(model.pairwise.flat), len(model.pairwise.flat) + len(model.factors.flat)
    mixture = slices.mixture or Mixture(-math.inf, np.full(len(batch.unary), np.nan), np.full(num_tables, np.nan))
    # apart by rounding only, unless there is nothing to sum
    log_z = lower if lower == upper else lower + (upper - lower) / 2
    error = 0.0 if lower == upper else max(upper - log_z, log_z - lower)
    tables = mixture.tables[None] if options.marginals else None
    state = ExactState(tables, None, num_pairs)
    ends = np.array([log_z]), np.array([error])
    return exact_estimates(batch, options, watch, *ends, mixture.unary[:, None], state)
