"""Draw the figures as far as there are runs for them, and write them and the report: one page of claims and figures."""

from collections.abc import Iterable
from pathlib import Path

from clampz.files import written_whole
from clampz.paper.claims import check_claims
from clampz.paper.figures import PaperFigure, figures_named, save
from clampz.paper.page import make_page
from clampz.paper.panels import has_runs
from clampz.paper.table import Table


def write_report(table: Table, folder: Path, names: Iterable[str] | None = None) -> Path:
    """Draw these figures, or all, as far as the table has runs for them; write them to `folder/figures`, and
    `folder/report.html`, whose path is returned."""
    chosen = figures_named([] if names is None else names)
    drawn = [figure for figure in chosen if drawable(figure, table)]
    pictures = {figure.name: draw(figure, table, folder / "figures") for figure in drawn}
    page = make_page(table, check_claims(table), chosen, pictures)
    path = folder / "report.html"
    with written_whole(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path


def drawable(figure: PaperFigure, table: Table) -> bool:
    """Whether the table has any run that the figure shows."""
    return not figure.experiments or any(has_runs(table, family, *figure.experiments) for family in figure.families)


def draw(figure: PaperFigure, table: Table, folder: Path) -> bytes:
    """Write a figure as PNG and PDF, and return the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure.draw(table)
    for suffix in (".png", ".pdf"):
        with written_whole(folder / f"{figure.name}{suffix}") as partial:
            save(picture, partial)
    return (folder / f"{figure.name}.png").read_bytes()
