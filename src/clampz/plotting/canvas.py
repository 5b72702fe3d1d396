"""New figures, where people look for them.

A notebook and a window show the figures that pyplot knows, and `plt.savefig` writes the last of them.  So a figure is
made through pyplot where somebody works with that: it is imported already, or the session is interactive.  Anywhere
else, as on the command line, nobody would ever close it, and pyplot is not imported.
"""

import sys
from typing import TYPE_CHECKING, Any

from clampz.errors import library
from clampz.runtime.options import check_option

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Backends that show nothing: of figures made under them pyplot knows the last alone, so that none pile up.
FILE_BACKENDS = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
_last_unshown: "list[Figure]" = []


def new_figure(size: tuple[float, float], **settings: Any) -> "Figure":
    """A figure of this size in inches.

    Of those that no backend shows pyplot knows the last one alone; the others stay as they are for who holds them.
    """
    settings = {"figsize": size, "dpi": 150, "facecolor": "white", "layout": "constrained", **settings}
    library("matplotlib")
    if not _pyplot_is_in_use():
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
    """The axes that a caller gave, or those of a new figure."""
    return new_figure(size).add_subplot() if ax is None else _checked(ax)


def size_of(ax: "Axes") -> tuple[float, float]:
    """Width and height in points, of axes that a caller gave, as they are now: a layout may yet change them."""
    box = _checked(ax).get_window_extent()
    return float(box.width) * 72 / ax.figure.dpi, float(box.height) * 72 / ax.figure.dpi


def _checked(ax: "Axes") -> "Axes":
    check_option(hasattr(ax, "get_window_extent"), "ax", "None or Axes of matplotlib", ax)
    return ax


def let_go(figure: "Figure") -> None:
    """Have pyplot forget a figure that is in a file: nobody is to see it twice."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)


def _pyplot_is_in_use() -> bool:
    return "matplotlib.pyplot" in sys.modules or hasattr(sys, "ps1") or bool(sys.flags.interactive)
