"""The picture of a sweep over inverse temperatures."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.plotting.style import FAINT, INK, PALE, SOFT
from clampz.sweeping import Sweep
from clampz.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILL = "#cfd8e6"


def plot_sweep(sweep: Sweep, axes: "tuple[Axes, Axes] | None" = None) -> "tuple[Axes, Axes]":
    """Draw log Z per variable with its bracket over beta, and under it the heat capacity per variable; returns both
    axes."""
    if axes is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.0, 5.2), dpi=150, facecolor="white", layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    else:
        above, below = axes
    order, num = np.argsort(sweep.beta, kind="stable"), max(1, sweep.model.num_variables)
    beta = sweep.beta[order]
    lower, upper, log_z, heat = (
        np.where(np.isfinite(values[order]), values[order] / num, np.nan)
        for values in (sweep.lower, sweep.upper, sweep.log_z, sweep.heat_capacity)
    )
    marker: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markeredgewidth": 0.9}
    above.fill_between(beta, lower, upper, color=FILL, linewidth=0, zorder=1)
    above.plot(beta, upper, color=INK, linewidth=1.1, zorder=2)
    above.plot(beta, lower, color=INK, linewidth=1.1, linestyle=(0, (4, 1.5)), zorder=2)
    above.plot(beta, log_z, color=INK, linestyle="none", markerfacecolor="white", zorder=3, clip_on=False, **marker)
    below.plot(beta, heat, color=INK, linewidth=1.1, markerfacecolor=INK, clip_on=False, **marker)
    if np.isnan(heat).all():
        below.text(0.5, 0.5, "not known", ha="center", va="center", transform=below.transAxes, color=SOFT)
    above.set_ylabel("log Z per variable")
    below.set(ylabel="heat capacity per variable", xlabel="inverse temperature beta")
    gap = float(np.nanmax(np.append(upper - lower, 0.0)))
    who = ", ".join(dict.fromkeys(name or "no time" for name in sweep.by))
    ends = "exact" if set(sweep.by) == {"exact"} else f"gap {gap:.2g} nats per variable at most"
    title = f"{counted(num, 'variable')}, by {who}" + ("" if ends == who else f": {ends}")
    above.set_title(title, loc="left", fontsize=9, color=INK)
    below.set_xlim(above.get_xlim())
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(PALE)
        ax.tick_params(colors=SOFT, labelsize=8)
        ax.grid(axis="y", color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
    return above, below
