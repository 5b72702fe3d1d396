"""Tables and figures for those who write papers: claims with verdicts, mean errors, and every figure with a caption."""

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from clampz.files import written_whole
from clampz.paper.figures import PaperFigure
from clampz.paper.panels import mean_over_runs
from clampz.paper.settings import TITLES
from clampz.paper.table import Table
from clampz.paper.verdicts import Claim, Verdict, word_for

TEXTS = tomllib.loads((resources.files("clampz.paper") / "latex.toml").read_text(encoding="utf-8"))
ESCAPED = str.maketrans(TEXTS["symbols"])


def write_latex(
    table: Table, checked: Sequence[tuple[Claim, Verdict]], figures: Sequence[PaperFigure], folder: Path
) -> None:
    """`claims.tex`, `errors.tex` and `figures.tex`, for `\\input`; the figures are in the folder beside."""
    folder.mkdir(parents=True, exist_ok=True)
    claims = [(claim.text, claim.where, word_for(verdict)[0]) for claim, verdict in checked]
    rows = [
        (family.title, *(_errors(table, family.name, method) for method in TITLES))
        for family in dict.fromkeys(family for figure in figures for family in figure.families)
    ]
    contents = {
        "claims": _table("p{0.5\\linewidth}p{0.2\\linewidth}l", ("Claim", "Where", "Verdict"), claims),
        "errors": _table("lrrr", ("Family", *TITLES.values()), rows),
        "figures": "\n".join(
            TEXTS["picture"].format(name=figure.name, title=escaped(figure.title)) for figure in figures
        ),
    }
    for name, content in contents.items():
        with written_whole(folder / f"{name}.tex") as partial:
            partial.write_text(content, encoding="utf-8")


def _errors(table: Table, family: str, method: str) -> str:
    """Mean error without clamps and with the most, each with its standard error; nothing where there are no runs."""
    mean, error, count = mean_over_runs(table.shown(family, method, "maxW+TRE"))
    ends = [k for k in dict.fromkeys((0, len(mean) - 1)) if count[k]]
    return " → ".join(f"{mean[k]:+.2f} ± {error[k]:.2f}".replace("-", "−") for k in ends)


def _table(columns: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that may run over pages."""
    first, *others = (" & ".join(map(escaped, row)) + r" \\" for row in (head, *rows))
    lines = [r"% needs booktabs and longtable", rf"\begin{{longtable}}{{{columns}}}", r"\toprule", first, r"\midrule"]
    return "\n".join([*lines, r"\endhead", *others, r"\bottomrule", r"\end{longtable}", ""])


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> escaped("10% ± 1")
    '10\\\\% $\\\\pm$ 1'
    """
    return text.translate(ESCAPED)
