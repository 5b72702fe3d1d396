"""The report: one page with the paper's claims and our verdicts, and every figure beside what the paper says of it.

The page needs nothing but itself: pictures are inside it, and there is no script.  Everything that is not written here
is escaped.
"""

import base64
import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np

import clampz
from clampz.paper import claims_on_accuracy, claims_on_choice, claims_on_examples, claims_on_times
from clampz.paper.claims import check_claims
from clampz.paper.families import FAMILIES, Family
from clampz.paper.figures import FIGURES, PaperFigure, figures_named, save
from clampz.paper.measures import METHODS, TITLES, stratified
from clampz.paper.settings import MAX_CLAMPS, PARTS, SETTINGS
from clampz.paper.table import Table
from clampz.paper.verdicts import Claim, Verdict

PAPER = "Weller &amp; Domke, “Clamping Improves TRW and Mean Field Approximations”, AISTATS 2016"
# The paper's number of runs of each family.
PAPER_RUNS = 100
GROUPS = {
    "Bounds and accuracy": claims_on_accuracy.CLAIMS,
    "Which variables to clamp": claims_on_choice.CLAIMS,
    "Time": claims_on_times.CLAIMS,
    "Small examples, computed for this report": claims_on_examples.CLAIMS,
}
SETTINGS_TITLES = {"paper": "the paper’s settings", "ours": "our settings"}
# Options of the methods that the report lists, where they are there.
OPTIONS = ("tol", "max_iter", "num_starts", "from_mean_field", "edge_weights")
# Wider than this, in pixels, a picture is scrolled on a narrow screen and not shrunk.
WIDE = 700
# A figure that shows more claims than this only names them; the numbers are in the table of claims.
MANY_CLAIMS = 4

Checked = Sequence[tuple[Claim, Verdict]]


def write_report(table: Table, folder: Path, names: Iterable[str] | None = None) -> Path:
    """Draw these figures, or all, as far as the table has runs for them; write them to `folder/figures`, and
    `folder/report.html`, whose path is returned."""
    chosen = figures_named([] if names is None else names)
    drawn = [figure for figure in chosen if drawable(figure, table)]
    pictures = {figure.name: draw(figure, table, folder / "figures") for figure in drawn}
    page = make_page(table, check_claims(table), chosen, pictures)
    path = folder / "report.html"
    _write_beside(path, lambda partial: partial.write_text(page, encoding="utf-8"))
    return path


def drawable(figure: PaperFigure, table: Table) -> bool:
    """Whether the table has any run that the figure shows."""
    return not figure.parts or any(
        table.runs(family.name, settings=settings, part=part)
        for family in figure.families
        for part in figure.parts
        for settings in SETTINGS
    )


def draw(figure: PaperFigure, table: Table, folder: Path) -> bytes:
    """Write a figure as PNG and PDF, and return the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure.draw(table)
    for suffix in (".png", ".pdf"):
        _write_beside(folder / f"{figure.name}{suffix}", lambda partial: save(picture, partial))
    return (folder / f"{figure.name}.png").read_bytes()


def _write_beside(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file by one that is written beside it: whole or not at all."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


# -- the page ------------------------------------------------------------------------------------------------------------------------


def make_page(table: Table, checked: Checked, figures: Sequence[PaperFigure], pictures: dict[str, bytes]) -> str:
    """All of the page."""
    style = (resources.files("clampz.paper") / "report.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>Clamping Improves TRW and Mean Field: the paper’s claims, measured again</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>Clamping Improves TRW and Mean Field: the paper’s claims, measured again</h1>
<p>A reproduction of {PAPER}, by clampz {_text(clampz.__version__)}, {datetime.now(UTC).date().isoformat()}.</p>
<nav aria-label="Sections"><ul>
<li><a href="#summary">Summary</a></li>
<li><a href="#claims">Claims</a></li>
<li><a href="#disagreements">Where we disagree</a></li>
<li><a href="#figures">Figures</a></li>
<li><a href="#runs">Runs and settings</a></li>
<li><a href="#reproduce">How to reproduce</a></li>
</ul></nav>
</header>
<main>
{_summary(table, checked)}
{_claims(checked)}
{_disagreements(checked)}
{_figures(table, checked, figures, pictures)}
{_runs(table)}
{_reproduce(table, figures)}
</main>
<footer>Made by <code>clampz paper</code>, version {_text(clampz.__version__)}. “±” is one standard error throughout.</footer>
</body>
</html>
"""


def _text(value: object) -> str:
    """Escaped, with the apostrophes of print."""
    return escape(re.sub(r"(?<=[A-Za-z])'(?=s\b| )", "’", str(value)))


def _minus(text: str) -> str:
    """With the minus of print before numbers; not within ranges such as [-6,6]."""
    return re.sub(r"(?<![\w\[,(])-(?=\d)", "−", text)


def _verdict(verdict: Verdict) -> str:
    """The verdict as a word with a colour."""
    word, kind = word_for(verdict)
    return f'<span class="verdict {kind}">{word}</span>'


def _measured(verdict: Verdict) -> str:
    """What was measured, a line for each part."""
    lines = _minus(verdict.numbers).split("; ")
    lines[0] = lines[0][0].upper() + lines[0][1:]
    return f'<span class="numbers">{"".join(f"<span>{_text(line)}</span>" for line in lines)}</span>'


def word_for(verdict: Verdict) -> tuple[str, str]:
    """A word, and the class that colours it."""
    if verdict.holds is None:
        return ("not run", "none") if verdict.note.startswith("Not in this table") else ("cannot tell", "open")
    return ("holds", "yes") if verdict.holds else ("does not hold", "no")


def _summary(table: Table, checked: Checked) -> str:
    words = [word_for(verdict)[0] for _, verdict in checked]
    counts = runs_by_family(table)
    total = sum(counts.get(("paper", "errors"), {}).values())
    facts = {
        "models solved": f"{total:,}",
        "families": f"{len(counts.get(('paper', 'errors'), {}))} of {len(FAMILIES)}",
        "claims that hold": words.count("holds"),
        "that do not": words.count("does not hold"),
        "that these runs cannot decide": words.count("cannot tell"),
    }
    if "not run" in words:
        facts["not in this table"] = words.count("not run")
    boxes = "\n".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items())
    return f"""<section id="summary" aria-label="Summary">
<dl class="facts">
{boxes}
</dl>
<p>{_extent(counts)}</p>
<p>Every branch is solved to {_tolerances()}; more under <a href="#runs">Runs and settings</a>. {_not_converged(table)}</p>
</section>"""


def _tolerances() -> str:
    """Of the paper's settings, in words."""
    settings = SETTINGS["paper"]
    return f"a tolerance of {settings.mf.tol:g} (MF), {settings.bethe.tol:g} (Bethe) and {settings.trw.tol:g} (TRW, nats) with {SETTINGS_TITLES['paper']}"


def runs_by_family(table: Table) -> dict[tuple[str, str], dict[Family, int]]:
    """How many runs there are, by settings and part and then by family."""
    found: dict[tuple[str, str], dict[Family, int]] = {}
    for settings in SETTINGS:
        for part in PARTS:
            for family in FAMILIES:
                if count := len(table.runs(family.name, settings=settings, part=part)):
                    found.setdefault((settings, part), {})[family] = count
    return found


def _range(counts: Iterable[int]) -> str:
    values = sorted(set(counts))
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _extent(counts: dict[tuple[str, str], dict[Family, int]]) -> str:
    """What was run, in words."""
    if not counts:
        return "This table has no runs; only the small examples were computed."
    names = {"errors": "errors", "times": "times", "optimal": "optimal sequences"}
    parts = [
        f"{names[part]}{'' if settings == 'paper' else ' with our settings'}: {_range(found.values())} run{'s' if max(found.values()) > 1 else ''} of each of"
        f" {len(found)} famil{'ies' if len(found) > 1 else 'y'}"
        for (settings, part), found in counts.items()
    ]
    text = f"{'; '.join(parts)}."
    most = max(counts.get(("paper", "errors"), {}).values(), default=0)
    if most < PAPER_RUNS:
        text += f" The paper made {PAPER_RUNS} runs of each of its {len(FAMILIES)} families: with fewer, more claims stay undecided."
    return _text(text[0].upper() + text[1:])


def _not_converged(table: Table) -> str:
    """How many values did not converge, by settings and method."""
    texts = []
    for settings in (name for name in SETTINGS if name in table.unique("settings")):
        chosen = table.where(settings=settings)
        found = []
        for method in METHODS:
            converged = chosen.where(method=method).column("converged")
            if len(converged):
                found.append(f"{TITLES[method]} {int((~converged).sum()):,} of {len(converged):,}")
        if found:
            texts.append(f"values that did not converge, with {SETTINGS_TITLES[settings]}: {', '.join(found)}")
    text = "; ".join(texts)
    if not text:
        return ""
    return _text(f"{text[0].upper()}{text[1:]}. They are kept: bounds hold all the same.")


def _claims(checked: Checked) -> str:
    verdicts = {claim.name: verdict for claim, verdict in checked}
    rows = []
    for title, members in GROUPS.items():
        rows.append(f'<tr class="group"><th scope="colgroup" colspan="5">{_text(title)}</th></tr>')
        for claim in members:
            verdict = verdicts[claim.name]
            why = (
                f'<td>{_measured(verdict)}</td><td class="why">{_text(verdict.note)}</td>'
                if verdict.note
                else f'<td colspan="2">{_measured(verdict)}</td>'
            )
            rows.append(
                f'<tr id="claim-{_text(claim.name)}"><th scope="row">{_text(claim.text)}</th><td class="where">{_text(claim.where)}</td>'
                f'<td class="said">{_verdict(verdict)}</td>{why}</tr>'
            )
    body = "\n".join(rows)
    return f"""<section id="claims" aria-labelledby="claims-title">
<h2 id="claims-title">The paper’s claims</h2>
<p>A claim holds, or does not, only where the numbers are more than two standard errors apart; otherwise these runs cannot tell. Differences are taken run by
run where both sides come from the same models. Errors are in nats, or shares of a family’s mean error before clamping. Claims are in our words.</p>
<table class="claims">
<caption>What the paper says, where, and what we measured with {SETTINGS_TITLES["paper"]}.</caption>
<thead><tr><th scope="col">Claim</th><th scope="col">Where</th><th scope="col">Verdict</th><th scope="col">Measured</th><th scope="col">Why</th></tr></thead>
<tbody>
{body}
</tbody>
</table>
</section>"""


def _disagreements(checked: Checked) -> str:
    found = [(claim, verdict) for claim, verdict in checked if verdict.holds is False]
    items = "\n".join(
        f'<li><strong>{_text(claim.text)}</strong> <a href="#claim-{_text(claim.name)}">{_text(claim.where)}</a>{_measured(verdict)}'
        f"{f'<p>{_text(verdict.note)}</p>' if verdict.note else ''}</li>"
        for claim, verdict in found
    )
    body = f'<ul class="against">\n{items}\n</ul>' if found else "<p>Nowhere, on these runs.</p>"
    return f"""<section id="disagreements" aria-labelledby="disagreements-title">
<h2 id="disagreements-title">Where we disagree, and why</h2>
{body}
</section>"""


def _figures(table: Table, checked: Checked, figures: Sequence[PaperFigure], pictures: dict[str, bytes]) -> str:
    shown = "\n".join(
        _figure(table, checked, figure, pictures[figure.name]) for figure in figures if figure.name in pictures
    )
    absent = [figure.title for figure in figures if figure.name not in pictures]
    left_out = f'<p class="soft">Not drawn, for want of runs: {_text("; ".join(absent))}.</p>' if absent else ""
    others = len(FIGURES) - len(figures)
    asked = (
        f'<p class="soft">{others} other figure{"s were" if others > 1 else " was"} not asked for.</p>'
        if others
        else ""
    )
    return f"""<section id="figures" aria-labelledby="figures-title">
<h2 id="figures-title">The figures</h2>
<p>Errors are the approximate log Z less the exact one, in nats. Each picture is also in the folder <code>figures</code>, as PNG and PDF.</p>
{left_out}{asked}
{shown}
</section>"""


def _figure(table: Table, checked: Checked, figure: PaperFigure, png: bytes) -> str:
    width, height = size_of(png)
    seen = [(claim, verdict) for claim, verdict in checked if figure.name in claim.figures]
    many = len(seen) > MANY_CLAIMS
    items = "\n".join(
        f'<li>{_verdict(verdict)} <a href="#claim-{_text(claim.name)}">{_text(claim.text)}</a> {"" if many else _measured(verdict)}</li>'
        for claim, verdict in seen
    )
    alternative = f"{figure.where} of the paper, drawn from our runs: {figure.title}. {_described(figure)}"
    name, title = _text(figure.name), _text(figure.title)
    return f"""<article class="figure" id="figure-{name}" aria-labelledby="title-{name}">
<header><h3 id="title-{name}">{title}</h3> <span class="soft">{_text(figure.where)}</span></header>
<figure><div class="scroll{" wide" if width > WIDE else ""}" tabindex="0" role="group" aria-label="{title}, picture">
<img src="data:image/png;base64,{base64.b64encode(png).decode("ascii")}" width="{width}" height="{height}" alt="{_text(alternative)}">
</div>{'<figcaption class="hint">Wide: scroll it sideways.</figcaption>' if width > WIDE else ""}</figure>
<div>
<h4>What the paper says</h4>
<p>{_text(figure.says)}</p>
<h4>What we see</h4>
<ul class="seen">
{items}
</ul>
</div>
{_numbers(table, figure)}
</article>"""


def _described(figure: PaperFigure) -> str:
    kinds = {
        "examples": "What is seen is listed beside it.",
        "main": "A panel for each family, TRW’s curves above, Bethe’s in the middle and mean field’s below.",
        "errors": "A panel for each family, TRW’s curves above, Bethe’s in the middle and mean field’s below; the mean errors are listed below it.",
        "zoom": "A panel for each family, near Bethe’s curves.",
        "times": "A panel for each family, seconds on a logarithmic axis.",
    }
    return kinds.get(figure.group, "The numbers are listed beside it.")


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height in pixels, as the header of a PNG has them."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _numbers(table: Table, figure: PaperFigure) -> str:
    """The mean errors behind a figure of errors, before and after clamping."""
    if figure.group not in ("main", "errors"):
        return ""
    rows = []
    for family in figure.families:
        cells = []
        for method in METHODS:
            errors = table.shown(family.name, method, "maxW+TRE")
            before, after = (
                stratified([errors[:, k]]) if errors.shape[1] > k else stratified([]) for k in (0, MAX_CLAMPS)
            )
            shown = [_minus(f"{mean.value:+.2f}") for mean in (before, after) if mean.num_runs]
            cells.append(" → ".join(shown) or "–")
        if any(cell != "–" for cell in cells):
            rows.append(
                f'<tr><th scope="row">{_text(family.title)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
            )
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{TITLES[method]}</th>' for method in METHODS)
    body = "\n".join(rows)
    return f"""<details><summary>Mean errors in numbers</summary>
<div class="scroll" tabindex="0" role="group" aria-label="Mean errors"><table class="numeric">
<caption>Without clamps → with {MAX_CLAMPS} by maxW+TRE; Bethe on mixed models without the sign.</caption>
<thead><tr><th scope="col">Family</th>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div></details>"""


def _runs(table: Table) -> str:
    counts = runs_by_family(table)
    columns = list(counts)
    present = [family for family in FAMILIES if any(family in found for found in counts.values())]
    open_branches = {method: _unconverged_by_family(table, method) for method in METHODS}
    titles = [f"{part}{'' if settings == 'paper' else ', our settings'}" for settings, part in columns]
    head = "".join(
        f'<th scope="col">{_text(title)}</th>' for title in [*titles, *(f"{TITLES[m]} not converged" for m in METHODS)]
    )
    body = "\n".join(
        f'<tr><th scope="row">{_text(family.title)}</th>{"".join(f"<td>{counts[column].get(family, 0)}</td>" for column in columns)}'
        f"{''.join(f'<td>{open_branches[m].get(family.name, 0.0):.1%}</td>' for m in METHODS)}</tr>"
        for family in present
    )
    runs = (
        f"""<details><summary>Runs of each family</summary>
<div class="scroll" tabindex="0" role="group" aria-label="Runs of each family"><table class="numeric">
<caption>Runs, and the share of values for which some branch did not converge.</caption>
<thead><tr><th scope="col">Family</th>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div></details>"""
        if present
        else ""
    )
    used = [name for name in SETTINGS if name in table.unique("settings")] or ["paper"]
    return f"""<section id="runs" aria-labelledby="runs-title">
<h2 id="runs-title">Runs and settings</h2>
<p>Every model has singleton potentials drawn from [-2, 2] and weights from the range of its family. Runs with the paper’s settings solve every branch afresh,
mean field from one random start, Bethe from a uniform one, TRW with the uniform edge weights of what the clamps leave.</p>
{"".join(_settings(name) for name in used)}
{runs}
</section>"""


def _unconverged_by_family(table: Table, method: str) -> dict[str, float]:
    chosen = table.where(method=method)
    families, codes = np.unique(chosen.column("family").astype(str), return_inverse=True)
    shares: Iterable[float] = (
        np.bincount(codes, weights=~chosen.column("converged")) / np.bincount(codes) if len(families) else []
    )
    return dict(zip(families.tolist(), map(float, shares), strict=True))


def _settings(name: str) -> str:
    described = SETTINGS[name].described()
    rows = []
    for method in METHODS:
        options = ", ".join(
            f"{option} = {described[method][option]}" for option in OPTIONS if option in described[method]
        )
        rows.append(f'<tr><th scope="row">{TITLES[method]}</th><td><code>{_text(options)}</code></td></tr>')
    starts = (
        "a branch also starts at its parent’s solution"
        if SETTINGS[name].warm_starts
        else "no branch starts at its parent’s solution"
    )
    body = "\n".join(rows)
    return f"""<div class="scroll" tabindex="0" role="group" aria-label="{_text(SETTINGS_TITLES.get(name, name))}"><table>
<caption>With {_text(SETTINGS_TITLES.get(name, name))}: {_text(starts)}.</caption>
<thead><tr><th scope="col">Method</th><th scope="col">Options</th></tr></thead>
<tbody>
{body}
</tbody></table></div>
"""


def _reproduce(table: Table, figures: Sequence[PaperFigure]) -> str:
    command = command_for(table, figures)
    return f"""<section id="reproduce" aria-labelledby="reproduce-title">
<h2 id="reproduce-title">How to reproduce</h2>
<p>Every run follows from its family and number. This makes the same table, times aside, and this page:</p>
<pre tabindex="0"><code>pip install 'clampz[cli]=={_text(clampz.__version__)}'
{_text(command)}</code></pre>
<p>The table, in one line, and a run by itself:</p>
<pre tabindex="0"><code>pandas.read_sql("select * from results", sqlite3.connect("results.sqlite"))
clampz.paper.runs.perform(clampz.paper.runs.Task("paper", "errors", "grid49[-6,6]", 0))</code></pre>
</section>"""


def command_for(table: Table, figures: Sequence[PaperFigure]) -> str:
    """The command that makes such a table."""
    counts = runs_by_family(table)
    families = {family for found in counts.values() for family in found}
    most = max((count for found in counts.values() for count in found.values()), default=PAPER_RUNS)
    words = ["clampz paper"]
    if most != PAPER_RUNS:
        words.append(f"--runs {most}")
    if len(figures) < len(FIGURES):
        words += [f"--figure {figure.name}" for figure in figures]
    if families and len(families) < len(FAMILIES):
        whole = [
            graph
            for graph in ("grid", "er", "regular", "complete")
            if {f for f in FAMILIES if f.graph == graph} <= families
        ]
        words += [f"--family {graph}" for graph in whole]
        words += [
            f"--family '{family.name}'" for family in FAMILIES if family in families and family.graph not in whole
        ]
    if any(settings == "ours" for settings, _ in counts):
        words.append("--ours")
    return re.sub(r"\s+", " ", " ".join(words))
