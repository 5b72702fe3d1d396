"""Best-first search for a bracket: leaves are refined, expanded or summed exactly where the root's gap comes from,
several at a time."""

import math
from collections.abc import Generator, Iterator
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.bounding.bracket import Bracket, BracketStop, ContradictionError, Point, PointEstimate
from clampz.bounding.leaves.evaluate import FINISH_SECONDS, run_both, run_mean_field, run_mode, run_trw, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import WarmStart
from clampz.bounding.options import CUTS, WHOLE_MEMORY, BoundOptions
from clampz.bounding.strategies.conditioning_rounds import ConditioningRounds
from clampz.bounding.strategies.draws import Estimator
from clampz.bounding.strategies.exact_sum import WholeWork
from clampz.bounding.strategies.initial_bounds import (
    MANY_EDGES,
    NO_MEMORY_FOR_BETHE,
    PATIENCE,
    PLANNING_SHARE,
    InitialBounds,
    bethe_estimate,
    bethe_leads,
    initial_bounds,
    start_count,
    start_plan,
    wait_for,
    wait_for_count,
)
from clampz.bounding.strategies.successive_halving import SuccessiveHalving, may_begin
from clampz.bounding.strategies.trivial_bounds import trivial_bounds
from clampz.bounding.tree.branching import choose_branching
from clampz.bounding.tree.frontier import Expand, Frontier, Refine, check_room
from clampz.bounding.tree.jobs import DRAWS, SETS, Asked, Jobs
from clampz.clamping.selectors.scoring import check_defined
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import Counted
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.rates import ELAPSED
from clampz.runtime.workers import Crew, Job, finished
from clampz.summing.whole import WholeSum, quick_sum

# The share of the time that the sum of the whole is expected to take which quick bounds may take, where it waits for
# them.
SUM_SHARE = 1 / 8
# The share that mean field and TRW have to settle, where regions can do better than they, and where these cannot be
# begun.
LONG_SHARE, LONGEST_SHARE = 0.1, 0.95
# The share in which the best configuration is looked for where none that is possible is known yet; and seconds that it
# has at most where one is.
POSSIBLE_SHARE, BEST_SECONDS = 0.4, 1.0
# Seconds for each edge that the last look of such a method takes, about: it comes after its time.
LOOK_SECONDS = 2.5e-7
# Seconds in which methods on the whole that are stopped say what they have.
LAST_CALL = 0.1
# Nats: a bracket as narrow needs no draws at its end.
WORTH_DRAWING = 1e-2


class BranchAndBound:
    """A search under way.

    Attributes
    ----------
    rest, error
        What simplifying leaves of the user's model, and what its log Z may be off by.
    lower, upper
        Of the rest, by what was done about the whole of it.
    """

    budget: Budget

    def __init__(self, model: Model, options: BoundOptions, *, simplified: bool = False) -> None:
        self.user_model = self.rest = model
        self.options = options
        self.error = 0.0
        self.whole = WholeWork()
        self.lower, self.upper = -math.inf, math.inf
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.guess = PointEstimate(None, "Bethe was not run.")
        self._summed = False
        self._counting: Job[Counted] | None = None
        self._estimator: Estimator | None = None
        self._sets: ConditioningRounds | None = None
        self._frontier: Frontier | None = None
        if simplified:
            self._simplify(None)

    @property
    def frontier(self) -> Frontier:
        """The tree: made when it is first needed, for many models never need one."""
        if self._frontier is None:
            if self.options.select != CUTS:
                check_defined(self.rest, self.options.select)
            self._frontier = Frontier(self.rest, self.options)
            self._frontier.root.tighten(self.lower, self.upper)
            if self._summed:
                self._frontier.settle(self._frontier.root.lower, self._frontier.root.upper)
        return self._frontier

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        return self._summed or (self._frontier is not None and self._frontier.root.settled)

    @property
    def _num_leaves(self) -> int:
        return 1 if self._frontier is None else self._frontier.num_leaves

    @property
    def _ladder(self) -> SuccessiveHalving | None:
        """Of the model as a whole, if that is bounded as one."""
        root = self.frontier.root
        return root.submodel.ladder if root.submodel.ladder.state is not None or not root.children else None

    def _news(self) -> tuple[float, float, int]:
        """What somebody who looks on wants to see."""
        return *self._ends(), 0 if self._estimator is None else self._estimator.num_doublings

    @property
    def simplified(self) -> bool:
        return self.rest is not self.user_model

    def _simplify(self, budget: Budget | None) -> None:
        """Work on what simplifying leaves of the model: all that it can, or where there is no time or memory for that,
        nothing: a search that is gone on with later simplifies again."""
        memory = None if budget is None else self.options.num_bytes
        model = self.user_model
        found = simplify(model, marginals=False, pairwise=not model.factors, memory=memory, budget=budget)
        if found.is_complete:
            self.rest, self.error = found.model, found.error
            self.lower, self.upper = self.lower - self.error, self.upper + self.error

    def run(self, crew: Crew, budget: Budget) -> Generator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        check_room(self.user_model, self.options.num_bytes)
        self.budget = budget.share()
        pending = Jobs(self.options.in_order)
        if self.trace:  # resumed
            self._learn(self.trace[-1].lower - self.error, self.trace[-1].upper + self.error)
            if self._reason() is None:
                self._ask_bethe(math.inf, self.options.num_bytes)
            yield self._bracket("left")
        else:
            yield from self._begin(crew)
        if self.settled:
            self.budget.end()
            yield self._bracket("exact")
            return
        frontier, last = self.frontier, self._news()
        estimator = self._estimator = Estimator(self.rest, self.options, self.error)
        sets = self._sets = ConditioningRounds(self.rest, self.options)
        full = False
        while (reason := self._reason()) is None:
            while (begun := self.whole.next(crew, pending.num_busy)) is not None:
                pending.add(*begun)
            if (drawing := estimator.next(self._ladder, crew, self.budget)) is not None:
                pending.add(drawing, DRAWS)
            sums = sets.next(self._ladder, self._ends(), crew, self.budget, whole_is_summed=self.whole.is_summing)
            if sums is not None:
                pending.add(sums, SETS)
            none_left = full
            while pending.has_room(crew) and not none_left:
                asked = choose_branching(frontier, self.budget, crew.num_threads)
                if asked is None:
                    none_left = True
                    break
                more = frontier.num_leaves + frontier.promised + asked.num_more
                if asked.num_more and more > (self.options.leaves or math.inf):
                    frontier.push(asked.node)
                    full = none_left = True
                    break
                pending.add(crew.submit(solve_leaves, asked.work, local_args=(self.budget,)), asked)
                frontier.promised += asked.num_more
            if none_left and pending.has_only_draws:
                reason = "leaves" if full else "memory" if frontier.pruned else "exact"
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
            for job in pending.done_within(LAST_CALL / 4):
                self._take(pending.pop(job), job.result(), crew)
        frontier.promised = 0
        yield self._bracket(reason)

    def _draw_last(self, pending: Jobs, crew: Crew) -> None:
        """The draws that are being made, or else a few: there is time for them."""
        assert self._estimator is not None
        under_way = pending.draws
        job = under_way or self._estimator.last(self._ladder, crew, self.budget)
        while job is not None and not self.budget.must_stop():
            if finished([job], PATIENCE):
                if under_way is not None:
                    pending.pop(under_way)
                self._estimator.take(job.result())
                return

    def _take(self, asked: Asked, found: Any, crew: Crew) -> None:
        """Take what came of work; where nothing is left to do, what comes late is not needed."""
        if isinstance(asked, Refine | Expand):
            if not self.settled:
                self.frontier.take(asked, found)
            return
        if asked.by == "count":
            self._take_count(found)
            return
        if asked.by == "sets":
            self._take_sets(found, crew)
            return
        if asked.by == "draws":
            assert self._estimator is not None
            self._estimator.take(found)
            return
        if asked.by == "plan":
            if found is not None and not self.settled:
                with suppress(Cancelled, TooWideError):
                    self.whole.add_sum(found, self.options, crew, self.budget)
            return
        ends = self.whole.take(asked, found)
        if self.whole.summed:
            self._settle(*ends)
        else:
            self._learn(*ends)

    def _take_count(self, found: Counted) -> None:
        """What was counted: log Z where that is proven, and otherwise the estimate, whatever Bethe says."""
        if found.log_z is None:
            if self.guess.value is None:
                self.guess = PointEstimate(None, f"{self.guess.why_none} There is no count: {found.why_none}.")
        elif found.is_proven:
            self._settle(found.log_z - found.error, found.log_z + found.error)
        else:
            self._learn(found.lower, math.inf)
            self.guess = PointEstimate(found.log_z, by="counting")

    def _take_sets(self, ends: tuple[float, float], crew: Crew) -> None:
        """A round of sums over disjoint sets of configurations."""
        assert self._sets is not None
        if self.settled:
            return
        lower, upper = self._ends()
        self._sets.take(ends, (lower + self.error, upper - self.error), crew, self.budget)
        (self._settle if self._sets.complete else self._learn)(*ends)

    def _learn(self, lower: float, upper: float) -> None:
        """Ends of log Z of the rest."""
        self.lower, self.upper = max(self.lower, lower), min(self.upper, upper)
        if self._frontier is not None:
            self._frontier.root.tighten(lower, upper)

    def _settle(self, lower: float, upper: float) -> None:
        """Nothing is left to do: these are the ends."""
        self._learn(lower, upper)
        self._summed = True
        if self._frontier is not None:
            self._frontier.settle(self._frontier.root.lower, self._frontier.root.upper)

    def _ends(self) -> tuple[float, float]:
        """Of log Z of the user's model, the best so far."""
        lower, upper = self.lower, self.upper
        if self._frontier is not None:
            root = self._frontier.root
            lower, upper = max(lower, root.lower), min(upper, root.upper)
        return lower - self.error, upper + self.error

    def _reason(self) -> BracketStop | None:
        lower, upper = self._ends()
        if self.settled:
            return "exact"
        if lower == upper or upper - lower <= self.options.gap:
            return "gap"
        if self.budget.must_stop():
            return "interrupt" if self.budget.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self._num_leaves >= self.options.leaves:
            return "leaves"
        return None

    def _begin(self, crew: Crew) -> Iterator[Bracket]:
        """Bounds on the whole, quickly, and what takes longer begun: the sum of all of it, where that fits in the time
        and memory given, and methods that have more to gain.  A sum of a moment is all that is done."""
        options, budget = self.options, self.budget
        began, worked = perf_counter(), thread_time()
        self._learn(*trivial_bounds(self.user_model))
        ELAPSED.learn(thread_time() - worked, perf_counter() - began)
        slowed = 1.0 if math.isinf(options.time) else ELAPSED.learned
        alone = crew.num_threads == 1
        planned = self._plan_of_whole(crew) if options.exact and options.time > 0 else None
        if self.settled:
            return
        whole = None
        if planned is not None and planned.done():
            whole = planned.result()
            if whole is not None and whole.seconds <= FINISH_SECONDS and self._sum_at_once(whole):
                return
        quick = self._quick_bounds(math.inf if whole is None else SUM_SHARE * whole.duration, planned)
        yield self._bracket("left")
        if planned is not None:
            self.whole.add(lambda: planned, "plan")
        if budget.must_stop():  # what is asked of the model next takes a while on a large one
            self.frontier.push(self.frontier.root)
            return
        seconds = math.inf if whole is None else whole.duration
        self._begin_count(crew, seconds)
        if (counting := self._counting) is not None:
            self.whole.add(lambda: wait_for_count(counting, self.rest, budget), "count")
        options = self._give_memory_to_workers(planned)
        by_regions = may_begin(self.rest, options, budget.left() / slowed)
        longest = LONG_SHARE if by_regions else LONGEST_SHARE
        last_look = slowed * LOOK_SECONDS * self.rest.num_edges

        def seconds_of(share: float) -> float:
            return max(0.0, min(budget.left(share), budget.left() - last_look))

        balanced, room = self.rest.is_balanced, options.worker_bytes
        start = None if quick is None or np.isnan(quick.marginals).any() else quick.marginals
        if not by_regions and not trw.fits(self.rest, room) and trw.fits(self.rest, options.num_threads * room):
            self.whole.add(
                lambda: crew.submit(run_both, self.rest, start, options, seconds_of(longest), local_args=(budget,))
            )
        elif quick is not None and (not quick.settled or balanced) and mean_field.fits(self.rest, room):
            share = LONGEST_SHARE if bethe_leads(self.rest) else longest
            share *= 0.5 if alone and share == LONGEST_SHARE else 1.0
            self.whole.add(
                lambda: crew.submit(run_mean_field, self.rest, start, options, seconds_of(share), local_args=(budget,))
            )
        methods = mean_field.fits(self.rest, room)
        if not options.in_order and not bethe_leads(self.rest):
            known = self.lower > -math.inf
            most = min(seconds_of(longest), BEST_SECONDS) if known else seconds_of(max(longest, POSSIBLE_SHARE))
            work = self.rest, options, methods, most
            self.whole.add(lambda: crew.submit(run_mode, *work, local_args=(budget,)))
        # where edges are many, TRW's share of the time is as good as lost: it goes to regions
        by_trees_too = not by_regions or self.rest.num_edges <= MANY_EDGES
        if by_trees_too and trw.fits(self.rest, room) and not budget.must_stop():
            self.whole.add(lambda: crew.submit(run_trw, self.rest, options, seconds_of(longest), local_args=(budget,)))
        self.frontier.push(self.frontier.root)

    def _give_memory_to_workers(self, planned: Job[WholeSum | None] | None) -> BoundOptions:
        """The options of the tree: where no sum of the whole is made, workers have its memory too.  A plan is waited
        for where they could not begin without."""
        frontier = self.frontier
        if not frontier.options.in_order:
            more, ever = self.options.without_whole(), math.inf
            if planned is not None and may_begin(self.rest, more, ever) > may_begin(self.rest, self.options, ever):
                wait_for(planned, self.budget.share(PLANNING_SHARE))
            if planned is None or (planned.done() and planned.result() is None):
                frontier.options = more
        return frontier.options

    def _plan_of_whole(self, crew: Crew) -> Job[WholeSum | None] | None:
        """How to sum all of the model, if that may be done; a sum that takes a moment is done at once, and else the
        model simplified first."""
        budget, memory = self.budget, WHOLE_MEMORY * self.options.num_bytes
        quick = quick_sum(self.user_model, FINISH_SECONDS, memory, budget.share(PLANNING_SHARE))
        if quick is not None and self._sum_at_once(quick):
            return None
        self._simplify(budget.share(PLANNING_SHARE))
        self._begin_count(crew, math.inf, first=True)
        return start_plan(self.user_model, self.rest, self.error, self.options, crew, budget)

    def _begin_count(self, crew: Crew, seconds: float, *, first: bool = False) -> None:
        """Where that is worth a try beside a sum of so many seconds; or before any other is planned, if `first`."""
        may = self._counting is None and self.options.exact and not self.budget.must_stop()
        if may and worth_counting(self.rest, seconds, first=first):
            self._counting = start_count(self.rest, self.options, crew, self.budget)

    def _sum_at_once(self, whole: WholeSum) -> bool:
        """Whether a sum came to its end."""
        ends = whole.ends(self.budget)
        if ends[1] < math.inf:
            self._settle(*ends)
            return True
        self._learn(*ends)
        return False

    def _quick_bounds(self, most: float, planned: Job[WholeSum | None] | None) -> InitialBounds | None:
        """Mean field, TRW and Bethe's estimate, for a moment each, so many seconds at most; in the memory that a plan
        of the whole leaves, which is waited for where that is too little."""
        root, num_bytes = self.frontier.root, float(self.options.num_bytes)
        beside = (1.0 - WHOLE_MEMORY) * num_bytes
        if planned is not None:
            if not mean_field.fits(self.rest, beside) and mean_field.fits(self.rest, num_bytes):
                wait_for(planned, self.budget.share(PLANNING_SHARE))
            num_bytes = num_bytes if planned.done() and planned.result() is None else beside
        found = initial_bounds(self.rest, self.options, self.budget, most, num_bytes)
        if found is not None:
            self._learn(found.lower, found.upper)
            root.state = WarmStart.at(found.marginals, found.beliefs)
            self._ask_bethe(most, num_bytes)
        elif not mean_field.fits(self.rest, num_bytes):
            self.guess = PointEstimate(None, NO_MEMORY_FOR_BETHE)
        return found

    def _ask_bethe(self, most: float, num_bytes: float) -> None:
        """Bethe's estimate, in so many seconds and bytes at most."""
        self.guess, lower = bethe_estimate(self.rest, self.options, self.budget, most, num_bytes)
        self._learn(lower, math.inf)

    def _bracket(self, reason: BracketStop) -> Bracket:
        num_leaves = self._num_leaves
        seconds = self.seconds_before + self.budget.seconds
        lower, upper = self._ends()
        if lower > upper:
            raise ContradictionError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it "
                "with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        self.trace.append(Point(seconds, lower, upper, num_leaves))
        guess, sampled = self.guess, () if self._estimator is None else tuple(self._estimator.sampled)
        if self._estimator is not None and guess.by != "counting":
            guess = self._estimator.guess(lower, upper) or guess
        estimate = guess.within(lower, upper, closed=reason == "exact")
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=estimate.value,
            estimate_by=estimate.by,
            why_no_estimate=estimate.why_none,
            standard_error=estimate.standard_error,
            sampled=sampled,
            trace=tuple(self.trace),
            stopped_by=reason,
            num_leaves=num_leaves,
            seconds=seconds,
        )
