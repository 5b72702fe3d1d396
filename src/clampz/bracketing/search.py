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
from clampz.bracketing.dives import Dives, dive
from clampz.bracketing.estimating import Estimator
from clampz.bracketing.frontier import Expand, Frontier, Refine
from clampz.bracketing.ladder import Ladder
from clampz.bracketing.leaves import FINISH_SECONDS, by_mean_field, by_trees, solve_leaves
from clampz.bracketing.next_work import next_work
from clampz.bracketing.options import CUTS, WHOLE_MEMORY, BoundOptions
from clampz.bracketing.regions import LeafState
from clampz.bracketing.sight import sight_ends
from clampz.bracketing.whole import WHOLE_TIME, WHOLE_TIME_ALONE, Whole, WholeWork
from clampz.clamping.branches import clamps_that_fit
from clampz.clamping.call import clamp_on
from clampz.clamping.selectors.registry import check_defined
from clampz.counting import Counted, worth_counting
from clampz.errors import OptionError, TooWideError
from clampz.mini_buckets.tables import has_zeros
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.numerics import Floats
from clampz.signature import bytes_per_lane, is_small
from clampz.simplifying import simplify
from clampz.summing.whole import WholeSum, count_on, plan_whole, quick_sum
from clampz.watch import Overdue, Watch
from clampz.workers import Crew, Job, finished

# Shares of the time that a plan of the sum of the whole is waited for, and that looking for it may go on beside other
# work.
PLANNING_SHARE, LONG_PLANNING_SHARE = 0.15, 0.5
# Time beyond which the order of that is looked for thoroughly, in seconds.
THOROUGH_SECONDS = 2.0
# The share of the time that mean field and TRW may each take at the start, on small models and on those whose first
# sweeps take long; and seconds that they have in any case, and at the most: who looks on wants to see something.
QUICK_SHARE, LARGE_SHARE, QUICK_SECONDS, LONGEST_QUICK = 1 / 8, 0.15, 0.01, 1.0
# And of the time that the sum of the whole is expected to take, where that waits for them.
SUM_SHARE = 1 / 8
# The share that they have to settle, where regions can do better than they, and where nothing can: beyond so many
# edges.
LONG_SHARE, LONGEST_SHARE, MANY_EDGES = 0.1, 0.95, 20_000
# The share of the time left that a round of dives has, and rounds in a row that may come to nothing.
DIVES_SHARE, MOST_IDLE_DIVES = 0.2, 3
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
DRAWS = Whole("draws")
# Nats: a bracket as narrow needs no draws at its end.
WORTH_DRAWING = 1e-2


class Search:
    """A search under way.

    Attributes
    ----------
    rest, error
        What simplifying leaves of the user's model, and what its log Z may be off by.
    lower, upper
        Of the rest, by what was done about the whole of it.
    """

    watch: Watch

    def __init__(self, model: Model, options: BoundOptions, *, simplified: bool = False) -> None:
        self.user_model = self.rest = model
        self.options = options
        self.error = 0.0
        self.whole = WholeWork()
        self.lower, self.upper = -math.inf, math.inf
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.guess = Guess(None, "Bethe was not run.")
        self._summed = False
        self._dives: Dives | None = None
        self._estimator: Estimator | None = None
        self._idle_dives = 0  # rounds of dives in a row that the lower end is not better for
        self._frontier: Frontier | None = None
        if simplified:
            self._simplify(None)

    @property
    def frontier(self) -> Frontier:
        """The tree: made when it is first needed, for many models never need one."""
        if self._frontier is None:
            if self.options.select != CUTS:
                check_defined(self.rest, self.options.select)
            needed, allowed = bytes_needed(self.rest), self.options.num_bytes
            if allowed < needed:
                raise OptionError(
                    f"memory: expected at least {needed:,} bytes for a model of this size, found {allowed:,}"
                )
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
    def _ladder(self) -> Ladder | None:
        """Of the model as a whole, if that is bounded as one."""
        root = self.frontier.root
        return root.submodel.ladder if root.submodel.ladder.state is not None or not root.children else None

    def _news(self) -> tuple[float, float, int]:
        """What somebody who looks on wants to see."""
        return *self._ends(), 0 if self._estimator is None else self._estimator.num_doublings

    @property
    def _takes_methods(self) -> bool:
        """Whether there is memory for mean field, Bethe and TRW: on larger factors they work on an equivalent several
        times as large, which regions do without."""
        return not self.rest.factors or bytes_per_lane(self.rest) <= self.options.num_bytes

    @property
    def simplified(self) -> bool:
        return self.rest is not self.user_model

    def _simplify(self, watch: Watch | None) -> None:
        """Work on what simplifying leaves of the model: all that it can, or where there is no time or memory for that,
        nothing: a search that is gone on with later simplifies again."""
        memory = None if watch is None else self.options.num_bytes
        model = self.user_model
        found = simplify(model, marginals=False, pairwise=not model.factors, memory=memory, watch=watch)
        if found.is_complete:
            self.rest, self.error = found.model, found.error
            self.lower, self.upper = self.lower - self.error, self.upper + self.error

    def run(self, crew: Crew, watch: Watch) -> Generator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        self.watch = watch.share()
        pending: dict[Job[Any], Asked] = {}
        if self.trace:  # resumed
            self._learn(self.trace[-1].lower - self.error, self.trace[-1].upper + self.error)
            if self._reason() is None:
                self.guess = self._estimate()
            yield self._bracket("left")
        else:
            yield from self._begin(crew)
        if self.settled:
            yield self._bracket("exact")
            return
        frontier, last = self.frontier, self._news()
        estimator = self._estimator = Estimator(self.rest, self.options, self.error)
        full = False
        while (reason := self._reason()) is None:
            while (begun := self.whole.next(crew, _num_busy(pending))) is not None:
                pending[begun[0]] = begun[1]
            if (drawing := estimator.next(self._ladder, crew, self.watch)) is not None:
                pending[drawing] = DRAWS
            none_left = full
            while self._has_room(pending, crew) and not none_left:
                asked = next_work(frontier, self.watch, crew.num_threads)
                if asked is None:
                    none_left = True
                    break
                more = frontier.num_leaves + frontier.promised + asked.num_more
                if asked.num_more and more > (self.options.leaves or math.inf):
                    frontier.push(asked.node)
                    full = none_left = True
                    break
                pending[crew.submit(solve_leaves, asked.work, here=(self.watch,))] = asked
                frontier.promised += asked.num_more
            if none_left and all(asked == DRAWS for asked in pending.values()):
                reason = "leaves" if full else "memory" if frontier.pruned else "exact"
                break
            for job in self._finished(pending):
                done = pending.pop(job)
                frontier.promised -= done.num_more
                self._take(done, job.result(), crew)
            self._begin_dives(crew)
            if self._news() != last:
                last = self._news()
                yield self._bracket("left")
        lower, upper = self._ends()
        if reason in ("gap", "leaves", "memory") and upper - lower > WORTH_DRAWING:
            self._draw_last(pending, crew)
        self.watch.end()
        for job, left in list(pending.items()):
            if isinstance(left, Refine | Expand):
                frontier.push(left.node)
            if job.future.cancel() or isinstance(left, Expand):  # what is refined by half is better for it
                del pending[job]
        last_call = Watch(LAST_CALL if reason in ("time", "interrupt") else 0.0)
        while pending and not last_call.must_stop():
            for job in finished(pending, LAST_CALL / 4):
                self._take(pending.pop(job), job.result(), crew)
        frontier.promised = 0
        yield self._bracket(reason)

    def _draw_last(self, pending: dict[Job[Any], Asked], crew: Crew) -> None:
        """The draws that are being made, or else a few: there is time for them."""
        assert self._estimator is not None
        under_way = [job for job, asked in pending.items() if asked == DRAWS]
        job = under_way[0] if under_way else self._estimator.last(self._ladder, crew, self.watch)
        while job is not None and not self.watch.must_stop():
            if finished([job], PATIENCE):
                pending.pop(job, None)
                self._estimator.take(job.result())
                return

    def _has_room(self, pending: dict[Job[Any], Asked], crew: Crew) -> bool:
        """Whether to ask for more work on leaves; where the plan is fixed, so much at once, whatever else is done."""
        if self.options.in_order:
            return sum(isinstance(asked, Refine | Expand) for asked in pending.values()) < 2 * crew.num_threads
        return _num_busy(pending) < crew.num_at_once

    def _finished(self, pending: dict[Job[Any], Asked]) -> list[Job[Any]]:
        """Jobs that are done, perhaps after a while; where the plan is fixed, of those about leaves the first that was
        asked for alone, so that what is asked for next does not depend on which come back together."""
        done = list(finished(pending, PATIENCE))
        if not self.options.in_order:
            return done
        leaves = [job for job, asked in pending.items() if isinstance(asked, Refine | Expand)]
        return [job for job in pending if job.done() and job not in leaves[1:]]

    def _take(self, asked: Asked, found: Any, crew: Crew) -> None:
        """Take what came of work; where nothing is left to do, what comes late is not needed."""
        if isinstance(asked, Refine | Expand):
            if not self.settled:
                self.frontier.take(asked, found)
            return
        if asked.by == "count":
            self._take_count(found)
            return
        if asked.by == "dives":
            self._take_dives(found, crew)
            return
        if asked.by == "draws":
            assert self._estimator is not None
            self._estimator.take(found)
            return
        if asked.by == "plan":
            if found is not None and not self.settled:
                with suppress(Overdue, TooWideError):
                    self.whole.add_sum(found, self.options, crew, self.watch)
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
                self.guess = Guess(None, f"{self.guess.why_none} There is no count: {found.why_none}.")
        elif found.is_proven:
            self._settle(found.log_z - found.error, found.log_z + found.error)
        else:
            self._learn(found.lower, math.inf)
            self.guess = Guess(found.log_z, by="counting")

    def _begin_dives(self, crew: Crew) -> None:
        """Where hard zeros leave no other lower bound worth having, as soon as there are beliefs to go by."""
        state = self.frontier.root.submodel.ladder.state
        if self._dives is None and state is not None and self.options.exact and has_zeros(self.rest):
            self._dives = Dives(self.rest, state.beliefs, memory=self.options.worker_bytes)
            self._dive(crew)

    def _dive(self, crew: Crew) -> None:
        dives, seconds = self._dives, self.watch.left(DIVES_SHARE)
        self.whole.add(lambda: crew.beside(dive, dives, seconds, self.watch), "dives")

    def _take_dives(self, ends: tuple[float, float], crew: Crew) -> None:
        """A round of dives; there are more as long as something comes of them."""
        lower, upper = ends
        assert self._dives is not None
        if self.settled:
            return
        self._idle_dives = 0 if lower > self._ends()[0] + self.error else self._idle_dives + 1
        if self._dives.complete:
            self._settle(lower, upper)
            return
        self._learn(lower, upper)
        if not self._dives.is_over and self._idle_dives < MOST_IDLE_DIVES:
            self._dive(crew)

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
        if self.watch.must_stop():
            return "interrupt" if self.watch.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self._num_leaves >= self.options.leaves:
            return "leaves"
        return None

    def _begin(self, crew: Crew) -> Iterator[Bracket]:
        """Bounds on the whole, quickly, and what takes longer begun: the sum of all of it, where that fits in the time
        and memory given, and methods that have more to gain.  A sum of a moment is all that is done."""
        options, watch = self.options, self.watch
        self._learn(*sight_ends(self.user_model))
        alone = crew.num_threads == 1
        planned = self._plan_of_whole(crew) if options.exact and options.time > 0 else None
        if self.settled:
            return
        whole = None
        if planned is not None and planned.done():
            whole = planned.result()
            if whole is not None and whole.seconds <= FINISH_SECONDS and self._sum_at_once(whole):
                return
        marginals, settled = self._quick_bounds(math.inf if whole is None else SUM_SHARE * whole.duration)
        yield self._bracket("left")
        if planned is not None:
            self.whole.add(lambda: planned, "plan")
        seconds = math.inf if whole is None else whole.duration
        if options.exact and worth_counting(self.rest, seconds) and not watch.must_stop():
            self.whole.add(lambda: crew.beside(count_on, self.rest, options.num_bytes, watch), "count")
        # where regions are small, nothing is better than the methods themselves
        longest = LONG_SHARE if self.rest.num_edges <= MANY_EDGES else LONGEST_SHARE
        half = 0.5 if alone and longest == LONGEST_SHARE else 1.0
        if not settled:
            start = None if np.isnan(marginals).any() else marginals
            self.whole.add(
                lambda: crew.submit(by_mean_field, self.rest, start, options, watch.left(half * longest), here=(watch,))
            )
        if self._takes_methods and not watch.must_stop():
            self.whole.add(lambda: crew.submit(by_trees, self.rest, options, watch.left(longest), here=(watch,)))
        self.frontier.push(self.frontier.root)

    def _plan_of_whole(self, crew: Crew) -> Job[WholeSum | None] | None:
        """How to sum all of the model, if that may be done, which is looked for beside all other work and waited for
        a while; a sum that takes a moment is done at once, and else the model simplified first."""
        watch, memory = self.watch, WHOLE_MEMORY * self.options.num_bytes
        quick = quick_sum(self.user_model, FINISH_SECONDS, memory, watch.share(PLANNING_SHARE))
        if quick is not None and self._sum_at_once(quick):
            return None
        self._simplify(watch.share(PLANNING_SHARE))
        job = crew.beside(
            plan_whole,
            self.user_model,
            self.rest,
            self.error,
            watch.left(WHOLE_TIME_ALONE if crew.num_threads == 1 else WHOLE_TIME),
            memory,
            watch.left() > THOROUGH_SECONDS,
            crew.num_threads,
            watch.share(LONG_PLANNING_SHARE),
        )
        waiting = watch.share(PLANNING_SHARE)
        while not job.done() and not waiting.must_stop():
            finished([job], min(PATIENCE, waiting.left()))
        return job

    def _sum_at_once(self, whole: WholeSum) -> bool:
        """Whether a sum came to its end."""
        ends = whole.ends(self.watch)
        if ends[1] < math.inf:
            self._settle(*ends)
            return True
        self._learn(*ends)
        return False

    def _quick_bounds(self, most: float) -> tuple[Floats, bool]:
        """Mean field and TRW, for a moment each, so many seconds at most, and Bethe's estimate; returns mean field's
        marginals and whether it has settled."""
        model, options, root = self.rest, self.options, self.frontier.root
        if not self._takes_methods or (self.watch.must_stop() and not is_small(model)):
            return np.full(len(model.unary.flat), np.nan), True  # not even for the first sweeps is there time
        batch = Batch.of(model)
        share = QUICK_SHARE if is_small(model) else LARGE_SHARE

        def limits(**more: Any) -> dict[str, Any]:
            seconds = max(QUICK_SECONDS, min(self.watch.left(share), LONGEST_QUICK, most))
            return {"max_iter": options.max_iter, "threads": options.threads, "time": seconds, **more}

        fields = mean_field.solve(batch, mean_field.options(None, limits(seed=options.seed)), within=self.watch)
        trees = trw.solve(batch, trw.options(None, limits()), within=self.watch)
        self._learn(float(fields.lower[0]), float(trees.upper[0]))
        root.state = LeafState.at(fields.marginals_flat[:, 0], trees.marginals_flat[:, 0])
        self.guess = self._estimate(most)
        return fields.marginals_flat[:, 0], bool(fields.converged[0])

    def _estimate(self, most: float = BETHE_SECONDS) -> Guess:
        """Bethe's value with a few variables clamped, if it settles in a small share of the time."""
        seconds = min(BETHE_SECONDS, self.watch.left(BETHE_SHARE), most)
        if not seconds:
            return Guess(None, "There was no time for Bethe.")
        if not self._takes_methods:
            return Guess(None, "There was not memory enough for Bethe.")
        largest = np.sort(self.rest.num_states)[::-1]
        most = int(np.count_nonzero(np.cumprod(largest[:MOST_BETHE_CLAMPS].astype(np.float64)) <= MOST_BETHE_BRANCHES))
        most = clamps_that_fit(self.rest, most, limit=self.options.num_bytes)
        if most < 0:
            return Guess(None, "There was not memory enough for Bethe.")
        limits: dict[str, Any] = {"time": seconds, "tol": BETHE_TOL, "threads": self.options.threads}
        first = bethe.solve(Batch.of(self.rest), bethe.options(None, limits), within=self.watch)[0]
        found = clamp_on(first, k=most, select=BETHE_SELECT, within=self.watch, **limits)
        if found.bound == "lower":  # where the model is attractive or balanced
            self._learn(found.lower, math.inf)
        settled = [step.log_z for step in found.steps if step.converged]
        return Guess(settled[-1]) if settled else Guess(None, "Bethe did not settle in its share of the time.")

    def _bracket(self, reason: BracketStop) -> Bracket:
        num_leaves = self._num_leaves
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


def _num_busy(pending: dict[Job[Any], Asked]) -> int:
    """Jobs that the crew works on: counts and plans are made beside it."""
    return sum(not isinstance(asked, Whole) or asked.by not in ("count", "plan") for asked in pending.values())


def bytes_needed(model: Model) -> int:
    """The least memory that a search over a model takes."""
    return 40 * (len(model.unary.flat) + len(model.pairwise.flat) + len(model.factors.flat))
