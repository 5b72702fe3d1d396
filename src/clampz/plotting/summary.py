"""One figure of a model and the estimates of every method, with marginals against the exact ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.model import Model
from clampz.model.results import Estimate
from clampz.numerics import Floats
from clampz.plotting.colors import shade_map
from clampz.plotting.figures import new_axes, new_figure
from clampz.plotting.graph_elements import EDGES
from clampz.plotting.graphs import plot_model
from clampz.plotting.method_comparison import Estimated, labelled, plot_estimates
from clampz.plotting.style import FAINT, INK, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_marginals(estimate: Estimate, exact: Estimate, ax: "Axes | None" = None) -> "Axes":
    """Draw a method's marginals against the exact ones, a point per variable and state: they agree on the diagonal.

    Of two states only the second is drawn.
    """
    ax = new_axes(ax, (2.5, 2.5))
    ours, true = _free_marginals(estimate), _free_marginals(exact)
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    point: dict[str, Any] = {"marker": "o", "markersize": 3.2, "color": INK, "markeredgewidth": 0, "alpha": 0.55}
    ax.plot(true, ours, linestyle="none", clip_on=False, **point)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1], aspect="equal")
    ax.tick_params(colors=SOFT, labelsize=7, length=2)
    ax.set_xlabel("exact", fontsize=7, color=SOFT, labelpad=-7)
    ax.set_ylabel("method", fontsize=7, color=SOFT, labelpad=-5)
    ax.spines[:].set_color(FAINT)
    return ax


def plot_summary(
    model: Model, exact: Estimate, estimates: Estimated, marginals_of: Sequence[str] | None = None
) -> "Figure":
    """Draw a model's graph, the bracket of all methods, and their marginals against the exact ones, in one figure.

    `marginals_of` names up to three of the estimates by label; the first three if None.
    """
    rows = labelled(estimates)
    figure = new_figure((9.0, 4.7), dpi=200, layout=None)
    from matplotlib.lines import Line2D

    plot_model(model, figure.add_axes((0.01, 0.105, 0.405, 0.8)), marginals=exact)
    edges = [Line2D([], [], linewidth=2.2, label=sign, **EDGES[sign]) for sign in ("attractive", "repulsive")]
    style: dict[str, Any] = {"handlelength": 2.1, "columnspacing": 1.2, "handletextpad": 0.6, "labelcolor": INK}
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (0.006, 0.06), "ncols": 2}
    figure.legend(handles=edges, frameon=False, fontsize=8, **place, **style)
    _shade_key(figure, (0.34, 0.046, 0.06, 0.028))
    plot_estimates(rows, exact, figure.add_axes((0.56, 0.475, 0.43, 0.43)))
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


def _shade_key(figure: "Figure", box: tuple[float, float, float, float]) -> None:
    """Draw the colour bar of marginals into a box (left, bottom, width, height) of the figure."""
    key = figure.add_axes(box)
    key.imshow(np.linspace(0, 1, 64)[None], cmap=shade_map(), aspect="auto")
    key.set(xticks=[], yticks=[])
    key.spines[:].set(color=INK, linewidth=0.7)
    key.text(-0.08, 0.45, "p(x = 1)   0", transform=key.transAxes, ha="right", va="center", fontsize=8, color=INK)
    key.text(1.08, 0.45, "1", transform=key.transAxes, ha="left", va="center", fontsize=8, color=INK)


def _free_marginals(estimate: Estimate) -> Floats:
    return np.concatenate([p[1:] if len(p) == 2 else p for p in estimate.marginals] or [np.empty(0)])
