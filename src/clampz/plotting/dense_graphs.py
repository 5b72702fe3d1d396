"""The picture of a model with more variables than could be told apart: an image of a grid, and of any other graph a
density."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.model import Model
from clampz.model.couplings import HARD_STRENGTH
from clampz.numerics import Floats, Integers
from clampz.plotting.colors import ColorScale, score_map, shade_map
from clampz.plotting.nodes import factor_positions
from clampz.plotting.positions import Layout
from clampz.plotting.style import ATTRACTIVE, REPULSIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

# Cells along the longer side of a density, and points that edges are followed by at most.
CELLS, MOST_POINTS = 320, 3_000_000


def draw_crowd(ax: "Axes", model: Model, place: Layout, shade: ColorScale | None) -> "tuple[ScalarMappable, str]":
    """Draw it, and return what its shades mean."""
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
    """Of each variable the mean W of its edges, or their mean strength where they have no sign."""
    from matplotlib.colors import LinearSegmentedColormap

    signed = model.pair_form is not None
    values = model.pair_form.W if model.pair_form is not None else np.minimum(model.strength, HARD_STRENGTH)
    ends, n = model.edges.ravel(), model.num_variables
    mean = np.bincount(ends, np.repeat(values, 2), n) / np.maximum(np.bincount(ends, minlength=n), 1)
    most = float(np.abs(mean).max(initial=0.0)) or 1.0
    if not signed:
        return ColorScale(mean, (0.0, most), score_map(), "mean strength of a variable's edges")
    colours = LinearSegmentedColormap.from_list("signed", [REPULSIVE, "white", ATTRACTIVE])
    return ColorScale(mean, (-most, most), colours, "mean W of a variable's edges: attractive above 0, repulsive below")


def _density(ax: "Axes", points: Floats, shade: ColorScale | None) -> Any:
    """How many points are in each cell of the page, on a log scale; or the mean shade of those that are."""
    from matplotlib.colors import LogNorm

    low, high = points.min(axis=0), points.max(axis=0)
    side = max(float((high - low).max()), 1e-9) / CELLS
    num = np.ceil((high - low) / side).astype(np.int64) + 1
    column, row = np.floor((points - low) / side).astype(np.int64).T
    cell = row * num[0] + column
    counts = np.bincount(cell, minlength=int(num.prod())).astype(np.float64)
    right, top = low + num * side
    where: dict[str, Any] = {"extent": (float(low[0]), float(right), float(low[1]), float(top)), "origin": "lower"}
    where |= {"interpolation": "auto", "aspect": "equal"}
    if shade is None:
        image = np.where(counts > 0, counts, np.nan).reshape(num[::-1])
        colours = shade_map().with_extremes(bad="white")
        return ax.imshow(image, cmap=colours, norm=LogNorm(0.5, max(float(counts.max()), 2.0)), **where)
    with np.errstate(invalid="ignore"):
        image = (np.bincount(cell, shade.values, minlength=int(num.prod())) / counts).reshape(num[::-1])
    colours = _from_pale(shade)
    return ax.imshow(image, cmap=colours, vmin=shade.limits[0], vmax=shade.limits[1], **where)


def _from_pale(shade: ColorScale) -> Any:
    """The same colours without white, which is where nothing is."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = shade.colours(np.linspace(0.12, 1.0, 64))
    return LinearSegmentedColormap.from_list("from pale", colours).with_extremes(bad="white")


def _along_edges(model: Model, place: Layout) -> Floats:
    """Points on all lines of the picture, a cell apart, or as many of them as are followed at most; the variables where
    there are no lines."""
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
    """Where edges and the lines of factors begin and end."""
    begin, end = place.positions[model.edges[:, 0]], place.positions[model.edges[:, 1]]
    if not model.factors:
        return begin, end
    middle = np.repeat(factor_positions(model, place, 0.0), np.diff(model.factors.scope_start), axis=0)
    return np.concatenate([begin, middle]), np.concatenate([end, place.positions[model.factors.variables]])
