"""Names and numbers as people read them, the same in messages, tables and pictures."""

import math
from collections.abc import Sequence
from typing import Literal

Bound = Literal["lower", "upper", "exact"]

# Methods as a sentence names them.
TITLES = {"exact": "exact", "mean_field": "mean field", "bethe": "Bethe", "trw": "TRW", "regions": "regions"}
# What a log Z is.
KINDS: dict[Bound | None, str] = {"lower": "lower bound", "upper": "upper bound", "exact": "exact", None: "estimate"}


def title(method: str) -> str:
    """A method's name in a sentence; one that is not known is called as it is."""
    return TITLES.get(method, method.replace("_", " "))


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "leaf", "leaves"), counted(1200, "leaf", "leaves"), counted(2, "lane")
    ('1 leaf', '1,200 leaves', '2 lanes')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def round_outward(value: float, bound: Bound | None, digits: int) -> str:
    """A number in decimals, rounded so that a bound stays one: lower bounds down, upper bounds up.

    >>> round_outward(1.236, "lower", 2), round_outward(1.234, "upper", 2), round_outward(1.234, None, 2)
    ('1.23', '1.24', '1.23')
    """
    if math.isfinite(value) and bound in ("lower", "upper"):
        scaled = value * 10**digits
        value = (math.floor(scaled) if bound == "lower" else math.ceil(scaled)) / 10**digits
    return f"{value:.{digits}f}"


def name_of(names: Sequence[str] | None, variable: int) -> str:
    """A variable as the user knows it: by its name where a model has names, otherwise by its number."""
    return names[variable] if names is not None else str(variable)


def some(names: Sequence[object], limit: int = 8) -> str:
    """The first few names, for a message."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
