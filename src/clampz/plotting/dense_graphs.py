"""The picture of a graph too large to draw node by node: a grid as an image, any other graph as a density."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.model import Model
from clampz.model.couplings import HARD_STRENGTH
from clampz.numerics import Floats, Integers
from clampz.plotting.colors import ColorScale, color_map, score_map, shade_map
from clampz.plotting.graph_elements import factor_positions
from clampz.plotting.graph_layout import Layout
from clampz.plotting.style import ATTRACTIVE, REPULSIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

# Cells along the longer side of a density, and points that edges are followed by at most.
CELLS, MOST_POINTS = 320, 3_000_000


def draw_dense_graph(ax: "Axes", model: Model, place: Layout, shade: ColorScale | None) -> "tuple[ScalarMappable, str]":
    """Draw the graph as an image or as a density, and return its colours and what they mean."""
    if place.shape is not None:
        shade = shade or _strengths(model)
        image = shade.values.reshape(place.shape)
        low, high = shade.limits
        drawn = ax.imshow(image, cmap=shade.colours, vmin=low, vmax=high, extent=_extent(place), interpolation="auto")
        return drawn, shade.label
    if shade is not None:
        return _density(ax, place.positions, shade), f"{shade.label}, mean of the variables at a point"
    return _density(ax, _along_edges(model, place), None), "edges through a point"


def _extent(place: Layout) -> tuple[float, float, float, float]:
    (left, bottom), (right, top) = place.positions.min(axis=0) - 0.5, place.positions.max(axis=0) + 0.5
    return float(left), float(right), float(bottom), float(top)


def _strengths(model: Model) -> ColorScale:
    """Return a scale of the mean W of each variable's edges, or of their mean strength where they have no sign."""
    signed = model.pair_form is not None
    values = model.pair_form.W if model.pair_form is not None else np.minimum(model.strength, HARD_STRENGTH)
    ends, n = model.edges.ravel(), model.num_variables
    mean = np.bincount(ends, np.repeat(values, 2), n) / np.maximum(np.bincount(ends, minlength=n), 1)
    most = float(np.abs(mean).max(initial=0.0)) or 1.0
    if not signed:
        return ColorScale(mean, (0.0, most), score_map(), "mean strength of a variable's edges")
    colours = color_map([REPULSIVE, "white", ATTRACTIVE])
    return ColorScale(mean, (-most, most), colours, "mean W of a variable's edges: attractive above 0, repulsive below")


def _density(ax: "Axes", points: Floats, shade: ColorScale | None) -> Any:
    """Draw the number of points in each cell of the page on a log scale, or their mean shade."""
    from matplotlib.colors import LogNorm

    low, high = points.min(axis=0), points.max(axis=0)
    side = max(float((high - low).max()), 1e-9) / CELLS
    (x, y), numbers = points.T, np.ceil((high - low) / side) + 2
    cells = [start + side * np.arange(num) for start, num in zip(low, numbers, strict=True)]
    counts = np.histogram2d(x, y, cells)[0].T
    where: dict[str, Any] = {"extent": [end for edges in cells for end in edges[[0, -1]]], "origin": "lower"}
    where |= {"interpolation": "auto", "aspect": "equal"}
    if shade is None:
        image = np.where(counts > 0, counts, np.nan)
        colours = shade_map().with_extremes(bad="white")
        return ax.imshow(image, cmap=colours, norm=LogNorm(0.5, max(float(counts.max()), 2.0)), **where)
    with np.errstate(invalid="ignore"):
        image = np.histogram2d(x, y, cells, weights=shade.values)[0].T / counts
    colours = color_map(shade.colours(np.linspace(0.12, 1.0, 64)))  # without white, which marks cells without points
    return ax.imshow(image, cmap=colours, vmin=shade.limits[0], vmax=shade.limits[1], **where)


def _along_edges(model: Model, place: Layout) -> Floats:
    """Return points along all lines of the picture, a cell apart where they are not too many; without lines, the
    variables."""
    begin, end = _lines(model, place)
    if not len(begin):
        return place.positions
    side = max(float(np.ptp(place.positions, axis=0).max()), 1e-9) / CELLS
    num = np.maximum(np.ceil(np.hypot(*(end - begin).T) / side), 1).astype(np.int64)
    if num.sum() > MOST_POINTS:
        num = np.maximum(num * MOST_POINTS // num.sum(), 1)
    line: Integers = np.repeat(np.arange(len(num)), num)
    first = np.repeat(np.cumsum(num) - num, num)
    share = ((np.arange(len(line)) - first + 0.5) / num[line])[:, None]
    points: Floats = begin[line] * (1 - share) + end[line] * share
    return points


def _lines(model: Model, place: Layout) -> tuple[Floats, Floats]:
    """Return where edges, and the lines from factors to variables, begin and end."""
    begin, end = place.positions[model.edges[:, 0]], place.positions[model.edges[:, 1]]
    if not model.factors:
        return begin, end
    middle = np.repeat(factor_positions(model, place, 0.0), np.diff(model.factors.scope_start), axis=0)
    return np.concatenate([begin, middle]), np.concatenate([end, place.positions[model.factors.variables]])
