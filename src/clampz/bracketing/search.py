"""Best-first search for a bracket: leaves are refined, expanded or summed exactly where the root's gap comes from,
several at a time."""

import math
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from clampz.approximations.accuracy import BETHE_TOL
from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bracketing.bracket import Bracket, BracketStop, Guess, Point
from clampz.bracketing.frontier import Expand, Frontier, Refine
from clampz.bracketing.leaves import FINISH_SECONDS, MOST_EDGES, by_mean_field, by_trees, solve_leaves
from clampz.bracketing.narrow import NarrowState
from clampz.bracketing.next_work import next_work
from clampz.bracketing.options import CUTS, WHOLE_MEMORY, BoundOptions
from clampz.bracketing.sight import sight_ends
from clampz.bracketing.whole import WHOLE_TIME, WHOLE_TIME_ALONE, Whole, WholeWork
from clampz.clamping.branches import clamps_that_fit
from clampz.clamping.call import clamp_on
from clampz.clamping.selectors.registry import check_defined
from clampz.elimination.slice_plans import SlicedPlan, Slicer
from clampz.elimination.slices import Slices, sum_lane
from clampz.errors import OptionError, TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.equivalent import Equivalent, pairwise_model
from clampz.numerics import Floats
from clampz.signature import is_small
from clampz.watch import Overdue, Watch
from clampz.workers import Crew, Job, finished

# Share of the time that looking for the order of the whole may take.
PLANNING_SHARE = 0.2
# Time beyond which the order of that is looked for thoroughly, in seconds.
THOROUGH_SECONDS = 2.0
# The share of the time that mean field and TRW may each take at the start, on small models and on those whose first
# sweeps take long; and seconds that they have in any case, and at the most: who looks on wants to see something.
QUICK_SHARE, LARGE_SHARE, QUICK_SECONDS, LONGEST_QUICK = 1 / 8, 0.15, 0.01, 1.0
# And of the time that the sum of the whole is expected to take, where that waits for them.
SUM_SHARE = 1 / 8
# The share that they have to settle, where narrow parts can do better than they, and where nothing can.
LONG_SHARE, LONGEST_SHARE = 1 / 4, 0.95
# Variables that Bethe's estimate is clamped at, the branches they may make, and the seconds and the share of the time
# that it may take.
MOST_BETHE_CLAMPS, MOST_BETHE_BRANCHES, BETHE_SECONDS, BETHE_SHARE = 3, 64.0, 2.0, 0.05
BETHE_SELECT = "maxW+TRE"
# Seconds after which a limit is noticed while workers are busy, and in which methods on the whole that are stopped say
# what they have.
PATIENCE, LAST_CALL = 0.05, 0.1


class ContradictionError(RuntimeError):
    """Bounds that cannot both hold."""


Asked = Refine | Expand | Whole


class Search:
    """A search under way.

    Attributes
    ----------
    lower, upper
        Of the user's model, by what was done about the whole of it.
    slack
        What the pairwise equivalent of the user's model may be off by.
    """

    watch: Watch

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.user_model = model
        self.options = options
        self.model, self.slack = pairwise_model(model)
        if options.select != CUTS:
            check_defined(self.model, options.select)
        needed = bytes_needed(self.model)
        if options.num_bytes < needed:
            raise OptionError(
                f"memory: expected at least {needed:,} bytes for a model of this size, found {options.num_bytes:,}"
            )
        self.frontier = Frontier(self.model, options)
        self.whole = WholeWork()
        self.lower, self.upper = -math.inf, math.inf
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.guess = Guess(None, "Bethe was not run.")

    def run(self, crew: Crew, watch: Watch) -> Generator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        self.watch = watch.share()
        frontier = self.frontier
        pending: dict[Job[Any], Asked] = {}
        if self.trace:  # resumed
            self._learn(self.trace[-1].lower, self.trace[-1].upper)
            if self._reason() is None:
                self.guess = self._estimate()
            yield self._bracket("left")
        else:
            yield from self._begin(crew)
        last = self._ends()
        full = False
        while (reason := self._reason()) is None:
            while (begun := self.whole.next(crew, len(pending))) is not None:
                pending[begun[0]] = begun[1]
            while len(pending) < crew.num_at_once and not full:
                asked = next_work(frontier, self.watch, crew.num_threads)
                if asked is None:
                    break
                more = frontier.num_leaves + frontier.promised + asked.num_more
                if asked.num_more and more > (self.options.leaves or math.inf):
                    frontier.push(asked.node)
                    full = True
                    break
                pending[crew.submit(solve_leaves, asked.work, here=(self.watch,))] = asked
                frontier.promised += asked.num_more
            if not pending:
                reason = "leaves" if full else "memory" if frontier.pruned else "exact"
                break
            for job in finished(pending, PATIENCE):
                done = pending.pop(job)
                frontier.promised -= done.num_more
                self._take(done, job.result())
            if self._ends() != last:
                last = self._ends()
                yield self._bracket("left")
        self.watch.end()
        for job, left in list(pending.items()):
            if not isinstance(left, Whole):
                frontier.push(left.node)
            if job.future.cancel() or not isinstance(left, Whole):
                del pending[job]
        last_call = Watch(LAST_CALL if reason in ("time", "interrupt") else 0.0)
        while pending and not last_call.must_stop():
            for job in finished(pending, LAST_CALL / 4):
                self._take(pending.pop(job), job.result())
        frontier.promised = 0
        yield self._bracket(reason)

    def _take(self, asked: Asked, found: Any) -> None:
        """Take what came of work; where nothing is left to do, what comes late is not needed."""
        if not isinstance(asked, Whole):
            if not self.frontier.root.settled:
                self.frontier.take(asked, found)
            return
        ends = self.whole.take(asked, found)
        if self.whole.summed:
            self._settle(*ends)
        else:
            self._learn(*ends)

    def _learn(self, lower: float, upper: float) -> None:
        """Ends of log Z of the user's model."""
        self.lower, self.upper = max(self.lower, lower), min(self.upper, upper)
        self.frontier.root.tighten(lower - self.slack, upper + self.slack)

    def _settle(self, lower: float, upper: float) -> None:
        """Nothing is left to do: these are the ends."""
        self._learn(lower, upper)
        self.frontier.settle(self.frontier.root.lower, self.frontier.root.upper)

    def _ends(self) -> tuple[float, float]:
        """Of log Z of the user's model, the best so far."""
        root = self.frontier.root
        return max(self.lower, root.lower - self.slack), min(self.upper, root.upper + self.slack)

    def _reason(self) -> BracketStop | None:
        lower, upper = self._ends()
        if self.frontier.root.settled:
            return "exact"
        if lower == upper or upper - lower <= self.options.gap:
            return "gap"
        if self.watch.must_stop():
            return "interrupt" if self.watch.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self.frontier.num_leaves >= self.options.leaves:
            return "leaves"
        return None

    def _begin(self, crew: Crew) -> Iterator[Bracket]:
        """Bounds on the whole, quickly, and what takes longer begun: the sum of all of it, where that fits in the time
        and memory given, and methods that have more to gain.  A sum of a moment is all that is done."""
        options, watch = self.options, self.watch
        self._learn(*sight_ends(self.user_model))
        alone = crew.num_threads == 1
        plan = self._plan_of_whole(crew.num_threads) if options.exact and options.time > 0 else None
        if plan is not None and plan.seconds <= FINISH_SECONDS:
            ends = sum_lane(self.user_model, self.user_model.unary.flat, plan, watch)
            if ends[1] < math.inf:
                self._settle(*ends)
                return
            self._learn(*ends)
        marginals, settled = self._quick_bounds(math.inf if plan is None else SUM_SHARE * plan.duration)
        yield self._bracket("left")
        if plan is not None and plan.seconds > FINISH_SECONDS:
            slices = Slices(self.user_model, self.user_model.unary.flat, plan)
            with suppress(Overdue, TooWideError):
                if plan.fixed:  # a single sum is laid out by who does it
                    slices.begin(watch)
                self.whole.add_slices(slices, options, crew, watch)
        # beyond the edges that narrow parts are made of, nothing is better than the methods themselves
        longest = LONG_SHARE if self.model.num_edges <= MOST_EDGES else LONGEST_SHARE
        half = 0.5 if alone and longest == LONGEST_SHARE else 1.0
        if not settled:
            start = None if np.isnan(marginals).any() else marginals
            self.whole.add_method(
                lambda: crew.submit(
                    by_mean_field, self.user_model, start, options, watch.left(half * longest), here=(watch,)
                )
            )
        if not watch.must_stop():
            self.whole.add_method(
                lambda: crew.submit(by_trees, self.user_model, options, watch.left(longest), here=(watch,))
            )
        self.frontier.push(self.frontier.root)

    def _plan_of_whole(self, num_threads: int) -> SlicedPlan | None:
        """How to sum all of the model, if that may be done."""
        same = self.user_model is self.model
        slicer = self.frontier.root.submodel.slicer if same else Slicer(self.user_model)
        return slicer.plan(
            self.user_model.unary.flat,
            self.watch.left(WHOLE_TIME_ALONE if num_threads == 1 else WHOLE_TIME),
            WHOLE_MEMORY * self.options.num_bytes,
            thorough=self.watch.left() > THOROUGH_SECONDS,
            num_workers=num_threads,
            watch=self.watch.share(PLANNING_SHARE),
        )

    def _quick_bounds(self, most: float) -> tuple[Floats, bool]:
        """Mean field and TRW, for a moment each, so many seconds at most, and Bethe's estimate; returns mean field's
        marginals and whether it has settled."""
        model, options, root = self.user_model, self.options, self.frontier.root
        if self.watch.must_stop() and not is_small(model):
            return np.full(len(model.unary.flat), np.nan), True  # not even for the first sweeps is there time
        batch = Batch.of(model)
        share = QUICK_SHARE if is_small(model) else LARGE_SHARE

        def limits(**more: Any) -> dict[str, Any]:
            seconds = max(QUICK_SECONDS, min(self.watch.left(share), LONGEST_QUICK, most))
            return {"max_iter": options.max_iter, "threads": options.threads, "time": seconds, **more}

        fields = mean_field.solve(batch, mean_field.options(None, limits(seed=options.seed)), within=self.watch)
        trees = trw.solve(batch, trw.options(None, limits()), within=self.watch)
        self._learn(float(fields.lower[0]), float(trees.upper[0]))
        both = [fields.marginals_flat, trees.marginals_flat]
        if model.factors:
            both = [Equivalent.of(model).marginals(np.nan_to_num(flat, nan=0.5)) for flat in both]
        root.state = NarrowState.at(both[0][:, 0], both[1][:, 0])
        self.guess = self._estimate(most)
        return fields.marginals_flat[:, 0], bool(fields.converged[0])

    def _estimate(self, most: float = BETHE_SECONDS) -> Guess:
        """Bethe's value with a few variables clamped, if it settles in a small share of the time."""
        seconds = min(BETHE_SECONDS, self.watch.left(BETHE_SHARE), most)
        if not seconds:
            return Guess(None, "There was no time for Bethe.")
        largest = np.sort(self.user_model.num_states)[::-1]
        most = int(np.count_nonzero(np.cumprod(largest[:MOST_BETHE_CLAMPS].astype(np.float64)) <= MOST_BETHE_BRANCHES))
        most = clamps_that_fit(self.user_model, most, limit=self.options.num_bytes)
        if most < 0:
            return Guess(None, "There was not memory enough for Bethe.")
        limits: dict[str, Any] = {"time": seconds, "tol": BETHE_TOL, "threads": self.options.threads}
        first = bethe.solve(Batch.of(self.user_model), bethe.options(None, limits), within=self.watch)[0]
        found = clamp_on(first, k=most, select=BETHE_SELECT, within=self.watch, **limits)
        if found.bound == "lower":  # where the model is attractive or balanced
            self._learn(found.lower, math.inf)
        settled = [step.log_z for step in found.steps if step.converged]
        return Guess(settled[-1]) if settled else Guess(None, "Bethe did not settle in its share of the time.")

    def _bracket(self, reason: BracketStop) -> Bracket:
        num_leaves = self.frontier.num_leaves
        seconds = self.seconds_before + self.watch.seconds
        lower, upper = self._ends()
        if lower > upper:
            raise ContradictionError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it "
                "with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        self.trace.append(Point(seconds, lower, upper, num_leaves))
        estimate = self.guess.within(lower, upper, closed=reason == "exact")
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=estimate.value,
            why_no_estimate=estimate.why_none,
            trace=tuple(self.trace),
            stopped_by=reason,
            num_leaves=num_leaves,
            seconds=seconds,
        )


def bytes_needed(model: Model) -> int:
    """The least memory that a search over a pairwise model takes."""
    return 40 * (len(model.unary.flat) + len(model.pairwise.flat))
