"""What pictures share: inks, dashes and markers, axes, and how many decimals tell values apart."""

import math
from typing import TYPE_CHECKING

from clampz.clamping.branches import Clamped
from clampz.model.results import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

INK, SOFT, PALE, FAINT = "#1f2a37", "#6b7684", "#aab2bc", "#dfe3e8"
ATTRACTIVE, REPULSIVE, UNSIGNED = "#2f6db3", "#c8402f", SOFT
DASHES = (0, (2.0, 1.1))


def new_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=150, facecolor="white", layout="constrained").add_subplot()


def shade_map() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", ["white", INK])


def finite(*values: float | None) -> list[float]:
    """Those that can be drawn."""
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def true_value(exact: Estimate | Clamped | float | None) -> float | None:
    """The true log Z that a caller gave, if it can be drawn."""
    return next(iter(finite(exact.log_z if isinstance(exact, Estimate | Clamped) else exact)), None)


def num_digits(spread: float) -> int:
    """Decimals that tell apart values so far from each other, two at least."""
    return max(2, 2 - math.floor(math.log10(spread)))
