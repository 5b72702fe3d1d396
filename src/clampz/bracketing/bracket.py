"""Bracket: certified bounds on log Z with the way they closed."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from clampz.drawing import Drawable
from clampz.model import Model
from clampz.wording import counted

BracketStop = Literal["gap", "exact", "time", "leaves", "memory", "interrupt", "callback", "left"]


class Point(NamedTuple):
    """The bracket at a moment."""

    seconds: float
    lower: float
    upper: float
    num_leaves: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Bracket(Drawable):
    """Certified: lower <= log Z <= upper.  Drawn, it shows both bounds over time, with the estimate between them.

    Attributes
    ----------
    estimate
        The Bethe value of the branches, held inside the bracket.
    trace
        How the bracket closed.
    stopped_by
        "gap" (narrow enough), "exact" (nothing is left to do), "time", "leaves", "memory", "interrupt", "callback";
        "left" while it runs.
    """

    model: Model
    lower: float
    upper: float
    estimate: float
    trace: tuple[Point, ...]
    stopped_by: BracketStop
    num_leaves: int
    seconds: float

    @property
    def gap(self) -> float:
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __repr__(self) -> str:
        return (
            f"Bracket({self.lower:.10g} <= log Z <= {self.upper:.10g}, gap {self.gap:.3g}, "
            f"estimate {self.estimate:.10g}; {counted(self.num_leaves, 'leaf', 'leaves')}, "
            f"{self.seconds:.2g} s, stopped by {self.stopped_by})"
        )
