"""The section of a report on marginals: a table, the least certain variables first."""

import numpy as np

from clampz.display.formatting import counted, name_of
from clampz.display.html_page import details, sentence, table, text
from clampz.solving.solution import Solution

# Variables that are seen at once and that are listed, and states of each beside the likeliest.
MOST_ROWS, MOST_LISTED, MOST_OTHERS = 25, 200, 3
# Probability from which a state is called nearly certain.
NEARLY_CERTAIN = 0.99


def marginals_section(solution: Solution) -> str:
    """Return how marginals were found, and a table of them."""
    words = f"<p>{text(sentence(solution.marginals_are))}.</p>"
    if not solution.marginals_by or not solution.model.num_variables:
        return words
    from scipy.special import entr  # slow to import

    order = np.argsort([-entr(row).sum() for row in solution.marginals], kind="stable")
    likeliest = np.array([float(row.max()) for row in solution.marginals])
    certain, num = int((likeliest >= NEARLY_CERTAIN).sum()), len(order)
    if certain:
        words += f"<p>{counted(certain, 'variable')} of {num:,} {'is' if certain == 1 else 'are'} in one state with a "
        words += f"probability of {NEARLY_CERTAIN} or more.</p>"
    shown, folded = order[:MOST_ROWS].tolist(), order[MOST_ROWS:MOST_LISTED].tolist()
    listed = "All variables" if num <= MOST_LISTED else f"The {MOST_LISTED} of {num:,} variables that are least certain"
    words += "\n" + _table(solution, f"{listed}, the least certain first.", shown)
    return words + ("\n" + details(f"{len(folded)} more", _table(solution, "", folded)) if folded else "")


def _table(solution: Solution, caption: str, variables: list[int]) -> str:
    head = ["Variable", "Likeliest state", "Probability", "Other states"]
    return table(caption, "Marginals", head, [_row(solution, i) for i in variables], "marginals")


def _row(solution: Solution, i: int) -> list[str]:
    """Return a row of the table: a variable, its likeliest state with probability and error, and other states."""
    row, model, errors = solution.marginals[i], solution.model, solution.marginal_errors
    order = np.argsort(-row, kind="stable").tolist()
    best, others = order[0], order[1 : 1 + MOST_OTHERS]
    names = [model.state_name(i, a) for a in range(len(row))]
    error = "" if errors is None else f" ± {errors[i][best]:.2g}"
    share = f'<span class="bar" aria-hidden="true"><i style="width: {100 * row[best]:.1f}%"></i></span>'
    listed = [f"{text(names[state])}: {row[state]:.4f}" for state in others]
    if rest := order[1 + MOST_OTHERS :]:
        listed.append(f"{len(rest)} more: {row[rest].sum():.4f}")
    return [text(name_of(model.names, i)), text(names[best]), f"{share}{row[best]:.4f}{error}", "; ".join(listed)]
