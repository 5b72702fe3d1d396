"""The exact sum of a binary model on a planar graph, however wide."""

from typing import Any

from clampz.bounding.options import WHOLE_MEMORY
from clampz.bounding.problem import Problem
from clampz.exact_inference.running import sum_ends
from clampz.planar.plans import PlanarPlan
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class Planar(Strategy[Problem]):
    """Sums a planar model in one quantum, where the plan of the whole is one."""

    name = "planar"
    _is_asked = False

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the sum once there is a plan; the quantum is the rest of the time."""
        facts = self.problem.facts
        plan = facts.plan
        if not facts.is_planned or self._is_asked:
            return None
        if plan is None or not isinstance(plan.how, PlanarPlan):
            self.is_done = True
            return None
        self._is_asked = True
        return Quantum(sum_ends, (plan, self.bytes_needed()), budget.share(), "anywhere")

    def bytes_needed(self) -> float:
        """Return what was set aside for a sum of the whole."""
        return WHOLE_MEMORY * self.problem.options.num_bytes

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take both ends, apart by rounding alone unless time was over or rounding could not be bounded."""
        lower, upper = found
        self.problem.tighten(lower, upper, close=upper < float("inf"))
        self.end()

    def end(self) -> None:
        """Leave the memory that was set aside to others."""
        super().end()
        self.problem.sum_nothing()

    def seconds_left(self, num_workers: int) -> float:
        """Return what the plan takes, until it is begun."""
        plan = self.problem.facts.plan
        wanted = plan is not None and isinstance(plan.how, PlanarPlan) and not self._is_asked
        return plan.duration() if wanted and plan is not None else float("inf")
