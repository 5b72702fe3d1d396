"""Draw the figures as far as there are runs for them, and write them and the report: one page of claims and figures."""

from collections.abc import Sequence
from pathlib import Path

from reproduction.claims.check import check_claims
from reproduction.families import FAMILIES, LABELLED, FromFile
from reproduction.pictures.figures import PaperFigure, figures_named, save
from reproduction.pictures.panels import has_runs
from reproduction.reporting.advice import advice, as_markdown
from reproduction.reporting.latex import write_latex
from reproduction.reporting.page import make_page
from reproduction.table import Table
from reproduction.tools import written_whole


def write_report(
    table: Table, folder: Path, figures: Sequence[PaperFigure] | None = None, *, latex: bool = False
) -> Path:
    """Draw these figures, or all, as far as the table has runs for them, and return the path of the report written
    beside them. The figures are in `folder/figures`; the advice, and LaTeX if asked for, go there too."""
    chosen = figures_named([]) if figures is None else figures
    drawn = [figure for figure in chosen if drawable(figure, table)]
    pictures = {figure.name: draw(figure, table, folder / "figures") for figure in drawn}
    files = [family for figure in chosen for family in figure.families if isinstance(family, FromFile)]
    families = list(dict.fromkeys(files)) or FAMILIES
    checked, advised = check_claims(table, families), advice(table)
    if latex:
        write_latex(table, checked, drawn, folder / "latex")
    with written_whole(folder / "advice.md") as partial:
        partial.write_text(as_markdown(advised), encoding="utf-8")
    page = make_page(table, families, checked, check_claims(table, LABELLED), advised, chosen, pictures)
    path = folder / "report.html"
    with written_whole(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path


def drawable(figure: PaperFigure, table: Table) -> bool:
    """Tell whether the table has any run that the figure shows."""
    return not figure.experiments or any(has_runs(table, family, *figure.experiments) for family in figure.families)


def draw(figure: PaperFigure, table: Table, folder: Path) -> bytes:
    """Write a figure as PNG and PDF, and return the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure.draw(table)
    for suffix in (".png", ".pdf"):
        with written_whole(folder / f"{figure.name}{suffix}") as partial:
            save(picture, partial)
    return (folder / f"{figure.name}.png").read_bytes()
