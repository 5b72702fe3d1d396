"""Figures of the paper's small examples, computed on the spot: the lamp, the symmetric models, the barbell."""

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import clampz as cz
from clampz.plotting import ATTRACTIVE, DASHES, INK, REPULSIVE, SOFT, plot_model
from reproduction.pictures.panels import ERROR, LEGEND, PAGE, SMALL, TEXT, finish, new_figure, styles_of, write_title
from reproduction.settings import METHODS, TITLES
from reproduction.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAMP = np.array([(1, 4), (2, 5), (3, 4), (2, 3), (2, 1.75), (2, 0.5), (4, 1), (4, 0), (0, 1), (0, 0)], dtype=np.float64)
_FIFTHS = 2 * math.pi * np.arange(5) / 5
BARBELL = np.concatenate([np.stack([np.cos(_FIFTHS), np.sin(_FIFTHS)], axis=1), [(2.5, 0), (3.8, -0.75), (3.8, 0.75)]])

_SHAPES: dict[str, Callable[..., cz.Model]] = {"C": cz.generators.cycle, "K": cz.generators.complete}
SYMMETRIC_STYLES = styles_of("symmetric")
SYMMETRIC_LINE: dict[str, Any] = {"linewidth": 1.1, "markersize": 3.6, "markerfacecolor": "white"}
# An odd number, so that W = 0 is one of them, where all methods are exact; and how far the axis goes.
WEIGHTS = tuple(np.linspace(-8.0, 8.0, 33).tolist())
REACH = 8.4
# Of Bethe and TRW, in nats.
TOL = 1e-7
# Of every edge of the lamp.
LAMP_WEIGHT = 2.0


def clamped(model: cz.Model, method: str = "trw", **choice: Any) -> cz.results.Clamped:
    """Clamp a small example as the runs do: TRW with the uniform weights of what is left after every clamp. Mean field
    and Bethe have several starts: from the symmetric one alone they would stay at a saddle."""
    options: dict[str, Any] = {} if method == "mf" else {"tol": TOL}
    options |= {"edge_weights": "uniform", "reweight": True} if method == "trw" else {}
    return cz.clamp(model, method, **choice, **options)


def lamp(_: Table) -> "Figure":
    """Draw the lamp with what maxW chooses on the whole graph, its core, and what is chosen there."""
    model = cz.generators.lamp(theta=0, weights=LAMP_WEIGHT)
    figure = new_figure(PAGE, 2.95)
    whole, core, stripped = figure.subplots(1, 3)
    plot_model(model, core, LAMP, names=True)
    core.set_title("its core", fontsize=TEXT, color=INK)
    for ax, select in ((whole, "maxW0"), (stripped, "maxW")):
        result = clamped(model, k=1, select=select)
        gain = result.steps[0].log_z - result.log_z
        plot_model(model, ax, LAMP, clamped=result.variables, core=ax is stripped, names=True)
        where = "in the core, maxW" if ax is stripped else "on the whole lamp, maxW"
        ax.set_title(f"{where} clamps $X_{{{result.variables[0] + 1}}}$", fontsize=TEXT, color=INK)
        below: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "top", "fontsize": SMALL + 0.5}
        ax.text(0.5, 0.0, f"TRW falls by {gain:.3f} nats", color=SOFT, **below)
    write_title(figure, f"A model and its core (W = {LAMP_WEIGHT:g} on every edge)")
    return figure


def uniform(graph: str, weight: float) -> cz.Model:
    """Make C3, C4, C5, K4 or K5 without singleton potentials, all edges alike."""
    return _SHAPES[graph[0]](int(graph[1:]), theta=0, weights=weight)


@cache
def errors(graph: str, weight: float, method: str) -> tuple[float, float]:
    """Return the errors before and after clamping one variable of a model without singleton potentials."""
    model = uniform(graph, weight)
    before, after = clamped(model, method, variables=[0]).steps
    truth = cz.exact(model).log_z
    return before.log_z - truth, after.log_z - truth


def symmetric(_: Table) -> "Figure":
    """Draw errors against the weight of all edges, before and after one clamp, without singleton potentials."""
    from matplotlib.lines import Line2D

    figure = new_figure(PAGE, 4.6)
    axes = figure.subplots(2, 3, sharex=True)
    for column, method in enumerate(METHODS):
        for clamps in (0, 1):
            ax = axes[clamps, column]
            ax.axhline(0.0, color=SOFT, linewidth=0.6, zorder=0.5)
            if method != "trw" and not clamps:
                ax.axhline(-math.log(2), color=SOFT, linewidth=0.6, linestyle=DASHES, zorder=0.5)
                below: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "top"}
                ax.annotate("−log 2", (REACH, -math.log(2)), (0, -3), fontsize=SMALL, color=SOFT, **below)
            for number, (graph, style) in enumerate(SYMMETRIC_STYLES.items()):
                found = [errors(graph, weight, method)[clamps] for weight in WEIGHTS]
                ax.plot(WEIGHTS, found, markevery=(number, 6), **SYMMETRIC_LINE, **style)
            finish(ax, f"{TITLES[method]}, {'after one clamp' if clamps else 'before clamping'}")
            ax.set_xlim(-REACH, REACH)
            ax.set_xticks([-8, -4, 0, 4, 8])
    for row in axes:  # Bethe and TRW on one scale
        low, high = (pick(ax.get_ylim()[end] for ax in row[1:]) for end, pick in enumerate((min, max)))
        for ax in row[1:]:
            ax.set_ylim(low - 0.05 * (high - low), high)
    for ax in axes[-1]:
        ax.set_xlabel("W of every edge", fontsize=TEXT, color=INK)
    handles = [Line2D([], [], label=graph, **SYMMETRIC_LINE, **style) for graph, style in SYMMETRIC_STYLES.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), **LEGEND)
    write_title(figure, "Symmetric models with uniform edge weights, before and after one clamp")
    figure.supylabel(ERROR, fontsize=TEXT, color=INK)
    return figure


def barbell(_: Table) -> "Figure":
    """Draw the barbell, the first two variables that maxW and maxW+TRE clamp, and what TRW is off by as they do."""
    from matplotlib.lines import Line2D

    model, truth = cz.generators.barbell(), cz.exact(cz.generators.barbell()).log_z
    figure = new_figure(PAGE, 2.45)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.15, 1.15, 0.8))
    common: dict[str, Any] = {"color": INK, "linewidth": 1.1, "markersize": 4.2}
    styles: dict[str, dict[str, Any]] = {
        "maxW": common | {"linestyle": (0, (6.0, 1.3, 1.2, 1.3)), "marker": "x"},
        "maxW+TRE": common | {"linestyle": "solid", "marker": "^"},
    }
    for ax, (select, style) in zip((left, middle), styles.items(), strict=True):
        result = clamped(model, k=3, select=select)
        plot_model(model, ax, BARBELL, clamped=result.variables[:2], core=False, names=True)
        chosen = " then ".join(f"$X_{{{i + 1}}}$" for i in result.variables[:2])
        ax.set_title(f"{select} clamps {chosen}", fontsize=TEXT, color=INK, pad=3.5)
        right.plot(range(4), [step.log_z - truth for step in result.steps], **style)
    finish(right, "TRW's error (nats)")
    right.set(xticks=range(4), ylim=(0, None))
    right.set_xlabel("clamps", fontsize=TEXT, color=INK)
    handles = [
        Line2D([], [], color=ATTRACTIVE, linewidth=2.2, label="attractive, W = 6"),
        Line2D([], [], color=REPULSIVE, linewidth=2.2, linestyle=DASHES, label="repulsive, W = −6"),
        *(Line2D([], [], label=select, **style) for select, style in styles.items()),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, **LEGEND)
    write_title(figure, "A clump and a frustrated cycle")
    return figure
