"""The picture of the estimates of several methods, and of the interval that their bounds prove."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clampz.display.formatting import KINDS, Bound, round_outward, title
from clampz.model.results import Estimate
from clampz.plotting.figures import new_axes, size_of
from clampz.plotting.style import FAINT, INK, SOFT, finite, num_digits, numbered, true_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Markers by the kind of a value: a bound's points to where log Z must be.
MARKERS: dict[Bound | None, str] = {"lower": ">", "upper": "<", "exact": "D", None: "o"}
# In points: from a marker to the text beside it, and the width of a character of that text.
BESIDE, CHARACTER = 8.0, 5.4

Estimated = Mapping[str, Estimate] | Iterable[Estimate]


def plot_estimates(estimates: Estimated, exact: Estimate | float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the log Z of each method in a row, and under them the interval that their bounds prove.

    Parameters
    ----------
    estimates
        Estimates of one model: `{label: estimate}`, or a list of them, labelled by method.
    exact
        The true log Z, as an estimate or a number: a vertical line, and every value says how far off it is.
    """
    rows = labelled(estimates)
    truth = true_value(exact)
    lower = max((e.lower for e in rows.values()), default=-math.inf)
    upper = min((e.upper for e in rows.values()), default=math.inf)
    proven = math.isfinite(lower) and math.isfinite(upper)
    ax = new_axes(ax, (5.0, 0.4 * len(rows) + 1.4))
    values = finite(*(e.log_z for e in rows.values()), truth) or [0.0]
    low, high = min(values), max(values)
    if high - low < 1e-6 * (1 + abs(high)):  # all the same: no scale of their own
        low, high = low - 0.5, high + 0.5
    digits = num_digits(high - low)
    bottom = len(rows) - 1 + (1.15 if proven else 0.0)
    texts: list[tuple[float, str, bool]] = []
    left_of: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "right"}
    bold: dict[str, Any] = {"fontsize": 8.5, "fontweight": "bold", "color": INK}
    for row, (label, estimate) in enumerate(rows.items()):
        value, kind = estimate.log_z, KINDS[estimate.bound]
        if kind == label:
            ax.text(-0.02, row, label, va="center", fontsize=8.5, color=INK, **left_of)
        else:
            ax.text(-0.02, row - 0.02, label, va="bottom", fontsize=8.5, color=INK, **left_of)
            ax.text(-0.02, row + 0.06, kind, va="top", fontsize=7, color=SOFT, **left_of)
        shown = round_outward(value, estimate.bound, digits)
        if not math.isfinite(value):
            ax.text(0.5, row, shown, va="center", fontsize=8.5, color=SOFT, **{**left_of, "ha": "center"})
            continue
        below = truth is not None and value < truth
        if truth is not None:
            ax.plot([value, truth], [row, row], color=SOFT, linewidth=1.0, zorder=1)
            shown += f"  ({value - truth:+.{digits}f})" if estimate.bound != "exact" else ""
        face = INK if estimate.bound else "white"
        ax.plot([value], [row], marker=MARKERS[estimate.bound], markersize=7, color=INK, markerfacecolor=face, zorder=3)
        _write_beside(ax, value, row, shown, left=below)
        texts.append((value, shown, below))
    if truth is not None:
        ax.plot([truth, truth], [-0.55, bottom + 0.45], color=INK, linewidth=1.3, zorder=1)
        ax.text(truth, -0.72, f"exact {truth:.{digits}f}", ha="center", va="bottom", **bold)
    if proven:
        ax.barh(
            [bottom], [upper - lower], left=lower, height=0.42, color=FAINT, edgecolor=SOFT, linewidth=0.8, zorder=0.5
        )
        ax.text(-0.02, bottom, "proven", va="center", **left_of, **bold)
        ends: list[tuple[float, Bound]] = [(lower, "lower"), (upper, "upper")]
        for value, end in ends:
            shown = round_outward(value, end, digits)
            _write_beside(ax, value, bottom, shown, left=end == "lower", weight="bold")
            texts.append((value, f"{shown} ", end == "lower"))  # bold is wider
    ax.set(ylim=(bottom + 0.6, -1.15), xlim=_limits_with_room(ax, texts, low, high), yticks=[])
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.tick_params(axis="x", colors=SOFT, labelsize=7.5, length=3)
    ax.locator_params(axis="x", nbins=6)
    ax.ticklabel_format(axis="x", useOffset=False)
    return ax


def labelled(estimates: Estimated) -> dict[str, Estimate]:
    """Return estimates by label; without labels they are called by their method, numbered where it occurs twice."""
    if isinstance(estimates, Mapping):
        return dict(estimates)
    found = list(estimates)
    return dict(zip(numbered([title(estimate.method) for estimate in found]), found, strict=True))


def _write_beside(ax: "Axes", value: float, row: float, text: str, *, left: bool, weight: str = "normal") -> None:
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8.5, "color": INK}
    where, side = (-BESIDE, "right") if left else (BESIDE, "left")
    ax.annotate(text.replace("-", "\N{MINUS SIGN}"), (value, row), (where, 0), ha=side, fontweight=weight, **style)


def _limits_with_room(
    ax: "Axes", texts: Sequence[tuple[float, str, bool]], low: float, high: float
) -> tuple[float, float]:
    """Return limits of the x axis, around low and high, that leave room for texts (value, text, is left of it)."""
    width, _ = size_of(ax)
    needed = [
        max((BESIDE + CHARACTER * len(text) for _, text, left in texts if left is side), default=BESIDE)
        for side in (True, False)
    ]
    # If every text began at the far end this would be the room to take; most begin further inside and then reach less
    # far out.
    point = (high - low) / max(width - sum(needed), 0.2 * width)
    left_ends = [value - point * (BESIDE + CHARACTER * len(text)) for value, text, left in texts if left]
    right_ends = [value + point * (BESIDE + CHARACTER * len(text)) for value, text, left in texts if not left]
    return min([low - point * BESIDE, *left_ends]), max([high + point * BESIDE, *right_ends])
