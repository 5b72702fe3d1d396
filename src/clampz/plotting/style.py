"""Colours and dashes of all pictures, decimals that tell values apart, and axes of one look."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.clamping.branches import Clamped
from clampz.model.results import Estimate
from clampz.numerics import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, PALE, FAINT = "#1f2a37", "#6b7684", "#aab2bc", "#dfe3e8"
ATTRACTIVE, REPULSIVE, UNSIGNED = "#2f6db3", "#c8402f", SOFT
DASHES = (0, (2.0, 1.1))
# The inside of a certified interval, and the line of its lower end.
FILL, LOWER_DASHES = "#cfd8e6", (0, (4, 1.5))

# Colours that people tell apart who see all of them or not (most by Okabe and Ito), and marks for grey.
COLOURS = (
    *("#8a939d", "#1f2a37", "#8c6d31", "#7a3f98", "#0072b2"),
    *("#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
)
MARKERS = ("|", "X", "P", "p", "o", "s", "^", "D", "v", "*", "<", ">", "h", "d", "x", "+")


def shortened(text: str, most: int) -> str:
    """Shorten a name to at most `most` characters by leaving out its middle: ends tell names apart.

    >>> shortened("temperature_17", 9), shortened("rain", 9)
    ('temp…e_17', 'rain')
    """
    if len(text) <= most:
        return text
    begin = most // 2
    return f"{text[:begin]}…{text[len(text) - (most - 1 - begin) :]}"


def numbered(names: list[str]) -> list[str]:
    """Return names of which no two are the same: with a number, where one was there before."""
    return [f"{name} #{names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)]


def finite(*values: float | None) -> list[float]:
    """Return the values that are finite."""
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def true_value(exact: Estimate | Clamped | float | None) -> float | None:
    """Return the true log Z that a caller gave, None where it is not finite."""
    return next(iter(finite(exact.log_z if isinstance(exact, Estimate | Clamped) else exact)), None)


def num_digits(spread: float) -> int:
    """Return the decimals that tell values apart which differ by `spread`, two at least."""
    return max(2, 2 - math.floor(math.log10(spread)))


def spread_apart(wanted: Floats, halves: Floats) -> Floats:
    """Return sorted places near the wanted ones, so far apart that labels of these half heights do not overlap."""
    gaps = np.concatenate([[0.0], np.cumsum(halves[1:] + halves[:-1])])
    free = wanted - gaps
    up: Floats = np.maximum.accumulate(free)
    down: Floats = np.minimum.accumulate(free[::-1])[::-1]
    placed: Floats = (up + down) / 2 + gaps
    return placed


def second_panel(ax: "Axes", rows: int, columns: int, share_x: bool = False, **ratios: tuple[float, float]) -> "Axes":
    """Return axes in the second half of a figure, below or beside these axes, which keep the first half."""
    grid = ax.figure.add_gridspec(rows, columns, **ratios)
    ax.set_subplotspec(grid[0])
    return ax.figure.add_subplot(grid[1], sharex=ax if share_x else None)


def style_axes(*panels: "Axes") -> None:
    """Draw axes without a frame: pale lines to the left and below alone, with soft ticks."""
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(PALE)
        panel.tick_params(colors=SOFT, labelsize=8, which="both")


def write_inside(ax: "Axes", text: str, **style: Any) -> None:
    """Write a text in the middle of axes, where there is nothing to draw."""
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, color=SOFT, **style)
