"""The picture of samples: marginals of the least certain variables, and a histogram of scores."""

from typing import TYPE_CHECKING, Any

import numpy as np

from clampz.display.formatting import name_of
from clampz.plotting.figures import new_axes
from clampz.plotting.style import FAINT, FILL, INK, second_panel, shortened, write_inside
from clampz.sampling.samples import KINDS, Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Variables that are shown; characters of a name.
MOST_SHOWN, MOST_CHARACTERS = 20, 14


def plot_samples(samples: Samples, ax: "Axes | None" = None) -> "Axes":
    """Draw the marginals of the least certain variables, with two standard errors, and a histogram of the scores.

    Each variable is shown by the share of its likeliest state.  On axes that are given, the marginals alone are drawn.
    """
    alone, ax = ax is not None, new_axes(ax, (7.0, 3.6))
    if not len(samples):
        write_inside(ax, "no samples")
        return ax
    if not alone:
        _draw_scores(samples, second_panel(ax, 1, 2, width_ratios=(1.5, 1.0)))
    means, errors = samples.marginals, samples.standard_errors
    likeliest = [int(np.argmax(table)) for table in means]
    share = np.array([means[i][a] for i, a in enumerate(likeliest)])
    error = np.array([errors[i][a] for i, a in enumerate(likeliest)])
    shown = np.argsort(share, kind="stable")[:MOST_SHOWN]
    place = np.arange(len(shown))
    bars: dict[str, Any] = {"fmt": "o", "markersize": 3.5, "color": INK, "elinewidth": 1.2, "capsize": 2.0}
    low, high = np.minimum(2 * error, share)[shown], np.minimum(2 * error, 1.0 - share)[shown]
    ax.errorbar(share[shown], place, xerr=np.stack([low, high]), **bars)
    model = samples.model
    words = [(name_of(model.names, i), model.state_name(i, likeliest[i])) for i in shown.tolist()]
    labels = [" = ".join(shortened(word, MOST_CHARACTERS) for word in pair) for pair in words]
    ax.set_yticks(place, labels)
    ax.tick_params(axis="y", labelsize=7, length=0, colors=INK)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(axis="x", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("share of the likeliest state, two standard errors")
    number = f"{len(samples):,} samples" + ("" if samples.is_exact else f", worth {samples.effective_size:,.0f}")
    ax.set_title(f"{number}: {KINDS[samples.kind]}", loc="left", fontsize=9, color=INK)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _draw_scores(samples: Samples, ax: "Axes") -> None:
    """Draw a histogram of the scores of samples, by their weights."""
    scores, (low, high) = samples.scores, (float(samples.scores.min()), float(samples.scores.max()))
    low, high = (low, high) if high - low > 1e-9 * max(1.0, abs(low), abs(high)) else (low - 0.5, high + 0.5)
    ax.hist(scores, bins=30, range=(low, high), weights=samples.weights, color=FILL, edgecolor=INK, linewidth=0.6)
    ax.set(xlabel="score", ylabel="share of the samples")
    ax.set_title(f"best {high:.6g}", loc="left", fontsize=9, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
