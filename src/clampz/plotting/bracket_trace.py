"""The picture of both bounds over time, on log Z or on the largest score, and of the gap between them.

Each line has the colour of the strategy that moved it last, and a mark where that one took over.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clampz.bounding.bracket import ROUNDING, Bracket
from clampz.bounding.strategies import STRATEGIES
from clampz.display.formatting import as_interval, counted, round_outward, rounded_up, with_error
from clampz.map_inference.results import Mode
from clampz.numerics import Floats
from clampz.plotting.figures import new_axes
from clampz.plotting.style import (
    ATTRACTIVE,
    COLOURS,
    FAINT,
    FILL,
    INK,
    LOWER_DASHES,
    MARKERS,
    PALE,
    SOFT,
    num_digits,
    second_panel,
    spread_apart,
    style_axes,
    write_inside,
)
from clampz.portfolio.problem import ENDS, End, Gains

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Sizes in inches of one value, and of bounds over time.
VALUE_SIZE, SIZE = (5.6, 1.5), (6.6, 4.2)
# Times as late as the first bracket from which on time is on a log axis.
LONG = 40.0
# Units of time: seconds up to which each is used, how many of it are a second, and its name.
UNITS = (
    (0.1, 1e3, "milliseconds"),
    (600.0, 1.0, "seconds"),
    (36_000.0, 1 / 60, "minutes"),
    (math.inf, 1 / 3600, "hours"),
)
# Times the gap that matters: beyond FAR an axis does not show all of it, but ROOM, and says where it began.
FAR, ROOM = 500.0, 60.0
# What the last step is drawn as at least, as a share of the time before it; and the only one.
LAST, ONLY = 0.03, 0.3
# Nats: no gap is drawn as less.
LEAST_GAP = 1e-12
# In points: from the axes to the labels beside them, and the height of a line of these.
BESIDE, LINE = 12.0, 10.5

# The size of a mark in points, and the share of the axis for which who takes over must hold on to have one.
MARK, SHORT = 4.5, 0.03

# The colour and the mark of each strategy.
Looks = dict[str, tuple[str, str]]
# A label beside the axes: the value it belongs to, its text, and its colour.
Label = tuple[float, str, str]


class BracketTrace(NamedTuple):
    """Both bounds as steps over time, the last of them to the end, and the unit of time.

    `lower_by`, `upper_by` and `gap_by` say who moved the bound, or either of them, last; "" where nobody knows.
    """

    moments: Floats
    lower: Floats
    upper: Floats
    unit: str
    lower_by: list[str]
    upper_by: list[str]
    gap_by: list[str]

    @classmethod
    def of(cls, bracket: Bracket | Mode) -> "BracketTrace":
        """Return the steps from the first finite bound on, in the unit of time that suits the whole run."""
        points = [point for point in bracket.trace if math.isfinite(point.lower) or math.isfinite(point.upper)]
        if not points:
            return cls(np.empty(0), np.empty(0), np.empty(0), "seconds", [], [], [])
        seconds = np.array([point.seconds for point in points])
        end = max(bracket.seconds, float(seconds[-1]) * (1 + (LAST if seconds[-1] > seconds[0] else ONLY)))
        _, scale, unit = next(found for found in UNITS if end < found[0])
        values = np.array([(point.lower, point.upper) for point in [*points, points[-1]]])
        gains = bracket.gains if isinstance(bracket, Bracket) else Gains()
        movers = (movers_at(seconds, gains, ends) for ends in (("lower",), ("upper",), ENDS))
        return cls(np.append(seconds, end) * scale, values[:, 0], values[:, 1], unit, *movers)

    @property
    def gaps(self) -> Floats:
        return self.upper - self.lower


def movers_at(seconds: Floats, gains: Gains, ends: Sequence[End]) -> list[str]:
    """Return who had moved one of these ends last at each moment, or who moved it first of all before that."""
    own = [gain for gain in gains if gain.end in ends]
    known = [gain.seconds for gain in own]
    return [own[max(bisect_right(known, moment) - 1, 0)].strategy if own else "" for moment in seconds.tolist()]


def plot_bracket_trace(bracket: Bracket, ax: "Axes | None" = None) -> "Axes":
    """Draw both bounds over time, the estimate between them if there is one, and under it the gap on a log axis.

    The statistical interval of an estimate by sampling is a bar.  A bracket that was closed at once is written as an
    exact number.  On axes that are given, the gap is left out.
    """
    trace = BracketTrace.of(bracket)
    if not len(trace.moments):
        nothing = "Z = 0" if bracket.upper == -math.inf else "no finite bound"
        why = "no configuration is possible" if bracket.upper == -math.inf else f"after {duration(bracket.seconds)}"
        return write_value(new_axes(ax, VALUE_SIZE), nothing, why)
    exact = bracket.gap <= ROUNDING
    if exact and (trace.gaps <= ROUNDING).all():
        value = f"log Z = {exact_value(bracket.lower, bracket.upper)}"
        after = f"exact, but for rounding, after {duration(bracket.seconds)}"
        return write_value(new_axes(ax, VALUE_SIZE), value, after)
    leaves = counted(bracket.num_leaves, "leaf", "leaves")
    gap = f"gap {rounded_up(bracket.gap)} nats" if bracket.gap < math.inf else "one end alone"
    what = "exact" if exact else f"certified bracket, {gap}"
    title = f"{what} after {duration(bracket.seconds)}, {leaves}"
    return draw_trace(ax, trace, "log Z", title, _labels(bracket, exact), None if exact else bracket)


def draw_trace(
    ax: "Axes | None",
    trace: BracketTrace,
    value: str,
    title: str,
    labels: list[Label],
    estimated: Bracket | None = None,
) -> "Axes":
    """Draw both bounds on a value over time, with labels beside them, an estimate, and on a new figure the gap."""
    alone, ax = ax is not None, new_axes(ax, SIZE)
    lowest, looks = ax, looks_of(trace)
    _set_time(ax, trace)
    if not alone:
        lowest = second_panel(ax, 2, 1, share_x=True, height_ratios=(3, 1))
        _draw_gaps(lowest, trace, looks)
        ax.tick_params(labelbottom=False)
    _draw_bounds(ax, trace, value, looks)
    if estimated is not None:
        _draw_estimate(ax, trace, estimated)
    style: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK, "handlelength": 1.6}
    handles = ax.get_legend_handles_labels()[0]
    if not alone:
        ax.figure.legend(handles=[*handles, *_keys(looks)], loc="outside lower left", ncols=4, **style)
    elif looks:
        ax.legend(handles=_keys(looks), loc="best", **style)
    _write_labels(ax, labels, (2.0 if alone else 2.4) * 72)
    lowest.set_xlabel(trace.unit)
    ax.set_ylabel(value)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_title(title, loc="left", fontsize=9, color=INK)
    style_axes(ax, lowest)
    return ax


def looks_of(trace: BracketTrace) -> Looks:
    """Return the colour and the mark of each strategy that is seen: the same in all pictures."""
    seen = dict.fromkeys(name for pair in zip(trace.upper_by, trace.lower_by, strict=True) for name in pair if name)
    places = list(dict.fromkeys([*(strategy.name for strategy in STRATEGIES), *seen]))
    found = ((name, places.index(name)) for name in seen)
    return {name: (COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]) for name, place in found}


def duration(seconds: float) -> str:
    """Return a duration in milliseconds or seconds, in few digits."""
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 100 else f"{seconds:,.0f} s"


def exact_value(lower: float, upper: float) -> str:
    """Return log Z between two ends, with the decimals that both agree on, nine at most."""
    gap = 0.0 if lower == upper else upper - lower
    digits = 9 if gap <= 0 else max(2, min(9, -math.ceil(math.log10(gap))))
    return f"{lower + gap / 2:.{digits}f}"


def write_value(ax: "Axes", value: str, what: str) -> "Axes":
    """Write a number, and what it is, in place of a picture."""
    ax.set_axis_off()
    centred: dict[str, Any] = {"ha": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.52, value, va="bottom", fontsize=17, color=INK, **centred)
    ax.text(0.5, 0.42, what, va="top", fontsize=10, color=SOFT, **centred)
    return ax


# -- what is drawn ----------------------------------------------------------------------------------------------------


def _draw_bounds(ax: "Axes", trace: BracketTrace, value: str, looks: Looks) -> None:
    """Draw the band between both bounds, which reaches to the edge where one of them is not there yet."""
    low, high = _limits(ax, trace)
    ax.set_ylim(low, high)
    lower, upper = np.maximum(trace.lower, low), np.minimum(trace.upper, high)
    band: dict[str, Any] = {"step": "post", "linewidth": 0, "zorder": 1}
    known = np.isfinite(trace.gaps)
    if known.any():
        label = f"certified: {value} is in here"
        ax.fill_between(trace.moments, lower, upper, where=known, color=FILL, label=label, **band)
    if not known.all():
        until = ~known | np.append(False, ~known[:-1])  # steps reach to the next moment
        missing = "lower" if math.isinf(trace.lower[0]) else "upper"
        hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": PALE, "hatch": "////", "where": until}
        ax.fill_between(trace.moments, lower, upper, label=f"no {missing} bound yet", **hatched, **band)
    for values, movers, dashes in (
        (trace.upper, trace.upper_by, "solid"),
        (trace.lower, trace.lower_by, LOWER_DASHES),
    ):
        finite = np.where(np.isfinite(values), values, np.nan)
        _draw_steps(ax, trace.moments, finite, movers, looks, linewidth=1.6, linestyle=dashes, zorder=3)


def _draw_steps(ax: "Axes", moments: Floats, values: Floats, movers: list[str], looks: Looks, **style: Any) -> None:
    """Draw steps over time, a line in pieces for each strategy, with a mark where it took over for a while."""
    least = SHORT * float(np.ptp(ax.get_window_extent().intervalx))
    pixels = ax.transData.transform(np.column_stack([moments, np.ones(len(moments))]))[:, 0]
    lines: dict[str, list[int]] = {}  # places of the values of each strategy, and -1 between pieces
    times: dict[str, list[int]] = {}
    marks: dict[str, list[int]] = {}
    first = 0
    for name, stretch in groupby(movers):
        last = first + len(list(stretch))
        line, time = lines.setdefault(name, []), times.setdefault(name, [])
        if line:
            line.append(-1)
            time.append(first)
        if first:  # the step from where it was before is its own
            line.append(first - 1)
            time.append(first)
        seen = next((k for k in range(first, last) if not math.isnan(values[k])), last)
        if pixels[last] - pixels[seen] >= least:
            marks.setdefault(name, []).append(len(line) + seen - first)
        line += [*range(first, last), last - 1]
        time += range(first, last + 1)
        first = last
    padded = np.append(values[: len(movers)], np.nan)
    for name, line in lines.items():
        colour, mark = looks.get(name, (INK, ""))
        marked: dict[str, Any] = {"marker": mark, "markevery": marks.get(name, []), "markersize": MARK}
        ax.step(moments[times[name]], padded[line], where="post", color=colour, **marked, **style)


def _keys(looks: Looks) -> "list[Artist]":
    """Return the entries of the legend that say which strategy has which colour and mark."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=colour, marker=mark, markersize=MARK, linewidth=1.6, label=name)
        for name, (colour, mark) in looks.items()
    ]


def _limits(ax: "Axes", trace: BracketTrace) -> tuple[float, float]:
    """Return the limits of the axis: all bounds, unless the first are so far out that nothing else could be seen.

    Then a note on the axes says where the bounds began.
    """
    ends = np.concatenate([trace.lower, trace.upper])
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min()), float(ends.max())
    gaps = trace.gaps[np.isfinite(trace.gaps)]
    matters = max(float(gaps[-1]), float(np.median(gaps))) if gaps.size else math.inf
    room = ROOM / 2 * matters if high - low > FAR * matters > 0 else math.inf
    last = [float(end[-1]) for end in (trace.lower, trace.upper) if math.isfinite(end[-1])]
    bottom, top = max(low, min(last) - room), min(high, max(last) + room)
    began: dict[str, Any] = {"transform": ax.transAxes, "fontsize": 8, "color": SOFT, "backgroundcolor": "white"}
    if top < high:
        ax.text(0.98, 0.97, f"from {high:,.0f} at first \N{UPWARDS ARROW}", ha="right", va="top", **began)
    if bottom > low:
        ax.text(0.98, 0.03, f"from {low:,.0f} at first \N{DOWNWARDS ARROW}", ha="right", va="bottom", **began)
    margin = 0.05 * (top - bottom) or 0.5
    return bottom - margin, top + margin


def _draw_estimate(ax: "Axes", trace: BracketTrace, bracket: Bracket) -> None:
    """Draw the estimate as a hollow point at the end, with a bar for its statistical interval."""
    if bracket.estimate is None or not math.isfinite(bracket.estimate):
        return
    point: dict[str, Any] = {"marker": "o", "markersize": 5, "markerfacecolor": "white", "clip_on": False, "zorder": 5}
    colour = INK
    if bracket.standard_error is not None:
        colour, ends = ATTRACTIVE, bracket.interval()
        bar: dict[str, Any] = {"linewidth": 3.0, "zorder": 4, "clip_on": False, "label": "95% interval (statistical)"}
        ax.vlines(trace.moments[-1:], *ends, colors=ATTRACTIVE, **bar)
    ax.plot(trace.moments[-1:], [bracket.estimate], color=colour, linestyle="none", label="estimate", **point)


def _draw_gaps(ax: "Axes", trace: BracketTrace, looks: Looks) -> None:
    """Draw the gap over time on a log axis; on a linear one where it covers less than a decade."""
    gaps = np.where(np.isfinite(trace.gaps), np.maximum(trace.gaps, LEAST_GAP), np.nan)
    _draw_steps(ax, trace.moments, gaps, trace.gap_by, looks, linewidth=1.2)
    ax.set_yscale("log")
    if np.isnan(gaps).all():
        write_inside(ax, "no gap yet", fontsize=8)
        ax.set_yticks([])
    elif np.nanmax(gaps) < 10 * np.nanmin(gaps):  # less than a decade: no tick might be labelled
        ax.set_yscale("linear")
        ax.set_ylim(0.0, 1.25 * np.nanmax(gaps))
        ax.locator_params(axis="y", nbins=3)
    else:
        from matplotlib.ticker import LogLocator, NullLocator

        ax.yaxis.set_major_locator(LogLocator(numticks=5))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel("gap (nats)")
    ax.grid(axis="y", color=FAINT, linewidth=0.6)


def _set_time(ax: "Axes", trace: BracketTrace) -> None:
    """Set a time axis from 0 on, or a log axis from the first bracket on if that is early; ticks are plain numbers."""
    first, end = float(trace.moments[0]), float(trace.moments[-1])
    if not 0 < LONG * first < end:
        ax.set_xlim(0.0, end or 1.0)
        ax.locator_params(axis="x", nbins=6)
        return
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set_xscale("log")
    ax.set_xlim(first, end)
    decades = range(math.floor(math.log10(first)), math.ceil(math.log10(end)) + 1)
    digits = (1, 3) if len(decades) <= 5 else (1,)
    ax.xaxis.set_major_locator(FixedLocator([d * 10.0**k for k in decades for d in digits]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


# -- what is written --------------------------------------------------------------------------------------------------


def _labels(bracket: Bracket, exact: bool) -> list[Label]:
    """Return the labels of the bounds and the estimate, from above to below."""
    if exact:
        return [(bracket.upper, f"log Z = {exact_value(bracket.lower, bracket.upper)}\nexact", INK)]
    digits = num_digits(bracket.gap) if bracket.gap < math.inf else 2
    labels = []
    if bracket.upper < math.inf:
        labels.append((bracket.upper, f"upper {round_outward(bracket.upper, 'upper', digits)}", INK))
    estimate, error = bracket.estimate, bracket.standard_error
    if estimate is not None and error is not None:
        band = f"95% {as_interval(bracket.interval(), error)}\n(statistical)"
        labels.append((estimate, f"estimate {with_error(estimate, error)}\n{band}", ATTRACTIVE))
    elif estimate is not None:
        by = "counted, not proven" if bracket.estimate_by == "counting" else f"{bracket.estimate_by}, not proven"
        labels.append((estimate, f"estimate {estimate:.{digits}f}\n({by})", SOFT))
    if bracket.lower > -math.inf:
        labels.append((bracket.lower, f"lower {round_outward(bracket.lower, 'lower', digits)}", INK))
    return labels


def _write_labels(ax: "Axes", labels: list[Label], height: float) -> None:
    """Write labels right of axes of about this height in points, each near the end of its line, without overlap."""
    low, high = ax.get_ylim()
    ends = np.clip([(value - low) / (high - low) for value, _, _ in labels[::-1]], 0.0, 1.0)
    halves = np.array([LINE * (1 + text.count("\n")) / 2 + 1 for _, text, _ in labels[::-1]])
    places = spread_apart(ends * height, halves) / height
    where: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    line = {"arrowstyle": "-", "color": PALE, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
    for (_, text, colour), end, place in zip(labels[::-1], ends, places, strict=True):
        offset = (BESIDE, (place - end) * height)
        ax.annotate("", (1.0, end), offset, arrowprops=line, **where)
        ax.annotate(text, (1.0, end), offset, fontsize=8, color=colour, va="center", ha="left", **where)
