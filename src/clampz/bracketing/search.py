"""Best-first search for a bracket: leaves are refined, expanded or summed exactly where the root's gap comes from,
several at a time."""

import math
from collections.abc import Iterator

import numpy as np

from clampz.bracketing.bracket import Bracket, BracketStop, Point
from clampz.bracketing.frontier import Expand, Frontier, Refine
from clampz.bracketing.leaves import FINISH_SECONDS, Solved, solve_by_methods, solve_leaves
from clampz.bracketing.next_work import next_work
from clampz.bracketing.options import CUTS, BoundOptions
from clampz.clamping.branches import clamps_that_fit
from clampz.clamping.call import clamp
from clampz.clamping.selectors import scores
from clampz.clamping.selectors.registry import TRE
from clampz.elimination.slices import SlicedPlan, Slicer
from clampz.errors import OptionError
from clampz.model import Model
from clampz.model.equivalent import pairwise_model
from clampz.watch import Watch
from clampz.workers import Crew, Job, finished

# Share of the time and of the memory that summing the whole model at once may take.
WHOLE_TIME, WHOLE_MEMORY = 0.75, 0.8
# Time beyond which the order of that is looked for thoroughly, in seconds.
THOROUGH_SECONDS = 2.0
# The share of the time that mean field and TRW may each take at the start, and seconds that they have in any case.
QUICK_SHARE, QUICK_SECONDS = 1 / 8, 0.01
# Variables that Bethe's estimate is clamped at, the branches they may make, and the seconds and the share of the time
# that it may take.
MOST_BETHE_CLAMPS, MOST_BETHE_BRANCHES, BETHE_SECONDS, BETHE_SHARE = 3, 64.0, 2.0, 0.05
# Seconds after which a limit is noticed while workers are busy.
PATIENCE = 0.05


class ContradictionError(RuntimeError):
    """Bounds that cannot both hold."""


class Search:
    """A search under way.  `slack` is what the pairwise equivalent of the user's model may be off by."""

    watch: Watch

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.user_model = model
        self.options = options
        self.model, self.slack = pairwise_model(model)
        if options.select != CUTS:
            scores(self.model, options.select.removesuffix(TRE))  # refuses what it is not defined for, before any work
        needed = 40 * (len(self.model.unary.flat) + len(self.model.pairwise.flat))
        if options.num_bytes < needed:
            raise OptionError(
                f"memory: expected at least {needed:,} bytes for a model of this size, found {options.num_bytes:,}"
            )
        self.frontier = Frontier(self.model, options)
        self.trace: list[Point] = []
        self.seconds_before = 0.0
        self.bethe_value = math.nan

    def run(self, crew: Crew, watch: Watch) -> Iterator[Bracket]:
        """Work until a limit is reached; yields a bracket whenever it has changed."""
        self.watch = watch.share()
        frontier, root = self.frontier, self.frontier.root
        if self.trace:  # resumed
            yield self._bracket("left")
        else:
            yield from self._begin(crew)
        pending: dict[Job[Solved], Refine | Expand] = {}
        last = (root.lower, root.upper)
        full = False
        while (reason := self._reason()) is None:
            while len(pending) < crew.num_at_once and not full:
                asked = next_work(frontier, self.watch, crew.num_threads)
                if asked is None:
                    break
                promised = frontier.num_leaves + sum(other.num_more for other in pending.values())
                if asked.num_more and promised + asked.num_more > (self.options.leaves or math.inf):
                    frontier.push(asked.node)
                    full = True
                    break
                pending[crew.submit(solve_leaves, asked.work, here=(self.watch,))] = asked
            if not pending:
                reason = "leaves" if full else "memory" if frontier.pruned else "exact"
                break
            for job in finished(pending, PATIENCE):
                frontier.take(pending.pop(job), job.result(), self.watch)
            if (root.lower, root.upper) != last:
                last = (root.lower, root.upper)
                yield self._bracket("left")
        self.watch.stopped_by = self.watch.stopped_by or "callback"  # workers stop too
        for job, asked in pending.items():
            job.future.cancel()
            frontier.push(asked.node)
        yield self._bracket(reason)

    def _reason(self) -> BracketStop | None:
        root = self.frontier.root
        if root.settled:
            return "exact"
        if root.upper == root.lower or root.upper - root.lower <= self.options.gap:
            return "gap"
        if self.watch.must_stop():
            return "interrupt" if self.watch.stopped_by == "interrupt" else "time"
        if self.options.leaves is not None and self.frontier.num_leaves >= self.options.leaves:
            return "leaves"
        return None

    def _begin(self, crew: Crew) -> Iterator[Bracket]:
        """Bounds on the whole, quickly; or all of it at once, where that fits in the time and memory given."""
        frontier, root, watch = self.frontier, self.frontier.root, self.watch
        if self.model.topology.num_components != 1:
            frontier.split(root, self.model, 0.0, watch)
        else:
            frontier.push(root)
        plan = self._plan_of_whole() if self.options.exact and self.options.time > 0 else None
        if plan is None or plan.seconds > FINISH_SECONDS:
            self._quick_bounds()
            yield self._bracket("left")
        if plan is None:
            return
        job = crew.submit(whole_sum, self.user_model, plan)
        while not job.done() and not watch.must_stop():
            finished([job], PATIENCE)
        if job.done():
            lower, upper = job.result()
            frontier.settle(max(root.lower - self.slack, lower), min(root.upper + self.slack, upper))
            self.slack = 0.0
        elif plan.seconds <= FINISH_SECONDS:
            self._quick_bounds()

    def _plan_of_whole(self) -> SlicedPlan | None:
        """How to sum all of the model at once, if that may be done."""
        memory = WHOLE_MEMORY * self.options.num_bytes
        thorough = self.watch.left() > THOROUGH_SECONDS
        plan = Slicer(self.user_model).plan(
            self.user_model.unary.flat, self.watch.left(WHOLE_TIME), memory, thorough=thorough
        )
        return None if plan is None or plan.fixed else plan

    def _quick_bounds(self) -> None:
        seconds = max(QUICK_SECONDS, self.watch.left(QUICK_SHARE))
        unary = self.model.unary.flat[:, None]
        found = solve_by_methods(self.model, unary, self.options, seconds, self.options.threads)
        self.frontier.root.tighten(found.lower[0], found.upper[0])
        self.frontier.root.state = found.states[0]
        self.bethe_value = self._estimate()

    def _estimate(self) -> float:
        """Bethe's value with a few variables clamped, which the bracket then holds; none if it has not settled in a
        small share of the time."""
        seconds = min(BETHE_SECONDS, self.watch.left(BETHE_SHARE))
        largest = np.sort(self.user_model.num_states)[::-1]
        most = int(np.count_nonzero(np.cumprod(largest[:MOST_BETHE_CLAMPS].astype(np.float64)) <= MOST_BETHE_BRANCHES))
        most = clamps_that_fit(self.user_model, most, limit=self.options.num_bytes)
        if most < 0:
            return math.nan
        found = clamp(self.user_model, "bethe", k=most, time=seconds, threads=self.options.threads)
        settled = [step.log_z for step in found.steps if step.converged]
        return settled[-1] if settled else math.nan

    def _bracket(self, reason: BracketStop) -> Bracket:
        root, num_leaves = self.frontier.root, self.frontier.num_leaves
        seconds = self.seconds_before + self.watch.seconds
        lower, upper = root.lower - self.slack, root.upper + self.slack
        if lower > upper:
            raise ContradictionError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it "
                "with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        self.trace.append(Point(seconds, lower, upper, num_leaves))
        if not math.isnan(self.bethe_value):
            estimate = min(max(self.bethe_value, lower), upper)
        elif math.isfinite(lower) and math.isfinite(upper):
            estimate = (lower + upper) / 2
        else:
            estimate = upper if math.isfinite(upper) else lower
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=estimate,
            trace=tuple(self.trace),
            stopped_by=reason,
            num_leaves=num_leaves,
            seconds=seconds,
        )


def whole_sum(model: Model, plan: SlicedPlan) -> tuple[float, float]:
    """The sum over all of a model, on a worker."""
    return Slicer(model).total(model.unary.flat, plan)
