"""A model with what methods say of it, and what is drawn in a picture: its texts, which must not be clipped or in the
way of each other, and its edges."""

import itertools

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

import clampz as cz

MODEL = cz.generators.grid(4, 4, toroidal=False, rng=1)


def exact() -> cz.results.Estimate:
    return cz.exact(MODEL)


def estimates() -> dict[str, cz.results.Estimate]:
    return {"mean field": cz.mean_field(MODEL), "Bethe": cz.bethe(MODEL), "TRW": cz.trw(MODEL)}


def clampings() -> list[cz.results.Clamped]:
    """All with the same variables: the others are guided by TRW's entropies under uniform edge weights."""
    return [
        cz.clamp(MODEL, "trw", k=3, edge_weights="uniform"),
        *(cz.clamp(MODEL, name, k=3) for name in ("bethe", "mf")),
    ]


def shown_texts(figure: Figure) -> dict[str, Bbox]:
    """Every text that is drawn, with its box in pixels; labels of ticks beyond the limits are not."""
    figure.draw_without_rendering()
    texts = list(figure.texts) + [text for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        texts += [*ax.texts, ax.title, ax._left_title]
        texts += [] if ax.get_legend() is None else ax.get_legend().get_texts()
        if ax.axison:
            texts += [ax.xaxis.label, ax.yaxis.label]
            for axis in (ax.xaxis, ax.yaxis):
                low, high = sorted(axis.get_view_interval())
                texts += [
                    label
                    for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                    if low <= place <= high
                ]
    return {
        f"{text.get_text()} ({number})": text.get_window_extent()
        for number, text in enumerate(texts)
        if text.get_text().strip()
    }


def assert_legible(figure: Figure) -> None:
    texts = shown_texts(figure)
    assert texts
    for name, box in texts.items():
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, f"{name} is clipped"
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, f"{name} is clipped"
    for (a, box), (b, other) in itertools.combinations(texts.items(), 2):
        assert not box.padded(-0.5).overlaps(other.padded(-0.5)), f"{a} and {b} overlap"


def lines(ax: Axes) -> dict[str, LineCollection]:
    """Lines by what the legend calls them."""
    return {str(c.get_label()): c for c in ax.collections if isinstance(c, LineCollection)}
