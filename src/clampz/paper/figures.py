"""The figures of the paper, by name: what each is drawn from, and what the paper says of it.

A figure is drawn from whatever runs there are: families without any are left out, and an empty table gives a figure
that says so.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from clampz.errors import unknown_name
from clampz.paper import examples, pooled
from clampz.paper.families import FAMILIES, WEIGHTS, Family, family_named
from clampz.paper.panels import DPI, errors_cell, panel_figure, times_cell
from clampz.paper.settings import MAX_OPTIMAL_SIZE
from clampz.paper.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of a PNG; flat areas and thin lines need no more, and take a quarter of the space.
NUM_COLOURS = 256


@dataclass(frozen=True)
class PaperFigure:
    """A figure.

    Attributes
    ----------
    name, group
        What it is asked for by, alone and with others of its kind.
    where
        In the paper.
    title, says
        What it shows, and what the paper makes of it.
    experiments, families
        Of the runs, what it is drawn from; neither for the small examples, which are computed when they are drawn.
    draw
        From a table to a Matplotlib figure.
    """

    name: str
    group: str
    where: str
    title: str
    says: str
    experiments: tuple[str, ...]
    families: tuple[Family, ...]
    draw: Callable[[Table], "Figure"]


def figures_named(names: Iterable[str]) -> list[PaperFigure]:
    """The figures of these names, each of which may also be a group ("errors", "zoom", "times", ...) or "all"; none are
    all.

    >>> [figure.name for figure in figures_named(["success", "zoom"])][:2]
    ['zoom-mixed-6', 'zoom-mixed-12']
    """
    wanted = list(names) or ["all"]
    known = [
        *FIGURES,
        *dict.fromkeys(figure.group for figure in FIGURES.values() if figure.group not in FIGURES),
        "all",
    ]
    for name in wanted:
        if name not in known:
            raise unknown_name("figure", name, known)
    return [figure for figure in FIGURES.values() if {"all", figure.name, figure.group} & set(wanted)]


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of the file's suffix, PNG or PDF; the same figure gives the same bytes."""
    if path.suffix == ".png":
        import io

        from PIL import Image

        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        image = (
            Image.open(buffer).convert("RGB").quantize(NUM_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        )
        image.putpalette([255 if value >= 252 else value for value in image.getpalette() or []])  # white is white again
        image.save(path, format="png", optimize=True, dpi=(DPI, DPI))
    else:
        figure.savefig(path, metadata={"CreationDate": None, "Creator": None, "Producer": None})


def range_title(weights: tuple[float, float]) -> str:
    """A range of weights as the figures have it.

    >>> range_title((-6.0, 6.0))
    'mixed [-6,6]'
    """
    return "{} [{:g},{:g}]".format("mixed" if weights[0] < 0 else "attractive", *weights)


def errors_main(table: Table) -> "Figure":
    """Grids and random graphs at three sizes, attractive and mixed."""
    columns = ("grid{}[0,6]", "er{}[0,6]", "grid{}[-6,6]", "er{}[-6,6]")
    cells = {
        (row, c): errors_cell(table, family_named(name.format(size)))
        for row, size in enumerate((81, 49, 25))
        for c, name in enumerate(columns)
    }
    return panel_figure("Error against clamps: grids and random graphs", cells)


def complete_main(table: Table) -> "Figure":
    """Complete graphs, and the time that clamping takes on a grid."""
    cells = {
        (0, c): errors_cell(table, Family("complete", 15, W))
        for c, W in enumerate(((0.0, 6.0), (-6.0, 6.0), (-12.0, 12.0)))
    }
    cells[0, 3] = times_cell(table, Family("grid", 49, (-6.0, 6.0)))
    return panel_figure("Error against clamps on K15, and against time on a grid", cells)


def all_of_range(table: Table, weights: tuple[float, float], kind: str) -> "Figure":
    """Every family of one range of weights: grids, 4-regular, random and complete graphs in columns, the largest
    above."""
    cells = {}
    for family in FAMILIES:
        if family.weights == weights:
            row = {81: 0, 49: 1, 25: 2, 15: 1, 10: 2}[family.size]
            column = {"grid": 0, "regular": 1, "er": 2, "complete": 3}[family.graph]
            title = family.title.split(",")[0]
            cells[row, column] = (
                times_cell(table, family, title)
                if kind == "times"
                else errors_cell(table, family, title, zoom=kind == "zoom")
            )
    what = {
        "errors": "Error against clamps",
        "zoom": "Error against clamps near Bethe's",
        "times": "Error against time",
    }[kind]
    return panel_figure(f"{what}: {range_title(weights)}", cells)


def _ranged(kind: str, weights: tuple[float, float], says: str) -> PaperFigure:
    name = f"{kind}-{range_title(weights).split()[0]}-{weights[1]:g}"
    what = {"errors": "Error against clamps", "zoom": "The same, zoomed in on Bethe", "times": "Error against time"}[
        kind
    ]
    return PaperFigure(
        name=name,
        group=kind,
        where="Appendix",
        title=f"{what}, all families with {range_title(weights)} weights",
        says=says,
        experiments=("times",) if kind == "times" else ("errors",),
        families=tuple(family for family in FAMILIES if family.weights == weights),
        draw=partial(all_of_range, weights=weights, kind=kind),
    )


_ORDER = (WEIGHTS[2], WEIGHTS[3], WEIGHTS[0], WEIGHTS[1])
_ERRORS_SAY = (
    "Bethe is mostly the most accurate; clamping helps, and more on random graphs, where some variables have many "
    "neighbours, than on regular ones.",
    "The stronger the edges, the more clamping gains; where they are also dense, mean field competes with Bethe and "
    "can be far better.",
    "The paper takes this range because weights of this size tend to be hard for Bethe; it says no more of this "
    "figure.",
    "The paper says no more of this figure than of all: Bethe is mostly the most accurate, and clamping gains the more "
    "the stronger the edges.",
)
_TIMES_SAY = (
    "Mean field is the fastest; greedy takes the longest and gains little over pseudo-greedy; maxW+TRE gives the most "
    "for its time. On complete graphs mean "
    "field does much better for its time than on sparse ones. The times give a sense of scale only: they depend on "
    "implementation and tolerances."
)
_K10_SAYS = (
    " Clamping can make what is left so much easier that the whole takes less time than without: the paper names TRW "
    "on K10."
)

FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        PaperFigure(
            "lamp",
            "examples",
            "Figure 1",
            "The lamp and its core",
            "Variables of degree 1 are removed until none is left: that is the core. Without this, maxW often clamps "
            "X6, which has the most neighbours and "
            "lies on no cycle; any of X1 to X4 is better, and one of them is chosen once the model is stripped to its "
            "core.",
            (),
            (),
            examples.lamp,
        ),
        PaperFigure(
            "symmetric",
            "examples",
            "Figure 2",
            "Symmetric models before and after one clamp",
            "Strong attraction makes mean field and Bethe too low by at most about log 2, while TRW tends to the "
            "truth. Strong repulsion, where it "
            "frustrates cycles, makes Bethe and TRW too high without limit, and leaves mean field's error bounded. C4 "
            "has no frustrated cycle and is "
            "symmetric in W. After one clamp all methods are much better, and nearly exact where no frustrated cycle "
            "is left.",
            (),
            (),
            examples.symmetric,
        ),
        PaperFigure(
            "barbell",
            "examples",
            "Figure 3",
            "A model where strength alone misleads",
            "maxW and Mpower clamp variables of the clump X1 to X5 again and again, though after the first the others "
            "are as good as fixed. The frustrated "
            "cycle X6, X7, X8 is the better place to begin, and X6 and then X1 the best choice. The new heuristics "
            "find both places.",
            (),
            (),
            examples.barbell,
        ),
        PaperFigure(
            "errors-main",
            "main",
            "Figure 4",
            "Error against clamps on grids and random graphs",
            "Bethe is mostly the most accurate. Clamping helps, and most where there are many strong edges; it helps "
            "more on random graphs than on grids. "
            "Pseudo-greedy is nearly as good as greedy but for mean field, and maxW+TRE is the best single heuristic.",
            ("errors",),
            tuple(f for f in FAMILIES if f.graph in ("grid", "er") and f.weights in ((0.0, 6.0), (-6.0, 6.0))),
            errors_main,
        ),
        PaperFigure(
            "complete-main",
            "main",
            "Figure 5",
            "Complete graphs, and error against time",
            "On dense graphs with strong weights of both signs mean field can be far more accurate than Bethe, whose "
            "error, like TRW's, grows without limit "
            "on frustrated cycles. On a sparse model greedy takes much longer than pseudo-greedy for little gain, and "
            "maxW+TRE gets the most out of its "
            "time.",
            ("errors", "times"),
            (
                *(f for f in FAMILIES if f.graph == "complete" and f.size == 15 and f.weights != (0.0, 2.0)),
                Family("grid", 49, (-6.0, 6.0)),
            ),
            complete_main,
        ),
        *(_ranged("errors", weights, says) for weights, says in zip(_ORDER, _ERRORS_SAY, strict=True)),
        *(
            _ranged("zoom", weights, "The same runs, so close that the selectors can be told apart for Bethe.")
            for weights in _ORDER
        ),
        *(_ranged("times", weights, _TIMES_SAY + (_K10_SAYS if weights == (-6.0, 6.0) else "")) for weights in _ORDER),
        PaperFigure(
            "histogram",
            "pooled",
            "Appendix",
            "The sign of Bethe's error on mixed models",
            "Bethe's errors on mixed models are mostly too high, above all before clamping, as frustrated cycles would "
            "have it. The paper does not say "
            f"which heuristic clamps here; we take {pooled.HISTOGRAM_SELECTOR}.",
            ("errors",),
            tuple(f for f in FAMILIES if f.mixed),
            pooled.histogram,
        ),
        PaperFigure(
            "success",
            "pooled",
            "Appendix",
            "Agreement with pseudo-greedy",
            "No heuristic dominates. maxW+TRE agrees with pseudo-greedy most often, about half the time, and the "
            "entropies help most after the first clamp. "
            "For Bethe on mixed models pseudo-greedy goes by TRW.",
            ("errors",),
            FAMILIES,
            pooled.success,
        ),
        PaperFigure(
            "optimal",
            "pooled",
            "Appendix (in words)",
            "Greedy against optimal sequences",
            "Clamping the best variable again and again is not the best sequence, but the best one, found by trying "
            "all up to three, is only slightly "
            "better. The paper has no figure of this.",
            ("optimal",),
            tuple(f for f in FAMILIES if f.size <= MAX_OPTIMAL_SIZE),
            pooled.optimal,
        ),
    )
}
