"""MapProblem: the largest score of a model between two ends, and what strategies share."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from clampz.map_inference.components import Component, Limits
from clampz.map_inference.local_search import folding_error, rounded_sum, score_of
from clampz.map_inference.results import Mode, ModeStop, ModeTrace, Scored
from clampz.model import Model
from clampz.portfolio.problem import Problem, Stop
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.presolve.simplified import Simplified, unchanged
from clampz.runtime.budget import Budget
from clampz.runtime.progress import says_stop

# Seconds between two words to the listener.
BETWEEN_WORDS = 0.1


class MapProblem(Problem[ModeTrace]):
    """The largest score of a model: a configuration attains the lower end, none exceeds the upper one.

    Attributes
    ----------
    simplified
        What presolve leaves of the model.
    parts
        The components of that, or all of it as one.
    lacks_memory
        More could be done about it with more memory.
    trace
        How the ends closed.
    """

    def __init__(
        self,
        model: Model,
        limits: Limits,
        budget: Budget,
        listener: Callable[[ModeTrace], object] | None = None,
        unfolded: Model | None = None,
    ) -> None:
        """Begin with ends that one pass over the tables gives.

        `unfolded` is the model before states that are known were folded into its tables, which rounds: what is found is
        scored by it.
        """
        # several configurations are found when nothing is left of the search
        super().__init__(limits.num_bytes, enough=limits.gap if limits.num_best == 1 else -math.inf)
        self.model, self.limits, self.budget = model, limits, budget
        self._scored_by = model if unfolded is None else unfolded
        self._folding_error = 0.0 if unfolded is None else folding_error(model)
        self._listener, self._told = listener, 0.0
        self.simplified = unchanged(model, "max")
        self.parts = [Component.of(model, np.arange(model.num_variables), limits)]
        self.lacks_memory = False
        self._first, self._ends_before = self.found(), (-math.inf, math.inf)
        self.trace = [ModeTrace(budget.seconds, *self.ends)]

    def reduce(self, simplified: Simplified, whole: Component) -> None:
        """Work on what presolve leaves."""
        self._ends_before, self.simplified, self.parts = self.ends, simplified, [whole]

    def take_apart(self, parts: list[Component]) -> None:
        """Work on components one by one."""
        self._ends_before, self.parts = self.ends, parts

    def widest(self, is_wanted: Callable[[Component], bool]) -> Component | None:
        """Return the open component of the largest gap, of those that are wanted."""
        return max(
            (each for each in self.parts if not each.is_done and is_wanted(each)), key=attrgetter("gap"), default=None
        )

    @property
    def ends(self) -> tuple[float, float]:
        """Bounds on the largest score, from all components; rounding is charged."""
        if self.simplified.infeasibility:
            return -math.inf, -math.inf
        lower, upper = self.parts[0].lower, self.parts[0].upper
        if len(self.parts) > 1:
            constant = self.simplified.model.constant
            lower = rounded_sum([constant, *(part.lower for part in self.parts)], -1.0)
            upper = rounded_sum([constant, *(part.upper for part in self.parts)], 1.0)
        lower, upper = self.simplified.bounds(lower, upper)
        lower, upper = lower - self._folding_error, upper + self._folding_error
        return max(lower, self._ends_before[0]), min(upper, self._ends_before[1])

    @property
    def closed(self) -> bool:
        """Whether nothing is left to look for in any component, or no configuration is possible."""
        return bool(self.simplified.infeasibility) or all(part.is_done for part in self.parts)

    @property
    def worker_bytes(self) -> float:
        """Bytes of the run: its quanta come one after another, so that no result depends on how fast they are."""
        return self.limits.num_bytes

    def look(self) -> None:
        """Tell the listener if it was long ago."""
        if perf_counter() > self._told + BETWEEN_WORDS:
            self.tell()

    def tell(self) -> None:
        """Tell the listener, and end the run if it says so."""
        self._told = perf_counter()
        if says_stop(self._listener, ModeTrace(self.budget.seconds, *self.ends)):
            self._listener = None
            self.budget.stop("callback")

    def result(self, reason: Stop, seconds: float) -> ModeTrace:
        """Return the ends at this moment, and add them to the trace where they have changed."""
        moment = ModeTrace(self.budget.seconds, *self.ends)
        if moment[1:] != self.trace[-1][1:]:
            self.trace.append(moment)
        return moment

    def found(self) -> list[Scored]:
        """Return the best configurations of the original model, each scored with one rounding."""
        if self.simplified.infeasibility or not all(part.found for part in self.parts):
            return []
        num = min(len(part.found) for part in self.parts)
        rest = np.zeros((num, self.simplified.model.num_variables), dtype=np.int64)
        for part in self.parts:
            for k in range(num):
                rest[k, part.variables] = part.found[k][1]
        whole = self.simplified.states(rest, rng=0).astype(np.int32)
        return best_of([Scored(states, score_of(self._scored_by, states)) for states in whole], self.limits.num_best)

    def mode(self) -> Mode:
        """Return the best configurations found, the one of the first pass included, and the ends."""
        found = self.found() if self.simplified.is_trivial else best_of(self.found() + self._first, 1)
        lower, upper = self.ends
        if found and upper > -math.inf:
            lower, upper = found[0].score, max(upper, found[0].score)
        seconds, is_optimal = self.budget.seconds, self.narrow() is not None
        return Mode(
            model=self.model,
            best=tuple(found),
            upper=upper,
            is_optimal=is_optimal,
            trace=(*self.trace, ModeTrace(seconds, lower, upper)),
            stopped_by="optimal" if is_optimal else self._stopped_by(),
            seconds=seconds,
        )

    def _stopped_by(self) -> ModeStop:
        """Return "memory" where nothing was left to do with the memory that there is."""
        reason = self.budget.stopped_by
        if reason == "interrupt" or reason == "callback":
            return reason
        lacks_memory = self.lacks_memory or not all(part.has_room for part in self.parts)
        return "memory" if lacks_memory and not self.budget.must_stop() else "time"


class Done(NamedTuple):
    """What came of a quantum, and the seconds that it counts as: what it did, by known rates."""

    seconds: float
    found: Any


class MapStrategy(Strategy[MapProblem]):
    """A strategy of which a run has the same quanta on any number of threads, however fast these are."""

    def ask(self, function: Callable[..., Done], *args: Any, budget: Budget, num_workers: int) -> Quantum:
        """Return a quantum that has all workers to itself."""
        return Quantum(function, args, budget.share(), label=args[0] if args else None, num_workers=num_workers)

    def counted(self, found: Done, seconds: float) -> float:
        """Count what was done, whatever it took."""
        return found.seconds


class Improving(MapStrategy):
    """A strategy that looks for better configurations, with a generator of its own for each quantum.

    It never waits: what it is worth falls with what it gained of late, and it always has its share.
    """

    def __init__(self, problem: MapProblem) -> None:
        super().__init__(problem)
        self._has_gained, self.is_midway = False, True
        self._num_quanta = 0

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for a search in the component of the largest gap, of those that it is for."""
        part = self.problem.widest(lambda each: self.is_for(each, budget))
        if part is None:
            return None
        self._num_quanta += 1
        rng = np.random.default_rng([part.limits.seed, self._num_quanta])
        return self.ask(self.search, part, rng, budget=budget, num_workers=num_workers)

    def take(self, quantum: Quantum, found: Done) -> None:
        """Take configurations."""
        part, lower = quantum.label, quantum.label.lower
        part.take(*found.found)
        self._has_gained |= part.lower > lower

    def expected(self, seconds: float) -> float | None:
        """Expect nothing of what has never found anything better; else what it gained of late."""
        return None if self._has_gained else 0.0

    @abstractmethod
    def is_for(self, part: Component, budget: Budget) -> bool:
        """Whether there is memory and time to search a component."""

    @abstractmethod
    def search(self, part: Component, rng: np.random.Generator, budget: Budget) -> Done:
        """Return configurations that may be better than all before."""


def best_of(found: Sequence[Scored], num_best: int) -> list[Scored]:
    """Return the best of configurations that are possible, best first."""
    return sorted((each for each in found if each.score > -math.inf), key=lambda each: -each.score)[:num_best]
