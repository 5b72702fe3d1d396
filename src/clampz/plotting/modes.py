"""The picture of the best configuration that was found, or of bounds on its score."""

import math
from typing import TYPE_CHECKING

from clampz.display.formatting import DIGITS, round_outward, rounded_up
from clampz.map_inference.results import Mode
from clampz.plotting.bracket_trace import VALUE_SIZE, BracketTrace, Label, draw_trace, duration, write_value
from clampz.plotting.figures import new_axes
from clampz.plotting.graphs import plot_model
from clampz.plotting.legends import add_title
from clampz.plotting.style import INK, num_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_mode(mode: Mode, ax: "Axes | None" = None) -> "Axes":
    """Draw a proven best configuration on the graph, variables shaded by their states; else how the bounds closed.

    Where the best score is not proven, both bounds on it are drawn over time, and under them the gap on a log axis.  On
    axes that are given, the gap is left out.
    """
    after = f"after {duration(mode.seconds)}"
    if mode.is_optimal and mode.best:
        own, ax = ax is None, plot_model(mode.model, ax, configuration=mode.states, core=False)
        said = f"largest score {mode.score:.{DIGITS}f}, proven {after}"
        width = 72 * float(ax.figure.get_size_inches()[0])  # type: ignore[union-attr]
        add_title(ax, f"{said}: {mode.model.size_in_words}" if own else said, width, of_figure=own)
        return ax
    if mode.upper == -math.inf:
        return write_value(new_axes(ax, VALUE_SIZE), "Z = 0", "no configuration is possible")
    trace = BracketTrace.of(mode)
    if not len(trace.moments):
        return write_value(new_axes(ax, VALUE_SIZE), "nothing found, no finite bound", after)
    gap = f"gap {rounded_up(mode.gap)} nats" if mode.gap < math.inf else "one end alone"
    return draw_trace(ax, trace, "largest score", f"certified bracket, {gap} {after}", _labels(mode))


def _labels(mode: Mode) -> list[Label]:
    """Return the labels of the upper bound and of the best score found."""
    digits = num_digits(mode.gap) if mode.gap < math.inf else 2
    labels: list[Label] = []
    if mode.upper < math.inf:
        labels.append((mode.upper, f"nothing exceeds\n{round_outward(mode.upper, 'upper', digits)}", INK))
    if mode.best:
        labels.append((mode.lower, f"best found\n{round_outward(mode.lower, 'lower', digits)}", INK))
    return labels
