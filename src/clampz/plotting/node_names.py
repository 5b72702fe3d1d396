"""Write the names of variables in the picture of a graph: on them where they fit, else beside them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clampz.display.formatting import name_of
from clampz.model import Model
from clampz.numerics import Floats
from clampz.plotting.graph_elements import RADIUS
from clampz.plotting.style import INK, SOFT, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import EllipseCollection

# Sizes of letters in points: on variables at most and at least, and beside them.
LETTERS, LEAST_LETTERS, BESIDE_LETTERS = 8.0, 5.0, 6.5
# A character's width and a line's height, in sizes of the letters.
CHARACTER, HEIGHT = 0.64, 1.15
# Characters of a name beside a variable at least, and that a page grows for.
FEWEST_CHARACTERS, MOST_CHARACTERS = 8, 14
# Where a name may be beside a variable, in order: under it, over it, to the right, to the left.
SIDES = np.array([(0, -1), (0, 1), (1, 0), (-1, 0)])


def width_for_names(model: Model, radius: float) -> float:
    """Return the width of a page in points on which the names fit, where a radius is this share of the width."""
    longest = min(max(map(len, model.names or ["0"])), MOST_CHARACTERS)
    return longest * CHARACTER * BESIDE_LETTERS * RADIUS / radius


def write_names(
    ax: "Axes", model: Model, circles: "EllipseCollection", radius: float, strong: NDArray[np.bool_], point: float
) -> None:
    """Write names on circles of this radius, `strong` ones in ink; `point` is the size of a point on the page."""
    positions: Floats = np.asarray(circles.get_offsets())
    texts = [name_of(model.names, i) for i in range(model.num_variables)]
    longest = max((len(text) for text in texts), default=0) or 1
    letters = min(LETTERS, 1.8 * radius / point / (CHARACTER * longest))
    style: dict[str, Any] = {"zorder": 3, "ha": "center", "va": "center", "fontsize": letters}
    if letters >= LEAST_LETTERS:
        shades, dark = circles.get_array(), np.zeros(len(texts), dtype=np.bool_)
        if shades is not None:  # white letters are read on dark circles
            dark = circles.to_rgba(shades)[:, :3] @ [0.299, 0.587, 0.114] < 0.5
        for text, (x, y), is_dark, is_strong in zip(texts, positions, dark, strong, strict=True):
            ax.text(x, y, text, color="white" if is_dark else INK if is_strong else SOFT, **style)
        return
    from matplotlib.patheffects import withStroke

    most = max(FEWEST_CHARACTERS, int(radius / RADIUS / point / (CHARACTER * BESIDE_LETTERS)))
    texts = [shortened(text, most) for text in texts]
    style |= {"fontsize": BESIDE_LETTERS, "path_effects": [withStroke(linewidth=1.6, foreground="white")]}
    sizes = np.array([(CHARACTER * len(text), HEIGHT) for text in texts]) * BESIDE_LETTERS * point
    for text, (x, y), is_strong in zip(texts, _beside(positions, radius, sizes), strong, strict=True):
        ax.text(x, y, text, color=INK if is_strong else SOFT, **style)


def _beside(positions: Floats, radius: float, sizes: Floats) -> Floats:
    """Return the middles (n, 2) of names of these sizes, each on the side of its variable where it covers least.

    What it may cover are the circles, and the names that were placed before it.
    """
    n = len(positions)
    there = np.concatenate([positions, np.empty((n, 2))])
    extent = np.concatenate([np.full((n, 2), 2 * radius), sizes])
    for i in range(n):
        offered = positions[i] + SIDES * (sizes[i] / 2 + 1.15 * radius)
        others = np.delete(np.arange(n + i), i)
        covered = [_overlap(middle, sizes[i], there[others], extent[others]) for middle in offered]
        there[n + i] = offered[int(np.argmin(covered))]
    return there[n:]


def _overlap(middle: Floats, size: Floats, others: Floats, their_sizes: Floats) -> float:
    """Return the area that a box shares with others."""
    shared = (size + their_sizes) / 2 - np.abs(middle - others)
    return float(np.minimum(np.maximum(shared, 0.0), size).prod(axis=1).sum())
