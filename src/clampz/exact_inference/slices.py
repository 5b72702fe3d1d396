"""Exact sums in slices: a few variables are fixed so that what is left is narrow, and the sum over the rest is taken
for each of their joint states.

The slices of a sum are lanes of one topology and share one plan.  They can be done in any order, by anyone, with little
memory, and left at any time: those that are done are a lower bound, and with upper bounds on the others there is an
upper one too.  Marginals of the whole are those of the slices, mixed by their sums.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clampz.errors import TooWideError
from clampz.exact_inference.lanes import ExactOptions, ExactState, exact_estimates, not_reached, run_exact
from clampz.exact_inference.scopes import NO_LIMIT
from clampz.exact_inference.slicing import Slicing
from clampz.exact_inference.sums import lay_out_lanes
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.results import Estimates
from clampz.numerics import Floats, Integers, log_sum_exp, summing_error
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.workers import Crew, Job, finished

# Seconds between two looks at the workers.
PATIENCE = 0.05


class Mixture(NamedTuple):
    """Marginals of several sums, each as heavy as its sum: exp(`log_weight`) is the weight of all, and `unary` and
    `tables` have the marginals of variables, and of edges and larger factors, for a weight of 1."""

    log_weight: float
    unary: Floats
    tables: Floats

    @classmethod
    def of(cls, log_weight: Floats, unary: Floats, tables: Floats) -> "Mixture":
        """Mix sums whose marginals are the columns (S, B) and rows (B, T)."""
        total = log_sum_exp(log_weight)
        share = np.exp(log_weight - total)
        return cls(total, unary @ share, share @ tables)

    def join(self, other: "Mixture") -> "Mixture":
        """Join two mixtures."""
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

    def __init__(self, model: Model, unary: Floats, plan: Slicing, *, marginals: bool = False) -> None:
        self.model, self.unary, self.plan, self.marginals = model, unary, plan, marginals
        start = model.unary.start
        self.states = [np.flatnonzero(unary[start[i] : start[i + 1]] > -np.inf) for i in plan.fixed]
        impossible = not states_left(unary > -np.inf, start).all()
        num_slices = 0 if impossible else math.prod(len(left) for left in self.states)
        self.lower, self.upper = np.full(num_slices, -np.inf), np.full(num_slices, np.inf)
        self.waiting = np.arange(num_slices)
        self.is_done = np.zeros(num_slices, dtype=np.bool_)
        self.mixture: Mixture | None = None
        self.laid_out = plan.laid_out

    @property
    def complete(self) -> bool:
        """Whether all of them are summed, or have nothing to sum."""
        return bool((self.is_done | (self.upper == -np.inf)).all())

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of log Z of the whole: apart by rounding only where all slices are done."""
        lower, upper = log_sum_exp(self.lower), log_sum_exp(self.upper)
        num_slices = len(self.lower)
        return lower - summing_error(num_slices, lower), upper + summing_error(num_slices, upper)

    def begin(self, budget: Budget | None = None) -> None:
        """Lay out the tree that all slices share, once rather than wherever some are summed.

        Cancelled where the budget ends first, TooWideError where it takes more memory than was thought.
        """
        if self.laid_out is None and len(self.lower):
            self.laid_out = _laid_out(Batch(self.model, self.lanes(np.arange(1))), self.plan, self.marginals, budget)

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

    def work(self, some: Integers) -> tuple[Model, Floats, Slicing, SumTree | None, Integers, bool]:
        """What `sum_slices` has to know about some of them."""
        return self.model, self.lanes(some), self.plan, self.laid_out, some, self.marginals

    def take(self, found: SliceSums) -> None:
        """Take in what was summed."""
        self.bound(found.slices, found.lower, found.upper)
        self.is_done[found.slices] = True
        if found.mixture is not None:
            self.mixture = found.mixture if self.mixture is None else self.mixture.join(found.mixture)

    def bound(self, some: Integers, lower: Floats, upper: Floats) -> None:
        """Take bounds on some of them; those that wait go in the order of their upper bounds, likeliest first."""
        self.lower[some], self.upper[some] = np.maximum(self.lower[some], lower), np.minimum(self.upper[some], upper)
        self.waiting = self.waiting[np.argsort(-self.upper[self.waiting], kind="stable")]


def _laid_out(batch: Batch, plan: Slicing, marginals: bool, budget: Budget | None) -> SumTree:
    """Lay out the tree that the slices of a sum share, of which this is one; raises what `lay_out_lanes` does."""
    memory = int(min(plan.memory, NO_LIMIT))
    return lay_out_lanes(
        batch,
        memory,
        marginals=marginals,
        order=plan.order,
        tree=plan.tree,
        num_sums=plan.num_sums,
        fixed=plan.fixed,
        budget=budget,
    )


def sum_slices(
    model: Model,
    lanes: Floats,
    plan: Slicing,
    how: SumTree | None,
    some: Integers,
    marginals: bool,
    budget: Budget | None = None,
) -> SliceSums:
    """Sum some slices, those lanes (S, B), as far as the budget allows: here, or on another machine."""
    batch = Batch(model, lanes)
    try:
        how = how or _laid_out(batch, plan, marginals, budget)
    except (Cancelled, TooWideError):
        return SliceSums(some[:0], np.empty(0), np.empty(0), None)
    found = run_exact(batch, ExactOptions(marginals=marginals, threads=1), budget, how)
    done, mixture = np.flatnonzero(found.converged), None
    possible = done[found.log_z[done] > -np.inf]
    if marginals and possible.size:
        state = found.state
        assert isinstance(state, ExactState)
        tables = np.stack([state.both(int(lane)) for lane in possible])
        mixture = Mixture.of(found.log_z[possible], found.marginals_flat[:, possible], tables)
    return SliceSums(some[done], found.lower[done], found.upper[done], mixture)


def sum_lane(model: Model, unary: Floats, plan: Slicing, budget: Budget | None = None) -> tuple[float, float]:
    """Lower and upper end of log Z of a lane (S,): apart by rounding only, unless the budget ended before all of it
    was summed; then the lower one has what was, and the upper one is inf."""
    slices = Slices(model, unary, plan)
    try:
        slices.begin(budget)
    except (Cancelled, TooWideError):
        return -math.inf, math.inf
    while (some := slices.next()).size:
        slices.take(sum_slices(*slices.work(some), budget))
        if budget is not None and slices.waiting.size and budget.must_stop():
            break
    return slices.ends


def run_slices(slices: Slices, crew: Crew, budget: Budget) -> Iterator[tuple[float, float]]:
    """Have a crew sum the slices, as far as the budget allows; yields the ends of log Z of the whole whenever they have
    changed."""
    pending: set[Job[SliceSums]] = set()
    while True:
        while len(pending) < crew.num_at_once and not budget.must_stop():
            some = slices.next()
            if not some.size:
                break
            pending.add(crew.submit(sum_slices, *slices.work(some), local_args=(budget,)))
        if not pending or budget.is_cancelled():
            return
        for job in finished(pending, PATIENCE):
            pending.remove(job)
            slices.take(job.result())
            yield slices.ends


def sum_in_slices(model: Model, plan: Slicing, options: ExactOptions, budget: Budget) -> Estimates:
    """What `exact` finds of a model, by slices on all threads: all or nothing."""
    batch = Batch.of(model)
    slices = Slices(model, model.unary.flat, plan, marginals=options.marginals)
    try:
        slices.begin(budget)
    except (Cancelled, TooWideError):
        return not_reached(batch, options, budget)
    if not plan.fixed:
        return run_exact(batch, options, budget, slices.laid_out)
    with budget.interruptible(), Crew(None, min(options.num_threads, plan.num_workers)) as crew:
        for lower, upper in run_slices(slices, crew, budget.share()):
            off, done = upper - lower if lower < upper else 0.0, int(np.count_nonzero(slices.is_done))
            budget.report("exact", 1, residual=off, log_z=lower, num_lanes=len(slices.lower), num_finished=done)
    if not slices.complete:
        return not_reached(batch, options, budget)
    lower, upper = slices.ends
    num_pairs, num_tables = len(model.pairwise.flat), len(model.pairwise.flat) + len(model.factors.flat)
    mixture = slices.mixture or Mixture(-math.inf, np.full(len(batch.unary), np.nan), np.full(num_tables, np.nan))
    # apart by rounding only, unless there is nothing to sum
    log_z = lower if lower == upper else lower + (upper - lower) / 2
    error = 0.0 if lower == upper else max(upper - log_z, log_z - lower)
    tables = mixture.tables[None] if options.marginals else None
    state = ExactState(tables, None, num_pairs)
    ends = np.array([log_z]), np.array([error])
    return exact_estimates(batch, options, budget, *ends, mixture.unary[:, None], state)
