"""Draw the elements of a graph: edges, factors, variables and clamps; `Core` says which are faded."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph as kernels
from clampz.exact_inference.scopes import Scopes
from clampz.model import Model
from clampz.model.conditioning import states_left
from clampz.model.couplings import HARD_STRENGTH
from clampz.numerics import Floats, Integers
from clampz.plotting.colors import ColorScale
from clampz.plotting.graph_layout import Layout
from clampz.plotting.style import ATTRACTIVE, DASHES, INK, PALE, REPULSIVE, SOFT, UNSIGNED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import EllipseCollection

# Widths of the weakest and the strongest edge, and of the line from a factor to a variable, in points.
EDGE_WIDTHS, LINK_WIDTH = (0.5, 3.4), 0.9
# Variables beyond which edges become thinner as the variables become smaller, and edges of each beyond which all do.
MANY, OF_EACH = 64, 4
# Edges that are drawn at most, the strongest of them: of few variables, and of each of many.
MOST_EDGES, MOST_OF_EACH = 800, 4
# Edges beyond which they are drawn as if through glass.
GLASSY = 1000
# Radius of a variable as a share of the distance to its nearest neighbour, and at least of the side of its share of
# the page.
RADIUS, LEAST_RADIUS = 0.21, 0.1
# Variables beyond which a sample of them says what is typical.
TYPICAL = 10_000
# How much of an edge outside the core is left.
FADED = 0.28
# Half the side of the square around a clamped variable, and of that of a factor, in radii.
FRAME, FACTOR = 1.32, 0.75

# Kinds of edges, by their sign, and how they are drawn.
EDGES: dict[str, dict[str, Any]] = {
    "edge": {"color": UNSIGNED, "linestyle": "solid"},
    "attractive": {"color": ATTRACTIVE, "linestyle": "solid"},
    "repulsive": {"color": REPULSIVE, "linestyle": DASHES},
    "rules states out": {"color": INK, "linestyle": "solid"},
}


class Core(NamedTuple):
    """Masks of the variables, edges and factors in the core of the graph."""

    variables: NDArray[np.bool_]
    edges: NDArray[np.bool_]
    factors: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Model, clamped: list[int], *, whole: bool) -> "Core":
        """Return the core that the clamps leave; the whole graph if asked to, or where it has no core."""
        everything = cls(
            *(np.ones(num, dtype=np.bool_) for num in (model.num_variables, model.num_edges, len(model.factors)))
        )
        if whole:
            return everything
        free = states_left(model.unary.flat > -np.inf, model.unary.start) > 1
        if not _stripped(model, free).any():
            return everything
        free[clamped] = False
        member = _stripped(model, free)
        edges = member[model.edges].all(axis=1) & (model.strength > 0)
        return cls(member, edges, model.factors.num_among(member) > 1)


def _stripped(model: Model, free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (n,) the core of the graph of free variables, where all variables of a factor are neighbours."""
    member = free.copy()
    larger = Scopes(model.num_states, model.factors.scope_start, model.factors.variables, model.factors.start)
    pairs = np.concatenate([model.edges[model.strength > 0], larger.edges()])
    pairs = np.unique(pairs[free[pairs].all(axis=1)], axis=0).astype(np.int32)
    member[kernels.strip_to_core(*kernels.neighbour_lists(model.num_variables, pairs))[0]] = False
    return member


# -- edges ------------------------------------------------------------------------------------------------------------


def draw_edges(ax: "Axes", model: Model, place: Layout, member: NDArray[np.bool_]) -> None:
    """Draw edges by sign, the stronger the wider, outside the core pale; of too many only the strongest."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    segments, edge_of_segment = _segments(model, place)
    if num_drawn(model) < model.num_edges:
        shown = np.zeros(model.num_edges, dtype=np.bool_)
        shown[np.argsort(-model.strength, kind="stable")[: num_drawn(model)]] = True
        segments, edge_of_segment = segments[shown[edge_of_segment]], edge_of_segment[shown[edge_of_segment]]
    shrink = _line_scale(model) * min(1.0, math.sqrt(OF_EACH * model.num_variables / max(num_drawn(model), 1)))
    hard = model.strength >= HARD_STRENGTH
    most = model.strength[~hard].max(initial=0.0) or 1.0
    widths = np.interp(model.strength, [0.0, most], EDGE_WIDTHS)[edge_of_segment] * shrink
    sign = np.zeros(model.num_edges) if model.pair_form is None else np.sign(model.pair_form.W)
    kind = np.where(hard, 3, np.where(sign < 0, 2, sign))[edge_of_segment]
    opacity = np.where(member, min(1.0, math.sqrt(GLASSY / max(len(segments), 1))), FADED)[edge_of_segment]
    for number, (name, look) in enumerate(EDGES.items()):
        some = kind == number
        colours = np.tile(to_rgba(look["color"]), (int(some.sum()), 1))
        colours[:, 3] = opacity[some]
        style: dict[str, Any] = {"linewidths": widths[some], "colors": colours, "linestyles": [look["linestyle"]]}
        ax.add_collection(LineCollection(list(segments[some]), zorder=1, label=name, **style))


def _line_scale(model: Model) -> float:
    """Return the width of lines as a share of their width in a picture of few variables."""
    return min(1.0, math.sqrt(MANY / max(model.num_variables, 1)))


def num_drawn(model: Model) -> int:
    """Return how many edges are drawn: all, or the strongest of too many."""
    return min(model.num_edges, max(MOST_EDGES, MOST_OF_EACH * model.num_variables))


def _segments(model: Model, place: Layout) -> tuple[Floats, Integers]:
    """Return the lines (s, 2, 2) of the edges, and the edge of each line: an edge around a torus is two stubs."""
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


# -- factors ----------------------------------------------------------------------------------------------------------


def draw_factors(ax: "Axes", model: Model, place: Layout, radius: float, member: NDArray[np.bool_]) -> None:
    """Draw factors of three and more variables as squares, with a line to each variable."""
    if not model.factors:
        return
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import to_rgba

    middle = factor_positions(model, place, radius)
    arity = np.diff(model.factors.scope_start)
    ends = np.stack([np.repeat(middle, arity, axis=0), place.positions[model.factors.variables]], axis=1)
    opacity = np.where(member, 1.0, FADED)
    colours = np.tile(to_rgba(SOFT), (len(arity), 1))
    colours[:, 3] = opacity
    width = LINK_WIDTH * max(_line_scale(model), 0.4)
    links: dict[str, Any] = {"colors": np.repeat(colours, arity, axis=0), "linewidths": width}
    ax.add_collection(LineCollection(list(ends), zorder=0.9, label="of factors", **links))
    corners = FACTOR * radius * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    pale = np.array(to_rgba(PALE))
    fills = np.where(member[:, None], to_rgba(SOFT), pale)
    squares = middle[:, None] + corners
    ax.add_collection(
        PolyCollection(list(squares), facecolors=fills, edgecolors="white", linewidths=0.5, zorder=1.8, label="factor")
    )


def factor_positions(model: Model, place: Layout, radius: float) -> Floats:
    """Return positions (f, 2) of factors: as laid out, else in the middle of their variables, or beside another."""
    if place.factors is not None:
        return place.factors
    from scipy.spatial import KDTree

    start, variables = model.factors.scope_start, model.factors.variables
    sums = np.add.reduceat(place.positions[variables], start[:-1], axis=0)
    middle: Floats = sums / np.diff(start)[:, None]
    # on a page where variables are in rows, the middle of three is where one of them is
    covered = KDTree(place.positions).query(middle)[0] < 2 * radius
    middle[covered] += 2.1 * radius
    return middle


# -- variables --------------------------------------------------------------------------------------------------------


def radius_of(positions: Floats) -> float:
    """Return the radius of a variable: edges between typical neighbours on the page stay longer than two radii."""
    from scipy.spatial import KDTree  # slow to import, and few who solve models also draw them

    if len(positions) < 2:
        return RADIUS
    some = positions[:: 1 + len(positions) // TYPICAL]
    nearest = float(np.median(KDTree(positions).query(some, k=2)[0][:, 1]))
    share = math.sqrt(float(np.ptp(positions, axis=0).prod()) / len(positions))
    return max(RADIUS * nearest, LEAST_RADIUS * share) or RADIUS


def draw_variables(
    ax: "Axes", positions: Floats, radius: float, shade: ColorScale | None, member: NDArray[np.bool_]
) -> "EllipseCollection":
    """Draw variables as circles in units of the page, so that they scale with edges; outside the core outlines are
    thin."""
    from matplotlib.collections import EllipseCollection

    sizes = np.full(len(positions), 2 * radius)
    circles = EllipseCollection(
        sizes, sizes, np.zeros_like(sizes), units="xy", offsets=positions, offset_transform=ax.transData, zorder=2
    )
    outlines = [INK if inside else PALE for inside in member]
    thin = min(1.0, math.sqrt(4 * MANY / max(len(positions), 1)))
    widths = np.where(member, 0.9, 0.7) * thin
    circles.set(edgecolors=outlines, linewidths=widths.tolist(), facecolors="white")
    if shade is not None:
        circles.set(cmap=shade.colours, array=shade.values, clim=shade.limits)
    ax.add_collection(circles)
    return circles


def draw_clamped(ax: "Axes", model: Model, positions: Floats, radius: float, clamped: Sequence[int]) -> None:
    """Draw a square around each clamped variable, and its number at the corner furthest from an edge."""
    from matplotlib.patches import Rectangle

    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    half = FRAME * radius
    frame: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 1.8, "zorder": 1.5}
    box = {"boxstyle": "square,pad=0.22", "facecolor": INK, "edgecolor": "white", "linewidth": 0.6}
    style: dict[str, Any] = {"fontsize": 6.5, "fontweight": "bold", "color": "white", "bbox": box, "zorder": 4}
    style |= {"textcoords": "offset points", "ha": "center", "va": "center"}
    for number, i in enumerate(clamped, start=1):
        ax.add_patch(Rectangle(positions[i] - half, 2 * half, 2 * half, **frame))
        ends = model.edges[(model.edges == i).any(axis=1)].ravel()
        away = positions[ends[ends != i]] - positions[i]
        away /= np.maximum(np.hypot(*away.T), 1e-12)[:, None]
        nearness = (corners @ away.T).max(axis=1, initial=-2.0)
        corner = corners[int(np.argmin(nearness.round(6)))]
        ax.annotate(str(number), positions[i] + half * corner, corner * 2.5, **style)
