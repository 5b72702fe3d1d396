"""Scores: what several selectors give every variable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clampz.errors import library
from clampz.model import Model
from clampz.model.frames import variable_index
from clampz.numerics import Floats
from clampz.wording import counted


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Mapping[str, Floats]):
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
        """A pandas DataFrame with a row for each variable, by name where there are names, and a column for each
        selector."""
        return library("pandas").DataFrame(self.by_selector, index=variable_index(self.model))

    def __repr__(self) -> str:
        return f"Scores({counted(self.model.num_variables, 'variable')} by {', '.join(self)})"
