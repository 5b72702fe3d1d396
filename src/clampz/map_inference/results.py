"""Mode: the best configuration found, and how much better another could be."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.display.formatting import counted, proven, ran, rounded_up, within
from clampz.display.html_repr import MOST_ROWS, HasHtml, HtmlCard, and_more
from clampz.display.plot_hooks import Drawable
from clampz.model import Model
from clampz.model.frames import configurations_frame
from clampz.model.html import configuration_rows
from clampz.model.variables import State, Variable

ModeStop = Literal["optimal", "time", "memory", "interrupt", "callback"]


class ModeTrace(NamedTuple):
    """What was known of the largest score at a moment: what a progress callback is given.

    Attributes
    ----------
    seconds
        Since the run began.
    lower, upper
        The best score found by then, and what no configuration exceeds.
    """

    seconds: float
    lower: float
    upper: float

    @property
    def progress_words(self) -> list[str]:
        """What a live line shows while it runs."""
        return [within("best score", self.lower, self.upper)]


class Scored(NamedTuple):
    """A configuration, as indices of states, and its score."""

    states: NDArray[np.int32]
    score: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Mode(Drawable, HasHtml):
    """The best configuration found.  Certified: lower <= the largest score <= upper.

    Attributes
    ----------
    best
        As many of the best configurations as were asked for, best first, with their scores; fewer where fewer are
        possible or were found.
    states, configuration, score
        The first of them: its states by index (n,), by name, and its score, which is attained and so a lower bound.
        None and -inf where none was found.
    configurations
        All of them by name.
    lower, upper
        `score`, and what no configuration exceeds, rounding charged; -inf where no configuration is possible: Z = 0.
    is_optimal
        No configuration is better by more than the gap that was asked for and rounding; of several, none that is not
        among them.
    trace
        How the two ends closed.
    stopped_by
        "optimal", "time", "memory" (not enough for any bound that is better), "interrupt" or "callback".
    """

    model: Model
    best: tuple[Scored, ...]
    upper: float
    is_optimal: bool
    trace: tuple[ModeTrace, ...] = field(repr=False)
    stopped_by: ModeStop
    seconds: float

    @property
    def states(self) -> NDArray[np.int32] | None:
        return self.best[0].states if self.best else None

    @property
    def score(self) -> float:
        return self.best[0].score if self.best else -math.inf

    @property
    def lower(self) -> float:
        return self.score

    @property
    def gap(self) -> float:
        """Upper end less lower end."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @cached_property
    def configuration(self) -> dict[Variable, State] | None:
        """`{variable: state}`, by name where the model has names."""
        return None if self.states is None else self.model.named_configuration(self.states)

    @cached_property
    def configurations(self) -> list[dict[Variable, State]]:
        return [self.model.named_configuration(one.states) for one in self.best]

    def _card(self) -> HtmlCard:
        scores = {"score": [f"{one.score:.6f}" for one in self.best[:MOST_ROWS]]}
        columns, rows = configuration_rows(self.model, [one.states for one in self.best[:MOST_ROWS]], scores)
        return HtmlCard(
            title="Best configuration" if len(self.best) < 2 else f"Best {len(self.best):,} configurations",
            facts=[
                ("proven", proven(self.lower, self.upper, "largest score")),
                ("optimal", "yes" if self.is_optimal else f"not proven: gap {rounded_up(self.gap)} nats"),
                ("run", ran(self.seconds, self.stopped_by)),
            ],
            columns=columns,
            rows=rows,
            more=and_more(len(self.best), len(rows), "configuration"),
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each configuration, best first, and its "score"."""
        states = np.array([one.states for one in self.best], dtype=np.int32)
        states = states.reshape(len(self.best), self.model.num_variables)
        return configurations_frame(self.model, states, {"score": [one.score for one in self.best]})

    def __repr__(self) -> str:
        if self.upper == -math.inf:
            return f"Mode(no configuration is possible: Z = 0; {self.seconds:.2g} s)"
        found = f"score {self.score:.10g}" if self.best else "no configuration found"
        ends = "optimal" if self.is_optimal else f"at most {self.upper:.10g}, gap {self.gap:.3g}"
        several = f", the best of {counted(len(self.best), 'configuration')}" if len(self.best) > 1 else ""
        return f"Mode({found} ({ends}){several}; {self.seconds:.2g} s, stopped by {self.stopped_by})"
