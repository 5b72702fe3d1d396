"""A count of the configurations of a model that is full of hard zeros, by programs made for that."""

import math
from functools import partial
from typing import Any

from clampz.bounding.bracket import PointEstimate
from clampz.bounding.problem import Problem
from clampz.exact_inference.running import PLANNING_SHARE
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import Counted, count
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget

# The share of the memory that programs which count may have.
COUNTING_MEMORY = 0.3


class Counting(Strategy[Problem]):
    """Counts beside the workers, where nearly all tables are constraints or a sum of the whole would take long."""

    name = "counting"
    _is_asked = False

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the count as soon as it is known to be worth a try; it cannot be cut into pieces."""
        problem, facts = self.problem, self.problem.facts
        if self._is_asked or facts.is_counted or not problem.options.exact:
            self.is_done = not self._is_asked
            return None
        if not worth_counting(problem.rest, math.inf, first=True):
            if not facts.is_planned and budget.used < budget.left(PLANNING_SHARE):
                return None  # a sum that takes a moment is planned in less
            seconds = math.inf if facts.plan is None else facts.plan.duration()
            if not worth_counting(problem.rest, seconds):
                self.is_done = True
                return None
        self._is_asked = True
        memory = int(COUNTING_MEMORY * problem.options.num_bytes)
        return Quantum(partial(_count, memory), (problem.rest,), budget.share(), where="beside")

    def take(self, quantum: Quantum, found: Counted) -> None:
        """Take a count as log Z where it is proven, and otherwise as the estimate, whatever Bethe says."""
        self.is_done, problem = True, self.problem
        if found.log_z is None:
            if problem.estimate.value is None:
                words = f"{problem.estimate.why_none} There is no count: {found.why_none}."
                problem.estimate = PointEstimate(None, words)
        elif found.is_proven:
            problem.tighten(found.log_z - found.error, found.log_z + found.error, close=True)
        else:
            problem.tighten(found.lower, math.inf)
            problem.estimate = PointEstimate(found.log_z, by="counting")


def _count(memory: int, *work: Any) -> Counted:
    model, budget = work
    return count(model, budget=budget, memory=memory)
