"""Figures that pool families: the sign of Bethe's error, who agrees with pseudo-greedy, greedy against optimal
sequences, and how far clamping pays."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.plotting import FAINT, INK, SOFT
from reproduction.families import FAMILIES, WEIGHTS, Family, family_named
from reproduction.pictures.panels import (
    BAND,
    COLOURS,
    LEGEND,
    PAGE,
    TEXT,
    UNSIGNED,
    Cell,
    Drawn,
    band_entry,
    empty_figure,
    finish,
    mean_over_runs,
    new_figure,
    panel_figure,
    styles_of,
    write_title,
)
from reproduction.settings import (
    BY_LIMIT,
    FURTHER_FAMILIES,
    HEURISTICS,
    MAX_OPTIMAL_SIZE,
    METHODS,
    MINI_BUCKETS,
    SELECTOR,
    TITLES,
)
from reproduction.table import Floats, Table, padded
from reproduction.tools import counted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRE = "+TRE"
# The ends of the bins: a third of a decade wide away from 0, where most errors are small and some are large.
DECADES = (1.0, 2.0, 5.0)
FINEST = 0.05

BASES, SEQUENCES, FURTHER = (styles_of(kind) for kind in ("bases", "sequences", "further"))
AGREEMENT = styles_of("agreement")
# Errors below this, in nats, are not worth a place on a logarithmic axis.
NEXT_TO_NOTHING = 1e-4
# Heuristics stand so far apart, or those that agree would hide each other.
ASIDE = 0.16


def histogram(table: Table, title: str) -> "Figure":
    """Draw the signed errors of Bethe on all mixed models, with 0, 1 and 2 clamps."""
    from matplotlib.patches import Patch

    mixed = [family.name for family in FAMILIES if family.mixed]
    curves = [curve for name in mixed if (curve := table.curve(name, "bethe", SELECTOR)).shape[1] > 2]
    errors = np.concatenate([curve[:, :3] for curve in curves]) if curves else np.empty((0, 3))
    errors = errors[np.isfinite(errors).all(axis=1)]
    if not len(errors):
        return empty_figure(title)
    edges = bin_edges(errors)
    zero = len(edges[edges < 0])
    figure = new_figure(PAGE, 2.9)
    styles: tuple[dict[str, Any], ...] = (
        {"facecolor": "white", "edgecolor": INK, "linewidth": 0.6, "hatch": "//////", "label": "too low"},
        {"facecolor": COLOURS["trw"], "edgecolor": "white", "linewidth": 0.4, "label": "too high"},
    )
    axes = figure.subplots(1, 3, sharey=True)
    for clamps, ax in enumerate(axes):
        values = errors[:, clamps]
        shares, place = np.histogram(values, edges)[0] / len(values), np.arange(len(edges) - 1) - zero
        for side, style in zip((slice(zero), slice(zero, None)), styles, strict=True):
            ax.bar(place[side], shares[side], 1.0, align="edge", **style)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        finish(ax, counted(clamps, "clamp") if clamps else "before clamping", counted(len(values), "run"))
        labelled = {
            k - zero: f"{edge:g}".replace("-", "−")
            for k, edge in enumerate(edges)
            if edge == 0 or f"{abs(edge):g}".strip("0.") == "1"
        }
        ax.set_xticks(list(labelled), list(labelled.values()))
        text = f"too high {np.mean(values > 0):.0%}\nmean {values.mean():+.2f}\nmedian {np.median(values):+.2f}"
        _write_in_corner(ax, text, 0.97, fontsize=TEXT, linespacing=1.4)
        ax.set_xlabel("error of log Z (nats; bins widen)", fontsize=TEXT, color=INK)
    axes[0].set_ylim(0, 1.45 * axes[0].get_ylim()[1])  # room for the text
    axes[0].set_ylabel("share of runs", fontsize=TEXT, color=INK)
    handles = [Patch(**style) for style in reversed(styles)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, **LEGEND)
    write_title(figure, title)
    return figure


def _write_in_corner(ax: "Axes", text: str, height: float, **style: Any) -> None:
    """Write at the right, in the upper or the lower corner, with the minus of print."""
    va = "top" if height > 0.5 else "bottom"
    ax.text(0.97, height, text.replace("-", "−"), transform=ax.transAxes, ha="right", va=va, color=INK, **style)


def bin_edges(errors: Floats) -> Floats:
    """Return the ends of bins that hold all errors: none has both signs, and they widen away from 0.

    >>> bin_edges(np.array([-0.07, 0.3])).tolist()
    [-0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.5]
    """
    decades = np.arange(np.floor(np.log10(FINEST)), np.ceil(np.log10(max(np.abs(errors).max(), FINEST))) + 1)
    sizes = np.array([float(f"{step:g}e{decade:g}") for decade in decades for step in DECADES])
    sizes = sizes[sizes >= FINEST]
    below, above = (sizes[: np.searchsorted(sizes, reach) + 1] for reach in (-errors.min(), errors.max()))
    return np.concatenate([-below[::-1], [0.0], above])


def success(table: Table, title: str, families: Sequence[Family] = FAMILIES) -> "Figure":
    """Draw how often each heuristic, asked at pseudo-greedy's state, chooses as it does."""
    cells, kinds = {}, {True: "mixed", False: "attractive"} if len({f.mixed for f in families}) > 1 else {True: "all"}
    for row, mixed in enumerate(kinds):
        names = [family.name for family in families if family.mixed == mixed]
        for column, method in enumerate(METHODS):
            rows = table.where(
                settings="paper", experiment="errors", family=names, method=method, selector="pseudo-greedy"
            )
            name = f"{TITLES[method]}, {kinds[mixed]}"
            draw = partial(_draw_success, rows=rows, title=name, same=not mixed)
            cells[row, column] = Cell(name, bool(len(rows)), draw, "clamp")
    return panel_figure(
        title, cells, ylabel="share of runs that agree, ± standard error", handles=_success_handles, num_lines=2
    )


def agreement(rows: Table) -> tuple[Floats, Floats]:
    """Return (heuristics, steps) the share of pseudo-greedy's rows that agrees with each heuristic, and (steps,) the
    rows' number."""
    clamps = rows.column("clamps")
    steps = int(clamps.max(initial=0))
    num = np.bincount(clamps, minlength=steps + 1)[1:].astype(np.float64)
    agree = rows.column("agree")
    shares = np.zeros((len(HEURISTICS), steps))
    for names in rows.unique("agree"):
        counts = np.bincount(clamps[agree == names], minlength=steps + 1)[1:]
        for name in filter(None, names.split(",")):
            shares[HEURISTICS.index(name)] += counts
    return shares / np.maximum(num, 1.0), num


def optimal(table: Table, title: str) -> "Figure":
    """Draw mean errors of greedy and of optimal sequences, pooled over families; in the corner, how much farther off
    greedy is in the end."""
    cells = {}
    for column, weights in enumerate(WEIGHTS):
        families = [f for f in FAMILIES if f.weights == weights and f.size <= MAX_OPTIMAL_SIZE]
        present = any(table.runs(f.name, experiment="optimal") for f in families)
        for row, method in enumerate(COLOURS):
            name = f"{TITLES[method]}, [{weights[0]:g},{weights[1]:g}]"
            draw = partial(_draw_optimal, table=table, families=families, method=method, title=name)
            cells[row, column] = Cell(name, present, draw)
    return panel_figure(title, cells, handles=_optimal_handles, num_lines=1)


def further(table: Table, title: str) -> "Figure":
    """Draw errors against seconds, of 0 to 10 clamps and of mini-buckets with rising tables, and when the exact sum is
    there."""
    cells = {
        (0, column): Cell(
            name, bool(table.runs(name, experiment="further")), partial(_draw_further, table, name), "seconds"
        )
        for column, name in enumerate(FURTHER_FAMILIES)
    }
    return panel_figure(title, cells, ylabel="|error| of log Z (nats)", handles=_further_handles, num_lines=1)


def _draw_further(table: Table, name: str, ax: "Axes") -> Drawn:
    for method, style in FURTHER.items():
        selector = BY_LIMIT if method == MINI_BUCKETS else SELECTOR
        curves = (table.curve(name, method, selector, experiment="further", column=x) for x in ("seconds", "error"))
        seconds, errors = (mean_over_runs(np.abs(curve)) for curve in curves)
        there = np.flatnonzero(seconds[2])
        ax.errorbar(seconds[0][there], errors[0][there], errors[1][there], elinewidth=0.6, **style)
    exact = mean_over_runs(table.curve(name, "exact", "none", experiment="further", column="seconds"))[0]
    ax.axvline(exact[0], color=SOFT, linewidth=0.9, linestyle=(0, (2.0, 1.5)))
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(bottom=NEXT_TO_NOTHING)
    finish(ax, family_named(name).title, counted(len(table.runs(name, experiment="further")), "run"))
    return set(FURTHER)


def _further_handles(_: Drawn) -> "list[Artist]":
    from matplotlib.lines import Line2D

    titles = TITLES | {MINI_BUCKETS: "mini-buckets, tables of 4 to 65,536"}
    found: list[Artist] = [Line2D([], [], label=titles[method], **style) for method, style in FURTHER.items()]
    return [*found, Line2D([], [], color=SOFT, linewidth=0.9, linestyle=(0, (2.0, 1.5)), label="exact sum")]


def _draw_success(ax: "Axes", rows: Table, title: str, same: bool) -> Drawn:
    """Draw a panel; with `same`, frustCycles chooses as maxW0 does, and its marks are rings around that one's."""
    shares, num = agreement(rows)
    if not num.any():
        return set()
    steps = np.arange(1, len(num) + 1)
    errors = np.sqrt(shares * (1 - shares) / np.maximum(num, 1.0))
    beside = np.linspace(-ASIDE, ASIDE, len(BASES))
    for name, share, error in zip(HEURISTICS, shares, errors, strict=True):
        base = name.removesuffix(TRE)
        if not share.any():
            continue  # not defined for more labels
        places = steps + beside[list(BASES).index(base)]
        if same and base == "frustCycles":
            ax.plot(steps + beside[0], share, color=BASES[base]["color"], **AGREEMENT["ring"])
        else:
            ax.errorbar(places, share, error, fmt="none", ecolor=BASES[base]["color"], elinewidth=0.7, zorder=1)
            ax.plot(places, share, **_success_style(name))
    if same:
        _write_in_corner(ax, "rings: frustCycles(+TRE)\nis maxW0(+TRE) here", 0.97, fontsize=TEXT - 1.5)
    ax.set_xticks(steps)
    ax.set_ylim(-0.03, 1.03)
    runs = len(set(zip(rows.column("family"), rows.column("run"), strict=True)))
    finish(ax, title, counted(runs, "run"))
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)
    return {name for name, share in zip(HEURISTICS, shares, strict=True) if share.any()}


def _success_style(name: str) -> dict[str, Any]:
    return BASES[name.removesuffix(TRE)] | AGREEMENT["entropies" if name.endswith(TRE) else "plain"]


def _success_handles(seen: Drawn) -> "list[Artist]":
    from matplotlib.lines import Line2D

    order = [name for base in BASES for name in (base, base + TRE)]
    return [Line2D([], [], label=name, **_success_style(name)) for name in order if name in seen]


def _draw_optimal(ax: "Axes", table: Table, families: list[Family], method: str, title: str) -> Drawn:
    means, num = {}, 0
    for selector in SEQUENCES:
        curves = [table.shown(f.name, method, selector, experiment="optimal") for f in families]
        curves = [curve[:, :4] for curve in curves if curve.shape[1] > 1]
        if not curves:
            return set()
        pooled = np.concatenate(padded(curves, max(curve.shape[1] for curve in curves)))
        num = len(pooled)
        means[selector] = mean_over_runs(pooled)
    for selector, (mean, error, count) in means.items():
        clamps = np.flatnonzero(count)
        middle, band = mean[clamps], np.nan_to_num(error[clamps])
        ax.fill_between(clamps, middle - band, middle + band, color=COLOURS[method], alpha=BAND, linewidth=0, zorder=1)
        ax.plot(clamps, middle, color=COLOURS[method], linewidth=1.0, **SEQUENCES[selector])
    ax.axhline(0.0, color=SOFT, linewidth=0.6, zorder=0.5)
    ax.set_xticks(range(4))
    ax.set_xlim(-0.2, 3.2)
    finish(ax, title, counted(num, "run"))
    last = min(len(mean) for mean, _, _ in means.values()) - 1
    greedy, optimal = (means[name][0][last] for name in ("greedy", "optimal"))
    text = f"greedy {abs(greedy) - abs(optimal):+.3f} at {last}"
    _write_in_corner(ax, text, 0.06 if greedy < 0 else 0.94, fontsize=TEXT - 0.5)
    return {*SEQUENCES, method, *([UNSIGNED] if families[0].mixed else [])}


def _optimal_handles(seen: Drawn) -> "list[Artist]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[Artist] = [
        Line2D([], [], color=INK, linewidth=1.0, label=f"{selector} sequences", **style)
        for selector, style in SEQUENCES.items()
    ]
    found.append(band_entry())
    return [*found, Patch(facecolor="none", label="Bethe, mixed: |error|")] if UNSIGNED in seen else found
