"""Branch and bound on log Z, best first: leaves are refined, clamped or summed where the root's gap comes from."""

import math
from collections.abc import Generator, Iterator
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Any

from clampz.approximations.mean_field import mean_field
from clampz.bounding.bracket import Bracket, BracketStop, ContradictionError, Point, PointEstimate
from clampz.bounding.leaves.evaluate import FINISH_SECONDS, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import WarmStart
from clampz.bounding.options import CUTS, WHOLE_MEMORY, BoundOptions
from clampz.bounding.strategies.conditioning_rounds import ConditioningRounds
from clampz.bounding.strategies.draws import Estimator
from clampz.bounding.strategies.exact_sum import WholeWork
from clampz.bounding.strategies.initial_bounds import (
    NO_MEMORY_FOR_BETHE,
    InitialBounds,
    bethe_estimate,
    initial_bounds,
    start_count,
    start_plan,
    wait_for_count,
)
from clampz.bounding.strategies.methods import begin_methods
from clampz.bounding.strategies.successive_halving import SuccessiveHalving, may_begin
from clampz.bounding.strategies.trivial_bounds import trivial_bounds
from clampz.bounding.tree.branching import choose_branching
from clampz.bounding.tree.frontier import Expand, Frontier, Refine, check_room
from clampz.bounding.tree.jobs import DRAWS, SETS, Asked, Jobs
from clampz.clamping.selectors.scoring import check_defined
from clampz.errors import TooWideError
from clampz.exact_inference.plans import ExactPlan, plan_in_a_moment
from clampz.exact_inference.running import PLANNING_SHARE, sum_ends
from clampz.model import Model
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import Counted
from clampz.presolve.simplify import simplify_once
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.rates import ELAPSED
from clampz.runtime.workers import Crew, Job, finished

# The share of an exact sum's expected time that quick bounds may take while it waits for them.
SUM_SHARE = 1 / 8
# Seconds in which jobs that are stopped may hand in what they have.
LAST_CALL = 0.1
# Nats: a bracket as narrow needs no draws at its end.
WORTH_DRAWING = 1e-2


class BranchAndBound:
    """A search for the log Z of a model, between two brackets.

    Attributes
    ----------
    rest, error
        The reduced model that presolve leaves of the user's, and what its log Z may be off by.
    frontier
        The tree over that model; its root's ends are the best known.
    estimate
        Bethe's value or a count, for brackets that draws have no better one for.
    """

    budget: Budget

    def __init__(self, model: Model, options: BoundOptions, *, simplified: bool = False) -> None:
        self.user_model, self.options = model, options
        self.whole = WholeWork()
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.estimate = PointEstimate(None, "Bethe was not run.")
        self._counting: Job[Counted] | None = None
        self._work_on(model, 0.0)
        if simplified:
            self._simplify(None)

    def _work_on(self, rest: Model, error: float) -> None:
        """Begin a tree over a reduced model."""
        self.rest, self.error = rest, error
        self.frontier = Frontier(rest, self.options)
        self._estimator = Estimator(rest, self.options, error)
        self._rounds = ConditioningRounds(rest, self.options)

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do."""
        return self.frontier.root.closed

    @property
    def simplified(self) -> bool:
        return self.rest is not self.user_model

    @property
    def _halving(self) -> SuccessiveHalving | None:
        """The whole model's mini-buckets, if it is bounded as one."""
        root = self.frontier.root
        return root.submodel.halving if root.submodel.halving.state is not None or not root.children else None

    def _simplify(self, budget: Budget | None) -> None:
        """Work on the reduced model; on the user's where time or memory do not suffice for all of presolve.

        A search that is resumed reduces the model again, without limits.
        """
        memory = None if budget is None else self.options.num_bytes
        model, root = self.user_model, self.frontier.root
        found = simplify_once(model, marginals=False, pairwise=not model.factors, memory=memory, budget=budget)
        if found.is_complete:
            self._work_on(found.model, found.error)
            self._tighten(root.lower - found.error, root.upper + found.error)

    def run(self, crew: Crew, budget: Budget) -> Generator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        check_room(self.user_model, self.options.num_bytes)
        self.budget = budget.share()
        pending = Jobs(self.options.in_order)
        if self.trace:  # resumed
            self._check_selector()
            self._tighten(self.trace[-1].lower - self.error, self.trace[-1].upper + self.error)
            if self._reason() is None:
                self._ask_bethe(math.inf, self.options.num_bytes)
            yield self._bracket("left")
        else:
            yield from self._begin(crew)
        frontier, last, over = self.frontier, self._news(), None
        while (reason := self._reason()) is None:
            self._begin_beside(pending, crew)
            over = "leaves" if over == "leaves" else self._branch(pending, crew)
            if over is not None and pending.has_only_draws:
                reason = over
                break
            for job in pending.to_take():
                done = pending.pop(job)
                frontier.promised -= done.num_more
                self._take(done, job.result(), crew)
            if self._news() != last:
                last = self._news()
                yield self._bracket("left")
        lower, upper = self._ends()
        if reason in ("gap", "leaves", "memory") and upper - lower > WORTH_DRAWING:
            self._draw_last(pending, crew)
        self.budget.end()
        for left in pending.withdraw():
            frontier.push(left.node)
        last_call = Budget(LAST_CALL if reason in ("time", "interrupt") else 0.0)
        while pending and not last_call.must_stop():
            for job in finished(pending, LAST_CALL / 4):
                self._take(pending.pop(job), job.result(), crew)
        frontier.promised = 0
        yield self._bracket(reason)

    def _begin_beside(self, pending: Jobs, crew: Crew) -> None:
        """Begin what is due on the model as a whole."""
        while (begun := self.whole.next(crew, pending.num_busy)) is not None:
            pending.add(*begun)
        if (drawing := self._estimator.next(self._halving, crew, self.budget)) is not None:
            pending.add(drawing, DRAWS)
        ends, summing = (self.frontier.root.lower, self.frontier.root.upper), self.whole.is_summing
        sums = self._rounds.next(self._halving, ends, crew, self.budget, whole_is_summed=summing)
        if sums is not None:
            pending.add(sums, SETS)

    def _branch(self, pending: Jobs, crew: Crew) -> BracketStop | None:
        """Give workers leaves to work on, as long as they have room; returns why there are no more leaves."""
        frontier = self.frontier
        while pending.has_room(crew):
            asked = choose_branching(frontier, self.budget, crew.num_threads)
            if asked is None:
                return "memory" if frontier.pruned else "exact"
            more = frontier.num_leaves + frontier.promised + asked.num_more
            if asked.num_more and more > (self.options.leaves or math.inf):
                frontier.push(asked.node)
                return "leaves"
            pending.add(crew.submit(solve_leaves, asked.work, local_args=(self.budget,)), asked)
            frontier.promised += asked.num_more
        return None

    def _draw_last(self, pending: Jobs, crew: Crew) -> None:
        """Take the draws that are under way, or else make a few."""
        running = pending.draws
        job = running or self._estimator.last(self._halving, crew, self.budget)
        if job is not None and job.is_done_within(self.budget):
            if running is not None:
                pending.pop(running)
            self._estimator.take(job.result())

    def _take(self, asked: Asked, found: Any, crew: Crew) -> None:
        """Take what came of a job; a leaf, a plan or sums that come once all is closed are not needed."""
        if isinstance(asked, Refine | Expand):
            if not self.closed:
                self.frontier.take(asked, found)
        elif asked.by == "count":
            self._take_count(found)
        elif asked.by == "draws":
            self._estimator.take(found)
        elif asked.by == "sets":
            if not self.closed:
                root = self.frontier.root
                self._rounds.take(found, (root.lower, root.upper), crew, self.budget)
                self._tighten(*found, close=self._rounds.complete)
        elif asked.by == "plan":
            if found is not None and not self.closed:
                with suppress(Cancelled, TooWideError):
                    self.whole.add_sum(found, self.options, crew, self.budget)
        else:
            ends = self.whole.take(asked, found)
            self._tighten(*ends, close=self.whole.summed)

    def _take_count(self, found: Counted) -> None:
        """Take a count: as log Z where it is proven, and otherwise as the estimate, whatever Bethe says."""
        if found.log_z is None:
            if self.estimate.value is None:
                self.estimate = PointEstimate(None, f"{self.estimate.why_none} There is no count: {found.why_none}.")
        elif found.is_proven:
            self._tighten(found.log_z - found.error, found.log_z + found.error, close=True)
        else:
            self._tighten(found.lower, math.inf)
            self.estimate = PointEstimate(found.log_z, by="counting")

    def _tighten(self, lower: float, upper: float, *, close: bool = False) -> None:
        """Take ends of log Z of the reduced model, after which nothing may be left to do."""
        root = self.frontier.root
        root.tighten(lower, upper)
        if close:
            self.frontier.close(root.lower, root.upper)

    def _ends(self) -> tuple[float, float]:
        """The best ends of log Z of the user's model so far."""
        return self.frontier.root.lower - self.error, self.frontier.root.upper + self.error

    def _news(self) -> tuple[float, float, int]:
        """What somebody who looks on wants to see: both ends, and how far the draws are."""
        return *self._ends(), self._estimator.num_doublings

    def _reason(self) -> BracketStop | None:
        lower, upper = self._ends()
        if self.closed:
            return "exact"
        if lower == upper or upper - lower <= self.options.gap:
            return "gap"
        if self.budget.must_stop():
            return "interrupt" if self.budget.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self.frontier.num_leaves >= self.options.leaves:
            return "leaves"
        return None

    def _check_selector(self) -> None:
        if self.options.select != CUTS:
            check_defined(self.rest, self.options.select)

    def _begin(self, crew: Crew) -> Iterator[Bracket]:
        """Sum the model where that takes a moment; else bound it quickly and begin what takes longer."""
        options, budget = self.options, self.budget
        began, worked = perf_counter(), thread_time()
        self._tighten(*trivial_bounds(self.user_model))
        ELAPSED.learn(thread_time() - worked, perf_counter() - began)
        slowed = 1.0 if math.isinf(options.time) else ELAPSED.learned
        planned = self._plan_of_whole(crew) if options.exact and options.time > 0 else None
        if self.closed:
            return
        whole = None
        if planned is not None and planned.done():
            whole = planned.result()
            if whole is not None and whole.seconds <= FINISH_SECONDS and self._sum_at_once(whole):
                return
        self._check_selector()
        quick = self._quick_bounds(math.inf if whole is None else SUM_SHARE * whole.duration(), planned)
        yield self._bracket("left")
        if planned is not None:
            self.whole.add(lambda: planned, "plan")
        if not budget.must_stop():  # what is asked of the model next takes a while on a large one
            self._begin_count(crew, math.inf if whole is None else whole.duration())
            if (counting := self._counting) is not None:
                self.whole.add(lambda: wait_for_count(counting, self.rest, budget), "count")
            options = self._give_memory_to_workers(planned)
            known = self.frontier.root.lower > -math.inf
            begin_methods(self.whole, self.rest, options, quick, crew, budget, slowed=slowed, known=known)
        self.frontier.push(self.frontier.root)

    def _give_memory_to_workers(self, planned: Job[ExactPlan | None] | None) -> BoundOptions:
        """Return the options of the tree: workers have the memory of an exact sum that is not made.

        A plan of that sum is waited for where workers could not begin without its memory.
        """
        frontier = self.frontier
        if not frontier.options.in_order:
            more, ever = self.options.without_whole(), math.inf
            if planned is not None and may_begin(self.rest, more, ever) > may_begin(self.rest, self.options, ever):
                planned.is_done_within(self.budget.share(PLANNING_SHARE))
            if planned is None or (planned.done() and planned.result() is None):
                frontier.options = more
        return frontier.options

    def _plan_of_whole(self, crew: Crew) -> Job[ExactPlan | None] | None:
        """Plan an exact sum of the model, reduced by presolve; one of a moment is done instead."""
        budget, memory = self.budget, WHOLE_MEMORY * self.options.num_bytes
        quick = plan_in_a_moment(self.user_model, FINISH_SECONDS, memory, budget.share(PLANNING_SHARE))
        if quick is not None and self._sum_at_once(quick):
            return None
        self._simplify(budget.share(PLANNING_SHARE))
        self._begin_count(crew, math.inf, first=True)
        return start_plan(self.user_model, self.rest, self.error, self.options, crew, budget)

    def _begin_count(self, crew: Crew, seconds: float, *, first: bool = False) -> None:
        """Begin a count where it may beat a sum of this many seconds, or before any sum is planned if `first`."""
        may = self._counting is None and self.options.exact and not self.budget.must_stop()
        if may and worth_counting(self.rest, seconds, first=first):
            self._counting = start_count(self.rest, self.options, crew, self.budget)

    def _sum_at_once(self, whole: ExactPlan) -> bool:
        """Run a sum and take its ends; whether it came to its end."""
        ends = sum_ends(whole, WHOLE_MEMORY * self.options.num_bytes, self.budget)
        if ends[1] < math.inf:
            self._tighten(*ends, close=True)
            return True
        self._tighten(*ends)
        return False

    def _quick_bounds(self, most: float, planned: Job[ExactPlan | None] | None) -> InitialBounds | None:
        """Run mean field, TRW and Bethe for a moment each, at most `most` seconds, in the memory an exact sum leaves.

        A plan of that sum is waited for where the rest of the memory is too little.
        """
        root, num_bytes = self.frontier.root, float(self.options.num_bytes)
        beside = (1.0 - WHOLE_MEMORY) * num_bytes
        if planned is not None:
            if not mean_field.fits(self.rest, beside) and mean_field.fits(self.rest, num_bytes):
                planned.is_done_within(self.budget.share(PLANNING_SHARE))
            num_bytes = num_bytes if planned.done() and planned.result() is None else beside
        found = initial_bounds(self.rest, self.options, self.budget, most, num_bytes)
        if found is not None:
            self._tighten(found.lower, found.upper)
            root.state = WarmStart.at(found.beliefs)
            self._ask_bethe(most, num_bytes)
        elif not mean_field.fits(self.rest, num_bytes):
            self.estimate = PointEstimate(None, NO_MEMORY_FOR_BETHE)
        return found

    def _ask_bethe(self, most: float, num_bytes: float) -> None:
        """Take Bethe's estimate, and its lower bound where the model is balanced, within these seconds and bytes."""
        self.estimate, lower = bethe_estimate(self.rest, self.options, self.budget, most, num_bytes)
        self._tighten(lower, math.inf)

    def _bracket(self, reason: BracketStop) -> Bracket:
        """Return the bracket at this moment, within all before, and add it to the trace."""
        lower, upper = self._ends()
        if lower > upper:
            raise ContradictionError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it "
                "with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        seconds, num_leaves = self.seconds_before + self.budget.seconds, self.frontier.num_leaves
        self.trace.append(Point(seconds, lower, upper, num_leaves))
        found = self.estimate
        if found.by != "counting":
            found = self._estimator.estimate(lower, upper) or found
        found = found.within(lower, upper, closed=reason == "exact")
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=found.value,
            estimate_by=found.by,
            why_no_estimate=found.why_none,
            standard_error=found.standard_error,
            sampled=tuple(self._estimator.sampled),
            trace=tuple(self.trace),
            stopped_by=reason,
            num_leaves=num_leaves,
            seconds=seconds,
        )
