"""Strategy: one way to close the gap, as quanta of work that any worker may do."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from clampz.portfolio.problem import Problem
from clampz.runtime.budget import Budget

# Who does a quantum: a worker of the executor, a thread of this process, or a thread beside these, for what mostly
# waits for another process or is a look ahead that everybody waits for.
Where = Literal["anywhere", "here", "beside"]

ProblemT = TypeVar("ProblemT", bound=Problem[Any])


@dataclass(frozen=True, eq=False)
class Quantum:
    """A resumable piece of work: `function(*args, budget)` in this process, `function(*args)` in another.

    Attributes
    ----------
    label
        What the strategy wants to know when it takes what came of it.
    num_workers
        How many it keeps busy.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    budget: Budget
    where: Where = "here"
    label: Any = None
    num_workers: int = 1

    @property
    def is_cut_short(self) -> bool:
        """Whether it had to make room for another before its time."""
        return self.budget.stopped_by == "callback"


class Strategy(ABC, Generic[ProblemT]):
    """One way to close the gap of a problem.

    A scheduler asks for quanta, has them done, and hands back what came of them; bounds go into the problem then.
    `next` and `take` are called by one thread, and take no time to speak of.

    Attributes
    ----------
    name
        What brackets call it by.
    is_done
        Whether it has nothing left to do.
    is_midway
        Whether what was begun gains nothing unless it is continued.
    share
        The share of all workers' time that it has in any case, as what it finds is worth something beside nats.
    keeps_going
        Whether a run goes on for it alone when all else is done.
    is_first
        Whether it is tried before all else, as it gives a first answer.
    is_parallel
        Whether several of its quanta may be under way at once.
    closes_gap
        Whether it is no longer wanted when the gap is closed.
    is_in_order
        Whether runs that are the same every time have it, one quantum to its end.
    """

    name: ClassVar[str]
    share: float = 0.0
    keeps_going: ClassVar[bool] = True
    is_first: ClassVar[bool] = False
    is_parallel: ClassVar[bool] = False
    closes_gap: bool = True
    is_in_order: ClassVar[bool] = True

    def __init__(self, problem: ProblemT) -> None:
        self.problem = problem
        self.is_done = self.is_midway = False

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Do at once what takes a moment, before any quantum."""

    @abstractmethod
    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Return a quantum of about this many seconds, if there is one to begin now."""

    @abstractmethod
    def take(self, quantum: Quantum, found: Any) -> None:
        """Take what came of a quantum, in whichever order quanta end."""

    def fail(self, quantum: Quantum, error: Exception) -> None:
        """End, as a quantum failed, and tell it once."""
        self.end()
        warnings.warn(f"{self.name} ended: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)

    def bytes_needed(self) -> float:
        """Return the memory that the next quantum may take at most, beside what the strategy keeps."""
        return self.problem.worker_bytes

    def seconds_left(self, num_workers: int) -> float:
        """Return the seconds until it closes the gap with all workers at it; inf where nobody knows."""
        return math.inf

    def counted(self, found: Any, seconds: float) -> float:
        """Return the seconds that a quantum counts as: by default those that it took."""
        return seconds

    def expected(self, seconds: float) -> float | None:
        """Return the nats that a quantum of this many seconds is expected to close; None to go by what was measured."""
        return None

    def end(self) -> None:
        """Have nothing left to do, or fail: say so to others that wait for what it would have found."""
        self.is_done = True

    def last(self, budget: Budget) -> Quantum | None:
        """Return what is still worth doing when the run has ended before its time."""
        return None

    def withdraw(self, quantum: Quantum) -> bool:
        """Take a quantum back, as the run is over; return whether what comes of it in time is still wanted."""
        return True
