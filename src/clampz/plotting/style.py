"""What pictures share: inks, dashes, and how many decimals tell values apart."""

import math

import numpy as np

from clampz.clamping.branches import Clamped
from clampz.model.results import Estimate
from clampz.numerics import Floats

INK, SOFT, PALE, FAINT = "#1f2a37", "#6b7684", "#aab2bc", "#dfe3e8"
ATTRACTIVE, REPULSIVE, UNSIGNED = "#2f6db3", "#c8402f", SOFT
DASHES = (0, (2.0, 1.1))
# Of certified intervals: what is inside, and the line of the lower end.
FILL, LOWER_DASHES = "#cfd8e6", (0, (4, 1.5))


def shortened(text: str, most: int) -> str:
    """A name of so many characters at most: what is in its middle goes, as ends tell names apart.

    >>> shortened("temperature_17", 9), shortened("rain", 9)
    ('temp…e_17', 'rain')
    """
    if len(text) <= most:
        return text
    begin = most // 2
    return f"{text[:begin]}…{text[len(text) - (most - 1 - begin) :]}"


def finite(*values: float | None) -> list[float]:
    """Those that can be drawn."""
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def true_value(exact: Estimate | Clamped | float | None) -> float | None:
    """The true log Z that a caller gave, if it can be drawn."""
    return next(iter(finite(exact.log_z if isinstance(exact, Estimate | Clamped) else exact)), None)


def num_digits(spread: float) -> int:
    """Decimals that tell apart values so far from each other, two at least."""
    return max(2, 2 - math.floor(math.log10(spread)))


def apart(wanted: Floats, halves: Floats) -> Floats:
    """Places in order that are near the wanted ones (in order too), and as far from each other as their half heights
    need."""
    gaps = np.concatenate([[0.0], np.cumsum(halves[1:] + halves[:-1])])
    free = wanted - gaps
    up: Floats = np.maximum.accumulate(free)
    down: Floats = np.minimum.accumulate(free[::-1])[::-1]
    placed: Floats = (up + down) / 2 + gaps
    return placed
