"""HTML cards of models, marginals and estimates for notebooks: looked up, never computed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clampz.display.formatting import DIGITS, KINDS, counted, name_of, proven, round_outward, title, valued
from clampz.display.html_repr import MOST_COLUMNS, MOST_ROWS, MOST_STATES, HtmlCard, and_more, shares
from clampz.model.tables import UnaryTables
from clampz.numerics import Floats

if TYPE_CHECKING:
    from clampz.model.model import Model
    from clampz.model.results import Estimate, Estimates

# Edges up to which a model is looked at as a whole, to say of which kind it is.
SMALL = 20_000


def model_card(model: "Model") -> HtmlCard:
    """Make a card of a model's size and its first variables' potentials."""
    n, states = model.num_variables, model.num_states
    low, high = (int(states.min()), int(states.max())) if n else (0, 0)
    facts = [
        ("variables", f"{n:,}, of {low:,} states" if low == high else f"{n:,}, of {low:,} to {high:,} states"),
        ("edges", f"{model.num_edges:,}"),
    ]
    if model.factors:
        most = int(np.diff(model.factors.scope_start).max())
        facts.append(("larger factors", f"{len(model.factors):,}, of up to {most} variables"))
    if 0 < model.num_edges <= SMALL and model.binary is not None:
        facts.append(("kind", model.kind))
    if model.constant:
        facts.append(("constant", f"{model.constant:.6g}"))
    rows = [
        (name_of(model.names, i), listed(model, i, None), listed(model, i, model.unary[i]))
        for i in range(min(n, MOST_ROWS))
    ]
    more = and_more(n, len(rows), "variable")
    return HtmlCard(title="Model", facts=facts, columns=("variable", "states", "log potentials"), rows=rows, more=more)


def listed(model: "Model", i: int, values: Floats | None) -> str:
    """List the first states of a variable by name, or a number for each of them."""
    num_states = int(model.num_states[i])
    shown = range(min(num_states, MOST_STATES))
    parts = [model.state_name(i, a) if values is None else f"{values[a]:.4g}" for a in shown]
    return ", ".join(parts) + (f", … ({num_states:,})" if num_states > MOST_STATES else "")


def marginal_rows(model: "Model", marginals: UnaryTables) -> tuple[Sequence[str], Sequence[Sequence[str]], str]:
    """Make columns and rows of the first variables' marginals, and a note of what is left out."""
    rows = []
    for i in range(min(len(marginals), MOST_ROWS)):
        p = marginals[i]
        named = model.state_names is not None
        shown = range(min(len(p), MOST_STATES))
        words = ", ".join(f"{model.state_name(i, a)} {p[a]:.4f}" if named else f"{p[a]:.4f}" for a in shown)
        rest = f", … ({len(p):,})" if len(p) > MOST_STATES else ""
        rows.append((name_of(model.names, i), shares(p[: 4 * MOST_STATES].tolist()), words + rest))
    return ("variable", "", "marginal"), rows, and_more(len(marginals), len(rows), "variable")


def configuration_rows(
    model: "Model", states: Sequence[NDArray[np.int32]] | NDArray[np.int32], others: Mapping[str, Sequence[str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Make columns and rows of configurations, as many variables as there is room for, and other columns."""
    num_shown = min(model.num_variables, MOST_COLUMNS)
    rest = [and_more(model.num_variables, num_shown, "variable")] if num_shown < model.num_variables else []
    rows = [
        [
            *(model.state_name(i, int(states[k][i])) for i in range(num_shown)),
            *("…" for _ in rest),
            *(column[k] for column in others.values()),
        ]
        for k in range(min(len(states), MOST_ROWS))
    ]
    return [*(name_of(model.names, i) for i in range(num_shown)), *rest, *others], rows


def estimate_card(found: "Estimate") -> HtmlCard:
    """Make a card of an estimate: what it is, how it ended, and the first marginals."""
    columns, rows, more = marginal_rows(found.model, found.marginals)
    facts = [("log Z", valued(found.log_z, found.bound))]
    if found.bound != "exact":
        facts += [
            ("proven", proven(found.lower, found.upper)),
            ("run", f"{counted(found.num_iter, 'sweep')}, {ending(found.converged, found.stopped_by, found.residual)}"),
        ]
    if found.batch is not None and found.batch.beta is not None:
        facts.append(("beta", f"{found.beta:g}"))
    if found.note:
        facts.append(("note", found.note))
    return HtmlCard(title=f"Estimate: {title(found.method)}", facts=facts, columns=columns, rows=rows, more=more)


def estimates_card(found: "Estimates") -> HtmlCard:
    """Make a card with a row for each of the first lanes."""
    num_lanes, finished = len(found), int(np.count_nonzero(found.converged))
    warm = found.batch is not None and found.batch.beta is not None
    rows = [
        (
            str(b),
            *([f"{found.beta[b]:g}"] if warm else []),
            round_outward(float(found.log_z[b]), found.bound, DIGITS),
            round_outward(float(found.lower[b]), "lower", DIGITS),
            round_outward(float(found.upper[b]), "upper", DIGITS),
            f"{found.num_iter[b]:,}",
            ending(bool(found.converged[b]), found.stopped_by[b], float(found.residual[b])),
        )
        for b in range(min(num_lanes, MOST_ROWS))
    ]
    kind = KINDS[found.bound] if found.bound else "no bound"
    return HtmlCard(
        title=f"Estimates: {title(found.method)}",
        facts=[("lanes", f"{num_lanes:,}, {finished:,} converged"), ("log Z", kind)],
        columns=("lane", *(["beta"] if warm else []), "log Z", "lower", "upper", "sweeps", "ended"),
        rows=rows,
        more=and_more(num_lanes, len(rows), "lane"),
    )


def ending(converged: bool, stopped_by: str, residual: float) -> str:
    """Say how a run ended."""
    if converged:
        return "converged"
    return "not converged" if stopped_by == "tol" else f"stopped by {stopped_by}, residual {residual:.2g}"
