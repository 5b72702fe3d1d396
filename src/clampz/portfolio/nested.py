"""Nested: a part of a problem, as a portfolio of its own whose quanta are handed on to those who do the work."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from clampz.portfolio.problem import Problem, ResultT
from clampz.portfolio.scheduler import Scheduler, timed
from clampz.portfolio.strategy import ProblemT, Quantum, Strategy
from clampz.runtime.budget import Budget


class ShareOfRest(Budget):
    """A budget that always has a share of the time that another one has left."""

    def __init__(self, whole: Budget, share_now: Callable[[], float]) -> None:
        super().__init__(within=whole)
        self._whole, self._share_now = whole, share_now

    def left(self, share: float = 1.0) -> float:
        return self._share_now() * self._whole.left(share)


class Nested(Strategy[ProblemT]):
    """Works on a part of the problem: which quantum of it is next, a scheduler of its own says.

    Parameters
    ----------
    part, strategies
        What to work on, within the memory of the whole, and in which ways.
    share
        Tells the share of the time left that is for this part; 0 as soon as it is not wanted any more.
    tell
        Is told the part's result whenever there is a new one.

    Attributes
    ----------
    has_begun
        Whether all that takes a moment is done.
    """

    name = "part"
    is_parallel = True

    def __init__(
        self,
        problem: ProblemT,
        part: Problem[ResultT],
        strategies: Sequence[Callable[[Any], Strategy[Any]]],
        share: Callable[[], float],
        tell: Callable[[ResultT], None],
    ) -> None:
        super().__init__(problem)
        part.ledger, part.in_order = problem.ledger, problem.in_order
        self._part, self._share, self._tell = part, share, tell
        self._scheduler = Scheduler(part, strategies)
        self._told = part.news
        self._is_beginning = self.has_begun = False

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Find the first ends."""
        self._beginning = self._scheduler.begin(ShareOfRest(budget, self._share), num_workers)
        next(self._beginning, None)
        self._tell_news()

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for what else takes a moment, and from then on for what the part's scheduler has next."""
        if not self.has_begun:
            is_asked, self._is_beginning = self._is_beginning, True
            return None if is_asked else Quantum(exhaust, (self._beginning,), budget.share())
        scheduler, part = self._scheduler, self._part
        if not self._share() or scheduler.reason() is not None:
            self.is_done = True
            return None
        found = scheduler.next()
        if part.over and scheduler.is_idle:
            self.is_done, self.problem.over = True, part.over
        return found and replace(found, function=timed, args=(found.function, *found.args), label=found)

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take what came of a quantum."""
        if quantum.label is None:
            self.has_begun = True
        else:
            self._scheduler.take(quantum.label, *found)
        self.is_midway = any(each.is_midway and not each.is_done for each in self._scheduler.strategies)
        self._tell_news()

    def fail(self, quantum: Quantum, error: Exception) -> None:
        """End the strategy whose quantum failed; the others go on."""
        if quantum.label is None:
            super().fail(quantum, error)
        else:
            self._scheduler.fail(quantum.label, error)

    def withdraw(self, quantum: Quantum) -> bool:
        """Take a quantum back; return whether what comes of it in time is still wanted."""
        return quantum.label is None or self._scheduler.withdraw(quantum.label)

    def bytes_needed(self) -> float:
        """Nothing but what the part's scheduler reserves."""
        return 0.0

    def seconds_left(self, num_workers: int) -> float:
        """Return the seconds until the part is closed, if these are within its share of the time."""
        if self.is_done or not self.has_begun:
            return math.inf
        left = min(each.seconds_left(num_workers) for each in self._scheduler.strategies)
        return left if left <= self._scheduler.budget.left() else math.inf

    def _tell_news(self) -> None:
        if self._part.news != self._told:
            self._told = self._part.news
            self._tell(self._part.result(self._part.narrow() or "left", self._scheduler.budget.seconds))


def exhaust(steps: Iterator[None], budget: Budget) -> None:
    """Take all steps, or as many as there is time for."""
    for _ in steps:
        if budget.must_stop():
            return
