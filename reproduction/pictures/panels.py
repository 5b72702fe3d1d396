"""Panels of errors: one family each, TRW above, Bethe in the middle, mean field below, a line per selector.

Methods are told apart by colour, of different lightness, and by where they lie; selectors by line and marker.  So the
panels read in greyscale too.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.plotting import FAINT, INK, SOFT
from reproduction.families import Family
from reproduction.settings import SELECTOR, SETTINGS, TITLES
from reproduction.table import Floats, Table
from reproduction.tools import counted, texts_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import LayoutEngine

# In points.
TITLE, TEXT, SMALL = 9.5, 8.0, 7.0
# In inches: the width of a whole page's figure, what its rows need besides the panels, and the height of the tallest
# panel.
PAGE, HEAD, FOOT, TALLEST = 7.4, 0.35, 0.3, 2.2
DPI = 180

# From above to below, where their curves lie.
COLOURS = {"trw": "#2f6db3", "bethe": INK, "mf": "#e08a00"}
PLACES = {"trw": "above", "bethe": "between", "mf": "below"}
# Opacity of a band, and of its entry in the legend: several lie on each other.
BAND, BAND_ENTRY = 0.07, 0.3
ERROR = "error of log Z (nats)"
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": SMALL + 0.5, "labelcolor": INK, "handletextpad": 0.6}
LEGEND |= {"handlelength": 2.8, "columnspacing": 1.4}


def styles_of(kind: str) -> dict[str, dict[str, Any]]:
    """Return the styles of lines of one kind, by name, as `styles.toml` has them."""
    named = {"color": lambda name: INK if name == "ink" else name}
    named["linestyle"] = lambda dashes: (0, tuple(dashes)) if isinstance(dashes, list) else dashes
    return {
        name: {key: named.get(key, lambda same: same)(value) for key, value in style.items()}
        for name, style in STYLES[kind].items()
    }


class Line(NamedTuple):
    """Say how a selector is drawn; in the order of `LINES`, later ones on top."""

    label: str
    settings: str
    selector: str
    style: Mapping[str, Any]


STYLES = texts_of("reproduction.pictures", "styles.toml")
LINES = tuple(Line(style.pop("label", name), "paper", name, style) for name, style in styles_of("lines").items())
# Our own settings beside the paper's, all by the same selector.
OWN_LINES = tuple(Line(SETTINGS[name].title, name, SELECTOR, style) for name, style in styles_of("settings").items())
ORDER = {line.label: place for place, line in enumerate((*LINES, *OWN_LINES))}

# The labels of lines and the methods that were drawn, whether Bethe's errors on mixed models are among them, and
# whether standard errors are bars.
Drawn = set[str]
UNSIGNED, BARS = "unsigned", "bars"


class Cell(NamedTuple):
    """Hold a panel: its title, whether there are runs for it, what draws it, and what its horizontal axis is."""

    title: str
    present: bool
    draw: Callable[["Axes"], Drawn]
    xlabel: str = "clamps"


# From what was drawn to the entries of the legend.
Handles = Callable[[Drawn], "list[Artist]"]


def mean_over_runs(values: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Take (runs, ...) to means over the runs, their standard errors, and of how many runs they are.

    Runs without a number do not count, and one run alone has no standard error.

    >>> mean_over_runs(np.array([[1.0, 2.0], [3.0, np.nan]]))
    (array([2., 2.]), array([ 1., nan]), array([2, 1]))
    """
    known = np.isfinite(values)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / count
        variance = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / (count - 1)
        error = np.sqrt(variance / count)
    return mean, np.where(count > 1, error, np.nan), count


def draw_errors(
    ax: "Axes",
    table: Table,
    family: Family,
    *,
    title: str | None = None,
    zoom: bool = False,
    lines: tuple[Line, ...] = LINES,
) -> Drawn:
    """Draw mean errors against the number of clamps, with bands of a standard error, of the runs that all lines have.
    Zoomed in, only Bethe has bands, and the axis goes as far as they do."""
    drawn: Drawn = set()
    extent: list[Floats] = []
    most, counts = 1, (len(table.runs(family.name, settings=line.settings)) for line in lines)
    common = min(filter(None, counts), default=0)
    for method, line in product(COLOURS, lines):
        errors = table.shown(family.name, method, line.selector, settings=line.settings)
        mean, error, count = mean_over_runs(errors[:common])
        if not count[1:].any():
            continue
        clamps, band = np.arange(len(mean)), np.nan_to_num(error)
        most = max(most, len(mean) - 1)
        if method == "bethe" or not zoom:
            ax.fill_between(clamps, mean - band, mean + band, color=COLOURS[method], alpha=BAND, linewidth=0, zorder=1)
        drawn |= _draw_line(ax, method, line, clamps, mean)
        if method == "bethe":
            extent += [mean - band, mean + band]
    if not drawn:
        return drawn
    if zoom and extent:
        inside = np.concatenate(extent)
        low, high = np.nanmin(inside), np.nanmax(inside)
        margin = 0.12 * (high - low) or 0.1
        ax.set_ylim(low - margin, high + margin)
    ax.set_xticks(range(most + 1))
    ax.set_xlim(-0.25, most + 0.25)
    return drawn | _finish_family(ax, family, title, common, drawn)


def draw_times(ax: "Axes", table: Table, family: Family, *, title: str | None = None) -> Drawn:
    """Draw mean errors against the mean time up to them, a point per number of clamps; best and worst, which take no
    time of their own, are not here."""
    drawn: Drawn = set()
    for method, line in product(COLOURS, LINES):
        which: dict[str, str] = {"settings": line.settings, "experiment": "times"}
        if line.selector in ("best", "worst"):
            continue
        times, _, count = mean_over_runs(table.curve(family.name, method, line.selector, **which, column="seconds"))
        if not count[1:].any():
            continue
        mean, error, _ = mean_over_runs(table.shown(family.name, method, line.selector, **which))
        bars: dict[str, Any] = {"fmt": "none", "ecolor": COLOURS[method], "elinewidth": 0.6, "alpha": 0.6, "zorder": 1}
        ax.errorbar(times, mean, np.nan_to_num(error), **bars)
        drawn |= _draw_line(ax, method, line, times, mean)
    if not drawn:
        return drawn
    ax.set_xscale("log")
    few_log_ticks(ax)
    num_runs = len(table.runs(family.name, experiment="times"))
    return drawn | {BARS} | _finish_family(ax, family, title, num_runs, drawn)


def _draw_line(ax: "Axes", method: str, line: Line, x: NDArray[Any], y: Floats) -> Drawn:
    ax.plot(x, y, color=COLOURS[method], zorder=2 + 0.1 * ORDER[line.label], **line.style)
    return {line.label, method}


def _finish_family(ax: "Axes", family: Family, title: str | None, num_runs: int, drawn: Drawn) -> Drawn:
    """Draw the line of no error and the title, and tell whether Bethe's errors are without their sign."""
    ax.axhline(0.0, color=SOFT, linewidth=0.6, zorder=0.5)
    finish(ax, title or family.title, counted(num_runs, "run"))
    return {UNSIGNED} if family.mixed and "bethe" in drawn else set()


def few_log_ticks(ax: "Axes") -> None:
    """Label whole powers of ten only; where none or one of them is in view, some of the numbers between too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_xlim()
    subs = (1.0,) if np.floor(np.log10(high)) - np.ceil(np.log10(low)) >= 1 else (1.0, 3.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=5))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if 1e-3 <= value < 1e4 else f"$10^{{{round(np.log10(value))}}}$")
    )
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(low, high)


def finish(ax: "Axes", title: str, note: str = "") -> None:
    """Give a panel the look that all have; the note, such as the number of runs, stands right of the title."""
    ax.set_title(title, fontsize=TEXT, color=INK, pad=3.5, loc="left")
    if note:
        ax.set_title(note, fontsize=SMALL, color=SOFT, pad=3.5, loc="right")
    ax.spines[["right", "top"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize=SMALL, length=2.5, pad=2, color=SOFT)
    ax.tick_params(which="minor", length=1.5, color=FAINT)
    if ax.get_yscale() == "linear":
        ax.locator_params(axis="y", nbins=6)


def errors_cell(table: Table, family: Family, title: str | None = None, **how: Any) -> Cell:
    """Return a panel of `draw_errors`."""
    title, present = title or family.title, has_runs(table, family, "errors")
    return Cell(title, present, lambda ax: draw_errors(ax, table, family, title=title, **how))


def times_cell(table: Table, family: Family, title: str | None = None) -> Cell:
    """Return a panel of `draw_times`."""
    title, present = title or family.title, has_runs(table, family, "times")
    return Cell(title, present, lambda ax: draw_times(ax, table, family, title=title), "seconds")


def has_runs(table: Table, family: Family, *experiments: str) -> bool:
    """Tell whether there are any runs, with any settings."""
    return any(table.runs(family.name, settings=s, experiment=e) for s in SETTINGS for e in experiments)


def panel_figure(
    title: str,
    cells: Mapping[tuple[int, int], Cell],
    *,
    ylabel: str = ERROR,
    handles: Handles | None = None,
    num_lines: int = 3,
) -> "Figure":
    """Draw panels by row and column, with one legend: in a place that no panel is meant for, or below, in lines.

    Rows and columns without any runs are left out; a panel without runs among others says so.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows, columns = (sorted({place[axis] for place, cell in cells.items() if cell.present}) for axis in (0, 1))
    if not rows:
        return empty_figure(title)
    width = {1: 3.6, 2: 3.0, 3: PAGE / 3}.get(len(columns), PAGE / len(columns))
    free = [(r, c) for r in range(len(rows)) for c in range(len(columns)) if (rows[r], columns[c]) not in cells]
    height = min(0.9 * width, TALLEST) * len(rows) + HEAD + (0.2 if free else FOOT + 0.15 * num_lines)
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.03)
    figure = new_figure(max(width * len(columns), 4.6), height, layout)
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    seen: Drawn = set()
    for (r, c), ax in np.ndenumerate(axes):
        cell = cells.get((rows[r], columns[c]))
        if cell is None:
            ax.set_axis_off()
        elif drawn := cell.draw(ax):
            seen |= drawn
        else:
            finish(ax, cell.title)
            ax.set(xticks=[], yticks=[])
            ax.text(0.5, 0.5, "no runs", transform=ax.transAxes, ha="center", va="center", fontsize=TEXT, color=SOFT)
        if cell is not None and r + 1 == len(rows):
            ax.set_xlabel(cell.xlabel, fontsize=TEXT, color=INK, labelpad=2)
    entries = (handles or line_handles)(seen)
    if free:
        compact = LEGEND | {"handlelength": 2.4, "labelspacing": 0.5 if len(entries) <= 10 else 0.2}
        legend = axes[free[0]].legend(
            handles=entries, loc="upper right", bbox_to_anchor=(1.03, 1.12), borderaxespad=0.0, **compact
        )
        legend.set_in_layout(False)
    else:
        for ncols in range(-(-len(entries) // num_lines), 0, -1):
            legend = figure.legend(handles=entries, loc="outside lower center", ncols=ncols, **LEGEND)
            if legend.get_window_extent().width <= figure.bbox.width:
                break
            legend.remove()
    write_title(figure, title)
    figure.supylabel(ylabel, fontsize=TEXT, color=INK)
    return figure


def line_handles(seen: Drawn) -> list["Artist"]:
    """Return the legend of what was drawn: first the methods, then the selectors, then what the bands are."""
    from matplotlib.lines import Line2D

    places = PLACES | ({"bethe": "mixed: |error|"} if UNSIGNED in seen else {})
    found: list[Artist] = [
        Line2D([], [], color=COLOURS[m], linewidth=3.0, label=f"{TITLES[m]} ({places[m]})")
        for m in COLOURS
        if m in seen
    ]
    order = {line.label: line for line in (*reversed(LINES), *OWN_LINES)}.values()
    found += [Line2D([], [], color=INK, label=line.label, **line.style) for line in order if line.label in seen]
    if any(line.selector in ("best", "worst") and line.label in seen for line in LINES) or BARS not in seen:
        return [*found, band_entry()]
    return [*found, Line2D([], [], color=SOFT, linestyle="none", marker="|", markersize=9, label="standard error")]


def band_entry() -> "Artist":
    """Return the entry of the legend that says what bands are."""
    from matplotlib.patches import Patch

    return Patch(color=SOFT, alpha=BAND_ENTRY, linewidth=0, label="standard error")


def write_title(figure: "Figure", title: str) -> None:
    figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE, fontweight="bold", color=INK)


def new_figure(
    width: float, height: float, layout: "Literal['constrained'] | LayoutEngine | None" = "constrained"
) -> "Figure":
    """Make a white page of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)


def empty_figure(title: str) -> "Figure":
    """Draw what a figure is before there are any runs for it."""
    figure = new_figure(4.6, 1.2, None)
    figure.text(0.02, 0.8, title, fontsize=TITLE, fontweight="bold", color=INK, va="center")
    figure.text(0.5, 0.35, "no runs", fontsize=TEXT, color=SOFT, ha="center", va="center")
    return figure
