"""A run of `solve`, and the limits that all of its methods share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from clampz.bounding.bracket import Bracket
from clampz.clamping.branches import Clamped
from clampz.method import Method
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, stopped_estimates
from clampz.runtime.budget import Budget, Progress
from clampz.runtime.options import memory_allowed
from clampz.solving.solution import Found, Solution

# Seconds for what is not exact, and for what is exact, where the caller sets none.
DEFAULT_TIME, EXACT_TIME = 10.0, 60.0

# Bytes that all but exact sums may take in any case: fewer than kernels and threads do by themselves.
LITTLE = 10**7

FoundT = TypeVar("FoundT", Estimate, Clamped)


@dataclass(frozen=True)
class Run:
    """The limits of a run: its clock and a share of it, threads, memory, whether it has marginals, and a callback."""

    whole: Budget
    budget: Budget
    threads: int | None
    memory: int | str | None
    marginals: bool
    progress: Callable[[Progress | Bracket], object] | None
    seed: int

    def share(self, share: float) -> "Run":
        """Return a run with a share of the time left."""
        return replace(self, budget=self.budget.share(share))

    def limited(self, seconds: float) -> "Run":
        """Return a run with `seconds` at most."""
        return replace(self, budget=Budget(min(seconds, self.budget.left()), within=self.budget))

    @property
    def room(self) -> int:
        """Bytes for all that is not exact."""
        return max(memory_allowed(self.memory), LITTLE)

    def options(self, share: float = 1.0) -> dict[str, Any]:
        limits = {"time": self.budget.left(share), "threads": self.threads, "memory": self.room}
        return {**limits, "progress": self.tell, "rng": self.seed}

    def tell(self, progress: Progress | Bracket) -> None:
        """Tell the callback; StopIteration stops the method once the run is interrupted."""
        if self.interrupted:
            raise StopIteration
        if self.progress is not None:
            self.progress(progress)

    def by(self, method: Method[Any], model: Model, share: float = 1.0, **own: Any) -> Estimate:
        """Solve by a method in a share of the time left; OptionError where there is no memory for it."""
        start, limits = own.pop("start", None), self.options(share)
        progress, rng = limits.pop("progress"), limits.pop("rng")
        options = method.options(None, method.with_rng(limits | own, rng))
        found = method.solve(Batch.of(model), options, start, progress, within=self.budget)
        return self.as_callback(found[0])

    def by_if_it_fits(self, method: Method[Any], model: Model, share: float = 1.0, **own: Any) -> Estimate:
        """Solve by a method if there is memory for it; else return a result that says nothing."""
        if method.fits(model, self.room):
            return self.by(method, model, share, **own)
        return stopped_estimates(method.name, model, 1, method.options(None, {}), "memory")[0]

    def as_callback(self, found: FoundT) -> FoundT:
        """Return the result; if its method was stopped from outside, the rest stops too."""
        if found.stopped_by in ("interrupt", "callback"):
            self.budget.stop(found.stopped_by)
        return found

    @property
    def interrupted(self) -> bool:
        self.budget.must_stop()
        return self.budget.stopped_by in ("interrupt", "callback")

    def solution(self, found: Found, reason: str, **more: Any) -> Solution:
        """Make the run's solution of a method's result."""
        return Solution.of(found, reason, seconds=self.whole.seconds, interrupted=self.interrupted, **more)
