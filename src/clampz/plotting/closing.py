"""The picture of a bracket that closes."""

import math
from typing import TYPE_CHECKING, Any

from clampz.bracketing.bracket import Bracket
from clampz.plotting.style import ATTRACTIVE, INK, SOFT, new_axes, num_digits
from clampz.wording import as_interval, counted, round_outward, with_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILL = "#cfd8e6"
# Seconds below which the time axis does not begin.
FIRST_MOMENT = 1e-3


def plot_closing(bracket: Bracket, ax: "Axes | None" = None) -> "Axes":
    """Draw both bounds over time (log axis), the estimate between them if there is one, and what is left of the gap.

    Of an estimate by sampling the interval is a band: it is statistical, not proven.
    """
    ax = new_axes(ax, (6.0, 3.4))
    points = [point for point in bracket.trace if math.isfinite(point.lower) and math.isfinite(point.upper)]
    if not points:
        ax.text(0.5, 0.5, "no finite bracket yet", ha="center", va="center", transform=ax.transAxes, color=SOFT)
        return ax
    moments = [max(point.seconds, FIRST_MOMENT) for point in points]
    end = max(bracket.seconds, moments[-1] * 1.05)
    moments.append(end)
    lower, upper = [point.lower for point in points], [point.upper for point in points]
    lower.append(lower[-1])
    upper.append(upper[-1])
    ax.fill_between(moments, lower, upper, step="post", color=FILL, linewidth=0, zorder=1)
    ax.step(moments, upper, where="post", color=INK, linewidth=1.4, zorder=3)
    ax.step(moments, lower, where="post", color=INK, linewidth=1.4, linestyle=(0, (4, 1.5)), zorder=3)
    if bracket.estimate is not None:
        marker: dict[str, Any] = {"marker": "o", "markersize": 5, "color": INK, "markerfacecolor": "white"}
        ax.plot([end], [bracket.estimate], zorder=4, clip_on=False, **marker)
    if bracket.standard_error is not None:
        ax.axhspan(*bracket.interval(), color=ATTRACTIVE, alpha=0.35, linewidth=0.8, zorder=2)
    ax.set_xscale("log")
    ax.set_xlim(moments[0], end)
    # early bounds may be many times wider than what matters in the end
    gap, first = upper[-1] - lower[-1], upper[0] - lower[0]
    room = min(first, max(30 * gap, 0.1 * first))
    if room > 0:
        below, above = max(min(lower), lower[-1] - 0.5 * room), min(max(upper), upper[-1] + 0.5 * room)
        ax.set_ylim(below - 0.05 * room, above + 0.05 * room)
    digits = num_digits(gap) if gap > 1e-9 else 9
    low, high = ax.get_ylim()
    estimate = None if bracket.estimate is None else f"estimate {bracket.estimate:.{digits}f}"
    lines = 1
    if bracket.estimate is not None and (error := bracket.standard_error) is not None:
        band = f"{as_interval(bracket.interval(), error)}\n95% (statistical)"
        estimate, lines = f"estimate {with_error(bracket.estimate, error)}\n{band}", 3
    apart = (0.035 + 0.035 * lines) * (high - low)
    middle = lower[-1] + gap / 2
    place = middle if bracket.estimate is None else min(max(bracket.estimate, lower[-1]), upper[-1])
    labels = [
        (max(upper[-1], place + apart), f"upper {round_outward(upper[-1], 'upper', digits)}", INK),
        (min(lower[-1], place - apart), f"lower {round_outward(lower[-1], 'lower', digits)}", INK),
    ]
    if estimate is not None:
        labels.insert(1, (place, estimate, SOFT if lines == 1 else ATTRACTIVE))
    style: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    for height, text, colour in labels:
        ax.annotate(text, (1.0, height), (8, 0), fontsize=8, color=colour, **style)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    if end < 10 * moments[0]:  # less than a decade: no tick might be labelled
        ticks = [moments[0], (moments[0] * end) ** 0.5, end]
        ax.set_xticks(ticks, [f"{moment:.2g}" for moment in ticks])
    ax.set(xlabel="seconds", ylabel="log Z")
    leaves = counted(bracket.num_leaves, "leaf", "leaves")
    title = f"gap {bracket.gap:.3g} nats after {bracket.seconds:.2g} s, {leaves}"
    ax.set_title(title, loc="left", fontsize=9, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
