"""What a portfolio works on: a number between two ends, who moved them, and why to stop."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from clampz.model.frames import records_frame

End = Literal["lower", "upper"]
ENDS: tuple[End, End] = ("lower", "upper")
Stop = Literal["gap", "exact", "time", "leaves", "memory", "interrupt", "callback", "error", "left"]

ResultT = TypeVar("ResultT")


class Gain(NamedTuple):
    """An end that a strategy has moved, and when.

    Attributes
    ----------
    seconds
        Since the run began, those before a checkpoint included.
    strategy
        Its name, such as "mean field".
    end
        Which of the two: "lower" or "upper".
    before, after
        Where the end was, infinite at first, and where it is from then on.
    """

    seconds: float
    strategy: str
    end: End
    before: float
    after: float

    @property
    def nats(self) -> float:
        """How far; inf where either of the two is infinite."""
        return abs(self.after - self.before)


class Gains(tuple[Gain, ...]):
    """Who closed a gap: which strategy moved which end when, in order.

    >>> from clampz import bound, generators
    >>> gains = bound(generators.grid(4, 4, rng=0)).gains
    >>> gains[0].strategy, gains.holder("upper")
    ('trivial bounds', 'exact sum')
    """

    def by_strategy(self) -> dict[str, dict[str, float]]:
        """Return the nats that each strategy moved the "lower" and the "upper" end by, the first to act first.

        Where one of the two ends of a move is infinite, as where an end is found, it counts for none.

        >>> Gains([Gain(0.1, "cutset", "lower", -math.inf, 2.0), Gain(0.3, "cutset", "lower", 2.0, 2.5)]).by_strategy()
        {'cutset': {'lower': 0.5, 'upper': 0.0}}
        """
        found: dict[str, dict[str, float]] = {}
        for gain in self:
            own = found.setdefault(gain.strategy, {"lower": 0.0, "upper": 0.0})
            own[gain.end] += gain.nats if math.isfinite(gain.nats) else 0.0
        return found

    def holder(self, end: End) -> str | None:
        """Return the strategy that moved an end last, and so proved it as it is; None where nobody moved it."""
        return next((gain.strategy for gain in reversed(self) if gain.end == end), None)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each gain: "seconds", "strategy", "end", "before", "after"."""
        return records_frame(Gain._fields, self)


class Ledger:
    """The bytes of a run: what quanta under way have reserved, out of a total."""

    def __init__(self, total: float) -> None:
        self.total, self.taken = total, 0.0

    def fits(self, num_bytes: float) -> bool:
        """Whether this much can be reserved; the first in line always has it, and does what it can within."""
        return not self.taken or self.taken + num_bytes <= self.total


class Problem(ABC, Generic[ResultT]):
    """A number that is known between two ends.

    Attributes
    ----------
    enough
        The gap that is narrow enough.
    in_order
        Whether quanta are the same on any worker, however fast.
    gains
        Who moved which end when.
    ledger
        The memory of all quanta together.
    over
        Why nothing is left to do that leads to the end, if that is so.
    """

    def __init__(self, num_bytes: float, *, enough: float, in_order: bool = False) -> None:
        self.enough, self.in_order = enough, in_order
        self.ledger = Ledger(num_bytes)
        self.gains: list[Gain] = []
        self.seconds_before = 0.0
        self.over: Stop | None = None

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The best ends so far."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether nothing is left to do about the ends."""

    @property
    @abstractmethod
    def worker_bytes(self) -> float:
        """Bytes that one worker may take."""

    @abstractmethod
    def result(self, reason: Stop, seconds: float) -> ResultT:
        """Return what is known at this moment."""

    @property
    def gap(self) -> float:
        """Upper end less lower end."""
        lower, upper = self.ends
        return 0.0 if lower == upper else upper - lower

    @property
    def is_answered(self) -> bool:
        """Whether all that is wanted beside narrow ends is there."""
        return True

    @property
    def news(self) -> Hashable:
        """What somebody who looks on wants to see: whenever it changes, there is a new result."""
        return self.ends

    def limit_reached(self) -> Stop | None:
        """Return which limit other than the time is reached."""
        return None

    def look(self) -> None:
        """Do what the caller's thread has to do between quanta."""

    def note_gains(self, strategy: str, before: tuple[float, float], seconds: float) -> None:
        """Note who moved which end, from where it was before."""
        for end, old, new in zip(ENDS, before, self.ends, strict=True):
            if (new > old) if end == "lower" else (new < old):
                self.gains.append(Gain(self.seconds_before + seconds, strategy, end, old, new))

    def narrow(self) -> Stop | None:
        """Return why the ends are narrow enough; None if they are not."""
        if self.closed:
            return "exact"
        return "gap" if self.gap <= self.enough else None


def nats_gained(before: tuple[float, float], after: tuple[float, float], far: float = math.inf) -> float:
    """Return by how many nats two ends have come together; an end that was infinite was `far` away.

    >>> nats_gained((-math.inf, 3.0), (1.0, 2.5), far=100.0)
    100.5
    """
    ends = zip(before, after, strict=True)
    return sum(abs(new - old) if math.isfinite(old) else far for old, new in ends if old != new)
