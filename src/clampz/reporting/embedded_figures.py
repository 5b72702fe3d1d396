"""Figures of matplotlib inside an HTML page, as SVG or PNG."""

from io import BytesIO
from typing import TYPE_CHECKING

from clampz.display.html_page import data_url, text
from clampz.plotting.figures import close_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Elements of a figure up to which it is SVG, drawn by the browser; beyond, it is PNG.
MOST_DRAWN = 2500
# Pixels per inch of a PNG, and of a page.
DPI, PAGE_DPI = 200, 96


def embedded(ax: "Axes", num_drawn: int, seen: str) -> str:
    """Return the figure of these axes as HTML with a transparent background, and close it.

    `seen` is the text for those who do not see the figure, `num_drawn` about how many elements it has.
    """
    from matplotlib import rc_context

    figure, data = ax.figure, BytesIO()
    width, height = (round(PAGE_DPI * side) for side in figure.get_size_inches())  # type: ignore[union-attr]
    try:
        with rc_context({"svg.hashsalt": "clampz"}):
            kind = "svg" if num_drawn <= MOST_DRAWN else "png"
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(data, format=kind, dpi=DPI, transparent=True, metadata=metadata)  # type: ignore[union-attr]
    finally:
        close_figure(figure)  # type: ignore[arg-type]
    image = f'<img src="{data_url(data.getvalue())}" width="{width}" height="{height}" alt="{text(seen)}">'
    return f'<figure class="picture">{image}</figure>'
