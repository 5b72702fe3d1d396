"""The bracket that `bound` reaches, and an estimate inside it."""

import math
from dataclasses import replace
from typing import Any

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import BETHE_TOL, prefers_mean_field
from clampz.approximations.trw import trw
from clampz.bounding.bound import bound
from clampz.bounding.bracket import ROUNDING, Bracket
from clampz.bounding.tree.frontier import bytes_needed, check_room
from clampz.display.formatting import counted
from clampz.errors import OptionError
from clampz.exact_inference.cost import WITH_MARGINALS
from clampz.exact_inference.running import PLANNING_SHARE, ExactCost, exact_cost
from clampz.model import Model
from clampz.model.lane_memory import is_small
from clampz.model.results import Estimate
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import MISSING, is_available
from clampz.runtime.options import memory_allowed
from clampz.solving.clamps import NARROW, clamped, clamps_in_words
from clampz.solving.estimates import (
    MEAN_FIELD_SHARE,
    drawn_marginals,
    estimate_from,
    gone_on,
    named,
    unless_outside,
    with_other_marginals,
)
from clampz.solving.exact import exactly, has_all
from clampz.solving.run import Run
from clampz.solving.solution import Found, Solution

# Shares of the time left for Bethe without clamps, for the bracket, and for TRW where that is needed; Bethe with clamps
# has the rest.
BETHE_SHARE, BRACKET_SHARE, TRW_SHARE = 0.3, 0.8, 0.5


def bracketed(
    model: Model, cost: ExactCost, why: str, run: Run, select: str | None, most: float, count: Estimate | None
) -> Solution:
    """Bracket log Z and hold an estimate inside, which is the count if there is one.

    What is quick comes first, so that a run that is stopped has an estimate.
    """
    if bytes_needed(model) > run.room:
        check_room(model, memory_allowed(run.memory))
    strong = prefers_mean_field(model)
    below = run.by_if_it_fits(mean_field, model, MEAN_FIELD_SHARE)
    first = None if strong else run.by_if_it_fits(bethe, model, BETHE_SHARE, tol=BETHE_TOL)
    bracket = _closing(model, run, min(run.budget.left(BRACKET_SHARE), most))
    lower, upper = max(below.lower, bracket.lower), bracket.upper
    if count is not None and lower <= count.log_z <= upper:
        lower = max(lower, count.lower)
        if bracket.stopped_by != "exact":
            bracket = replace(bracket, estimate=count.log_z, estimate_by="counting", why_no_estimate="")
    leaves = counted(bracket.num_leaves, "leaf", "leaves")
    if bracket.stopped_by == "exact" and -math.inf < upper <= lower + ROUNDING:
        return _closed(model, cost, f"{why}, so clamping closes the bracket ({leaves})", run, below, first, bracket)
    above = None
    wanted = -math.inf in (below.lower, upper) or (bracket.num_leaves == 1 and upper - lower > NARROW)
    if wanted and trw.fits(model, run.room) and (is_small(model) or run.budget.left()):
        # a model too large to be clamped in this time: optimized edge weights are the better upper bound
        above = run.by(trw, model, TRW_SHARE, edge_weights="optimized")
        upper = min(upper, above.upper)
    chosen, choice = estimate_from(upper, below, above, gone_on(first, run), strong)
    found: Found = chosen
    estimate = bracket.estimate if bracket.standard_error is not None else None
    drawn = None if estimate is None else drawn_marginals(model, run)
    is_done = drawn is not None or (estimate is not None and not run.marginals)
    if upper - lower > NARROW and chosen.method != "trw" and not is_done:
        own = {"tol": BETHE_TOL} if chosen.method == "bethe" else {}
        found = clamped(chosen, run, 1.0, None, select, None, **own)
        choice = unless_outside(found, choice, lower, upper)
    if bracket.estimate_by == "counting" and bracket.estimate is not None:
        estimate, drawn, how = bracket.estimate, None, "it was counted, which is right with high probability."
    elif estimate is not None:
        error = f"± {bracket.standard_error:.2g} (standard error)"
        how = f"draws from the upper bound estimate it, {error}.{clamps_in_words(found, select)}"
    else:
        missing = f"; {MISSING}" if worth_counting(model, math.inf) and not is_available() else ""
        how = f"{choice}{missing}.{clamps_in_words(found, select)}"
    reason = f"{why}, so clamping brackets log Z ({leaves}); {how}"
    solution = run.solution(found, reason, lower=lower, upper=upper, bracket=bracket, drawn=drawn)
    return solution if estimate is None else replace(solution, log_z=min(max(estimate, lower), upper), bound=None)


def _closed(
    model: Model, cost: ExactCost, start: str, run: Run, below: Estimate, first: Estimate | None, bracket: Bracket
) -> Solution:
    """Solve by a bracket that is log Z but for rounding, with exact marginals if there is time left.

    Otherwise they are by draws, or of the method that suits the model.
    """
    if run.marginals and cost.seconds > run.budget.left():  # there is more time to plan than there was
        cost = exact_cost(model, memory=run.memory, budget=run.budget.share(PLANNING_SHARE))
    # a bracket of one leaf is one sum, and how long that took on this machine is known
    expected = min(cost.seconds, WITH_MARGINALS * bracket.seconds) if bracket.num_leaves == 1 else cost.seconds
    found = exactly(cost, run, expected, run.budget.left())[0] if run.marginals else None
    ends = {"lower": max(below.lower, bracket.lower), "upper": bracket.upper}
    if found is not None:
        choice = f"there was time left for {'' if has_all(found, run) else 'some '}exact marginals"
        solution = run.solution(found, f"{start}; {choice}.", bracket=bracket, **ends)
        solution = solution if has_all(found, run) else with_other_marginals(solution, run)
    else:
        drawn = drawn_marginals(model, run)
        other, _ = estimate_from(bracket.upper, below, None, gone_on(first, run), first is None)
        whose = f"{named(other.method)} is" if drawn is None else "draws are"
        choice = f"log Z is exact but for rounding, and {whose} for the marginals"
        solution = run.solution(other, f"{start}; {choice}.", bracket=bracket, drawn=drawn, **ends)
    return replace(solution, log_z=solution.lower + (solution.upper - solution.lower) / 2, bound="exact")


def _closing(model: Model, run: Run, seconds: float) -> Bracket:
    """Bracket log Z by `bound` in this time; without exact sums where memory is too short for any."""
    options: dict[str, Any] = {"gap": NARROW, **run.options(), "time": seconds, "stop": lambda: run.interrupted}
    try:
        found = bound(model, **options | {"memory": run.memory})
    except OptionError:  # there was not memory enough to begin
        found = bound(model, exact=False, **options)
    if found.stopped_by in ("interrupt", "callback"):
        run.budget.stop(found.stopped_by)
    return found
