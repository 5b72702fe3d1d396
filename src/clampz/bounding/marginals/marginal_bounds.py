"""MarginalBounds: certified intervals for the probabilities of states."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clampz.display.formatting import DIGITS, counted, name_of, ran, round_outward, rounded_up
from clampz.display.html_repr import MOST_ROWS, HasHtml, HtmlCard, and_more, between
from clampz.model import Model, Variable
from clampz.model.frames import states_frame
from clampz.model.names import Names
from clampz.model.tables import offsets, piece_of, read_only
from clampz.numerics import Floats, Integers

# Widths up to which intervals differ in nothing but rounding.
ALIKE = 1e-9


class ByVariable(Mapping[int, Floats]):
    """Numbers for the states of some variables, end to end: `by_variable[i]`, i by index or name."""

    def __init__(self, variables: Integers, num_states: Integers, flat: Floats, names: Names) -> None:
        self.variables, self.start, self.flat, self.names = variables, offsets(num_states), read_only(flat), names

    @cached_property
    def _place(self) -> dict[int, int]:
        return {i: k for k, i in enumerate(self.variables.tolist())}

    def __getitem__(self, variable: Variable) -> Floats:
        k = self._place[self.names.index(variable) if isinstance(variable, str) else variable]
        numbers: Floats = self.flat[self.start[k] : self.start[k + 1]]
        return numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self.variables.tolist())

    def __len__(self) -> int:
        return len(self.variables)

    def __repr__(self) -> str:
        return f"ByVariable({dict(self)})" if len(self) <= 10 else f"ByVariable({len(self)} variables)"


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalBounds(HasHtml):
    """Certified: `lower[i][a] <= p(X_i = a) <= upper[i][a]` for the variables asked for, by index or name.

    Attributes
    ----------
    lower, upper
        The ends for each state of each variable.
    stopped_by
        "gap" where every interval is narrow enough, "exact", "time", "memory", "interrupt" or "callback"; "left" while
        it runs.
    """

    model: Model
    lower: ByVariable
    upper: ByVariable
    stopped_by: str
    seconds: float

    @property
    def widest(self) -> float:
        """The width of the widest interval."""
        return float((self.upper.flat - self.lower.flat).max(initial=0.0))

    @property
    def progress_words(self) -> list[str]:
        """What a live line shows while it runs."""
        return [counted(len(self.lower), "variable"), f"widest interval {rounded_up(self.widest)}"]

    def interval(self, variable: Variable) -> Floats:
        """Return lower and upper ends for a variable, by index or name, as (states, 2)."""
        i = self.model.variable_index(variable)
        return np.stack([self.lower[i], self.upper[i]], axis=1)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each state asked for: "variable", "state", "lower", "upper"."""
        ends = {"lower": self.lower.flat, "upper": self.upper.flat}
        return states_frame(self.model, ends, self.lower.variables)

    def _card(self) -> HtmlCard:
        """Show the widest intervals."""
        model, widths = self.model, np.nan_to_num(self.upper.flat - self.lower.flat)
        shown = min(len(widths), MOST_ROWS)
        chosen = np.arange(shown)
        if shown < len(widths) and self.widest > ALIKE:
            chosen = np.argpartition(-widths, shown)[:shown]
            chosen = chosen[np.lexsort((chosen, -widths[chosen]))]
        rows = []
        for row in chosen.tolist():
            k = piece_of(self.lower.start, row)
            i, a = int(self.lower.variables[k]), row - int(self.lower.start[k])
            ends = float(self.lower.flat[row]), float(self.upper.flat[row])
            low, high = round_outward(ends[0], "lower", DIGITS), round_outward(ends[1], "upper", DIGITS)
            drawn = between((0.0, 1.0), ends, width=90)
            rows.append((name_of(model.names, i), model.state_name(i, a), drawn, low, high))
        return HtmlCard(
            title="Bounds on marginals",
            facts=[
                ("variables", f"{len(self.lower):,}"),
                ("widest interval", rounded_up(self.widest)),
                ("run", ran(self.seconds, self.stopped_by)),
            ],
            columns=("variable", "state", "", "lower", "upper"),
            rows=rows,
            more=and_more(len(widths), shown, "interval"),
        )

    def __repr__(self) -> str:
        return (
            f"MarginalBounds({counted(len(self.lower), 'variable')}, widest interval {self.widest:.3g}, "
            f"{self.seconds:.2g} s, stopped by {self.stopped_by})"
        )
