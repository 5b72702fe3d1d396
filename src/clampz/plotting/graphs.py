"""The picture of a model: its graph, with what is known of its variables."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.clamping.branches import checked_variables
from clampz.clamping.selectors import scores as selector_scores
from clampz.clamping.selectors.entropy import trw_entropies
from clampz.clamping.selectors.strength import Remaining
from clampz.errors import OptionError
from clampz.model import Model, Variable
from clampz.model.fixing import states_left
from clampz.model.results import Estimate
from clampz.numerics import Floats, Integers
from clampz.plotting.positions import Layout, layout
from clampz.plotting.style import ATTRACTIVE, DASHES, INK, PALE, REPULSIVE, SOFT, UNSIGNED, new_axes, shade_map
from clampz.wording import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import Colormap

# Widths of the weakest and the strongest edge, in points.
EDGE_WIDTHS = (0.5, 3.4)
# Variables beyond which edges become thinner as the variables become smaller.
MANY = 64
# Radius of a variable as a share of the distance to its nearest neighbour.
RADIUS = 0.21
# Variables up to which names are written on the nodes.
MAX_NAMES = 40
# How much of an edge outside the core is left.
FADED = 0.28
# Half the side of the square around a clamped variable, in radii.
FRAME = 1.32


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
    around = place.positions if n else np.zeros((1, 2))
    low, high = around.min(axis=0) - margin, around.max(axis=0) + margin
    width, height = np.clip(4.5 * (high - low) / (high - low).max(), 1.8, None)
    ax = new_axes(ax, (width, height if scores is None else height + 0.55))
    member, edge_member = _core(model, chosen, all_of_it=not core)
    _draw_edges(ax, model, place, edge_member)
    limits, colours = ((0.0, 1.0), shade_map()) if scores is None else (_limits(shades), _score_map())
    circles = _draw_variables(ax, place.positions, radius, shades, limits, colours, member)
    if written:
        dark = circles.to_rgba(shades)[:, :3] @ [0.299, 0.587, 0.114] < 0.5
        for i, (x, y) in enumerate(place.positions):
            colour = "white" if dark[i] else INK if member[i] or i in chosen else SOFT
            ax.text(x, y, name_of(model.names, i), ha="center", va="center", fontsize=7, color=colour, zorder=3)
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


def _draw_edges(ax: "Axes", model: Model, place: Layout, member: NDArray[np.bool_]) -> None:
    """Edges by sign, the stronger the wider; those that are no members pale."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    segments, edge_of_segment = _segments(model, place)
    shrink = min(1.0, math.sqrt(MANY / max(model.num_variables, 1)))
    strongest = model.strength.max(initial=0.0) or 1.0
    widths = np.interp(model.strength, [0.0, strongest], EDGE_WIDTHS)[edge_of_segment] * shrink
    sign = (np.zeros(model.num_edges) if model.pair_form is None else np.sign(model.pair_form.W))[edge_of_segment]
    opacity = np.where(member, 1.0, FADED)[edge_of_segment]
    for wanted, colour, dashes in [(0, UNSIGNED, "solid"), (1, ATTRACTIVE, "solid"), (-1, REPULSIVE, DASHES)]:
        some = sign == wanted
        colours = [to_rgba(colour, alpha) for alpha in opacity[some]]
        style: dict[str, Any] = {"linewidths": widths[some].tolist(), "colors": colours, "linestyles": [dashes]}
        ax.add_collection(LineCollection(list(segments[some]), zorder=1, **style))


def _segments(model: Model, place: Layout) -> tuple[Floats, Integers]:
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


def _draw_variables(
    ax: "Axes",
    positions: Floats,
    radius: float,
    shades: Floats,
    limits: tuple[float, float],
    colours: "Colormap",
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
    widths = np.where(member, 0.9, 0.7).tolist()
    circles.set(cmap=colours, array=shades, clim=limits, edgecolors=outlines, linewidths=widths)
    ax.add_collection(circles)
    return circles


def _draw_clamped(ax: "Axes", model: Model, positions: Floats, radius: float, clamped: Sequence[int]) -> None:
    """A square around each clamped variable, and its number at the corner that is furthest from an edge."""
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


def _radius(positions: Floats) -> float:
    """Of a variable: so that the edge between typical neighbours on the page stays longer than the two of them."""
    from scipy.spatial import KDTree  # slow to import, and few who solve models also draw them

    if len(positions) < 2:
        return RADIUS
    nearest = KDTree(positions).query(positions, k=2)[0][:, 1]
    return RADIUS * float(np.median(nearest)) or RADIUS


def _score_map() -> "Colormap":
    """From white to dark, in a hue that no edge has."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("score", ["white", "#f3c065", "#ad6b1c", "#3d1f06"])


def _shades(model: Model, marginals: Estimate | None, state: int) -> Floats:
    if marginals is None:
        return np.zeros(model.num_variables)
    if len(marginals.marginals) != model.num_variables:
        raise OptionError(
            f"marginals: expected an estimate of this model of {model.num_variables} variables, "
            f"found one of {len(marginals.marginals)}"
        )
    return np.array([float(p[state]) if state < len(p) else 0.0 for p in marginals.marginals])


def _scores(model: Model, scores: ArrayLike | str, clamped: list[int]) -> Floats:
    """(n,) the caller's scores, checked, or a selector's, which looks at what the clamps leave."""
    if isinstance(scores, str):
        entropy = trw_entropies(model, clamped) if scores.endswith("+TRE") else None
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


def _core(model: Model, clamped: list[int], *, all_of_it: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks (n,) and (m,) of the core that is left after clamping; of all if asked to, or where there was none."""
    member = np.zeros(model.num_variables, dtype=np.bool_)
    if all_of_it or not model.topology.num_core:
        return ~member, np.ones(model.num_edges, dtype=np.bool_)
    free = states_left(model.unary.flat > -np.inf, model.unary.start) > 1
    free[clamped] = False
    left = Remaining.of(model, free, core=True)
    member[left.variables] = True
    # larger factors have couplings of their own, where there is no edge to draw
    ends = np.array([model.num_variables, 1])
    return member, np.isin(model.edges @ ends, model.couplings[0][left.edge_numbers] @ ends)
