"""The picture of a model's graph, with marginals, scores, states or clamps of its variables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from clampz.clamping.branches import checked_variables
from clampz.errors import OptionError, library
from clampz.model import Evidence, Model, Variable
from clampz.model.model_checks import check_model
from clampz.numerics import Floats
from clampz.plotting.colors import ColorScale
from clampz.plotting.dense_graphs import draw_dense_graph
from clampz.plotting.figures import new_axes, size_of
from clampz.plotting.graph_elements import (
    Core,
    draw_clamped,
    draw_edges,
    draw_factors,
    draw_variables,
    factor_positions,
    radius_of,
)
from clampz.plotting.graph_layout import Layout, layout
from clampz.plotting.legends import BAR_HEIGHT, KEYS_HEIGHT, KEYS_WIDTH, add_color_bar, add_legend, add_title
from clampz.plotting.node_names import width_for_names, write_names
from clampz.runtime.options import check_option, check_whole, knows_its_options
from clampz.solving.solution import Found, Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Variables up to which names are written on the nodes.
MAX_NAMES = 40
# Variables and larger factors beyond which they are not drawn one by one.
DENSE = 2500
# Inches of the longer side of a graph: with few variables, with many or with long names; and of the shorter one at
# least.
SIDE, LONGEST_SIDE, LEAST_SIDE = 4.5, 8.0, 1.8
# Variables from which on the page grows with them.
MANY = 100
# Points: no variable has a larger radius.
LARGEST = 28.0


@knows_its_options
def plot_model(
    model: Model,
    ax: "Axes | None" = None,
    positions: ArrayLike | None = None,
    *,
    marginals: Found | Solution | None = None,
    state: int = 1,
    scores: ArrayLike | str | None = None,
    configuration: Evidence | ArrayLike | None = None,
    clamped: Sequence[Variable] = (),
    core: bool = True,
    names: bool | None = None,
    legend: bool | None = None,
) -> "Axes":
    """Draw the model's graph: edges by sign and strength, variables shaded, clamps numbered, all but the core faded.

    Factors of three and more variables are squares.  Beyond some thousands of variables a grid is an image with a point
    for each, and any other graph a density.

    Parameters
    ----------
    model
        What to draw.
    ax
        Where to draw; a new figure if None.
    positions
        (n, 2) where the variables go; `layout(model)` if None.
    marginals, state
        What was found for this model: variables are shaded by its marginal of `state`, white for 0 and black for 1.
    scores
        (n,) a number for each variable, or the selector whose scores to show: variables are shaded by it, the higher
        the darker.
    configuration
        A state of each variable, in order by index or as `{variable: state}`: variables are shaded by it, white for the
        first state and black for the last.
    clamped
        Variables, by index or name, in the order in which they are clamped: framed and numbered.
    core
        Whether to fade what lies outside the core that the clamps leave, where clamping gains nothing; a model without
        cycles is not faded.
    names
        Whether to write the variables' names, or their numbers, on them; if None, where they have names and are few.
    legend
        Whether to say what the model is and what lines, marks and shades mean; if None, on a new figure.

    Returns
    -------
    Axes
        Of matplotlib, with the picture.

    Raises
    ------
    MissingLibraryError
        Where matplotlib is not installed.
    OptionError
        Where something does not fit the model.

    Examples
    --------
    To a file::

        cz.plot_model(model, marginals=cz.exact(model)).figure.savefig("model.png")
    """
    check_model(model)
    library("matplotlib")  # or what to do about it, before anything is laid out
    n = model.num_variables
    check_whole("state", state, 0)
    place = layout(model) if positions is None else Layout(_as_positions(positions, n))
    chosen = _clamped_variables(model, clamped)
    shade = ColorScale.of(model, marginals, state, scores, configuration, chosen)
    is_dense = n + len(model.factors) > DENSE
    written = not is_dense and ((model.names is not None and n <= MAX_NAMES) if names is None else names)
    radius = radius_of(place.positions) * (1.25 if written else 1.0)
    span = float(np.ptp(place.positions, axis=0).max(initial=0.0)) if n else 0.0
    side = _side(model, radius / (span + 4 * radius), written) if ax is None else min(size_of(ax)) / 72
    radius = min(radius, LARGEST / 72 / side * (span or 4 * radius))
    if model.factors:
        place = place._replace(factors=factor_positions(model, place, radius))
    low, high = _corners(place, radius * (2.6 if chosen else 2.0))
    own, explained = ax is None, ax is None if legend is None else legend
    if ax is None:
        width, height = np.clip(side * (high - low) / (high - low).max(), LEAST_SIDE, None)
        width = max(width, KEYS_WIDTH if explained else 0.0)
        keys = (KEYS_HEIGHT if explained else 0.0) + (0.0 if shade is None and not is_dense else BAR_HEIGHT)
        ax, room = new_axes(None, (width, height + keys)), 72 * float(width)
    else:
        room = size_of(ax)[0]
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    member = Core.of(model, chosen, whole=is_dense or not core)
    if is_dense:
        shades, meaning = draw_dense_graph(ax, model, place, shade)
    else:
        draw_edges(ax, model, place, member.edges)
        draw_factors(ax, model, place, radius, member.factors)
        shades = circles = draw_variables(ax, place.positions, radius, shade, member.variables)
        meaning = "" if shade is None else shade.label
        if written:
            strong = member.variables.copy()
            strong[chosen] = True
            write_names(ax, model, circles, radius, strong, float((high - low).max()) / (72 * side))
    draw_clamped(ax, model, place.positions, radius, chosen)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set_axis_off()
    if meaning and n and (explained or scores is not None):
        add_color_bar(ax, shades, meaning, room, whole=configuration is not None)
    if explained:
        add_title(ax, model.size_in_words, room, of_figure=own)
        if not is_dense:
            add_legend(ax, model, member, chosen, width=room, below=own)
    return ax


def _as_positions(positions: ArrayLike, n: int) -> Floats:
    """Return positions (n, 2) of a caller, refused where they are not finite."""
    try:
        found = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    holds = found.shape == (n, 2) and bool(np.isfinite(found).all())
    check_option(holds, "positions", f"shape ({n}, 2), a finite point for each variable", positions)
    return found


def _corners(place: Layout, margin: float) -> tuple[Floats, Floats]:
    """Return the corners of the page: all variables and factors with a margin, and the stubs of a torus."""
    nodes = np.concatenate([place.positions, np.zeros((0, 2)) if place.factors is None else place.factors])
    if len(nodes) < 2:
        return nodes.sum(axis=0) - 1.0, nodes.sum(axis=0) + 1.0
    margin += 0.35 if place.period else 0.0
    return nodes.min(axis=0) - margin, nodes.max(axis=0) + margin


def _side(model: Model, radius: float, written: bool) -> float:
    """Return the inches of the longer side, of which a variable's radius is this share: more for long names."""
    side = SIDE * max(1.0, np.sqrt(model.num_variables / MANY))
    if written:
        side = max(side, width_for_names(model, radius) / 72)
    return float(min(side, LONGEST_SIDE))


def _clamped_variables(model: Model, clamped: Sequence[Variable]) -> list[int]:
    if isinstance(clamped, str):
        raise OptionError(f"clamped: expected a list of variables, found the string {clamped!r}")
    return checked_variables(model, clamped)
