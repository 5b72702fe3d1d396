"""Log Z and all marginals by one sum, where time and memory allow it: first, or once log Z is known otherwise."""

import math
from typing import Any

from clampz.bounding.bracket import PointEstimate
from clampz.bounding.leaves.evaluate import FINISH_SECONDS
from clampz.exact_inference.cost import WITH_MARGINALS
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.running import (
    EXACT_SHARE,
    PLANNING_SHARE,
    PROVEN,
    ExactCost,
    exact_cost,
    plan_if_it_fits,
    run_count,
    run_plan,
)
from clampz.model.batch import Batch
from clampz.model.results import Estimate
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import is_available
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.solving.problem import SolveProblem

TOO_LONG = "Exact inference took longer than expected"


class ExactMarginals(Strategy[SolveProblem]):
    """Plans a sum with all marginals, and makes it where it fits.

    Where it does not, log Z is left to others, and what time is left once they have it is for marginals.
    """

    name = "exact inference"
    is_parallel = True  # a count goes on beside a sum
    closes_gap = False

    def __init__(self, problem: SolveProblem) -> None:
        super().__init__(problem)
        self._cost: ExactCost | None = None
        self._is_again = self._is_planned = self._is_busy = self._is_counting = self._count_due = False
        problem.facts.awaits_marginals = True

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Sum the model where that takes a moment."""
        problem = self.problem
        self._is_planned = problem.plan is not None
        if not self._is_planned and not budget.must_stop():
            cost = self._priced(Budget(FINISH_SECONDS, within=budget.share(PLANNING_SHARE)))
            if cost.plan is not None and cost.fits(
                problem.exact_options, min(FINISH_SECONDS, budget.left(EXACT_SHARE))
            ):
                problem.why = cost.plan.words()
                self._take_sum(self._sum(cost.plan, budget.share(EXACT_SHARE)))
            self._cost = cost if math.isfinite(cost.seconds) else None

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the plan, then for a count and the sum; for plan and sum again once log Z is known."""
        problem = self.problem
        if self._count_due:
            self._count_due, self._is_counting = False, True
            return Quantum(self._count, (), budget.share(EXACT_SHARE), "beside", "count")
        if self._is_busy or problem.is_longer:
            return None
        if problem.plan is not None:
            self._is_busy = True
            within = Budget(budget.left(1.0 if self._is_again else EXACT_SHARE), problem.heard, within=budget)
            return Quantum(self._sum, (problem.plan,), within, label="sum", num_workers=num_workers)
        if not self._is_planned:
            self._is_planned = self._is_busy = True
            return Quantum(
                self._find, (problem.most_seconds(budget), math.inf), budget.share(PLANNING_SHARE), label="plan"
            )
        problem.facts.awaits_marginals = False
        if problem.narrow() is not None and problem.wants_marginals and not self._is_again:
            self._is_again = self._is_busy = True
            # a bracket of one leaf is one sum, and how long that took on this machine is known
            known = WITH_MARGINALS * budget.seconds if problem.frontier.num_leaves == 1 else math.inf
            return Quantum(self._find, (budget.left(), known), budget.share(PLANNING_SHARE), label="plan")
        self.is_done = problem.is_exact_over = not self._is_counting and (self._is_again or not problem.wants_marginals)
        return None

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the plan, a count, or what was summed."""
        problem = self.problem
        if quantum.label == "count":
            self._is_counting = False
            self._take_count(found)
            return
        self._is_busy = False
        if quantum.label == "sum":
            problem.plan = None
            self._take_sum(found)
            return
        self._cost, problem.plan, why = found
        if not self._is_again:
            problem.why = why
            first = worth_counting(problem.user_model, self._cost.seconds, first=True)
            self._count_due = problem.facts.is_counted = first and is_available()

    def seconds_left(self, num_workers: int) -> float:
        """Return the seconds that the sum is expected to take."""
        plan = self.problem.plan
        return math.inf if plan is None else plan.duration(num_workers)

    def bytes_needed(self) -> float:
        """Return the memory of the sum."""
        plan = self.problem.plan
        return self.problem.worker_bytes if plan is None else float(plan.num_bytes)

    def _priced(self, budget: Budget) -> ExactCost:
        options = self.problem.exact_options
        return exact_cost(self.problem.user_model, marginals=options.marginals, memory=options.memory, budget=budget)

    def _find(self, most: float, known: float, budget: Budget) -> tuple[ExactCost, ExactPlan | None, str]:
        """Return what a sum takes, where some say that they know, and its plan if it takes `most` seconds at most."""
        cost = self._cost if self._cost and math.isfinite(self._cost.seconds) else self._priced(budget)
        cost = cost._replace(seconds=min(cost.seconds, known))
        return cost, *plan_if_it_fits(cost, self.problem.exact_options, Budget(most, within=budget))

    def _sum(self, plan: ExactPlan, budget: Budget) -> Estimate:
        return run_plan(plan, self.problem.exact_options, budget)[0]

    def _count(self, budget: Budget) -> Estimate:
        return run_count(Batch.of(self.problem.user_model), self.problem.exact_options, budget)[0]

    def _take_sum(self, found: Estimate) -> None:
        problem = self.problem
        if not found.converged and not self._is_again:
            problem.why = TOO_LONG
        problem.take_exact(found)

    def _take_count(self, found: Estimate) -> None:
        """Take a count as log Z where it is proven, and else as the estimate."""
        problem = self.problem
        if found.bound == "exact":
            problem.why = PROVEN
            problem.take_exact(found)
        elif not math.isnan(found.log_z):
            problem.tighten_log_z(found.lower, math.inf)
            problem.estimate = PointEstimate(found.log_z, by="counting")
