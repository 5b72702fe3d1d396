"""The estimate between two bounds, and marginals, where there are no exact ones."""

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import BETHE_TOL, SETTLED, prefers_mean_field
from clampz.bounding.marginals.sampled import DrawnMarginals, draw_marginals
from clampz.bounding.options import BoundOptions
from clampz.clamping.branches import Clamped
from clampz.display.formatting import title
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.solving.run import Run
from clampz.solving.solution import Found, Solution

# Shares of the time left for mean field, and for marginals by draws.
MEAN_FIELD_SHARE, DRAWS_SHARE = 0.1, 0.8

EndT = TypeVar("EndT", bound=Found)


def with_other_marginals(solution: Solution, run: Run) -> Solution:
    """Fill in marginals that there was no time to compute exactly; log Z stays.

    They are by draws, or else of the method that suits the model; those that are there stand alone where nothing has
    the others.
    """
    model, exact = solution.model, solution.marginals.flat
    drawn, strong = drawn_marginals(model, run), prefers_mean_field(model)
    below = run.by_if_it_fits(mean_field, model, MEAN_FIELD_SHARE)
    first = None if strong else run.by_if_it_fits(bethe, model, tol=BETHE_TOL)
    found, _ = estimate_from(solution.upper, below, None, first, strong)
    missing = np.isnan(exact)
    which = "the marginals" if missing.all() else "the other marginals"
    whose = f"{named(found.method)} is" if drawn is None else "Draws are"
    reason = f"{solution.reason} {whose} for {which}, as there was no time for exact ones."
    other = run.solution(
        found, reason, lower=solution.lower, upper=solution.upper, bracket=solution.bracket, drawn=drawn
    )
    flat = np.where(missing, other.marginals.flat, exact)
    if np.isnan(flat).any() and not missing.all():
        reason = f"{solution.reason} There was no time for {which}."
        return replace(solution, reason=reason, seconds=other.seconds, interrupted=other.interrupted)
    errors = other.marginal_errors
    return replace(
        other,
        log_z=solution.log_z,
        bound=solution.bound,
        marginals=model.unary.with_flat(flat),
        marginal_errors=None if errors is None else errors.with_flat(np.where(missing, errors.flat, 0.0)),
    )


def drawn_marginals(model: Model, run: Run) -> DrawnMarginals | None:
    """Draw marginals, if they are wanted and there is time for enough draws."""
    if not run.marginals:
        return None
    options = BoundOptions(memory=run.memory, threads=run.threads, seed=run.seed)
    return draw_marginals(model, options, run.budget.share(DRAWS_SHARE))


def gone_on(first: Estimate | None, run: Run) -> Estimate | None:
    """Return Bethe's result, run further where it has not converged and there is time."""
    if first is None or is_settled(first) or not run.budget.left():
        return first
    return run.by_if_it_fits(bethe, first.model, start=first, tol=BETHE_TOL, num_starts=0, from_mean_field=False)


def estimate_from(
    upper: float, below: EndT, above: EndT | None, first: Estimate | None, strong: bool
) -> tuple[EndT | Estimate, str]:
    """Return the result that the estimate is from, and why; TRW's is given whenever it could be that."""
    if upper == -math.inf:
        return above or below, "that proves that Z = 0"
    if first is not None and is_settled(first):
        return first, "Bethe is the estimate between, as a rule the nearest"
    also = "bound is also the estimate, as"
    if strong:
        return below, f"the lower {also} the model is dense, mixed and strong, where Bethe is far off"
    unfit = first is not None and first.stopped_by == "memory"
    no_bethe = "there was not memory enough for Bethe" if unfit else "Bethe did not converge in time"
    if below.lower > -math.inf or above is None:
        return below, f"the lower {also} {no_bethe}"
    return above, f"the upper {also} {no_bethe} and mean field found no possible configuration"


def unless_outside(found: Found, choice: str, lower: float, upper: float) -> str:
    """Return the words on the choice, or others for a Bethe value outside the bracket."""
    if found.method != "bethe" or lower <= found.log_z <= upper:
        return choice
    return f"Bethe says {found.log_z:.6g}, outside the bracket, and the bound next to that is given"


def named(method: str) -> str:
    """Return the name of a method as a sentence begins with it."""
    return title(method)[0].upper() + title(method)[1:]


def is_settled(found: Found) -> bool:
    """Whether a Bethe value counts, having converged if not to all digits."""
    return bool(found.branches.residual.max() <= SETTLED) if isinstance(found, Clamped) else found.residual <= SETTLED
