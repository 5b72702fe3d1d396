"""The report of a solved model, as an HTML page: result, method, bounds over time, model and marginals."""

from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import numpy as np

from clampz._version import __version__
from clampz.bounding.bracket import GAIN_COLUMNS, Bracket, gain_rows
from clampz.clamping.branches import Clamped
from clampz.display import html_page
from clampz.display.formatting import DIGITS, as_interval, counted, interval_outward, rounded_up
from clampz.display.html_page import details, section, sentence, text, with_minus
from clampz.io import files
from clampz.model.description import describe, in_words
from clampz.plotting import plot_model
from clampz.portfolio.problem import Gains
from clampz.reporting.embedded_figures import embedded
from clampz.reporting.marginals import marginals_section
from clampz.solving.solution import Solution

SECTIONS = {
    "result": "Result",
    "done": "What was done, and why",
    "course": "How the bounds closed",
    "model": "The model",
    "marginals": "Marginals",
}
# Moments of a bracket that are listed, and decimals of bounds.
MOST_MOMENTS = 40
# Names on the page for the short ones of a description.
NAMES = {"labels": "states", "core": "core of the graph", "kind": "kind of model"}


def write_report(solution: Solution, path: Path, title: str = "") -> Path:
    """Write the report of a solution, whole or not at all, and return its path."""
    files.replace(path, make_page(solution, title).encode())
    return path


def make_page(solution: Solution, title: str = "") -> str:
    """Return the page of the report."""
    style = (resources.files("clampz.reporting") / "report.css").read_text(encoding="utf-8")
    bodies = {
        "result": _result(solution),
        "done": _done(solution),
        "course": _course(solution),
        "model": _model(solution),
        "marginals": marginals_section(solution),
    }
    there = {name: short for name, short in SECTIONS.items() if bodies[name]}
    main = "\n".join(section(name, short, bodies[name]) for name, short in there.items())
    size = solution.model.size_in_words
    intro = f"<p>{text(sentence(size))}. Solved in {solution.seconds:.3g} s.</p>"
    today = datetime.now(UTC).date().isoformat()
    footer = (
        f"Made by clampz {text(__version__)}, {today}. Logarithms are natural ones; differences of them are in nats."
    )
    named = title or f"log Z of a model of {counted(solution.model.num_variables, 'variable')}"
    return html_page.page(named, intro, there, main, footer, style)


def _result(solution: Solution) -> str:
    """Return the section on log Z, its kind and its bounds."""
    value, kind = solution.log_z_in_words(DIGITS)
    facts: dict[str, object] = {f"log Z, {kind}": with_minus(value)}
    ends = (solution.lower, solution.upper)
    if np.isfinite(ends).all() and solution.bound != "exact":
        low, high = interval_outward(*ends, DIGITS)
        facts |= {"lower bound, proven": with_minus(low), "upper bound, proven": with_minus(high)}
        facts["gap between them, nats"] = rounded_up(ends[1] - ends[0])
    if solution.standard_error is not None:
        interval = as_interval(solution.interval(), solution.standard_error)
        facts["95% interval, statistical"] = with_minus(interval)
    return f"{html_page.facts(facts)}\n<p>{_proven(solution)}</p>"


def _proven(solution: Solution) -> str:
    proven = f'<span class="verdict yes">proven</span> {text(with_minus(solution.bounds_in_words(DIGITS)))}.'
    if solution.standard_error is None:
        return proven
    statistical = "the interval is between certified ends, and holds with a probability of 95% and not for certain."
    return f'{proven} <span class="verdict open">statistical</span> {sentence(statistical)}'


def _done(solution: Solution) -> str:
    """Return the section on the method, and why it was chosen."""
    rows = [("why", text(solution.reason))]
    if solution.standard_error is None or solution.marginals_by != "sampling":  # else nothing here is the method's
        rows.append(("method", text(sentence(solution.method_in_words))))
    rows.append(("marginals", text(sentence(solution.marginals_are))))
    if isinstance(solution.bracket, Bracket):
        leaves = counted(solution.bracket.num_leaves, "leaf", "leaves")
        stop = f"stopped by {solution.bracket.stopped_by}"
        rows.append(("bracket", f"{leaves} of the tree of clamps, {solution.bracket.seconds:.3g} s, {stop}"))
    ended = "; stopped before its end: this is what there was" if solution.interrupted else ""
    rows.append(("time", f"{solution.seconds:.3g} s{ended}"))
    return html_page.table("", "What was done", ["", ""], [(sentence(name), words) for name, words in rows], "plain")


def _course(solution: Solution) -> str:
    """Return the section on bounds over time or over clamps; "" where there are none."""
    found = solution.bracket if solution.bracket is not None else solution.estimate
    if isinstance(found, Bracket) and found.trace:
        seen = f"Both bounds on log Z over time, and under them the gap, {rounded_up(found.gap)} nats in the end."
        parts = [embedded(found.plot(), 0, seen), _movers(found.gains), details("The same in numbers", _moments(found))]
        return "\n".join(part for part in parts if part)
    if isinstance(found, Clamped) and found.variables:
        return embedded(found.plot(), 0, f"log Z against the number of clamps, {len(found.variables)} in the end.")
    return ""


def _movers(gains: Gains) -> str:
    """Return a table of who closed the gap; "" where that is not known."""
    if not gains:
        return ""
    head = [sentence(name) for name in GAIN_COLUMNS]
    rows = [[text(cell) for cell in row] for row in gain_rows(gains)]
    return html_page.table("", head[0], head, rows, "numeric")


def _moments(bracket: Bracket) -> str:
    """Return a table of some of the moments of a bracket over time."""
    trace = bracket.trace
    chosen = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), MOST_MOMENTS)).astype(np.int64)).tolist()
    rows = [
        [
            f"{trace[k].seconds:.3f}",
            *map(with_minus, interval_outward(trace[k].lower, trace[k].upper, DIGITS)),
            rounded_up(trace[k].upper - trace[k].lower),
            f"{trace[k].num_leaves:,}",
        ]
        for k in chosen
    ]
    caption = "" if len(chosen) == len(trace) else f"{len(chosen)} of {len(trace):,} moments."
    return html_page.table(caption, "Bounds over time", ["Seconds", "Lower", "Upper", "Gap", "Leaves"], rows, "numeric")


def _model(solution: Solution) -> str:
    """Return the section on the model, with its graph."""
    model = solution.model
    words = in_words(describe(model))
    rows = [(sentence(NAMES.get(name, name)), text(words[name])) for name in words]
    listed = html_page.table("", "What the model is", ["", ""], rows, "plain")
    if not model.num_variables:
        return listed
    shaded = solution if solution.marginals_by else None
    num_drawn = model.num_variables + model.num_edges + len(model.factors.variables)
    seen = f"The graph of the model: {model.size_in_words}."
    return f"{listed}\n{embedded(plot_model(model, marginals=shaded), num_drawn, seen)}"
