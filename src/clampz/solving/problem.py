"""SolveProblem: log Z between two bounds, and marginals by the best who have found some."""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from clampz.approximations.mean_field import mean_field
from clampz.approximations.method_choice import prefers_mean_field
from clampz.bounding.bracket import ROUNDING, Bracket
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.display.formatting import counted
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.running import EXACT_SHARE, lacks_marginals
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import MISSING, is_available
from clampz.portfolio.problem import Stop
from clampz.runtime.budget import Budget, Progress
from clampz.runtime.progress import says_stop
from clampz.sampling.statistics import LEAST_EFFECTIVE, MarginalTally
from clampz.solving.clamps import clamps_in_words
from clampz.solving.estimates import estimate_from, named, unless_outside
from clampz.solving.run import DEFAULT_TIME, EXACT_TIME, Run
from clampz.solving.solution import Found, Solution

# Draws of equal weight that marginals need at most: errors are then two thousandths at most.
ENOUGH = 100_000.0
NOT_PLANNED = "There was no time to see what exact inference needs"


class SolveProblem(Problem):
    """Log Z and, if they are wanted, marginals of a model.

    Attributes
    ----------
    exact_options, plan
        What an exact sum may take, and whether it has marginals; and how it is to be made, once that is known.
    exact, why
        What exact inference found, if anything; how in a sentence, or why there is nothing in the beginning of one.
    is_exact_over
        Whether there will be no more of that.
    below, first, above
        Mean field, Bethe and TRW on the user's model, as far as they have got.
    clamped
        The one of them that the estimate is from, with variables clamped.
    """

    def __init__(
        self,
        model: Model,
        options: BoundOptions,
        exact_options: ExactOptions,
        run: Run,
        select: str | None,
        *,
        may_take_longer: bool = False,
    ) -> None:
        super().__init__(model, options)
        self.exact_options, self.run, self.select = exact_options, run, select
        self.may_take_longer = may_take_longer
        self.plan: ExactPlan | None = None
        self.wants_marginals = exact_options.marginals
        self.exact: Estimate | None = None
        self.is_exact_over = False
        self.why = NOT_PLANNED
        self.below: Estimate | None = None
        self.first: Estimate | None = None
        self.above: Estimate | None = None
        self.clamped: Found | None = None
        self._heard: Progress | None = None
        self._exact_closed_it = False

    @cached_property
    def is_strong(self) -> bool:
        """Whether mean field is likely to be nearer than Bethe."""
        return prefers_mean_field(self.user_model)

    @property
    def drawn(self) -> MarginalTally | None:
        """What draws say of marginals, if they are worth enough."""
        return self.tally if self.tally is not None and self.tally.tally.effective >= LEAST_EFFECTIVE else None

    @property
    def is_answered(self) -> bool:
        """Whether marginals are exact, or as good as draws have to be where there will be no exact ones."""
        if not self.wants_marginals or self.ends[1] == -math.inf or self._has_all(self.exact):
            return True
        return self.is_exact_over and self.tally is not None and self.tally.tally.effective >= ENOUGH

    @property
    def is_longer(self) -> bool:
        """Whether the exact sum is to have more time than all else would, as the caller set none."""
        plan = self.plan
        return self.may_take_longer and plan is not None and plan.duration(self.options.num_threads) > DEFAULT_TIME / 2

    def most_seconds(self, budget: Budget) -> float:
        """Return the seconds that an exact sum may take."""
        return EXACT_TIME if self.may_take_longer else budget.left(EXACT_SHARE)

    def estimate_from(self) -> tuple[Estimate, str]:
        """Return the method's result that the estimate is from, and why; mean field's first sweep if there is none."""
        if self.below is None:
            self.below = self.run.by_if_it_fits(mean_field, self.user_model, time=0.0)
        return estimate_from(self.ends[1], self.below, self.above, self.first, self.is_strong)

    def take_exact(self, found: Estimate) -> None:
        """Take what exact inference found."""
        if math.isnan(found.log_z):
            return
        if self.exact is None or not lacks_marginals(found):
            self.exact = found
        if found.bound == "exact":
            self._exact_closed_it = self._exact_closed_it or not self.closed
            self.tighten_log_z(found.lower, found.upper, close=True)

    def heard(self, progress: Progress) -> None:
        """Remember how far a method says it is: the caller's thread tells it."""
        self._heard = progress

    def look(self) -> None:
        """Tell the caller's callback how far a method is."""
        heard, self._heard = self._heard, None
        if heard is not None and says_stop(self.run.progress, heard):
            self.run.budget.stop("callback")

    def limit_reached(self) -> Stop | None:
        """Return "left" where an exact sum is to have more time than all else would."""
        return "left" if self.is_longer else super().limit_reached()

    def solution(self, bracket: Bracket) -> Solution:
        """Return the best of all that was found, and say how."""
        exact, upper = self.exact, bracket.upper
        start = f"{self.why}, so clamping {{}} ({counted(bracket.num_leaves, 'leaf', 'leaves')})"
        if exact is not None and self._exact_closed_it:
            return self._with_marginals(self._of(exact, self.why))
        chosen, choice = self.estimate_from()
        found: Found = chosen
        if bracket.stopped_by == "exact" and -math.inf < upper <= bracket.lower + ROUNDING:
            start = start.format("closes the bracket")
            if exact is not None:
                some = "some " if lacks_marginals(exact) else ""
                how = f"there was time left for {some}exact marginals."
                return self._with_marginals(self._of(exact, f"{start}; {how}", bracket))
            whose = "draws are" if self.drawn is not None else f"{named(chosen.method)} is"
            words = f"{start}; log Z is exact but for rounding"
            words += f", and {whose} for the marginals." if self.wants_marginals else "."
            solution = self._of(chosen, words, bracket, self.drawn)
            return replace(solution, log_z=solution.lower + (solution.upper - solution.lower) / 2, bound="exact")
        if self.clamped is not None and self.clamped.method == chosen.method:
            found = self.clamped
        estimate = bracket.estimate
        if bracket.estimate_by == "counting" and estimate is not None:
            how = "it was counted, which is right with high probability."
        elif bracket.standard_error is not None:
            how = f"draws from the upper bound estimate it, ± {bracket.standard_error:.2g} (standard error)."
        else:
            estimate, choice = None, unless_outside(found, choice, bracket.lower, upper)
            can_count = worth_counting(self.user_model, math.inf) and not is_available()
            how = f"{choice}{f'; {MISSING}' if can_count else ''}.{clamps_in_words(found, self.select)}"
        reason = f"{start.format('brackets log Z')}; {how}"
        solution = self._of(found, reason, bracket, self.drawn)
        if estimate is None:
            return solution
        return replace(solution, log_z=min(max(estimate, solution.lower), solution.upper), bound=None)

    def _has_all(self, found: Estimate | None) -> bool:
        return found is not None and not (self.wants_marginals and lacks_marginals(found))

    def _of(
        self, found: Found, reason: str, bracket: Bracket | None = None, drawn: MarginalTally | None = None
    ) -> Solution:
        ends: dict[str, Any] = {} if bracket is None else {"lower": bracket.lower, "upper": bracket.upper}
        return self.run.solution(found, reason, bracket=bracket, drawn=drawn, **ends)

    def _with_marginals(self, solution: Solution) -> Solution:
        """Fill in marginals that there was no time to compute exactly; log Z stays.

        They are by draws, or else of the method that suits the model; those that are there stand alone where nothing
        has the others.
        """
        model, exact = solution.model, solution.marginals.flat
        if self._has_all(self.exact) or not math.isfinite(solution.log_z):
            return solution
        found, _ = self.estimate_from()
        missing = np.isnan(exact)
        which = "the marginals" if missing.all() else "the other marginals"
        whose = f"{named(found.method)} is" if self.drawn is None else "Draws are"
        reason = f"{solution.reason} {whose} for {which}, as there was no time for exact ones."
        other = self._of(found, reason, solution.bracket, self.drawn)
        flat = np.where(missing, other.marginals.flat, exact)
        if np.isnan(flat).any() and not missing.all():
            return replace(solution, reason=f"{solution.reason} There was no time for {which}.")
        errors = other.marginal_errors
        return replace(
            other,
            log_z=solution.log_z,
            bound=solution.bound,
            lower=solution.lower,
            upper=solution.upper,
            marginals=model.unary.with_flat(flat),
            marginal_errors=None if errors is None else errors.with_flat(np.where(missing, errors.flat, 0.0)),
        )
