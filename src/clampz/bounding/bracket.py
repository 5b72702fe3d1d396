"""Bracket: certified bounds on log Z with the way they closed."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from clampz.display.formatting import (
    as_interval,
    counted,
    digits_between,
    ran,
    round_outward,
    rounded_up,
    with_error,
    within,
)
from clampz.display.html_repr import HasHtml, HtmlCard, between
from clampz.display.plot_hooks import Drawable
from clampz.model import Model
from clampz.model.frames import records_frame
from clampz.portfolio.problem import End, Gains, Stop
from clampz.sampling.statistics import Sampled, interval

BracketStop = Stop
# Who says what an estimate is: Bethe with a few variables clamped, draws with weights, a count that is right with high
# probability, or the bounds, where only rounding is between them.
EstimateBy = Literal["Bethe", "sampling", "counting", "bounds"]
# Nats outside a bracket up to which a value is held inside it: what is further off is no estimate.
NEAR = 1.0
# Nats: a bracket as narrow is log Z but for rounding.
ROUNDING = 1e-6
# The head of a table of gains.
GAIN_COLUMNS = ("who closed the gap", "nats of the lower end", "nats of the upper end")


class PointEstimate(NamedTuple):
    """What is said of log Z that proves nothing, and who says it; or None, and why, in a sentence."""

    value: float | None
    why_none: str = ""
    by: EstimateBy = "Bethe"
    standard_error: float | None = None

    def within(self, lower: float, upper: float, *, closed: bool = False) -> "PointEstimate":
        """Return the estimate as bounds allow it: held inside them if it is near, and none if it is far outside.

        Where nothing but rounding is between the bounds, their middle is log Z and so the estimate.

        >>> PointEstimate(5.2).within(3.0, 5.0).value, PointEstimate(70.0).within(3.0, 5.0).why_none
        (5.0, "Bethe's value 70 is far outside the bracket [3, 5].")
        """
        if lower == upper:
            return PointEstimate(lower, by="bounds")
        if math.isfinite(upper - lower) and (closed or upper - lower <= ROUNDING):
            return PointEstimate(lower + (upper - lower) / 2, by="bounds")
        if self.value is None:
            return self
        if self.by == "sampling":  # chance may take it outside
            return self._replace(value=min(max(self.value, lower), upper))
        # a count is right or it is wrong: only rounding may take a right one outside
        near = NEAR if self.by == "Bethe" else ROUNDING * (1.0 + abs(self.value))
        if not lower - near <= self.value <= upper + near:
            what = "Bethe's value" if self.by == "Bethe" else "The count"
            return PointEstimate(
                None, f"{what} {self.value:.6g} is far outside the bracket [{lower:.6g}, {upper:.6g}]."
            )
        return self._replace(value=min(max(self.value, lower), upper))


class ContradictionError(RuntimeError):
    """Bounds that cannot both hold."""


class Point(NamedTuple):
    """The bracket at a moment."""

    seconds: float
    lower: float
    upper: float
    num_leaves: int


class HasInterval(Protocol):
    """An estimate that may be by sampling."""

    @property
    def standard_error(self) -> float | None: ...
    def interval(self, confidence: float = 0.95) -> tuple[float, float]: ...


def statistical(found: HasInterval) -> list[tuple[str, str]]:
    """Put the interval of an estimate by sampling into words, as a fact of its own: it is not proven."""
    if found.standard_error is None:
        return []
    return [("95% interval", f"{as_interval(found.interval(), found.standard_error)}, statistical")]


def gain_rows(gains: Gains) -> list[tuple[str, str, str]]:
    """Return a row for each strategy that moved an end: its name, and the nats of the lower and of the upper end.

    "first" stands for an end that it found and moved no further.
    """
    found = {(gain.strategy, gain.end) for gain in gains}

    def in_words(name: str, end: End, nats: float) -> str:
        return "" if (name, end) not in found else rounded_up(nats) if nats else "first"

    return [
        (name, in_words(name, "lower", nats["lower"]), in_words(name, "upper", nats["upper"]))
        for name, nats in gains.by_strategy().items()
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Bracket(Drawable, HasHtml):
    """Certified: lower <= log Z <= upper.  Drawn, it shows both bounds over time, with the estimate between them.

    Attributes
    ----------
    lower, upper
        The certified ends, rounding included.
    estimate, estimate_by, why_no_estimate
        A value inside the bracket, and whose it is: "sampling" (the mean weight of draws from an upper bound), "Bethe"
        (with a few variables clamped), where that has the smaller error by all that is known, "counting" (right with
        high probability, not proven), or "bounds" (of a closed bracket its middle, which is log Z).  Or None, and why,
        in a sentence: Bethe did not converge in its share of the time, say, or is far outside.
    standard_error
        Of the estimate, where it is by sampling: statistical, not certified; otherwise None.
    sampled
        What was drawn, proposal by proposal, dead draws counted; see `interval`.
    trace
        How the bracket closed, moment by moment.
    gains
        Who closed it: which strategy moved which end when.
    stopped_by
        "gap" (narrow enough), "exact" (nothing is left to do), "time", "leaves", "memory", "interrupt", "callback";
        "error" where strategies that a warning named have failed; "left" while it runs.
    num_leaves, seconds
        Leaves of the tree at the end, and what all of it took.
    """

    model: Model
    lower: float
    upper: float
    estimate: float | None
    estimate_by: EstimateBy = "Bethe"
    why_no_estimate: str = ""
    standard_error: float | None = None
    sampled: tuple[Sampled, ...] = ()
    trace: tuple[Point, ...]
    gains: Gains = field(default_factory=Gains)
    stopped_by: BracketStop
    num_leaves: int
    seconds: float

    @property
    def gap(self) -> float:
        """Upper end less lower end."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """*Statistical*, not certified: ends, inside the bracket, that log Z is between with this probability at least.

        By the weights of draws from upper bounds, which these bounds limit: the empirical-Bernstein inequality at
        doublings of their number, so that it holds whenever the run was stopped (`sampling/statistics.py`).  Where
        nothing was drawn, the certified ends.

        >>> from clampz import bound, generators
        >>> closed = bound(generators.grid(4, 4, rng=0))
        >>> closed.interval(0.99) == (closed.lower, closed.upper)
        True
        """
        low, high = interval(self.sampled, confidence)
        if low > high or low > self.upper or high < self.lower:  # those that chance has led astray say nothing
            return self.lower, self.upper
        return max(low, self.lower), min(high, self.upper)

    @property
    def progress_words(self) -> list[str]:
        """What a live line shows while it runs."""
        words = [within("log Z", self.lower, self.upper), f"gap {self.gap:.3g} nats"]
        if self.estimate is not None and self.standard_error is not None:
            words.append(f"about {with_error(self.estimate, self.standard_error)} (statistical)")
        return [*words, counted(self.num_leaves, "leaf", "leaves")]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Both bounds in words, rounded outwards, with the gap and the estimate; more decimals for a narrower gap."""
        digits = digits_between(self.lower, self.upper)
        return [
            ("lower", round_outward(self.lower, "lower", digits)),
            ("upper", round_outward(self.upper, "upper", digits)),
            ("gap", f"{rounded_up(self.gap)} nats"),
            ("estimate", self._estimate_in_words(digits)),
            *statistical(self),
        ]

    def _estimate_in_words(self, digits: int) -> str:
        """The estimate, or why there is none."""
        if self.estimate is None:
            return f"none. {self.why_no_estimate}"
        if self.standard_error is not None:
            return f"{with_error(self.estimate, self.standard_error)} (sampling)"
        is_counted = self.estimate_by == "counting"
        return f"{self.estimate:.{digits}f}" + (", counted: right with high probability" if is_counted else "")

    @property
    def proven_by(self) -> str:
        """Which strategies proved the two ends, in a few words; "" where nobody knows."""
        upper, lower = self.gains.holder("upper"), self.gains.holder("lower")
        if upper == lower:
            return f"both ends by {upper}" if upper else ""
        return ", ".join(f"{end} by {name}" for end, name in (("upper", upper), ("lower", lower)) if name)

    def _card(self) -> HtmlCard:
        ends = ((point.lower, point.upper) for point in self.trace)
        widest = next((pair for pair in ends if all(map(math.isfinite, pair))), (self.lower, self.upper))
        what = "the first bracket, the one that is left of it, and the estimate"
        drawn = between(widest, (self.lower, self.upper), self.estimate, words=what)
        return HtmlCard(
            title="Bracket of log Z",
            facts=[
                *self.facts,
                *([("", drawn)] if drawn else []),
                ("leaves", f"{self.num_leaves:,}"),
                ("run", ran(self.seconds, self.stopped_by)),
            ],
            columns=GAIN_COLUMNS,
            rows=gain_rows(self.gains),
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame of the way it closed: "seconds", "lower", "upper", "num_leaves", a row for each moment."""
        return records_frame(Point._fields, self.trace)

    def __repr__(self) -> str:
        kind = "counted" if self.estimate_by == "counting" else "estimate"
        estimate = "no estimate" if self.estimate is None else f"{kind} {self.estimate:.10g}"
        if self.standard_error is not None:
            estimate += f" ± {self.standard_error:.2g} (statistical)"
        who = f"{self.proven_by}; " if self.proven_by else ""
        return (
            f"Bracket({self.lower:.10g} <= log Z <= {self.upper:.10g}, gap {self.gap:.3g}, {estimate}; {who}"
            f"{counted(self.num_leaves, 'leaf', 'leaves')}, {self.seconds:.2g} s, stopped by {self.stopped_by})"
        )
