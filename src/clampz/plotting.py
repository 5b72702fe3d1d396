"""Pictures of models and of what methods found.

Attractive edges are solid and blue, repulsive ones dashed and red, as in the paper; nothing is said by colour alone, so the pictures also read in
greyscale.  Every function draws on the axes it is given, or on a figure of its own, and returns the axes: `plot_model(model).figure.savefig("model.png")`.

Matplotlib (`pip install 'clampz[cli]'`) is imported when something is drawn, without pyplot: no figure stays open and no backend is chosen.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from clampz.errors import OptionError
from clampz.layout import Layout, layout
from clampz.model import Model
from clampz.results import Bound, Estimate
from clampz.tables import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

INK, SOFT, FAINT = "#1f2a37", "#6b7684", "#dfe3e8"
ATTRACTIVE, REPULSIVE, UNSIGNED = "#2f6db3", "#c8402f", SOFT
DASHES = (0, (2.0, 1.1))
# What log_z is: its marker points to where log Z must be.
MARKERS: dict[Bound | None, str] = {"lower": ">", "upper": "<", "exact": "D", None: "o"}
KINDS: dict[Bound | None, str] = {"lower": "lower bound", "upper": "upper bound", "exact": "exact", None: "estimate"}
METHOD_TITLES = {"exact": "exact", "mean_field": "mean field", "bethe": "Bethe", "trw": "TRW"}
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

Estimated = Mapping[str, Estimate] | Iterable[Estimate]


def plot_model(
    model: Model,
    ax: "Axes | None" = None,
    positions: ArrayLike | None = None,
    *,
    marginals: Estimate | None = None,
    state: int = 1,
    names: bool | None = None,
) -> "Axes":
    """Draw the model's graph: edges by sign and strength, variables shaded by their marginal.

    Parameters
    ----------
    ax
        Where to draw; a new figure if None.
    positions
        (n, 2) where the variables go; `layout(model)` if None.
    marginals
        An estimate of this model: variables are shaded by its marginal of `state`, white for 0 and black for 1.
    names
        Whether to write the variables' names, or their numbers, on them; if None, where they have names and are few.
    """
    from matplotlib.collections import LineCollection

    n = model.num_variables
    place = layout(model) if positions is None else Layout(np.asarray(positions, dtype=np.float64))
    if place.positions.shape != (n, 2) or not np.isfinite(place.positions).all():
        raise OptionError(f"positions: expected shape ({n}, 2), a finite point for each variable, found {place.positions!r:.80}")
    ax = _axes(ax, (4.5, 4.5))
    segments, edge_of_segment = _segments(model, place)
    widths = np.interp(model.strength, [0.0, model.strength.max(initial=0.0) or 1.0], EDGE_WIDTHS)[edge_of_segment] * min(1.0, math.sqrt(MANY / max(n, 1)))
    sign = (np.zeros(model.num_edges) if model.pair_form is None else np.sign(model.pair_form.W))[edge_of_segment]
    for wanted, colour, dashes in [(0, UNSIGNED, "solid"), (1, ATTRACTIVE, "solid"), (-1, REPULSIVE, DASHES)]:
        chosen = sign == wanted
        ax.add_collection(LineCollection(list(segments[chosen]), linewidths=widths[chosen].tolist(), colors=colour, linestyles=[dashes], zorder=1))
    written = (model.names is not None and n <= MAX_NAMES) if names is None else names
    shades = _shades(model, marginals, state)
    radius = _radius(place.positions) * (1.25 if written else 1.0)
    _draw_variables(ax, place.positions, radius, shades)
    if written:
        labels = model.names or [str(i) for i in range(n)]
        for i, (x, y) in enumerate(place.positions):
            ax.text(x, y, labels[i], ha="center", va="center", fontsize=7, color="white" if shades[i] > 0.5 else INK, zorder=3)
    low, high = (place.positions.min(axis=0), place.positions.max(axis=0)) if n else (np.zeros(2), np.zeros(2))
    margin = 1.0 if n < 2 else 2 * radius + (0.35 if place.period else 0.0)
    ax.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin), aspect="equal")
    ax.set_axis_off()
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
    ax = _axes(ax, (5.0, 0.4 * len(rows) + 1.4))
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
        ax.text(-0.02, row if kind == label else row - 0.02, label, va="center" if kind == label else "bottom", fontsize=8.5, color=INK, **beside)
        if kind != label:
            ax.text(-0.02, row + 0.06, kind, va="top", fontsize=7, color=SOFT, **beside)
        shown = round_outward(value, estimate.bound, digits)
        if not math.isfinite(value):
            ax.text(0.5, row, shown, transform=ax.get_yaxis_transform(), ha="center", va="center", fontsize=8.5, color=SOFT)
            continue
        below = truth is not None and value < truth
        if truth is not None:
            ax.plot([value, truth], [row, row], color=SOFT, linewidth=1.0, zorder=1)
            shown += f"  ({value - truth:+.{digits}f})" if estimate.bound != "exact" else ""
        ax.plot([value], [row], marker=MARKERS[estimate.bound], markersize=7, color=INK, markerfacecolor=INK if estimate.bound else "white", zorder=3)
        _write_beside(ax, value, row, shown, left=below)
        texts.append((value, shown, below))
    if truth is not None:
        ax.plot([truth, truth], [-0.55, bottom + 0.45], color=INK, linewidth=1.3, zorder=1)
        ax.text(truth, -0.72, f"exact {truth:.{digits}f}", ha="center", va="bottom", fontsize=8.5, fontweight="bold", color=INK)
    if proven:
        ax.barh([bottom], [upper - lower], left=lower, height=0.42, color=FAINT, edgecolor=SOFT, linewidth=0.8, zorder=0.5)
        ax.text(-0.02, bottom, "proven", transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=8.5, fontweight="bold", color=INK)
        for value, shown, left in [(lower, round_outward(lower, "lower", digits), True), (upper, round_outward(upper, "upper", digits), False)]:
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
    """Draw a method's marginals against the exact ones, a point per variable and state (of two states only the second): on the diagonal they agree."""
    ax = _axes(ax, (2.5, 2.5))
    ours, true = _free_marginals(estimate), _free_marginals(exact)
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    ax.plot(true, ours, linestyle="none", marker="o", markersize=3.2, color=INK, markeredgewidth=0, alpha=0.55, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1], aspect="equal")
    ax.tick_params(colors=SOFT, labelsize=7, length=2)
    ax.set_xlabel("exact", fontsize=7, color=SOFT, labelpad=-7)
    ax.set_ylabel("method", fontsize=7, color=SOFT, labelpad=-5)
    for spine in ax.spines.values():
        spine.set_color(FAINT)
    return ax


def plot_summary(model: Model, exact: Estimate, estimates: Estimated, marginals_of: Sequence[str] | None = None) -> "Figure":
    """One figure of a model and of what every method says of it: the graph, the bracket, and the marginals against the exact ones.

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
    style: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK, "handlelength": 2.1, "columnspacing": 1.2, "handletextpad": 0.6}
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


def round_outward(value: float, bound: Bound | None, digits: int) -> str:
    """A number in decimals, rounded so that a bound stays one: lower bounds down, upper bounds up.

    >>> round_outward(1.236, "lower", 2), round_outward(1.234, "upper", 2), round_outward(1.234, None, 2)
    ('1.23', '1.24', '1.23')
    """
    if math.isfinite(value) and bound in ("lower", "upper"):
        scaled = value * 10**digits
        value = (math.floor(scaled) if bound == "lower" else math.ceil(scaled)) / 10**digits
    return f"{value:.{digits}f}"


def _axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
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
        title = METHOD_TITLES.get(estimate.method, estimate.method)
        number = sum(label.split(" #")[0] == title for label in found)
        found[f"{title} #{number + 1}" if number else title] = estimate
    return found


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
    """Limits of the x axis, from low to high and wider, that leave room for the texts (value, text, whether left of it)."""
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    needed = [max((BESIDE + CHARACTER * len(text) for _, text, left in texts if left is side), default=BESIDE) for side in (True, False)]
    # If every text began at the far end this would be the room to take; most begin further inside and then reach less far out.
    point = (high - low) / max(width - sum(needed), 0.2 * width)
    left_ends = [value - point * (BESIDE + CHARACTER * len(text)) for value, text, left in texts if left]
    right_ends = [value + point * (BESIDE + CHARACTER * len(text)) for value, text, left in texts if not left]
    return min([low - point * BESIDE, *left_ends]), max([high + point * BESIDE, *right_ends])


def _draw_variables(ax: "Axes", positions: Floats, radius: float, shades: Floats) -> None:
    """Variables as circles, in the units of the page so that they keep their share of an edge."""
    from matplotlib.collections import EllipseCollection

    sizes = np.full(len(positions), 2 * radius)
    circles = EllipseCollection(sizes, sizes, np.zeros_like(sizes), units="xy", offsets=positions, offset_transform=ax.transData, zorder=2)
    circles.set(cmap=_shade_map(), array=shades, clim=(0.0, 1.0), edgecolors=INK, linewidths=0.9)
    ax.add_collection(circles)


def _radius(positions: Floats) -> float:
    """Of a variable: so that the edge between typical neighbours on the page stays longer than the two of them."""
    if len(positions) < 2:
        return RADIUS
    nearest = KDTree(positions).query(positions, k=2)[0][:, 1]
    return RADIUS * float(np.median(nearest)) or RADIUS


def _shade_map() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", ["white", INK])


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
        raise OptionError(f"marginals: expected an estimate of this model of {model.num_variables} variables, found one of {len(marginals.marginals)}")
    return np.array([float(p[state]) if state < len(p) else 0.0 for p in marginals.marginals])


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
    lines += [np.stack([begin[wrapped], (begin + out)[wrapped]], axis=1), np.stack([end[wrapped], (end - out)[wrapped]], axis=1)]
    return np.concatenate(lines), np.concatenate([number[~wrapped], number[wrapped], number[wrapped]])
