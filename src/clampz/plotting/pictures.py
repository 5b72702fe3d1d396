"""Pictures of models and of what methods found.

Attractive edges are solid and blue, repulsive ones dashed and red, as in the paper; nothing is said by colour alone, so
the pictures also read in greyscale.  Every function draws on the axes it is given, or on a figure of its own, and
returns the axes: `plot_model(model).figure.savefig("model.png")`.

Matplotlib (`pip install 'clampz[cli]'`) is imported when something is drawn, without pyplot: no figure stays open and
no backend is chosen.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.clamping.branches import Clamped, Step, branches, checked_variables
from clampz.clamping.selectors import scores as selector_scores
from clampz.clamping.selectors import singleton_entropies
from clampz.clamping.selectors.strength import Remaining
from clampz.drawing import draws
from clampz.errors import OptionError
from clampz.model import Model, Variable
from clampz.model.batch import Batch
from clampz.model.results import Bound, Estimate
from clampz.model.tables import Floats
from clampz.plotting.positions import Layout, layout
from clampz.wording import KINDS, round_outward, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

INK, SOFT, PALE, FAINT = "#1f2a37", "#6b7684", "#aab2bc", "#dfe3e8"
ATTRACTIVE, REPULSIVE, UNSIGNED = "#2f6db3", "#c8402f", SOFT
DASHES = (0, (2.0, 1.1))
# What log_z is: its marker points to where log Z must be.
MARKERS: dict[Bound | None, str] = {"lower": ">", "upper": "<", "exact": "D", None: "o"}
# Widths of the weakest and the strongest edge, in points.
EDGE_WIDTHS = (0.5, 3.4)
# Variables beyond which edges become thinner as the variables become smaller.
MANY = 64
# In points: from a marker to the text beside it, and what a character of that text takes.
BESIDE, CHARACTER = 8.0, 5.4
# Radius of a variable as a share of the distance to its nearest neighbour.
RADIUS = 0.21
# Variables up to which names are written on the nodes.
MAX_NAMES = 40
# How much of an edge outside the core is left.
FADED = 0.28
# Half the side of the square around a clamped variable, in radii.
FRAME = 1.32
# Results of clamping: as above, the markers of the first, second, ... of each kind point to where log Z must be.
STEP_MARKERS: dict[Bound | None, str] = {"lower": "^2", "upper": "v1", "exact": "Dd", None: "osphX"}
STEP_LINES = ("solid", (0, (4.5, 1.6)), (0, (1.2, 1.3)), (0, (6.0, 1.4, 1.2, 1.4)))
STEP_COLOURS = (INK, "#c77f0a", "#1c8178", "#8459a6")
# In points, right of a plot of steps: the line that leads to a label, and the sample of its line.
LEADER, SAMPLE = 10.0, 22.0
# In points: the size of a plot of steps, the height of the label of a line and of a line of the table under it, and the
# width it may grow to.
STEPS_SIZE, LABEL_HEIGHT, TABLE_LINE, MAX_STEPS_WIDTH = (250.0, 200.0), 23.0, 11.0, 620.0

Estimated = Mapping[str, Estimate] | Iterable[Estimate]
Clampings = Clamped | Mapping[str, Clamped] | Iterable[Clamped]


def plot_model(
    model: Model,
    ax: "Axes | None" = None,
    positions: ArrayLike | None = None,
    *,
    marginals: Estimate | None = None,
    state: int = 1,
    scores: ArrayLike | str | None = None,
    clamped: Sequence[Variable] = (),
    core: bool = True,
    names: bool | None = None,
) -> "Axes":
    """Draw the model's graph: edges by sign and strength, variables shaded by their marginal or score, the clamped ones
    numbered, all but the core faded.

    Parameters
    ----------
    ax
        Where to draw; a new figure if None.
    positions
        (n, 2) where the variables go; `layout(model)` if None.
    marginals
        An estimate of this model: variables are shaded by its marginal of `state`, white for 0 and black for 1.
    scores
        (n,) a number for each variable, or the selector whose scores to show: variables are shaded by it, the higher
        the darker.
    clamped
        Variables, by index or name, in the order in which they are clamped: framed and numbered.
    core
        Whether to fade what lies outside the core that the clamps leave, where clamping gains nothing; a model without
        cycles is not faded.
    names
        Whether to write the variables' names, or their numbers, on them; if None, where they have names and are few.
    """

    n = model.num_variables
    place = layout(model) if positions is None else Layout(np.asarray(positions, dtype=np.float64))
    if place.positions.shape != (n, 2) or not np.isfinite(place.positions).all():
        raise OptionError(
            f"positions: expected shape ({n}, 2), a finite point for each variable, found {place.positions!r:.80}"
        )
    chosen = _clamped_variables(model, clamped)
    shades = _shades(model, marginals, state) if scores is None else _scores(model, scores, chosen)
    if scores is not None and marginals is not None:
        raise OptionError("expected either marginals= or scores=: variables have one shade")
    written = (model.names is not None and n <= MAX_NAMES) if names is None else names
    radius = _radius(place.positions) * (1.25 if written else 1.0)
    margin = 1.0 if n < 2 else radius * (2.6 if chosen else 2.0) + (0.35 if place.period else 0.0)
    low, high = (
        (place.positions.min(axis=0) - margin, place.positions.max(axis=0) + margin) if n else (-np.ones(2), np.ones(2))
    )
    width, height = np.clip(4.5 * (high - low) / (high - low).max(), 1.8, None)
    ax = new_axes(ax, (width, height if scores is None else height + 0.55))
    member, edge_member = (
        _core(model, chosen) if core else (np.ones(n, dtype=np.bool_), np.ones(model.num_edges, dtype=np.bool_))
    )
    _draw_edges(ax, model, place, edge_member)
    limits = (0.0, 1.0) if scores is None else _limits(shades)
    circles = _draw_variables(
        ax, place.positions, radius, shades, limits, _shade_map() if scores is None else _score_map(), member
    )
    if written:
        labels = model.names or [str(i) for i in range(n)]
        dark = circles.to_rgba(shades)[:, :3] @ [0.299, 0.587, 0.114] < 0.5
        for i, (x, y) in enumerate(place.positions):
            colour = "white" if dark[i] else INK if member[i] or i in chosen else SOFT
            ax.text(x, y, labels[i], ha="center", va="center", fontsize=7, color=colour, zorder=3)
    _draw_clamped(ax, model, place.positions, radius, chosen)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set_axis_off()
    if scores is not None and n:
        bar = ax.figure.colorbar(circles, ax=ax, location="bottom", shrink=0.45, fraction=0.07, aspect=18, pad=0.02)
        bar.set_label(scores if isinstance(scores, str) else "score", fontsize=8, color=INK)
        bar.ax.tick_params(colors=SOFT, labelsize=7, length=2)
        bar.ax.locator_params(nbins=4)
        bar.ax.xaxis.get_offset_text().set(fontsize=7, color=SOFT)
        bar.outline.set(edgecolor=INK, linewidth=0.7)
    return ax


def plot_bracket(estimates: Estimated, exact: Estimate | float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw what methods say of log Z, a row each, and under them the interval that their bounds prove it to be in.

    Parameters
    ----------
    estimates
        Estimates of one model: `{label: estimate}`, or a list of them, labelled by method.
    exact
        The true log Z, as an estimate or a number: a vertical line, and every value says how far off it is.
    """
    rows = _labelled(estimates)
    truth = exact.log_z if isinstance(exact, Estimate) else exact
    truth = truth if truth is not None and math.isfinite(truth) else None
    lower = max((e.lower for e in rows.values()), default=-math.inf)
    upper = min((e.upper for e in rows.values()), default=math.inf)
    proven = math.isfinite(lower) and math.isfinite(upper)
    ax = new_axes(ax, (5.0, 0.4 * len(rows) + 1.4))
    values = [v for v in [*(e.log_z for e in rows.values()), truth] if v is not None and math.isfinite(v)] or [0.0]
    low, high = min(values), max(values)
    if high - low < 1e-6 * (1 + abs(high)):  # all the same: no scale of their own
        low, high = low - 0.5, high + 0.5
    digits = max(2, 2 - math.floor(math.log10(high - low)))
    bottom = len(rows) - 1 + (1.15 if proven else 0.0)
    texts: list[tuple[float, str, bool]] = []
    for row, (label, estimate) in enumerate(rows.items()):
        value, kind = estimate.log_z, KINDS[estimate.bound]
        beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "right"}
        ax.text(
            -0.02,
            row if kind == label else row - 0.02,
            label,
            va="center" if kind == label else "bottom",
            fontsize=8.5,
            color=INK,
            **beside,
        )
        if kind != label:
            ax.text(-0.02, row + 0.06, kind, va="top", fontsize=7, color=SOFT, **beside)
        shown = round_outward(value, estimate.bound, digits)
        if not math.isfinite(value):
            ax.text(
                0.5, row, shown, transform=ax.get_yaxis_transform(), ha="center", va="center", fontsize=8.5, color=SOFT
            )
            continue
        below = truth is not None and value < truth
        if truth is not None:
            ax.plot([value, truth], [row, row], color=SOFT, linewidth=1.0, zorder=1)
            shown += f"  ({value - truth:+.{digits}f})" if estimate.bound != "exact" else ""
        ax.plot(
            [value],
            [row],
            marker=MARKERS[estimate.bound],
            markersize=7,
            color=INK,
            markerfacecolor=INK if estimate.bound else "white",
            zorder=3,
        )
        _write_beside(ax, value, row, shown, left=below)
        texts.append((value, shown, below))
    if truth is not None:
        ax.plot([truth, truth], [-0.55, bottom + 0.45], color=INK, linewidth=1.3, zorder=1)
        ax.text(
            truth,
            -0.72,
            f"exact {truth:.{digits}f}",
            ha="center",
            va="bottom",
            fontsize=8.5,
            fontweight="bold",
            color=INK,
        )
    if proven:
        ax.barh(
            [bottom], [upper - lower], left=lower, height=0.42, color=FAINT, edgecolor=SOFT, linewidth=0.8, zorder=0.5
        )
        ax.text(
            -0.02,
            bottom,
            "proven",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=8.5,
            fontweight="bold",
            color=INK,
        )
        for value, shown, left in [
            (lower, round_outward(lower, "lower", digits), True),
            (upper, round_outward(upper, "upper", digits), False),
        ]:
            _write_beside(ax, value, bottom, shown, left=left, weight="bold")
            texts.append((value, f"{shown} ", left))  # bold is wider
    ax.set(ylim=(bottom + 0.6, -1.15), xlim=_room_for(ax, texts, low, high), yticks=[])
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.tick_params(axis="x", colors=SOFT, labelsize=7.5, length=3)
    ax.locator_params(axis="x", nbins=6)
    ax.ticklabel_format(axis="x", useOffset=False)
    return ax


def plot_marginals(estimate: Estimate, exact: Estimate, ax: "Axes | None" = None) -> "Axes":
    """Draw a method's marginals against the exact ones, a point per variable and state (of two states only the second):
    on the diagonal they agree."""
    ax = new_axes(ax, (2.5, 2.5))
    ours, true = _free_marginals(estimate), _free_marginals(exact)
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    ax.plot(
        true,
        ours,
        linestyle="none",
        marker="o",
        markersize=3.2,
        color=INK,
        markeredgewidth=0,
        alpha=0.55,
        clip_on=False,
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1], aspect="equal")
    ax.tick_params(colors=SOFT, labelsize=7, length=2)
    ax.set_xlabel("exact", fontsize=7, color=SOFT, labelpad=-7)
    ax.set_ylabel("method", fontsize=7, color=SOFT, labelpad=-5)
    for spine in ax.spines.values():
        spine.set_color(FAINT)
    return ax


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
    """
    rows = _labelled_clampings(results)
    if not rows:
        raise OptionError("results: expected at least one result of clamping, found none")
    truth = exact.log_z if isinstance(exact, Estimate | Clamped) else exact
    truth = float(truth) if truth is not None and math.isfinite(truth) else None
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
        width = float(np.clip((k + 1) * _cell_width(table), STEPS_SIZE[0], MAX_STEPS_WIDTH))
        below = sum(_row_height(cells, width / (k + 1)) for _, cells in table)
        height = max(STEPS_SIZE[1], 1.2 * LABEL_HEIGHT * len(ends))
        ax = new_axes(None, ((width + beside) / 72, (height + below + 20) / 72))
    else:
        box = ax.get_window_extent()
        width, height = box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi
    values = [
        v
        for v in [*(step.log_z for result in rows.values() for step in result.steps), truth]
        if v is not None and math.isfinite(v)
    ] or [0.0]
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
    _write_ends(ax, places, ends, styles, (width, height))
    _write_table(ax, table, width / (k + 1))
    ax.set_ylabel("log Z", fontsize=8.5, color=INK)
    ax.spines[["right", "top"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=SOFT, labelsize=7.5, length=3)
    ax.ticklabel_format(axis="y", useOffset=False)
    return ax


def plot_summary(
    model: Model, exact: Estimate, estimates: Estimated, marginals_of: Sequence[str] | None = None
) -> "Figure":
    """One figure of a model and of what every method says of it: the graph, the bracket, and the marginals against the
    exact ones.

    `marginals_of` names up to three of the estimates by label; the first three if None.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = _labelled(estimates)
    figure = Figure(figsize=(9.0, 4.7), dpi=200, facecolor="white")
    plot_model(model, figure.add_axes((0.01, 0.105, 0.405, 0.8)), marginals=exact)
    edges = [
        Line2D([], [], color=ATTRACTIVE, linewidth=2.2, label="attractive"),
        Line2D([], [], color=REPULSIVE, linewidth=2.2, linestyle=DASHES, label="repulsive"),
    ]
    style: dict[str, Any] = {
        "frameon": False,
        "fontsize": 8,
        "labelcolor": INK,
        "handlelength": 2.1,
        "columnspacing": 1.2,
        "handletextpad": 0.6,
    }
    figure.legend(handles=edges, loc="center left", bbox_to_anchor=(0.006, 0.06), ncols=2, **style)
    _shade_key(figure, (0.34, 0.046, 0.06, 0.028))
    plot_bracket(rows, exact, figure.add_axes((0.56, 0.475, 0.43, 0.43)))
    chosen = list(rows if marginals_of is None else marginals_of)[:3]
    for k, label in enumerate(chosen):
        ax = plot_marginals(rows[label], exact, figure.add_axes((0.56 + 0.15 * k, 0.075, 0.13, 0.249)))
        ax.set_title(label, fontsize=8, color=INK, pad=4)
        if k:
            ax.set(yticklabels=[], ylabel="")
    for x, y, text in [
        (0.021, 0.945, f"The model: {model.num_variables} variables, {model.num_edges} edges"),
        (0.452, 0.945, "What each method says of log Z"),
        (0.452, 0.4, "Their marginals against the exact ones"),
    ]:
        figure.text(x, y, text, fontsize=9.5, fontweight="bold", color=INK, va="center")
    return figure


def new_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=150, facecolor="white", layout="constrained").add_subplot()


def _labelled(estimates: Estimated) -> dict[str, Estimate]:
    """Estimates by label; those without one are called by their method, numbered where it occurs twice."""
    if isinstance(estimates, Mapping):
        return dict(estimates)
    found: dict[str, Estimate] = {}
    for estimate in estimates:
        name = title(estimate.method)
        number = sum(label.split(" #")[0] == name for label in found)
        found[f"{name} #{number + 1}" if number else name] = estimate
    return found


def _labelled_clampings(results: Clampings) -> dict[str, Clamped]:
    """Results by label: their method, with the selector where a method occurs twice, numbered where that does."""
    if isinstance(results, Mapping):
        return dict(results)
    every = [results] if isinstance(results, Clamped) else list(results)
    names = [title(result.method) for result in every]
    names = [
        f"{name}, {_selector_of(result)}" if names.count(name) > 1 else name
        for name, result in zip(names, every, strict=True)
    ]
    return {
        f"{name} #{names[:i].count(name) + 1}" if name in names[:i] else name: every[i] for i, name in enumerate(names)
    }


def _selector_of(result: Clamped) -> str:
    found = {step.selector for step in result.steps[1:]} - {""}
    return found.pop() if len(found) == 1 else result.select if found else "no clamps"


def _steps_table(rows: Mapping[str, Clamped]) -> list[tuple[str, list[str]]]:
    """What is written under a plot of steps: their numbers, and the variables of every result, or once if all have the
    same."""
    k = max(len(result.steps) - 1 for result in rows.values())
    numbers = ("clamps", [str(number) for number in range(k + 1)])
    lines = {
        label: [_step_text(result, number) for number in range(len(result.steps))] for label, result in rows.items()
    }
    selectors = {_selector_of(result) for result in rows.values()}
    if k and len(selectors) == 1 and len({tuple(cells) for cells in lines.values()}) == 1:
        return [numbers, (f"variable, by {selectors.pop()}".replace("by given", "given"), next(iter(lines.values())))]
    shown = {label: result for label, result in rows.items() if len(result.steps) > 1}
    return [
        numbers,
        *(
            (label if _selector_of(r) in label else f"{label}, {_selector_of(r)}", lines[label])
            for label, r in shown.items()
        ),
    ]


def _step_text(result: Clamped, number: int) -> str:
    """The variable of a step, or the new ones if it has several, and its selector where they differ."""
    step, names = result.steps[number], result.model.names
    if number == 0:
        return ""
    before: Step = result.steps[number - 1]
    new = [step.variable] if step.variable is not None else []
    if step.selector == "optimal" or step.variable is None:
        new = [i for i in step.variables if step.selector == "optimal" or i not in before.variables]
    if not step.selector:
        return "none"
    variables = "several" if len(new) > 3 or not new else "\n".join(names[i] if names else str(i) for i in new)
    return variables if _selector_of(result) == step.selector else f"{variables}\n{step.selector}"


def _cell_width(table: list[tuple[str, list[str]]]) -> float:
    return max(4.6 * len(line) + 8.0 for _, cells in table for cell in cells for line in cell.split("\n"))


def _row_height(cells: list[str], room: float) -> float:
    """In points, of a row of the table: upright if a cell does not fit in the room of a step."""
    if _cell_width([("", cells)]) <= room:
        return TABLE_LINE * max(cell.count("\n") + 1 for cell in cells) + 3
    return 4.8 * max(len(cell) for cell in cells) + 8


def _write_table(ax: "Axes", table: list[tuple[str, list[str]]], room: float) -> None:
    """Rows of texts under the axes, a column for each step; what is too crowded even upright is left out in between."""
    offset = 6.0
    for label, cells in table:
        fits = _cell_width([("", cells)]) <= room
        upright = TABLE_LINE * max(cell.count("\n") + 1 for cell in cells)
        stride = 1 if fits else math.ceil(upright / room)
        style: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": 7.5, "annotation_clip": False}
        ax.annotate(label, (0, 0), (-6, -offset), xycoords="axes fraction", ha="right", color=SOFT, **style)
        for number, cell in enumerate(cells):
            if cell and (number - 1) % stride == 0:
                ax.annotate(
                    cell,
                    (number, 0),
                    (0, -offset),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    color=INK,
                    rotation=0 if fits else 90,
                    multialignment="center" if fits else "right",
                    **style,
                )
        offset += _row_height(cells, room)


def _digits(rows: Mapping[str, Clamped], truth: float | None) -> int:
    """Decimals that tell the last values of results apart."""
    values = [v for v in [*(result.log_z for result in rows.values()), truth] if v is not None and math.isfinite(v)]
    spread = max(values, default=0.0) - min(values, default=0.0)
    return 2 if spread < 1e-6 * (1 + abs(max(values, default=0.0))) else max(2, 2 - math.floor(math.log10(spread)))


def _end_text(result: Clamped, truth: float | None, digits: int) -> tuple[str, str]:
    """What is written at the end of a result's line: its value, and what it is."""
    shown = round_outward(result.log_z, result.bound, digits)
    if truth is not None and math.isfinite(result.log_z) and abs(result.log_z - truth) >= 0.5 * 10**-digits:
        shown += f" ({result.log_z - truth:+.{digits}f})"
    kind = KINDS[result.bound] + ("" if all(step.converged for step in result.steps) else ", hollow: not converged")
    return shown.replace("-", "\N{MINUS SIGN}"), kind


def _draw_steps(ax: "Axes", result: Clamped, style: Mapping[str, Any]) -> None:
    """A result as a line with a marker for each step, hollow where not all branches have converged."""
    values = np.array([step.log_z if math.isfinite(step.log_z) else math.nan for step in result.steps])
    ax.plot(range(len(values)), values, **style)
    hollow = [i for i, step in enumerate(result.steps) if not step.converged]
    ax.plot(hollow, values[hollow], **{**style, "linestyle": "none", "markerfacecolor": "white"})


def _line_styles(rows: Mapping[str, Clamped]) -> dict[str, dict[str, Any]]:
    """For every result a line that no other has, by its marker and dashes as well as by its colour."""
    styles: dict[str, dict[str, Any]] = {}
    kinds = [result.bound for result in rows.values()]
    for number, (label, kind) in enumerate(zip(rows, kinds, strict=True)):
        turn = kinds[:number].count(kind)
        markers = STEP_MARKERS[kind]
        marker = markers[turn % len(markers)]
        style: dict[str, Any] = {
            "marker": marker,
            "fillstyle": "full" if turn < len(markers) else "left",
            "markersize": 9.0 if marker.isdigit() else 6.0,
        }
        style |= {
            "linestyle": STEP_LINES[turn % len(STEP_LINES)],
            "linewidth": 1.3,
            "markeredgewidth": 1.3,
            "zorder": 3,
        }
        styles[label] = style | {"color": STEP_COLOURS[number % len(STEP_COLOURS)], "markerfacecoloralt": "white"}
    return styles


def _write_ends(
    ax: "Axes",
    places: Mapping[str, tuple[float, float]],
    ends: Mapping[str, tuple[str, str]],
    styles: Mapping[str, Mapping[str, Any]],
    size: tuple[float, float],
) -> None:
    """The labels of lines right of axes of this size in points: each at the height of the line's end (x, y), or as near
    as leaves them apart."""
    from matplotlib.lines import Line2D
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea

    (left, right), (low, high), (width, height) = ax.get_xlim(), ax.get_ylim(), size
    order = sorted(list(ends)[::-1], key=lambda label: places[label][1])  # of equal ones the first is on top
    wanted = np.array([np.clip((places[label][1] - low) / (high - low), 0.0, 1.0) for label in order]) * height
    halves = np.array([LABEL_HEIGHT / 2 if ends[label][1] else TABLE_LINE / 2 for label in order])
    beside: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "annotation_clip": False,
        "color": INK,
    }
    for label, at, y in zip(order, wanted / height, _apart(wanted, halves) / height, strict=True):
        value, kind = ends[label]
        if math.isfinite(places[label][1]):
            x = (places[label][0] - left) / (right - left)
            ax.plot(
                [x, 1.0, 1.0 + LEADER / width],
                [at, at, y],
                transform=ax.transAxes,
                color=PALE,
                linewidth=0.7,
                clip_on=False,
                zorder=0.5,
            )
        if label not in styles:
            ax.annotate(
                f"{label}  {value}", (1, y), (LEADER + 3, 0), va="center", fontsize=8.5, fontweight="bold", **beside
            )
            continue
        key = DrawingArea(SAMPLE, 8)
        key.add_artist(Line2D([0, SAMPLE / 2, SAMPLE], [4, 4, 4], markevery=[1], **styles[label]))
        where: dict[str, Any] = {
            "xycoords": "axes fraction",
            "boxcoords": "offset points",
            "box_alignment": (0, 0.5),
            "pad": 0,
            "frameon": False,
        }
        ax.add_artist(AnnotationBbox(key, (1, y), (LEADER + 3, 0), annotation_clip=False, **where))
        ax.annotate(f"{label}  {value}", (1, y), (LEADER + SAMPLE + 8, 0), va="bottom", fontsize=8.5, **beside)
        ax.annotate(kind, (1, y), (LEADER + SAMPLE + 8, -1), va="top", fontsize=7, **{**beside, "color": SOFT})


def _apart(wanted: Floats, halves: Floats) -> Floats:
    """Places in order that are near the wanted ones (in order too), and as far from each other as their half heights
    need."""
    gaps = np.concatenate([[0.0], np.cumsum(halves[1:] + halves[:-1])])
    free = wanted - gaps
    up: Floats = np.maximum.accumulate(free)
    down: Floats = np.minimum.accumulate(free[::-1])[::-1]
    placed: Floats = (up + down) / 2 + gaps
    return placed


def _write_beside(ax: "Axes", value: float, row: float, text: str, *, left: bool, weight: str = "normal") -> None:
    text, side = text.replace("-", "\N{MINUS SIGN}"), -1 if left else 1
    ax.annotate(
        text,
        (value, row),
        (side * BESIDE, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8.5,
        fontweight=weight,
        color=INK,
    )


def _room_for(ax: "Axes", texts: Sequence[tuple[float, str, bool]], low: float, high: float) -> tuple[float, float]:
    """Limits of the x axis, from low to high and wider, that leave room for the texts (value, text, whether left of
    it)."""
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
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


def _draw_edges(ax: "Axes", model: Model, place: Layout, member: NDArray[np.bool_]) -> None:
    """Edges by sign, the stronger the wider; those that are no members pale."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    segments, edge_of_segment = _segments(model, place)
    shrink = min(1.0, math.sqrt(MANY / max(model.num_variables, 1)))
    widths = (
        np.interp(model.strength, [0.0, model.strength.max(initial=0.0) or 1.0], EDGE_WIDTHS)[edge_of_segment] * shrink
    )
    sign = (np.zeros(model.num_edges) if model.pair_form is None else np.sign(model.pair_form.W))[edge_of_segment]
    opacity = np.where(member, 1.0, FADED)[edge_of_segment]
    for wanted, colour, dashes in [(0, UNSIGNED, "solid"), (1, ATTRACTIVE, "solid"), (-1, REPULSIVE, DASHES)]:
        some = sign == wanted
        colours = [to_rgba(colour, alpha) for alpha in opacity[some]]
        ax.add_collection(
            LineCollection(
                list(segments[some]), linewidths=widths[some].tolist(), colors=colours, linestyles=[dashes], zorder=1
            )
        )


def _draw_variables(
    ax: "Axes",
    positions: Floats,
    radius: float,
    shades: Floats,
    limits: tuple[float, float],
    shade_map: "Colormap",
    member: NDArray[np.bool_],
) -> "EllipseCollection":
    """Variables as circles, in the units of the page so that they keep their share of an edge; those that are no
    members have a thin outline."""
    from matplotlib.collections import EllipseCollection

    sizes = np.full(len(positions), 2 * radius)
    circles = EllipseCollection(
        sizes, sizes, np.zeros_like(sizes), units="xy", offsets=positions, offset_transform=ax.transData, zorder=2
    )
    outlines = [INK if inside else PALE for inside in member]
    circles.set(
        cmap=shade_map, array=shades, clim=limits, edgecolors=outlines, linewidths=np.where(member, 0.9, 0.7).tolist()
    )
    ax.add_collection(circles)
    return circles


def _draw_clamped(ax: "Axes", model: Model, positions: Floats, radius: float, clamped: Sequence[int]) -> None:
    """A square around each clamped variable, and its number at the corner that is furthest from an edge."""
    from matplotlib.patches import Rectangle

    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    half = FRAME * radius
    for number, i in enumerate(clamped, start=1):
        ax.add_patch(
            Rectangle(
                positions[i] - half, 2 * half, 2 * half, facecolor="white", edgecolor=INK, linewidth=1.8, zorder=1.5
            )
        )
        ends = model.edges[(model.edges == i).any(axis=1)].ravel()
        away = positions[ends[ends != i]] - positions[i]
        away /= np.maximum(np.hypot(*away.T), 1e-12)[:, None]
        nearness = (corners @ away.T).max(axis=1, initial=-2.0)
        corner = corners[int(np.argmin(nearness.round(6)))]
        style: dict[str, Any] = {
            "boxstyle": "square,pad=0.22",
            "facecolor": INK,
            "edgecolor": "white",
            "linewidth": 0.6,
        }
        ax.annotate(
            str(number),
            positions[i] + half * corner,
            corner * 2.5,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=6.5,
            fontweight="bold",
            color="white",
            bbox=style,
            zorder=4,
        )


def _radius(positions: Floats) -> float:
    """Of a variable: so that the edge between typical neighbours on the page stays longer than the two of them."""
    from scipy.spatial import KDTree  # slow to import, and few who solve models also draw them

    if len(positions) < 2:
        return RADIUS
    nearest = KDTree(positions).query(positions, k=2)[0][:, 1]
    return RADIUS * float(np.median(nearest)) or RADIUS


def _shade_map() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", ["white", INK])


def _score_map() -> "Colormap":
    """From white to dark, in a hue that no edge has."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("score", ["white", "#f3c065", "#ad6b1c", "#3d1f06"])


def _shade_key(figure: "Figure", box: tuple[float, float, float, float]) -> None:
    key = figure.add_axes(box)
    key.imshow(np.linspace(0, 1, 64)[None], cmap=_shade_map(), aspect="auto")
    key.set(xticks=[], yticks=[])
    for spine in key.spines.values():
        spine.set(color=INK, linewidth=0.7)
    key.text(-0.08, 0.45, "p(x = 1)   0", transform=key.transAxes, ha="right", va="center", fontsize=8, color=INK)
    key.text(1.08, 0.45, "1", transform=key.transAxes, ha="left", va="center", fontsize=8, color=INK)


def _shades(model: Model, marginals: Estimate | None, state: int) -> Floats:
    if marginals is None:
        return np.zeros(model.num_variables)
    if len(marginals.marginals) != model.num_variables:
        raise OptionError(
            f"marginals: expected an estimate of this model of {model.num_variables} variables, found one of {len(marginals.marginals)}"
        )
    return np.array([float(p[state]) if state < len(p) else 0.0 for p in marginals.marginals])


def _scores(model: Model, scores: ArrayLike | str, clamped: list[int]) -> Floats:
    """(n,) the caller's scores, checked, or a selector's, which looks at what the clamps leave."""
    if isinstance(scores, str):
        from clampz.approximations.trw import trw

        entropy = singleton_entropies(trw(branches(model, clamped))) if scores.endswith("+TRE") and clamped else None
        return selector_scores(model, scores, clamped=clamped, entropy=entropy)
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(
            f"scores: expected a number for each variable or the name of a selector, found {scores!r:.80}"
        ) from None
    if array.shape != (model.num_variables,) or not np.isfinite(array).all():
        raise OptionError(
            f"scores: expected {model.num_variables} finite numbers, one for each variable, found {array!r:.80}"
        )
    return array


def _limits(values: Floats) -> tuple[float, float]:
    """Of a scale for values: from 0, or from the lowest if that is less."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    return low, high if high > low else low + 1.0


def _clamped_variables(model: Model, clamped: Sequence[Variable]) -> list[int]:
    if isinstance(clamped, str):
        raise OptionError(f"clamped: expected a list of variables, found the string {clamped!r}")
    return checked_variables(model, clamped)


def _core(model: Model, clamped: list[int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks (n,) and (m,) of the core that is left after clamping; of all, where there was none before."""
    member, edge_member = np.zeros(model.num_variables, dtype=np.bool_), np.zeros(model.num_edges, dtype=np.bool_)
    if not model.topology.num_core:
        return ~member, ~edge_member
    free = Batch(model, model.unary.flat[:, None]).num_possible[:, 0] > 1
    free[clamped] = False
    left = Remaining.of(model, free, core=True)
    member[left.variables] = edge_member[left.edge_numbers] = True
    return member, edge_member


def _free_marginals(estimate: Estimate) -> Floats:
    return np.concatenate([p[1:] if len(p) == 2 else p for p in estimate.marginals] or [np.empty(0)])


def _segments(model: Model, place: Layout) -> tuple[Floats, Any]:
    """(s, 2, 2) the lines that show the edges, and which edge each belongs to: an edge around a torus is two stubs."""
    begin, end = place.positions[model.edges[:, 0]], place.positions[model.edges[:, 1]]
    number = np.arange(model.num_edges)
    if place.period is None:
        return np.stack([begin, end], axis=1), number
    step = end - begin
    around = np.abs(step) > np.array(place.period) / 2
    wrapped = around.any(axis=1)
    out = -np.sign(step) * around * 0.62
    lines = [np.stack([begin[~wrapped], end[~wrapped]], axis=1)]
    lines += [
        np.stack([begin[wrapped], (begin + out)[wrapped]], axis=1),
        np.stack([end[wrapped], (end - out)[wrapped]], axis=1),
    ]
    return np.concatenate(lines), np.concatenate([number[~wrapped], number[wrapped], number[wrapped]])


draws(Clamped, plot_clamped)
