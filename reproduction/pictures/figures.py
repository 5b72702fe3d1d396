"""The figures of the paper, by name: what each is drawn from, and what the paper says of it.

A figure is drawn from whatever runs there are: families without any are left out, and an empty table gives a figure
that says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.families import FAMILIES, LABELLED, WEIGHTS, Family, family_named
from reproduction.pictures import examples, pooled
from reproduction.pictures.panels import DPI, OWN_LINES, Cell, errors_cell, panel_figure, times_cell
from reproduction.settings import FURTHER_FAMILIES, MAX_OPTIMAL_SIZE, OWN_FAMILIES, SETTINGS
from reproduction.table import Table
from reproduction.tools import texts_of, unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Panels of a figure of the user's models.
PANELS = 12
# Colours of a PNG; flat areas and thin lines need no more, and take a quarter of the space.
NUM_COLOURS = 256


@dataclass(frozen=True)
class PaperFigure:
    """Describe a figure, and draw it from a table.

    Attributes
    ----------
    name, group
        What it is asked for by, alone and with others of its kind.
    where
        In the paper.
    title, says
        What it shows, and what the paper makes of it.
    experiments, families, settings
        Of the runs, what it is drawn from; none for the small examples, which are computed when they are drawn.
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
    settings: tuple[str, ...] = ("paper",)


def figures_named(names: Iterable[str], of: Sequence[PaperFigure] | None = None) -> list[PaperFigure]:
    """Return the figures of these names, each of which may also be a group ("errors", "zoom", "times", ...) or "all";
    none are all.

    >>> [figure.name for figure in figures_named(["success", "zoom"])][:2]
    ['zoom-mixed-6', 'zoom-mixed-12']
    """
    wanted, figures = list(names) or ["all"], list(FIGURES.values() if of is None else of)
    known = list(dict.fromkeys([*(figure.name for figure in figures), *(figure.group for figure in figures), "all"]))
    for name in wanted:
        if name not in known:
            raise unknown_name("figure", name, known)
    return [figure for figure in figures if {"all", figure.name, figure.group} & set(wanted)]


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


def errors_main(table: Table, title: str) -> "Figure":
    """Draw grids and random graphs at three sizes, attractive and mixed."""
    columns = ("grid{}[0,6]", "er{}[0,6]", "grid{}[-6,6]", "er{}[-6,6]")
    cells = {
        (row, c): errors_cell(table, family_named(name.format(size)))
        for row, size in enumerate((81, 49, 25))
        for c, name in enumerate(columns)
    }
    return panel_figure(title, cells)


def complete_main(table: Table, title: str) -> "Figure":
    """Draw complete graphs, and the time that clamping takes on a grid."""
    cells = {(0, c): errors_cell(table, family_named(f"complete15{W}")) for c, W in enumerate(STRONG)}
    cells[0, 3] = times_cell(table, Family("grid", 49, (-6.0, 6.0)))
    return panel_figure(title, cells)


def all_of_range(table: Table, title: str, weights: tuple[float, float], kind: str) -> "Figure":
    """Draw every family of one range of weights: grids, 4-regular, random and complete graphs in columns, the largest
    above."""
    cells = {}
    for family in FAMILIES:
        if family.weights == weights:
            row = {81: 0, 49: 1, 25: 2, 15: 1, 10: 2}[family.size]
            column = {"grid": 0, "regular": 1, "er": 2, "complete": 3}[family.graph]
            cells[row, column] = CELLS[kind](table, family, family.title.split(",")[0])
    return panel_figure(title, cells)


def of_families(table: Table, title: str, families: Sequence[Family], kind: str) -> "Figure":
    """Draw a panel for each of a few families."""
    columns = 3 if len(families) % 3 == 0 else 4
    short = [f.title.replace(f", {f.labels} labels", "") for f in families]
    named = enumerate(zip(families, short, strict=True))
    return panel_figure(title, {divmod(k, columns): CELLS[kind](table, family, name) for k, (family, name) in named})


MODEL_TITLES = {"errors": "Error against clamps", "zoom": "The same near Bethe's", "times": "Error against time"}
STRONG = ("[0,6]", "[-6,6]", "[-12,12]")
# A panel of each kind of figure.
CELLS: dict[str, Callable[..., Cell]] = {
    "errors": errors_cell,
    "zoom": partial(errors_cell, zoom=True),
    "times": times_cell,
    "ours": partial(errors_cell, lines=OWN_LINES),
}
TEXTS = texts_of("reproduction.pictures", "figures.toml")


def _figure(
    name: str,
    draw: Callable[..., "Figure"],
    experiments: Sequence[str] = (),
    families: Iterable[Family] = (),
    settings: Sequence[str] = ("paper",),
    **texts: str,
) -> PaperFigure:
    """Make a figure by what is drawn of which runs; the rest is in `figures.toml`."""
    said = TEXTS.get(name, {}) | texts
    draw = partial(draw, title=said["title"]) if experiments else draw
    runs = tuple(experiments), tuple(families), draw, tuple(settings)
    return PaperFigure(name, said["group"], said["where"], said["title"], said["says"], *runs)


def _made() -> Iterator[PaperFigure]:
    """Yield every figure, in the order of the paper."""
    sparse = [f for f in FAMILIES if f.graph in ("grid", "er") and f.weights in ((0.0, 6.0), (-6.0, 6.0))]
    dense = [family_named(f"complete15{weights}") for weights in STRONG]
    for draw in (examples.lamp, examples.symmetric, examples.barbell):
        yield _figure(draw.__name__, draw)
    yield _figure("errors-main", errors_main, ["errors"], sparse)
    yield _figure("complete-main", complete_main, ["errors", "times"], [*dense, family_named("grid49[-6,6]")])
    for kind, weights in product(("errors", "zoom", "times"), (*WEIGHTS[2:], *WEIGHTS[:2])):
        name = f"{kind}-{'mixed' if weights[0] < 0 else 'attractive'}-{weights[1]:g}"
        draw_range = partial(all_of_range, weights=weights, kind=kind)
        of = [family for family in FAMILIES if family.weights == weights]
        yield _figure(name, draw_range, ["times" if kind == "times" else "errors"], of)
    yield _figure("histogram", pooled.histogram, ["errors"], [f for f in FAMILIES if f.mixed])
    yield _figure("success", pooled.success, ["errors"], FAMILIES)
    yield _figure("optimal", pooled.optimal, ["optimal"], [f for f in FAMILIES if f.size <= MAX_OPTIMAL_SIZE])
    own = [family_named(name) for name in OWN_FAMILIES]
    yield _figure("ours", partial(of_families, families=own, kind="ours"), ["errors", "times"], own, tuple(SETTINGS))
    for labels in (3, 5):
        more = [family for family in LABELLED if family.labels == labels]
        yield _figure(f"labels-{labels}", partial(of_families, families=more, kind="errors"), ["errors"], more)
    yield _figure("labels-success", partial(pooled.success, families=LABELLED), ["errors"], LABELLED)
    yield _figure("further", pooled.further, ["further"], map(family_named, FURTHER_FAMILIES))


FIGURES: dict[str, PaperFigure] = {figure.name: figure for figure in _made()}


def model_figures(families: Sequence[Family]) -> list[PaperFigure]:
    """Return figures of the user's own models: a panel for each, and who agrees with pseudo-greedy."""
    texts, found = TEXTS["models"], []
    for kind, first in product(MODEL_TITLES, range(0, len(families), PANELS)):
        chunk, said = families[first : first + PANELS], texts | {"group": kind, "title": MODEL_TITLES[kind]}
        draw, experiment = partial(of_families, families=chunk, kind=kind), "times" if kind == "times" else "errors"
        found.append(_figure(f"{kind}-{first // PANELS + 1}", draw, [experiment], chunk, **said))
    return [*found, _figure("success", partial(pooled.success, families=families), ["errors"], families, **texts)]
