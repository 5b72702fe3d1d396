"""The picture of a sweep over inverse temperatures."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.display.formatting import counted
from clampz.plotting.figures import new_axes
from clampz.plotting.style import FAINT, FILL, INK, LOWER_DASHES, second_panel, style_axes, write_inside
from clampz.temperature_sweep.result import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINT: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markeredgewidth": 0.9, "clip_on": False}


def plot_sweep(sweep: Sweep, ax: "Axes | None" = None) -> "Axes":
    """Draw log Z per variable with its bracket over beta, and under it the heat capacity per variable.

    On axes that are given, log Z alone.
    """
    alone, ax = ax is not None, new_axes(ax, (6.0, 5.2))
    order, num = np.argsort(sweep.beta, kind="stable"), max(1, sweep.model.num_variables)
    beta = sweep.beta[order]
    lower, upper, log_z, heat = (
        np.where(np.isfinite(values[order]), values[order] / num, np.nan)
        for values in (sweep.lower, sweep.upper, sweep.log_z, sweep.heat_capacity)
    )
    ax.fill_between(beta, lower, upper, color=FILL, linewidth=0, zorder=1)
    ax.plot(beta, upper, color=INK, linewidth=1.1, zorder=2)
    ax.plot(beta, lower, color=INK, linewidth=1.1, linestyle=LOWER_DASHES, zorder=2)
    ax.plot(beta, log_z, color=INK, linestyle="none", markerfacecolor="white", zorder=3, **POINT)
    ax.set_ylabel("log Z per variable")
    gap = float(np.nanmax(np.append(upper - lower, 0.0)))
    who = ", ".join(dict.fromkeys(name or "no time" for name in sweep.by))
    ends = "exact" if set(sweep.by) == {"exact"} else f"gap {gap:.2g} nats per variable at most"
    title = f"{counted(num, 'variable')}, by {who}" + ("" if ends == who else f": {ends}")
    ax.set_title(title, loc="left", fontsize=9, color=INK)
    lowest = ax
    if not alone:
        lowest = second_panel(ax, 2, 1, height_ratios=(3, 2))
        lowest.plot(beta, heat, color=INK, linewidth=1.1, markerfacecolor=INK, **POINT)
        if np.isnan(heat).all():
            write_inside(lowest, "not known")
        lowest.set_ylabel("heat capacity per variable")
        lowest.set_xlim(ax.get_xlim())
    lowest.set_xlabel("inverse temperature beta")
    style_axes(ax, lowest)
    for panel in {ax, lowest}:
        panel.grid(axis="y", color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
    return ax
