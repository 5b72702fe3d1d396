"""`Scores`: the scores of several selectors, as a mapping, a frame and a table in notebooks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clampz.display.formatting import counted, name_of
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.errors import library
from clampz.model import Model
from clampz.model.frames import variable_index
from clampz.numerics import Floats

# Variables that are shown for each selector.
MOST_BEST = 5


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Mapping[str, Floats], HasHtml):
    """`scores[selector]` (n,): a score for every variable, higher is better to clamp; nan where there was no time."""

    model: Model
    by_selector: dict[str, Floats]

    def __getitem__(self, selector: str) -> Floats:
        return self.by_selector[selector]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_selector)

    def __len__(self) -> int:
        return len(self.by_selector)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each variable, by name if it has one, and a column for each selector."""
        return library("pandas").DataFrame(self.by_selector, index=variable_index(self.model))

    def _card(self) -> HtmlCard:
        """Return a card with the best variables of each selector."""
        rows = []
        for name, values in self.items():
            best = np.argsort(-values, kind="stable")[:MOST_BEST].tolist()
            words = ", ".join(f"{name_of(self.model.names, i)} ({values[i]:.4g})" for i in best if values[i] > 0)
            rows.append((name, words))
        return HtmlCard(
            title=f"Scores of {counted(self.model.num_variables, 'variable')}",
            columns=("selector", "best to clamp, with their scores"),
            rows=rows,
        )

    def __repr__(self) -> str:
        return f"Scores({counted(self.model.num_variables, 'variable')} by {', '.join(self)})"
