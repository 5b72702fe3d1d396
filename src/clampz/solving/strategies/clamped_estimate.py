"""The estimate with as many variables clamped as there is time for, where draws do not say more."""

from clampz.approximations.method_choice import BETHE_TOL
from clampz.model.results import Estimate
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.solving.clamps import NARROW, clamped
from clampz.solving.problem import SolveProblem
from clampz.solving.run import Run
from clampz.solving.solution import Found

# The share of the time left that clamping may take, and that it leaves to draws before.
SHARE, DRAWS_FIRST = 0.2, 0.25


class ClampedEstimate(Strategy[SolveProblem]):
    """Clamps the method that the estimate is from, once."""

    name = "clamping"
    keeps_going = False

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for it where draws have had their time, and are worth too little."""
        problem = self.problem
        is_early = budget.used < budget.left(DRAWS_FIRST) or problem.below is None
        if is_early or problem.drawn is not None or problem.gap <= NARROW:
            return None
        found, _ = problem.estimate_from()
        if found.method == "trw" or found.stopped_by == "memory":
            return None
        return Quantum(self._clamp, (found,), budget.share(SHARE))

    def take(self, quantum: Quantum, found: Found) -> None:
        """Take what it found."""
        self.problem.clamped, self.is_done = found, True

    def _clamp(self, found: Estimate, budget: Budget) -> Found:
        problem = self.problem
        memory = int(problem.worker_bytes)
        run = Run(budget, budget, 1, memory, True, None, problem.options.seed)
        own = {"tol": BETHE_TOL} if found.method == "bethe" else {}
        return clamped(found, run, 1.0, None, problem.select, None, **own)
