"""The report's page: the paper's claims and our verdicts, and every figure beside what the paper says of it.

The page needs nothing but itself: pictures are inside it, and there is no script.  Everything that is not written here
is escaped.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

import clampz as cz
from reproduction.claims import accuracy, choice, examples, times
from reproduction.claims.measures import stratified
from reproduction.claims.verdicts import Claim, Verdict, word_for
from reproduction.families import EVERY, FAMILIES, SIZES, Family, FromFile, family_named
from reproduction.pictures.figures import FIGURES, PaperFigure
from reproduction.reporting.advice import Advice
from reproduction.reporting.html import (
    as_source,
    as_table,
    details,
    facts,
    section,
    sentence,
    text,
    with_code,
    with_minus,
)
from reproduction.request import Request
from reproduction.settings import EXPERIMENTS, METHODS, SELECTOR, SETTINGS, TITLES
from reproduction.table import Table
from reproduction.tools import counted, text_of, texts_of

# The paper's number of runs of each family.
PAPER_RUNS = 100
GROUPS = {
    "Bounds and accuracy": accuracy.CLAIMS,
    "Which variables to clamp": choice.CLAIMS,
    "Time": times.CLAIMS,
    "Small examples, computed for this report": examples.CLAIMS,
}
# Options of the methods that the report lists, where they are there.
OPTIONS = ("tol", "max_iter", "num_starts", "from_mean_field", "edge_weights")
# A figure that shows more claims than this only names them; the numbers are in the table of claims.
MANY_CLAIMS = 4
# The words of the page, what is seen in a figure, and its sections.
WORDS = texts_of("reproduction.reporting", "page.toml")
PROSE: dict[str, str] = WORDS["prose"]

Checked = Sequence[tuple[Claim, Verdict]]
# How many runs there are, by settings and experiment and then by family.
Counts = dict[tuple[str, str], dict[Family, int]]


def make_page(
    table: Table,
    families: Sequence[Family],
    checked: Checked,
    labelled: Checked,
    advised: dict[str, list[Advice]],
    figures: Sequence[PaperFigure],
    pictures: dict[str, bytes],
) -> str:
    """Return the whole page; the claims are judged by these families."""
    style = text_of("reproduction.reporting", "report.css")
    version, today = text(cz.__version__), datetime.now(UTC).date().isoformat()
    links = (f'<li><a href="#{name}">{short}</a></li>' for name, short in WORDS["sections"].items())
    parts = [
        _summary(table, families, checked),
        _advice(advised),
        _claims(table, families, checked),
        _disagreements(checked),
        _labelled(labelled),
        _figures(table, checked, figures, pictures),
        _runs(table),
        _reproduce(table, figures),
    ]
    frame = {"title": WORDS["title"], "paper": WORDS["paper"], "version": version, "today": today, "style": style}
    return PROSE["frame"].format(links="\n".join(links), main="\n".join(parts), **frame)


# -- claims -----------------------------------------------------------------------------------------------------------


def _advice(advised: dict[str, list[Advice]]) -> str:
    items = "".join(
        f"<h3>{text(title)}</h3><ul>"
        + "".join(
            f"<li><strong>{with_code(do)}</strong> {text(with_minus(because))} "
            f"{f'<em>{text(paper)}</em>' if paper else ''}</li>"
            for do, because, paper in given
        )
        + "</ul>"
        for title, given in advised.items()
    )
    return section("advice", "Advice", items or "<p>Needs runs of the paper’s families.</p>")


def _verdict(verdict: Verdict) -> str:
    """Return the verdict as a word with a colour."""
    word, kind = word_for(verdict)
    return f'<span class="verdict {kind}">{word}</span>'


def _measured(verdict: Verdict) -> str:
    """Return what was measured, a line for each of its sentences."""
    lines = sentence(with_minus(verdict.numbers)).split("; ")
    return f'<span class="numbers">{"".join(f"<span>{text(line)}</span>" for line in lines)}</span>'


def _claims(table: Table, families: Sequence[Family], checked: Checked) -> str:
    said = PROSE["claims"].format(same=_same_choices(table, families), table=_table_of(checked, "claim"))
    return section("claims", "The paper’s claims", said)


def _table_of(checked: Checked, kind: str) -> str:
    """Return claims by what they are about, with verdicts: a table that becomes a list where there is no room."""
    rows = []
    for title, members in GROUPS.items():
        found = [(claim, verdict) for claim, verdict in checked if claim in members]
        if found:
            rows.append(f'<tr class="group"><th scope="colgroup" colspan="5">{text(title)}</th></tr>')
        for claim, verdict in found:
            why = f'</td><td class="why">{text(verdict.note)}</td>' if verdict.note else "</td>"
            cell = "<td>" if verdict.note else '<td colspan="2">'
            rows.append(
                f'<tr id="{kind}-{text(claim.name)}"><th scope="row">{text(claim.text)}</th>'
                f'<td class="where">{text(claim.where)}</td><td class="said">{_verdict(verdict)}</td>'
                f"{cell}{_measured(verdict)}{why}</tr>"
            )
    return PROSE["table"].format(caption=WORDS["captions"][kind], body="\n".join(rows))


def _same_choices(table: Table, families: Sequence[Family]) -> str:
    """Say how often frustCycles is maxW0 on attractive models."""
    same, total = 0, 0
    for family in (f for f in families if not f.mixed):
        for name in ("", "+TRE"):
            chosen = [
                table.curve(family.name, "trw", base + name, column="variable") for base in ("frustCycles", "maxW0")
            ]
            if chosen[0].shape == chosen[1].shape:
                same += int((chosen[0] == chosen[1])[:, 1:].sum())
                total += int(np.isfinite(chosen[0] + chosen[1])[:, 1:].sum())
    return PROSE["same"].format(same=same, total=total) if total else ""


def _disagreements(checked: Checked) -> str:
    items = "\n".join(
        f"<li><strong>{text(claim.text)}</strong> "
        f'<a href="#claim-{text(claim.name)}">{text(claim.where)}</a>{_measured(verdict)}'
        f"{f'<p>{text(verdict.note)}</p>' if verdict.note else ''}</li>"
        for claim, verdict in checked
        if verdict.holds is False or verdict.only
    )
    body = f'<ul class="against">\n{items}\n</ul>' if items else "<p>Nowhere, on these runs.</p>"
    return section("disagreements", "Where we disagree, and why", body)


def _labelled(checked: Checked) -> str:
    """Return the claims that the families of more labels have anything to say of."""
    judged = [
        (claim, verdict)
        for claim, verdict in checked
        if word_for(verdict)[0] != "not run" and claim not in examples.CLAIMS
    ]
    found = _table_of(judged, "labels") if judged else "<p>Not in this table.</p>"
    return section("labels", "With more labels", found)


# -- figures ----------------------------------------------------------------------------------------------------------


def _figures(table: Table, checked: Checked, figures: Sequence[PaperFigure], pictures: dict[str, bytes]) -> str:
    shown = "\n".join(
        _figure(table, checked, figure, pictures[figure.name]) for figure in figures if figure.name in pictures
    )
    absent = "; ".join(figure.title for figure in figures if figure.name not in pictures)
    left_out = f'<p class="soft">Not drawn, for want of runs: {text(absent)}.</p>' if absent else ""
    others = max(0, len(FIGURES) - len(figures))
    if others:
        left_out += f'<p class="soft">{others} other figure{"s were" if others > 1 else " was"} not asked for.</p>'
    return section("figures", "The figures", PROSE["figures"].format(left_out=left_out, shown=shown))


def _figure(table: Table, checked: Checked, figure: PaperFigure, png: bytes) -> str:
    width, height = size_of(png)
    seen = [(claim, verdict) for claim, verdict in checked if figure.name in claim.figures]
    items = "\n".join(
        f'<li>{_verdict(verdict)} <a href="#claim-{text(claim.name)}">{text(claim.text)}</a> '
        f"{'' if len(seen) > MANY_CLAIMS else _measured(verdict)}</li>"
        for claim, verdict in seen
    )
    seen_as = f"{figure.where}, drawn from our runs: {figure.title}. {WORDS['described'][figure.group]}"
    texts = {"name": figure.name, "title": figure.title, "where": figure.where, "says": figure.says, "seen_as": seen_as}
    filled = {
        "source": as_source(png),
        "seen": PROSE["seen"].format(items=items) if items else "",
        "numbers": _numbers(table, figure),
    }
    return PROSE["figure"].format(
        width=width, height=height, **filled, **{key: text(value) for key, value in texts.items()}
    )


def size_of(png: bytes) -> tuple[int, int]:
    """Return width and height in pixels, as the header of a PNG has them."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _numbers(table: Table, figure: PaperFigure) -> str:
    """Return the mean errors behind a figure of errors, before and after clamping."""
    if not figure.name.startswith(("errors", "complete", "labels-3", "labels-5")):
        return ""
    rows = []
    for family in figure.families:
        cells = []
        for method in METHODS:
            errors = table.shown(family.name, method, SELECTOR)
            ends = [stratified([errors[:, k]]) for k in (0, errors.shape[1] - 1)]
            cells.append(" → ".join(with_minus(f"{mean.value:+.2f}") for mean in ends if mean.num_runs) or "–")
        if any(cell != "–" for cell in cells):
            rows.append([text(family.title), *cells])
    caption = "Without clamps → with the most by maxW+TRE; Bethe on mixed models without the sign."
    found = as_table(caption, "Mean errors", ["Family", *TITLES.values()], rows, "numeric")
    return details("Mean errors in numbers", found) if rows else ""


# -- runs -------------------------------------------------------------------------------------------------------------


def runs_by_family(table: Table) -> Counts:
    found: Counts = {}
    for settings in SETTINGS:
        for experiment in EXPERIMENTS:
            for family in map(family_named, table.unique("family")):
                if count := len(table.runs(family.name, settings=settings, experiment=experiment)):
                    found.setdefault((settings, experiment), {})[family] = count
    return found


def _summary(table: Table, families: Sequence[Family], checked: Checked) -> str:
    words = [word_for(verdict)[0] for _, verdict in checked]
    counts = runs_by_family(table)
    solved = [count for family, count in counts.get(("paper", "errors"), {}).items() if family in families]
    values = {
        "models solved": f"{sum(solved):,}",
        "families": f"{len(solved)} of {len(families)}",
        "claims that hold": words.count("holds"),
        "that hold in part": sum(word.startswith("holds for") for word in words),
        "that do not": words.count("does not hold"),
        "that these runs cannot decide": words.count("cannot tell"),
    }
    if "not run" in words:
        values["not in this table"] = words.count("not run")
    tolerances = {method: SETTINGS["paper"].options(method).tol for method in METHODS}
    said = {"extent": _extent(counts), "not_converged": _not_converged(table)}
    return PROSE["summary"].format(facts=facts(values), **said, **tolerances)


def _extent(counts: Counts) -> str:
    """Say what was run, in words."""
    if not counts:
        return "This table has no runs; only the small examples were computed."
    lines = []
    for (settings, experiment), found in counts.items():
        what = {"optimal": "optimal sequences", "further": "further clamps"}.get(experiment, experiment)
        for kind in ("", "of more labels "):
            of = [count for family, count in found.items() if (family.labels > 2) == bool(kind)]
            if of:
                runs = counted(max(of), "run") if min(of) == max(of) else f"{min(of)} to {counted(max(of), 'run')}"
                where = "" if settings == "paper" else f" with {SETTINGS[settings].title}"
                lines.append(
                    f"{what}{where}: {runs} of each of {counted(len(of), 'family', 'families')} {kind}".rstrip()
                )
    said = f"{'; '.join(lines)}."
    if max(counts.get(("paper", "errors"), {}).values(), default=0) < PAPER_RUNS:
        said += f" The paper made {PAPER_RUNS} runs of each of its {len(FAMILIES)} families: with fewer, more claims"
        said += " stay undecided."
    return text(sentence(said))


def _not_converged(table: Table) -> str:
    """Say how many values did not converge with the paper's settings, by method, and where most did not."""
    texts = []
    for method in METHODS:
        rows = table.where(settings="paper", experiment="errors", method=method)
        failed = ~rows.column("converged")
        if failed.any():
            shares = {name: float(failed[rows.column("family") == name].mean()) for name in rows.unique("family")}
            worst = max(shares, key=lambda name: shares[name])
            most = f"most on {family_named(worst).title}, {shares[worst]:.1%}"
            texts.append(f"{TITLES[method]} {int(failed.sum()):,} of {len(failed):,} ({most})")
    said = f"Values that did not converge: {', '.join(texts)}. They are kept: bounds hold all the same."
    return text(said) if texts else ""


def _runs(table: Table) -> str:
    counts = runs_by_family(table)
    titles = [
        f"{experiment}{'' if settings == 'paper' else f', {SETTINGS[settings].title}'}"
        for settings, experiment in counts
    ]
    titles += [f"{title} not converged" for title in TITLES.values()]
    rows = []
    for family in dict.fromkeys(family for found in counts.values() for family in found):
        of_family = table.where(family=family.name)
        converged = [of_family.where(method=method).column("converged") for method in METHODS]
        shares = [f"{(~found).mean() if len(found) else 0.0:.1%}" for found in converged]
        rows.append([text(family.title), *(str(found.get(family, 0)) for found in counts.values()), *shares])
    caption = "Runs, and the share of values for which some branch did not converge."
    found = as_table(caption, "Runs of each family", ["Family", *map(text, titles)], rows, "numeric")
    used = [name for name in SETTINGS if name in table.unique("settings")] or ["paper"]
    lists = details("Runs of each family", found) if rows else ""
    return section(
        "runs", "Runs and settings", PROSE["runs"].format(settings="".join(map(_settings, used)), runs=lists)
    )


def _settings(name: str) -> str:
    described, title = SETTINGS[name].described(), SETTINGS[name].title
    rows = []
    for method in METHODS:
        options = (f"{option} = {described[method][option]}" for option in OPTIONS if option in described[method])
        rows.append([TITLES[method], f"<code>{text(', '.join(options))}</code>"])
    starts = "a branch also starts" if SETTINGS[name].warm_starts else "no branch starts"
    return as_table(f"With {title}: {starts} at its parent’s solution.", title, ["Method", "Options"], rows) + "\n"


# -- how to reproduce -------------------------------------------------------------------------------------------------


def _reproduce(table: Table, figures: Sequence[PaperFigure]) -> str:
    said = PROSE["reproduce"].format(version=text(cz.__version__), command=text(command_for(table, figures)))
    return section("reproduce", "How to reproduce", said)


def command_for(table: Table, figures: Sequence[PaperFigure]) -> str:
    """Return the command that makes such a table."""
    found = runs_by_family(table)
    families = {family for runs in found.values() for family in runs}
    most = max(found.get(("paper", "errors"), {}).values(), default=PAPER_RUNS)
    if files := [name for name in table.unique("family") if isinstance(family_named(name), FromFile)]:
        return Request(models=files, clamps=int(table.column("clamps").max())).as_command()
    whole = [graph for graph in SIZES if {f for f in FAMILIES if f.graph == graph} <= families]
    others = [f.name for f in EVERY if f in families and f.graph not in whole]
    return Request(
        figure=[figure.name for figure in figures] if len(figures) < len(FIGURES) else None,
        family=[*whole, *others] if 0 < len(families) < len(EVERY) else None,
        runs=None if most == PAPER_RUNS else most,
    ).as_command()
