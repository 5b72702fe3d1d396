"""Pictures inside a page."""

from io import BytesIO
from typing import TYPE_CHECKING

from clampz.display.html_page import as_source, text
from clampz.plotting.canvas import let_go

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What a picture may consist of that is drawn by the browser: more is sent as points.
MOST_DRAWN = 2500
# Points of a picture per inch, and of a page.
DPI, PAGE_DPI = 200, 96


def inside(ax: "Axes", num_drawn: int, seen: str) -> str:
    """The figure of these axes as HTML, without a background of its own; `seen` is what those know of it who do not see
    it, and `num_drawn` about how much it consists of."""
    from matplotlib import rc_context

    figure, data = ax.figure, BytesIO()
    width, height = (round(PAGE_DPI * side) for side in figure.get_size_inches())  # type: ignore[union-attr]
    try:
        with rc_context({"svg.hashsalt": "clampz"}):
            kind = "svg" if num_drawn <= MOST_DRAWN else "png"
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(data, format=kind, dpi=DPI, transparent=True, metadata=metadata)  # type: ignore[union-attr]
    finally:
        let_go(figure)  # type: ignore[arg-type]
    image = f'<img src="{as_source(data.getvalue())}" width="{width}" height="{height}" alt="{text(seen)}">'
    return f'<figure class="picture">{image}</figure>'
