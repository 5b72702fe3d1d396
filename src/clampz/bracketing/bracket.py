"""Bracket: certified bounds on log Z with the way they closed."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from clampz.drawing import Drawable
from clampz.model import Model
from clampz.wording import counted

BracketStop = Literal["gap", "exact", "time", "leaves", "memory", "interrupt", "callback", "left"]
# Who says what an estimate is: Bethe with a few variables clamped, a count that is right with high probability, or the
# bounds, where only rounding is between them.
EstimateBy = Literal["Bethe", "counting", "bounds"]
# Nats outside a bracket up to which a value is held inside it: what is further off is no estimate.
NEAR = 1.0
# Nats: a bracket as narrow is log Z but for rounding.
ROUNDING = 1e-6


class Guess(NamedTuple):
    """What is said of log Z that proves nothing, and who says it; or None, and why, in a sentence."""

    value: float | None
    why_none: str = ""
    by: EstimateBy = "Bethe"

    def within(self, lower: float, upper: float, *, closed: bool = False) -> "Guess":
        """The same as bounds allow it: held inside them if it is near; the middle where nothing but rounding is between
        them, as then that is log Z.

        >>> Guess(5.2).within(3.0, 5.0).value, Guess(70.0).within(3.0, 5.0).why_none
        (5.0, "Bethe's value 70 is far outside the bracket [3, 5].")
        """
        if lower == upper:
            return Guess(lower, by="bounds")
        if math.isfinite(upper - lower) and (closed or upper - lower <= ROUNDING):
            return Guess(lower + (upper - lower) / 2, by="bounds")
        if self.value is None:
            return self
        # a count is right or it is wrong: only rounding may take a right one outside
        near = NEAR if self.by == "Bethe" else ROUNDING * (1.0 + abs(self.value))
        if not lower - near <= self.value <= upper + near:
            what = "Bethe's value" if self.by == "Bethe" else "The count"
            return Guess(None, f"{what} {self.value:.6g} is far outside the bracket [{lower:.6g}, {upper:.6g}].")
        return self._replace(value=min(max(self.value, lower), upper))


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
    estimate, estimate_by, why_no_estimate
        A value inside the bracket, and whose it is: "Bethe" (with a few variables clamped), "counting" (right with high
        probability, not proven), or "bounds" (of a closed bracket its middle, which is log Z).  Or None, and why, in a
        sentence: Bethe did not settle in its share of the time, say, or is far outside.
    trace
        How the bracket closed.
    stopped_by
        "gap" (narrow enough), "exact" (nothing is left to do), "time", "leaves", "memory", "interrupt", "callback";
        "left" while it runs.
    """

    model: Model
    lower: float
    upper: float
    estimate: float | None
    estimate_by: EstimateBy = "Bethe"
    why_no_estimate: str = ""
    trace: tuple[Point, ...]
    stopped_by: BracketStop
    num_leaves: int
    seconds: float

    @property
    def gap(self) -> float:
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __repr__(self) -> str:
        kind = "counted" if self.estimate_by == "counting" else "estimate"
        estimate = "no estimate" if self.estimate is None else f"{kind} {self.estimate:.10g}"
        return (
            f"Bracket({self.lower:.10g} <= log Z <= {self.upper:.10g}, gap {self.gap:.3g}, {estimate}; "
            f"{counted(self.num_leaves, 'leaf', 'leaves')}, {self.seconds:.2g} s, stopped by {self.stopped_by})"
        )
