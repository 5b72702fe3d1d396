"""Clamping in `solve`: as many variables as time allows, or as were asked for, by a selector that fits the time."""

from dataclasses import replace
from typing import Any

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import BETHE_TOL, prefers_mean_field
from clampz.approximations.trw import trw
from clampz.clamping.branches import Clamped
from clampz.clamping.clamp import clamp, clamp_on
from clampz.clamping.cost import affordable
from clampz.clamping.selectors import selectors
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.solving.estimates import estimate_from, gone_on, is_settled, unless_outside
from clampz.solving.run import Run
from clampz.solving.solution import Found, Solution

# Clamps that pseudo-greedy should be able to afford to be worth its tries.
PATIENT_CLAMPS = 3
QUICK, PATIENT = "maxW+TRE", "pseudo-greedy"
# Nats: a bracket this narrow needs no clamps.
NARROW = 1e-3
# On dense, mixed and strong models Bethe is nearer than mean field again once this share of the variables is clamped:
# two to sixty-four times on K10, K15 and K20, where a sixth of the variables leaves it far off.
ENOUGH_FOR_BETHE = 1 / 3


def clamped_as_asked(model: Model, why: str, run: Run, k: int, select: str | None) -> Solution:
    """Bracket log Z by mean field and TRW with k variables clamped, and estimate it between.

    The estimate without clamps comes first, so that a run that is stopped has one.
    """
    enough = ENOUGH_FOR_BETHE * model.num_variables
    dense = prefers_mean_field(model)
    strong = dense and k < enough
    first = None if strong else run.by_if_it_fits(bethe, model, 0.4, tol=BETHE_TOL)
    ends = run if strong else run.share(0.6)
    fields = ends.by_if_it_fits(mean_field, model, 0.25)
    trees = ends.by_if_it_fits(trw, model, 0.5, edge_weights="optimized")
    below: Found = fields
    above: Found = trees
    if fields.lower < trees.upper - NARROW:
        above = clamped(trees, ends, 0.6, k, select)
        below = clamped(fields, ends, 1.0, k, select, above)
    lower, upper = below.lower, above.upper
    first = gone_on(first, run)
    found, choice = estimate_from(upper, below, above, first, strong)
    if first is not None and found is first:
        found = clamped(first, run, 1.0, k, select, above, tol=BETHE_TOL)
        choice = unless_outside(found, choice, lower, upper)
        if dense and not (isinstance(found, Clamped) and len(found.variables) >= enough):  # time was too short
            found, choice = estimate_from(upper, below, above, None, strong=True)
    start = f"{why}, so mean field and TRW bracket log Z"
    if not why:
        start = "Mean field and TRW bracket log Z, as clamps were asked for"
    reason = f"{start}; {choice}.{clamps_in_words(found, select)}"
    return run.solution(found, reason, lower=lower, upper=upper)


def clamped(
    found: Estimate, run: Run, share: float, k: int | None, select: str | None, guide: Found | None = None, **own: Any
) -> Found:
    """Clamp k variables of a method's model, or as many as a share of the time left allows.

    The method's own result is returned where that is none or did not converge.  `guide` is TRW's result: the variables
    that were clamped for it serve the others too where time is short, where the selector is the same whatever is
    clamped, and for Bethe on mixed models.
    """
    seconds = run.budget.left(share)
    if k is None and not seconds:
        return found
    patient = affordable(found, seconds, run.room, tries=len(selectors()))
    enough = patient >= (PATIENT_CLAMPS if k is None else k)
    chosen = select or (PATIENT if enough else QUICK)
    count = (patient if chosen == PATIENT else affordable(found, seconds, run.room)) if k is None else k
    variables = None
    if isinstance(guide, Clamped) and guide.variables:
        mixed = found.method == "bethe" and not found.model.is_balanced
        if guide.select in selectors() or mixed or not (enough or select):
            chosen = guide.select
            count = min(affordable(found, seconds, run.room, given=True) if k is None else k, len(guide.variables))
            variables = guide.variables[:count]
    if not count or run.interrupted:
        return found
    what: dict[str, Any] = {"k": count} if variables is None else {"variables": variables}
    options = {"select": chosen, **run.options(share), **own}
    if found.method == "trw":
        result = clamp_on(found, within=run.budget, **what, **options)
    else:
        result = clamp(found.model, found.method, **what, **options)
    result = replace(run.as_callback(result), select=chosen)
    return found if found.bound is None and not is_settled(result) else result


def clamps_in_words(found: Found, select: str | None) -> str:
    if not isinstance(found, Clamped) or not found.variables:
        return ""
    how = "" if select else {QUICK: ", as time is short", PATIENT: ", for which there was time"}[found.select]
    were = "variable was" if len(found.variables) == 1 else "variables were"
    return f" {len(found.variables)} {were} clamped by {found.select}{how}."
