"""The picture of clamping: log Z against the number of clamps."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.clamping.branches import Clamped, ClampStep
from clampz.display.formatting import KINDS, Bound, name_of, round_outward, title
from clampz.errors import OptionError
from clampz.model.results import Estimate
from clampz.plotting.figures import new_axes, size_of
from clampz.plotting.style import FAINT, INK, PALE, SOFT, finite, num_digits, numbered, spread_apart, true_value
from clampz.runtime.options import check_option

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The markers of the first, second, ... result of each kind: they point to where log Z must be.
MARKERS: dict[Bound | None, str] = {"lower": "^2", "upper": "v1", "exact": "Dd", None: "osphX"}
LINES = ("solid", (0, (4.5, 1.6)), (0, (1.2, 1.3)), (0, (6.0, 1.4, 1.2, 1.4)))
COLOURS = (INK, "#c77f0a", "#1c8178", "#8459a6")
# In points, right of the plot: the line that leads to a label, and the sample of its line.
LEADER, SAMPLE = 10.0, 22.0
# In points: the size of the plot, the height of the label of a line and of a line of the table under it, and the width
# it may grow to.
SIZE, LABEL_HEIGHT, TABLE_LINE, MAX_WIDTH = (250.0, 200.0), 23.0, 11.0, 620.0

Clampings = Clamped | Mapping[str, Clamped] | Iterable[Clamped]


def plot_clamped(
    results: Clampings, exact: Estimate | Clamped | float | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw log Z against the number of clamps, and under it which variable each of them was.

    Parameters
    ----------
    results
        What `clamp` returned, or several of them: a list, or `{label: result}`.
    exact
        The true log Z, as an estimate or a number: a horizontal line, and the last value of each result says how far
        off it is.
    ax
        Where to draw; a new figure if None.

    Returns
    -------
    Axes
        Of matplotlib, with the picture.

    Raises
    ------
    MissingLibraryError
        Where matplotlib is not installed.
    OptionError
        Where there is no result.

    Examples
    --------
    Two bounds that close as variables are clamped::

        cz.plot_clamped([cz.clamp(model, "mf", k=5), cz.clamp(model, "trw", k=5)])
    """
    rows = _labelled_clampings(results)
    if not rows:
        raise OptionError("results: expected at least one result of clamping, found none")
    truth = true_value(exact)
    truth_label = "true" if "exact" in rows else "exact"
    k = max(len(result.steps) - 1 for result in rows.values())
    table = _steps_table(rows)
    digits = _digits(rows, truth)
    ends = {label: _end_text(result, truth, digits) for label, result in rows.items()}
    if truth is not None:
        ends[truth_label] = (f"{truth:.{digits}f}", "")
    if ax is None:
        longest = max(len(f"{label}  {value}") for label, (value, _) in ends.items())
        beside = 5.0 * (max(len(label) for label, _ in table) + longest) + LEADER + SAMPLE + 24
        width = float(np.clip((k + 1) * _cell_width(table), SIZE[0], MAX_WIDTH))
        below = sum(_row_height(cells, width / (k + 1)) for _, cells in table)
        height = max(SIZE[1], 1.2 * LABEL_HEIGHT * len(ends))
        ax = new_axes(None, ((width + beside) / 72, (height + below + 20) / 72))
        laid_out = False
    else:
        width, height = size_of(ax)
        laid_out = ax.figure.canvas.figure.get_layout_engine() is not None
    values = finite(*(step.log_z for result in rows.values() for step in result.steps), truth) or [0.0]
    low, high = min(values), max(values)
    margin = 0.07 * (high - low) if high - low > 1e-6 * (1 + abs(high)) else 0.5
    ax.set(xlim=(-0.4, k + 0.4), ylim=(low - margin, high + margin), xticks=range(k + 1), xticklabels=[])
    places: dict[str, tuple[float, float]] = {}
    if truth is not None:
        ax.axhline(truth, color=INK, linewidth=1.3, zorder=1)
        places[truth_label] = (k + 0.4, truth)
    styles = _line_styles(rows)
    for label, result in rows.items():
        _draw_steps(ax, result, styles[label])
        places[label] = (len(result.steps) - 1, result.log_z)
    ax.set_ylabel("log Z", fontsize=8.5, color=INK)
    ax.spines[["right", "top"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=SOFT, labelsize=7.5, length=3)
    ax.ticklabel_format(axis="y", useOffset=False)
    drawn = set(ax.get_children())
    _write_ends(ax, places, ends, styles, (width, height))
    _write_table(ax, table, width / (k + 1))
    if laid_out:  # the axes make room for what is written around them: again, for the room that they have then
        ax.figure.canvas.figure.draw_without_rendering()
        width, height = size_of(ax)
        for written in set(ax.get_children()) - drawn:
            written.remove()
        _write_ends(ax, places, ends, styles, (width, height))
        _write_table(ax, table, width / (k + 1))
    return ax


def _labelled_clampings(results: Clampings) -> dict[str, Clamped]:
    """Return results by label: the method, with the selector where methods repeat, and a number where both do."""
    given: Any = results.values() if isinstance(results, Mapping) else results
    every: list[Clamped] = list(given) if isinstance(given, Iterable) else [given]
    are_clamped = all(isinstance(each, Clamped) for each in every)
    check_option(are_clamped, "results", "what clamp returned, or several of these", results)
    if isinstance(results, Mapping):
        return dict(results)
    names = [title(result.method) for result in every]
    names = [
        f"{name}, {_selector_of(result)}" if names.count(name) > 1 else name
        for name, result in zip(names, every, strict=True)
    ]
    return dict(zip(numbered(names), every, strict=True))


def _selector_of(result: Clamped) -> str:
    found = {step.selector for step in result.steps[1:]} - {""}
    return found.pop() if len(found) == 1 else result.select if found else "no clamps"


def _steps_table(rows: Mapping[str, Clamped]) -> list[tuple[str, list[str]]]:
    """Return the rows of the table under the plot: numbers of clamps, and the clamped variables of each result.

    Results with equal variables and selectors share one row.
    """
    k = max(len(result.steps) - 1 for result in rows.values())
    numbers = ("clamps", [str(number) for number in range(k + 1)])
    lines = {
        label: [_step_text(result, number) for number in range(len(result.steps))] for label, result in rows.items()
    }
    selectors = {_selector_of(result) for result in rows.values()}
    if k and len(selectors) == 1 and len({tuple(cells) for cells in lines.values()}) == 1:
        return [numbers, (f"variable, by {selectors.pop()}".replace("by given", "given"), next(iter(lines.values())))]
    by = {label: _selector_of(result) for label, result in rows.items() if len(result.steps) > 1}
    return [numbers, *((label if by[label] in label else f"{label}, {by[label]}", lines[label]) for label in by)]


def _step_text(result: Clamped, number: int) -> str:
    """Return the variables that a step clamps, and its selector where selectors differ between steps."""
    step, names = result.steps[number], result.model.names
    if number == 0:
        return ""
    before: ClampStep = result.steps[number - 1]
    new = [step.variable] if step.variable is not None else []
    if step.selector == "optimal" or step.variable is None:
        new = [i for i in step.variables if step.selector == "optimal" or i not in before.variables]
    if not step.selector:
        return "none"
    variables = "several" if len(new) > 3 or not new else "\n".join(name_of(names, i) for i in new)
    return variables if _selector_of(result) == step.selector else f"{variables}\n{step.selector}"


def _cell_width(table: list[tuple[str, list[str]]]) -> float:
    return max(4.6 * len(line) + 8.0 for _, cells in table for cell in cells for line in cell.split("\n"))


def _row_height(cells: list[str], room: float) -> float:
    """Return the height of a row in points; cells are upright if one does not fit in the room of a step."""
    if _cell_width([("", cells)]) <= room:
        return TABLE_LINE * max(cell.count("\n") + 1 for cell in cells) + 3
    return 4.8 * max(len(cell) for cell in cells) + 8


def _write_table(ax: "Axes", table: list[tuple[str, list[str]]], room: float) -> None:
    """Write rows under the axes, a column for each step; where upright cells are too crowded, some are left out."""
    offset = 6.0
    for label, cells in table:
        fits = _cell_width([("", cells)]) <= room
        upright = TABLE_LINE * max(cell.count("\n") + 1 for cell in cells)
        stride = 1 if fits else math.ceil(upright / room)
        style: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": 7.5, "annotation_clip": False}
        ax.annotate(label, (0, 0), (-6, -offset), xycoords="axes fraction", ha="right", color=SOFT, **style)
        style |= {"rotation": 0 if fits else 90, "multialignment": "center" if fits else "right", "color": INK}
        for number, cell in enumerate(cells):
            if cell and (number - 1) % stride == 0:
                ax.annotate(cell, (number, 0), (0, -offset), xycoords=("data", "axes fraction"), ha="center", **style)
        offset += _row_height(cells, room)


def _digits(rows: Mapping[str, Clamped], truth: float | None) -> int:
    """Return the decimals that tell the last values of results apart."""
    values = finite(*(result.log_z for result in rows.values()), truth) or [0.0]
    spread = max(values) - min(values)
    return 2 if spread < 1e-6 * (1 + abs(max(values))) else num_digits(spread)


def _end_text(result: Clamped, truth: float | None, digits: int) -> tuple[str, str]:
    """Return the label at the end of a result's line: its value, and its kind."""
    shown = round_outward(result.log_z, result.bound, digits)
    if truth is not None and math.isfinite(result.log_z) and abs(result.log_z - truth) >= 0.5 * 10**-digits:
        shown += f" ({result.log_z - truth:+.{digits}f})"
    kind = KINDS[result.bound] + (", hollow: not converged" if _hollow(result) else "")
    return shown.replace("-", "\N{MINUS SIGN}"), kind


def _hollow(result: Clamped) -> list[int]:
    """Return the steps that were solved without converging."""
    return [k for k, step in enumerate(result.steps) if not step.converged and not math.isnan(step.log_z)]


def _draw_steps(ax: "Axes", result: Clamped, style: Mapping[str, Any]) -> None:
    """Draw a result as a line with a marker for each step, hollow where a branch has not converged."""
    values = np.array([step.log_z if math.isfinite(step.log_z) else math.nan for step in result.steps])
    ax.plot(range(len(values)), values, **style)
    hollow = _hollow(result)
    ax.plot(hollow, values[hollow], **{**style, "linestyle": "none", "markerfacecolor": "white"})


def _line_styles(rows: Mapping[str, Clamped]) -> dict[str, dict[str, Any]]:
    """Return a style for every result that differs by marker and dashes as well as by colour."""
    styles: dict[str, dict[str, Any]] = {}
    kinds = [result.bound for result in rows.values()]
    for number, (label, kind) in enumerate(zip(rows, kinds, strict=True)):
        turn = kinds[:number].count(kind)
        markers = MARKERS[kind]
        marker = markers[turn % len(markers)]
        style: dict[str, Any] = {
            "marker": marker,
            "fillstyle": "full" if turn < len(markers) else "left",
            "markersize": 9.0 if marker.isdigit() else 6.0,
        }
        style |= {"linestyle": LINES[turn % len(LINES)], "linewidth": 1.3, "markeredgewidth": 1.3, "zorder": 3}
        styles[label] = style | {"color": COLOURS[number % len(COLOURS)], "markerfacecoloralt": "white"}
    return styles


def _write_ends(
    ax: "Axes",
    places: Mapping[str, tuple[float, float]],
    ends: Mapping[str, tuple[str, str]],
    styles: Mapping[str, Mapping[str, Any]],
    size: tuple[float, float],
) -> None:
    """Write the labels of lines right of axes of this size in points, near the ends of lines and without overlap."""
    from matplotlib.lines import Line2D
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea

    (left, right), (low, high), (width, height) = ax.get_xlim(), ax.get_ylim(), size
    order = sorted(list(ends)[::-1], key=lambda label: places[label][1])  # of equal ones the first is on top
    wanted = np.array([np.clip((places[label][1] - low) / (high - low), 0.0, 1.0) for label in order]) * height
    halves = np.array([LABEL_HEIGHT / 2 if ends[label][1] else TABLE_LINE / 2 for label in order])
    where: dict[str, Any] = {"xycoords": "axes fraction", "annotation_clip": False}
    beside: dict[str, Any] = where | {"textcoords": "offset points", "color": INK}
    box: dict[str, Any] = where | {"boxcoords": "offset points", "box_alignment": (0, 0.5), "pad": 0, "frameon": False}
    leader: dict[str, Any] = {"transform": ax.transAxes, "color": PALE, "linewidth": 0.7, "clip_on": False}
    for label, at, y in zip(order, wanted / height, spread_apart(wanted, halves) / height, strict=True):
        value, kind = ends[label]
        if math.isfinite(places[label][1]):
            x = (places[label][0] - left) / (right - left)
            ax.plot([x, 1.0, 1.0 + LEADER / width], [at, at, y], zorder=0.5, **leader)
        text = f"{label}  {value}"
        if label not in styles:
            ax.annotate(text, (1, y), (LEADER + 3, 0), va="center", fontsize=8.5, fontweight="bold", **beside)
            continue
        key = DrawingArea(SAMPLE, 8)
        key.add_artist(Line2D([0, SAMPLE / 2, SAMPLE], [4, 4, 4], markevery=[1], **styles[label]))
        ax.add_artist(AnnotationBbox(key, (1, y), (LEADER + 3, 0), **box))
        ax.annotate(text, (1, y), (LEADER + SAMPLE + 8, 0), va="bottom", fontsize=8.5, **beside)
        ax.annotate(kind, (1, y), (LEADER + SAMPLE + 8, -1), va="top", fontsize=7, **{**beside, "color": SOFT})
