"""The exact sum of all of a model: at once if it takes a moment, else slice by slice, likeliest slices first."""

import math
from typing import Any

from clampz.bounding.leaves.evaluate import FINISH_SECONDS, solve_by_methods
from clampz.bounding.options import WHOLE_MEMORY, BoundOptions
from clampz.bounding.problem import Problem
from clampz.exact_inference.plans import plan_in_a_moment, plan_whole
from clampz.exact_inference.running import PLANNING_SHARE, sum_ends
from clampz.exact_inference.slices import Slices, sum_slices
from clampz.model import Model
from clampz.model.lane_memory import lanes_that_fit
from clampz.numerics import Floats, Integers
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget

# The share of the time that a plan is looked for where there are other workers; and that summing all of the model may
# take: where there are other workers, and where everything else waits for it.
LONG_PLANNING_SHARE = 0.5
WHOLE_TIME, WHOLE_TIME_ALONE = 0.75, 0.5
# Time beyond which the order of a sum is looked for thoroughly, in seconds.
THOROUGH_SECONDS = 0.3
# The share of the time left in which all workers must be able to end a sum; else one of them is left for bounds.
SOON = 0.7
# Slices that bounds are looked for on at most, and the share of the time, and of what the sum takes, for each of two
# methods.
MOST_BOUNDED, BOUNDS_SHARE = 256, 1 / 16


class ExactSum(Strategy[Problem]):
    """Plans the sum of the whole for all who can make one, and makes it where it is one along a tree."""

    name = "exact sum"
    is_parallel = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._slices: Slices | None = None
        self._error = 0.0
        self._is_asked = False  # for the plan
        self._until = Budget()
        self._num_busy, self._at_once, self._bounds_due = 0, 0, False

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Sum the model where that takes a moment; else reduce it for all that follow."""
        problem = self.problem
        if not problem.options.exact or problem.options.time <= 0 or problem.is_resumed:
            self._end()
            return
        memory = WHOLE_MEMORY * problem.options.num_bytes
        plan = plan_in_a_moment(problem.user_model, FINISH_SECONDS, memory, budget.share(PLANNING_SHARE))
        if plan is not None:
            lower, upper = sum_ends(plan, memory, budget)
            problem.tighten(lower, upper, close=upper < math.inf)
        if not problem.closed:
            problem.presolve(budget.share(PLANNING_SHARE))

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the plan, then for bounds on slices, then for slices."""
        if not self._is_asked and self.problem.facts.awaits_marginals:
            return None
        if not self._is_asked:
            self._is_asked = True
            return Quantum(
                self._plan,
                (budget, num_workers),
                budget.share(PLANNING_SHARE if num_workers == 1 else LONG_PLANNING_SHARE),
            )
        slices = self._slices
        if slices is None or self._until.must_stop():
            return None
        options = self.problem.options
        if self._bounds_due:
            self._bounds_due, some = False, slices.waiting
            each = BOUNDS_SHARE * min(budget.left(), slices.plan.duration)
            args = (slices.model, slices.lanes(some), options, each, some)
            return Quantum(bound_slices, args, budget.share(), "anywhere", bound_slices)
        if self._num_busy >= self._at_once:
            return None
        some = slices.next()
        if not some.size:
            return None
        self._num_busy += 1
        return Quantum(sum_slices, slices.work(some), self._until, "anywhere", sum_slices)

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the plan, or ends of slices."""
        slices = self._slices
        if quantum.label is None:
            self._take_plan(found, quantum)
            return
        assert slices is not None
        if quantum.label is sum_slices:
            self._num_busy -= 1
            slices.take(found)
        else:
            slices.bound(*found)
        lower, upper = slices.ends
        self.problem.tighten(lower - self._error, upper + self._error, close=slices.complete)
        if self._until.must_stop() and not self._num_busy:
            self._end()

    def bytes_needed(self) -> float:
        """Return the memory of a slice, or of bounds on slices."""
        is_sum = self._slices is not None and not self._bounds_due
        return self._slices.plan.num_bytes if self._slices is not None and is_sum else self.problem.worker_bytes

    def seconds_left(self, num_workers: int) -> float:
        """Return the seconds that the slices left take, by how long the plan says that all take."""
        slices = self._slices
        if self.is_done or slices is None or self._until.must_stop():
            return math.inf
        return slices.plan.duration * float((~slices.is_done).mean())

    def _plan(self, budget: Budget, num_workers: int, planning: Budget) -> Any:
        """Plan the sum, and lay out the tree that slices share."""
        problem = self.problem
        plan = plan_whole(
            problem.user_model,
            problem.rest,
            problem.error,
            budget.left(WHOLE_TIME_ALONE if num_workers == 1 else WHOLE_TIME),
            WHOLE_MEMORY * problem.options.num_bytes,
            budget.left() > THOROUGH_SECONDS,
            num_workers,
            planning,
        )
        if plan is None or plan.slices is None:
            return plan, None, budget, num_workers
        slices = Slices(plan.batch.model, plan.batch.unary[:, 0], plan.slices)
        if plan.slices.fixed:  # a single sum is laid out by who does it
            slices.begin(planning)
        return plan, slices, budget, num_workers

    def _take_plan(self, found: Any, quantum: Quantum) -> None:
        plan, slices, budget, num_workers = found
        facts = self.problem.facts
        facts.plan, facts.is_planned = plan, True
        self._slices = slices
        if slices is None:
            self._end()
            return
        self._error = plan.error
        soon = slices.plan.duration <= budget.left(SOON)
        self._at_once = min(num_workers if soon else max(1, num_workers - 1), slices.plan.num_workers)
        self._until = budget.share(WHOLE_TIME_ALONE if num_workers == 1 else WHOLE_TIME if soon else 1.0)
        facts.is_summing = True
        num_waiting = len(slices.waiting)
        room = lanes_that_fit(slices.model, self.problem.worker_bytes)
        self._bounds_due = 1 < num_waiting <= min(MOST_BOUNDED, room)

    def _end(self) -> None:
        """Leave the memory that was set aside to others."""
        facts = self.problem.facts
        self.is_done, facts.is_planned, facts.is_summing = True, True, False
        if facts.plan is None or facts.plan.slices is not None:
            self.problem.sum_nothing()


def bound_slices(
    model: Model, lanes: Floats, options: BoundOptions, seconds: float, some: Integers, within: Budget | None = None
) -> tuple[Integers, Floats, Floats]:
    """Return which slices, and bounds on their log Z by mean field and TRW."""
    found = solve_by_methods(model, lanes, options, seconds, 1, within or Budget(2 * seconds))
    return some, found.lower, found.upper
