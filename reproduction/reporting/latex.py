"""Tables and figures for those who write papers: claims with verdicts, mean errors, and every figure with a caption."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reproduction.claims.verdicts import Claim, Verdict, word_for
from reproduction.families import Family
from reproduction.pictures.figures import PaperFigure
from reproduction.pictures.panels import mean_over_runs
from reproduction.settings import SELECTOR, TITLES
from reproduction.table import Table
from reproduction.tools import texts_of, written_whole

TEXTS = texts_of("reproduction.reporting", "latex.toml")
ESCAPED = str.maketrans(TEXTS["symbols"])


def write_latex(
    table: Table, checked: Sequence[tuple[Claim, Verdict]], figures: Sequence[PaperFigure], folder: Path
) -> None:
    """Write `claims.tex`, `errors.tex` and `figures.tex`, for `\\input`; the figures are in the folder beside."""
    folder.mkdir(parents=True, exist_ok=True)
    claims = [(claim.text, claim.where, word_for(verdict)[0]) for claim, verdict in checked]
    families = sorted({family for figure in figures for family in figure.families})
    errors = [row for family in families for row in _errors(table, family)]
    pictures = (TEXTS["picture"].format(name=figure.name, title=escaped(figure.title)) for figure in figures)
    contents = {
        "claims": _table("claims", ("Claim", "Where", "Verdict"), claims),
        "errors": _table("errors", ("Family", "Clamps", *TITLES.values()), errors),
        "figures": "\n".join(pictures),
    }
    for name, content in contents.items():
        with written_whole(folder / f"{name}.tex") as partial:
            partial.write_text(content, encoding="utf-8")


def _errors(table: Table, family: Family) -> Iterator[tuple[str, ...]]:
    """Yield a row without clamps and one with the most: mean errors with their standard errors, to a thousandth of a
    nat as TRW is solved."""
    found = [mean_over_runs(table.shown(family.name, method, SELECTOR)) for method in TITLES]
    for k in dict.fromkeys((0, min(len(count) for _, _, count in found) - 1)):
        if all(count[k] for _, _, count in found):
            errors = (f"{mean[k]:+.3f}±{error[k]:.3f}" for mean, error, _ in found)
            yield "" if k else family.title, str(k), *errors


def _table(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table that may run over pages."""
    first, *others = (" & ".join(map(escaped, row)) + r" \\" for row in (head, *rows))
    return str(TEXTS["table"].format(columns=TEXTS["columns"][name], head=first, rows="\n".join(others)))


def escaped(text: str) -> str:
    """Return text that LaTeX prints as it is.

    >>> escaped("10% ± 1")
    '10\\\\% $\\\\pm$ 1'
    """
    return re.sub(r"-(?=\d)", "−", text).translate(ESCAPED)
