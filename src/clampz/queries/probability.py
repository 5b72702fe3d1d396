"""The probability of an event, as a certified interval.

    P(event | evidence)  =  Z_in / (Z_in + Z_out)  =  Z_in / Z

with the states of the event, with the others, and with all of them.  What is outside the event is a model too where the
event is about one variable; else it is the whole that the inside is measured against.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clampz.bounding.bracket import BracketStop
from clampz.bounding.options import BoundOptions
from clampz.bounding.tree.frontier import check_room
from clampz.display.formatting import DIGITS, name_of, proven, ran, within
from clampz.display.html_repr import HasHtml, HtmlCard, between
from clampz.errors import EvidenceError
from clampz.model import Evidence, Model
from clampz.model.conditioning import given, keep_only
from clampz.numerics import EPS, ROUNDINGS, Floats
from clampz.queries.ratio_terms import Interval, Ratio, RatioTerm
from clampz.runtime.budget import Budget
from clampz.runtime.options import knows_its_options
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, with_rng

# Smaller than any number that an exponential or a logarithm rounds to in a normal way.
TINY = float(np.finfo(np.float64).tiny)
# {variable: state, or several}, in which all variables have to agree.
Event = Mapping[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Probability(HasHtml):
    """Certified: lower <= P(event | evidence) <= upper.

    Attributes
    ----------
    model
        Under the evidence.
    event
        The states of each variable that it is about, by index.
    lower, upper, estimate
        The interval, and a value inside it.
    log_lower, log_upper
        Their logarithms, for what is too small for a number.
    stopped_by
        "exact" (but for rounding), "gap" (narrow enough), "time", "memory", "interrupt" or "callback"; "left" while it
        runs.
    """

    model: Model
    event: dict[int, tuple[int, ...]]
    lower: float
    upper: float
    estimate: float
    log_lower: float
    log_upper: float
    stopped_by: BracketStop
    seconds: float

    @property
    def gap(self) -> float:
        """Upper end less lower end."""
        return self.upper - self.lower

    @property
    def progress_words(self) -> list[str]:
        """What a live line shows while it runs."""
        return [within("P", self.lower, self.upper, DIGITS)]

    def _card(self) -> HtmlCard:
        return HtmlCard(
            title=f"P({self._about})",
            facts=[
                ("proven", proven(self.lower, self.upper, "P")),
                ("", between((0.0, 1.0), (self.lower, self.upper), self.estimate)),
                ("estimate", f"{self.estimate:.6g}"),
                *([("log P", proven(self.log_lower, self.log_upper, "log P"))] if self.log_upper > -math.inf else []),
                ("run", ran(self.seconds, self.stopped_by)),
            ],
        )

    @property
    def _about(self) -> str:
        more = f" and {len(self.event) - 4} more" if len(self.event) > 4 else ""
        return ", ".join(self._said(i) for i in list(self.event)[:4]) + more

    def __repr__(self) -> str:
        return (
            f"Probability({self.lower:.10g} <= P({self._about}) <= {self.upper:.10g}, estimate {self.estimate:.10g}; "
            f"{self.seconds:.2g} s, stopped by {self.stopped_by})"
        )

    def _said(self, i: int) -> str:
        """Put into words what the event says of a variable."""
        more = " or ..." if len(self.event[i]) > 4 else ""
        states = " or ".join(self.model.state_name(i, a) for a in self.event[i][:4])
        return f"{name_of(self.model.names, i)} = {states}{more}"


@knows_its_options
def probability(
    model: Model,
    event: Event,
    *,
    evidence: Evidence | None = None,
    gap: float = 0.01,
    time: float = 60.0,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[Probability] = None,
) -> Probability:
    """Bound the probability of an event given evidence from both sides, certified; exactly on narrow models.

    As long as no configuration is known to be possible, Z may be 0 and nothing have a probability: the ends are 0 and 1
    until then, however certain an event would be.

    Parameters
    ----------
    model
        What the event is about.
    event
        `{variable: state}` or `{variable: [state, ...]}`, by index or name: each variable is in one of its states.
    evidence
        `{variable: state}`, as `Model.condition` takes it.
    gap
        The width of the interval that is narrow enough.
    time, memory, threads
        Limits, as for `bound`: seconds, bytes or text such as "2GB" (None for half of what is free), and threads (None
        for all cores).
    rng
        A whole number, or a numpy Generator whose next number is taken, for what has chance in it.
    progress
        True for a live line; or called with the interval so far as it closes, and may raise StopIteration to stop.

    Returns
    -------
    Probability
        The interval, and a value inside it.

    Raises
    ------
    EvidenceError
        Where the event or the evidence names an unknown variable or state, or the evidence is impossible.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.

    Examples
    --------
    >>> model = Model.from_binary([1.0, 0.0], [2.0], [(0, 1)], names=["a", "b"])
    >>> found = probability(model, {"b": 1}, evidence={"a": 1})
    >>> print(f"{found.estimate:.6f}", found.stopped_by)
    0.731059 exact
    """
    options = BoundOptions(**with_rng({"gap": gap, "time": time, "memory": memory, "threads": threads}, rng))
    budget = Budget(options.time)
    with as_callback(progress, "asking") as listener, budget.interruptible():
        base = given(model, evidence)
        check_room(base, options.num_bytes)
        states = as_event(base, event)
        inside, other, is_outside = _both(base, states)

        def answer(stopped_by: BracketStop, seconds: float) -> Probability:
            ends = _ends(inside, other, is_outside)
            is_known = ends["lower"] == ends["upper"]
            stopped_by = "exact" if is_known and stopped_by != "left" else stopped_by
            return Probability(model=base, event=states, **ends, stopped_by=stopped_by, seconds=seconds)

        found = Ratio((inside, other), options, answer).run(budget, listener)
        if other.is_impossible and (inside.is_impossible or not is_outside):
            known = {} if evidence is None else dict(model.as_mapping(evidence))
            if not known:
                raise EvidenceError("Z = 0, every configuration being impossible: nothing has a probability")
            raise EvidenceError(
                f"evidence {known!r:.200} is impossible: the model gives it probability zero, "
                "so that nothing has a probability under it"
            )
        return found


def as_event(model: Model, event: Event) -> dict[int, tuple[int, ...]]:
    """Return an event by index: the states of each variable, of which it is in one."""
    if not isinstance(event, Mapping):
        raise EvidenceError(
            f"event: expected a mapping {{variable: state, or a list of states}}, found {type(event).__name__}"
        )
    found: dict[int, tuple[int, ...]] = {}
    for variable, said in event.items():
        i = model.variable_index(variable)
        several = isinstance(said, Iterable) and not isinstance(said, str) and getattr(said, "ndim", 1) > 0
        states = {model.state_index(variable, state) for state in (said if several else [said])}
        if not states:
            raise EvidenceError(f"event: expected at least one state of variable {variable!r}, found none")
        found[i] = tuple(sorted(states & set(found.get(i, states))))
    return found


def _both(base: Model, event: dict[int, tuple[int, ...]]) -> tuple[RatioTerm, RatioTerm, bool]:
    """Return the inside of an event, what it is measured against, and whether that is the outside or the whole."""
    if not base.num_variables:  # there is nothing outside
        return RatioTerm.of(base), RatioTerm.impossible(base), True
    start, inside, outside = base.unary.start, base.unary.flat.copy(), base.unary.flat.copy()
    others = {i: np.setdiff1d(np.arange(base.num_states[i]), states) for i, states in event.items()}
    says = [i for i, states in others.items() if (base.unary.flat[start[i] + states] > -np.inf).any()]
    for i in says:
        keep_only(inside, start, i, event[i])
    if len(says) > 1:
        return RatioTerm.of(_with_unary(base, inside)), RatioTerm.of(_with_unary(base, base.unary.flat)), False
    if says:
        keep_only(outside, start, says[0], others[says[0]])
    else:  # whatever is possible is in the event
        outside[:] = -np.inf
    return RatioTerm.of(_with_unary(base, inside)), RatioTerm.of(_with_unary(base, outside)), True


def _with_unary(model: Model, unary: Floats) -> Model:
    """Replace the unary potentials, without the constant, which all have and which would only cost digits."""
    return Model.from_contents(model.contents._replace(unary=unary, constant=0.0))


def _of_odds(log_odds: float) -> float:
    """Return the logarithm of the probability that has these log-odds."""
    return math.nan if math.isnan(log_odds) else -float(np.logaddexp(0.0, -log_odds))


def _ends(inside: RatioTerm, other: RatioTerm, is_outside: bool) -> dict[str, float]:
    """Return the probability and its logarithm, rounded outwards."""
    if inside.is_impossible or (is_outside and other.is_impossible):
        value = 0.0 if inside.is_impossible else 1.0
        # as long as it may be that Z = 0, nothing is certain to have a probability
        lower, upper = (value, value) if inside.is_possible or other.is_possible else (0.0, 1.0)
        logs = {"log_lower": 0.0 if lower else -math.inf, "log_upper": 0.0 if upper else -math.inf}
        return {"lower": lower, "upper": upper, "estimate": value, **logs}
    log_lower, log_upper, log_estimate = Interval.of_difference(inside, other)
    if is_outside:
        log_lower, log_upper, log_estimate = map(_of_odds, (log_lower, log_upper, log_estimate))
    log_lower = min(log_lower * (1 + ROUNDINGS * EPS), -TINY)
    log_upper = min(log_upper * (1 - ROUNDINGS * EPS), 0.0)
    lower = max(0.0, math.exp(log_lower) * (1 - 4 * EPS) - TINY)
    upper = min(1.0, math.exp(log_upper) * (1 + 4 * EPS) + TINY)
    estimate = lower + (upper - lower) / 2 if math.isnan(log_estimate) else math.exp(min(log_estimate, 0.0))
    estimate = min(max(estimate, lower), upper)
    return {"lower": lower, "upper": upper, "estimate": estimate, "log_lower": log_lower, "log_upper": log_upper}
