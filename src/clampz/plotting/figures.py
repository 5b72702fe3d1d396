"""New figures and axes, known to pyplot where a notebook, a window or `plt.savefig` looks for them.

A figure is made through pyplot where that is imported already, or the session is interactive.  Anywhere else, as on the
command line, nobody would ever close it, and pyplot is not imported.
"""

import sys
from typing import TYPE_CHECKING, Any

from clampz.errors import library
from clampz.runtime.options import check_option

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Backends that show nothing: pyplot knows only the last figure made under them, so that none pile up.
FILE_BACKENDS = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
_last_unshown: "list[Figure]" = []


def new_figure(size: tuple[float, float], **settings: Any) -> "Figure":
    """Return a new figure of this size in inches; where no backend shows it, pyplot forgets the one before."""
    settings = {"figsize": size, "dpi": 150, "facecolor": "white", "layout": "constrained", **settings}
    library("matplotlib")
    if "matplotlib.pyplot" not in sys.modules and not hasattr(sys, "ps1") and not sys.flags.interactive:
        from matplotlib.figure import Figure

        return Figure(**settings)
    import matplotlib.pyplot as plt

    figure = plt.figure(**settings)
    if plt.get_backend().lower() in FILE_BACKENDS:
        while _last_unshown:
            plt.close(_last_unshown.pop())
        _last_unshown.append(figure)
    return figure


def new_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return the axes that a caller gave, checked, or those of a new figure."""
    return new_figure(size).add_subplot() if ax is None else _checked(ax)


def size_of(ax: "Axes") -> tuple[float, float]:
    """Return the width and height of axes in points, as they are now: a layout may yet change them."""
    box = _checked(ax).get_window_extent()
    return float(box.width) * 72 / ax.figure.dpi, float(box.height) * 72 / ax.figure.dpi


def _checked(ax: "Axes") -> "Axes":
    check_option(hasattr(ax, "get_window_extent"), "ax", "None or Axes of matplotlib", ax)
    return ax


def close_figure(figure: "Figure") -> None:
    """Let pyplot forget a figure that has been written to a file, so that it is not shown as well."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)
