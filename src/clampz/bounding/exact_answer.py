"""ExactAnswer: what is asked for by one exact sum, where that fits into time and memory."""

import math
from collections.abc import Callable
from typing import Any

from clampz.bounding.leaves.evaluate import FINISH_SECONDS
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.running import PLANNING_SHARE, ExactCost, count_or_sum, exact_cost
from clampz.exact_inference.scopes import least_bytes
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.portfolio.problem import Problem
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.runtime.options import fits_into, memory_allowed


class ExactAnswer(Strategy[Problem[Any]]):
    """Plans an exact sum over lanes, and then sums, with all workers, if that fits; `told` is told what came of it."""

    name = "exact answer"
    is_first = True
    _cost: ExactCost | None = None

    def __init__(
        self, problem: Problem[Any], batch: Batch, options: ExactOptions, told: Callable[[Estimates], None]
    ) -> None:
        super().__init__(problem)
        self.is_done = not fits_into(options.memory, least_bytes(batch.model))
        self._batch, self._options, self._told = batch, options, told

    @property
    def is_near(self) -> bool:
        """Whether it may be there in a moment."""
        return not self.is_done and (self._cost is None or self.seconds_left(1) <= FINISH_SECONDS)

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the plan, and then for the sum."""
        if self._cost is None:
            return Quantum(self._plan, (), budget.share(PLANNING_SHARE))
        work = self._batch, self._cost, self._options
        fits = self._cost.fits(self._options, math.inf)
        return Quantum(count_or_sum, work, budget.share(), num_workers=num_workers if fits else 1)

    def _plan(self, budget: Budget) -> ExactCost:
        options = self._options
        return exact_cost(self._batch, marginals=options.marginals, memory=options.memory, budget=budget)

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the plan, or the sum."""
        if isinstance(found, ExactCost):
            self._cost = found
            return
        self.is_done = True
        if found is not None:
            self._told(found)

    def bytes_needed(self) -> float:
        """Return what planning takes at the least, or what the sum takes at most."""
        if self._cost is None:
            return float(least_bytes(self._batch.model))
        return float(min(self._cost.num_bytes, memory_allowed(self._options.memory)))

    def seconds_left(self, num_workers: int) -> float:
        """Return what the sum takes, if it fits into memory."""
        cost = self._cost
        if cost is None or cost.plan is None or self.is_done or not cost.fits(self._options, math.inf):
            return math.inf
        return cost.plan.duration(num_workers)
