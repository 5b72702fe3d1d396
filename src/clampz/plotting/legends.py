"""The title, the legend of lines and marks, and the colour bar of a picture of a graph."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.model import Model
from clampz.plotting.graph_elements import EDGE_WIDTHS, EDGES, FADED, Core, num_drawn
from clampz.plotting.style import INK, SOFT

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

# In points: the letters of titles and keys, and the width of one of theirs.
LETTERS, CHARACTER = 8.0, 4.7
# Width of an entry of a legend beside its text, in sizes of the letters.
ENTRY = 4.5
# In inches: the height of a colour bar, of a title and a legend, and the least width of these.
BAR_HEIGHT, KEYS_HEIGHT, KEYS_WIDTH = 0.55, 0.6, 3.6


def add_title(ax: "Axes", text: str, width: float, *, of_figure: bool) -> None:
    """Write a title over the axes or the whole figure, in lines of at most this width in points."""
    lines = "\n".join(textwrap.wrap(text, max(20, int(width / CHARACTER))))
    if of_figure:
        ax.figure.suptitle(lines, x=0.01, ha="left", fontsize=LETTERS + 0.5, color=INK)
    else:
        ax.set_title(lines, loc="left", fontsize=LETTERS + 0.5, color=INK)


def add_color_bar(ax: "Axes", shades: "ScalarMappable", label: str, width: float, *, whole: bool = False) -> None:
    """Draw a colour bar under axes of this width in points; with `whole`, its ticks are whole numbers."""
    bar = ax.figure.colorbar(shades, ax=ax, location="bottom", shrink=0.45, fraction=0.07, aspect=18, pad=0.02)
    lines = textwrap.wrap(label, max(20, int(width / CHARACTER)))
    bar.set_label("\n".join(lines), fontsize=LETTERS, color=INK)
    bar.ax.tick_params(colors=SOFT, labelsize=7, length=2, which="both")
    if bar.ax.get_xscale() == "linear":
        bar.ax.locator_params(axis="x", nbins=4, integer=whole)
    else:
        bar.ax.xaxis.set_major_formatter("{x:g}")
        bar.ax.xaxis.set_minor_formatter("")
    bar.ax.xaxis.get_offset_text().set(fontsize=7, color=SOFT)
    bar.outline.set(edgecolor=INK, linewidth=0.7)


def add_legend(ax: "Axes", model: Model, core: Core, clamped: Sequence[int], *, width: float, below: bool) -> None:
    """Draw the legend of lines and marks: below a figure of this width in points, or inside the axes."""
    handles = _handles(ax, model, core, clamped)
    if not handles:
        return
    style: dict[str, Any] = {"fontsize": LETTERS, "labelcolor": INK, "handlelength": 2.1, "handletextpad": 0.6}
    style["columnspacing"] = 1.4
    if below:
        columns = _num_columns([str(handle.get_label()) for handle in handles], width)
        ax.figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, **style)
    else:
        ax.legend(handles=handles, loc="best", framealpha=0.9, **style)


def _num_columns(labels: list[str], room: float) -> int:
    """Return how many columns of entries, filled one after another, fit beside each other."""
    from matplotlib.textpath import TextPath

    widths = [TextPath((0, 0), label, size=LETTERS).get_extents().width + ENTRY * LETTERS for label in labels]
    for columns in range(len(widths), 1, -1):
        if sum(max(column) for column in np.array_split(widths, columns)) + ENTRY * LETTERS / 2 <= room:
            return columns
    return 1


def _handles(ax: "Axes", model: Model, core: Core, clamped: Sequence[int]) -> "list[Artist]":
    """Return handles for the kinds of lines and marks that are in the picture."""
    from matplotlib.lines import Line2D

    drawn = {collection.get_label(): collection for collection in ax.collections}
    handles: list[Artist] = [
        Line2D([], [], linewidth=2.2, label=name, **look)
        for name, look in EDGES.items()
        if len(drawn[name].get_paths())
    ]
    if handles and np.ptp(model.strength) > 0:
        handles.append(Line2D([], [], color=SOFT, linewidth=EDGE_WIDTHS[1], label="wider: stronger"))
    if num_drawn(model) < model.num_edges:
        drawn_of = f"the {num_drawn(model):,} strongest of {model.num_edges:,} edges"
        handles.append(Line2D([], [], linestyle="none", label=drawn_of))
    square: dict[str, Any] = {"linestyle": "none", "marker": "s"}
    if model.factors:
        handles.append(Line2D([], [], color=SOFT, markersize=5, label="factor of three or more", **square))
    if not core.variables.all():
        handles.append(Line2D([], [], color=INK, alpha=FADED, linewidth=1.6, label="pale: outside the core"))
    if clamped:
        hollow: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 1.8}
        handles.append(Line2D([], [], markersize=7, label="clamped, in this order", **hollow, **square))
    return handles
