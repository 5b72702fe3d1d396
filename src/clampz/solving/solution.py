"""Solution: what `solve` found, and what it says of itself: what its log Z is, and what its marginals are."""

import math
from dataclasses import dataclass, field

import numpy as np

from clampz.approximations.mini_buckets.method import MiniBucketsOptions
from clampz.bounding.bracket import Bracket, statistical
from clampz.clamping.branches import Clamped
from clampz.display.formatting import DIGITS, KINDS, Bound, counted, name_of, proven, round_outward, title, with_error
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.display.plot_hooks import Drawable, Reportable
from clampz.exact_inference.lanes import ExactOptions
from clampz.model import Model
from clampz.model.factors import FactorTables
from clampz.model.html import marginal_rows
from clampz.model.marginals import HasMarginals
from clampz.model.results import Estimate
from clampz.model.tables import PairTables, UnaryTables
from clampz.sampling.statistics import MarginalTally, interval

Found = Estimate | Clamped


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution(HasMarginals, Drawable, Reportable, HasHtml):
    """What `solve` found, by which method, and why that one.  `plot` draws how it came about, and `report("page.html")`
    writes a page about it.

    Attributes
    ----------
    log_z, bound
        The answer, inside the bounds, and what it is: "lower", "upper", "exact" or None for an estimate.
    lower, upper
        Certified: lower <= log Z <= upper, the best of all methods that were run.
    marginals, pairwise_marginals, factor_marginals
        `marginals[i][a]`, `pairwise_marginals[i, j][a, b]` and `factor_marginals[f].table`, those of edges and factors
        computed when asked for.
    marginal_errors
        Of marginals by sampling their standard errors, state by state: statistical, not certified.  Otherwise None.
    marginals_by, marginals_are
        Whose they are: "exact", "sampling" (with weights, those of the variables alone), or the name of the method that
        estimates them, or "" where there are none; and the same in words, as in "Bethe's with 4 variables clamped,
        converged".
    standard_error
        Of `log_z`, where it is by sampling; otherwise None.  See `interval`.
    method, reason
        The method of `estimate`, and why it was chosen, in a sentence or two.  Where clamping closes the bracket,
        `log_z` is its, and only the marginals are the method's.
    variables, select
        The variables clamped for it, in order, and the selector that chose them ("" without clamps).
    converged, interrupted
        Whether that method converged, and whether Ctrl-C or the caller's callback ended the run.
    seconds
        What all of it took.
    estimate
        What the method returned, with everything else that it knows.
    bracket
        The bracket of `cz.bound`, with the way it closed, if that was used.
    """

    model: Model
    log_z: float
    bound: Bound | None
    lower: float
    upper: float
    marginals: UnaryTables
    method: str
    reason: str
    variables: tuple[int, ...]
    select: str
    converged: bool
    interrupted: bool
    seconds: float
    estimate: Found = field(repr=False)
    bracket: Bracket | None = field(default=None, repr=False)
    marginal_errors: UnaryTables | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        found: Found,
        reason: str,
        *,
        seconds: float,
        interrupted: bool = False,
        lower: float = -math.inf,
        upper: float = math.inf,
        bracket: Bracket | None = None,
        drawn: MarginalTally | None = None,
    ) -> "Solution":
        """Make a solution of a method's result, its estimate held inside the bounds.

        Where it has no estimate, the bound that there is stands for it.  Marginals that were drawn replace its own.
        """
        lower, upper = max(lower, found.lower), min(upper, found.upper)
        if math.isnan(found.log_z) and (lower > -math.inf or upper < math.inf):
            log_z = lower if lower > -math.inf else upper
        else:
            log_z = found.log_z if found.bound == "exact" else min(max(found.log_z, lower), upper)
        bound: Bound | None = "lower" if log_z == lower else "upper" if log_z == upper else None
        if upper == -math.inf:
            bound = "exact"
        elif log_z == found.log_z and found.bound is not None:
            bound = found.bound
        marginals, errors = found.marginals, None
        if drawn is not None:
            marginals, errors = (found.model.unary.with_flat(flat) for flat in drawn.marginals())
        variables, select = (found.variables, found.select) if isinstance(found, Clamped) else ((), "")
        return cls(
            model=found.model,
            log_z=log_z,
            bound=bound,
            lower=lower,
            upper=upper,
            marginals=marginals,
            method=found.method,
            reason=reason,
            variables=variables,
            select=select if variables else "",
            converged=found.converged,
            interrupted=interrupted,
            seconds=seconds,
            estimate=found,
            bracket=bracket,
            marginal_errors=errors,
        )

    @property
    def solved(self) -> Model:
        """The model that all of this is about: its evidence is in it."""
        return self.model

    @property
    def pairwise_marginals(self) -> PairTables:
        return self.estimate.pairwise_marginals

    @property
    def factor_marginals(self) -> FactorTables:
        return self.estimate.factor_marginals

    @property
    def standard_error(self) -> float | None:
        return None if self.bound is not None or self.bracket is None else self.bracket.standard_error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """*Statistical*, not certified: ends, inside the bounds, that log Z is between with this probability at least.
        See `Bracket.interval`; where nothing was drawn, the bounds.

        >>> from clampz import generators, solve
        >>> solution = solve(generators.grid(4, 4, rng=0))
        >>> solution.interval() == (solution.lower, solution.upper)
        True
        """
        low, high = interval((), confidence) if self.bracket is None else self.bracket.interval(confidence)
        return min(max(low, self.lower), self.upper), max(min(high, self.upper), self.lower)

    @property
    def kind(self) -> str:
        """What `log_z` is, in a word or two: a bound, exact, counted (right with high probability) or an estimate."""
        bracket = self.bracket
        is_counted = self.bound is None and bracket is not None and bracket.estimate_by == "counting"
        return "counted" if is_counted else KINDS[self.bound]

    @property
    def marginals_by(self) -> str:
        if self.marginal_errors is not None:
            return "sampling"
        return "" if self.upper == -math.inf or np.isnan(self.marginals.flat).any() else self.method

    @property
    def marginals_are(self) -> str:
        if not self.marginals_by:
            return "none: Z = 0" if self.upper == -math.inf else self._why_none
        if self.marginals_by == "exact":
            return "exact"
        if self.marginal_errors is not None:
            return f"by sampling, each ± {self.marginal_errors.flat.max(initial=0.0):.2g} at most (standard error)"
        clamps = f" with {counted(len(self.variables), 'variable')} clamped" if self.variables else ""
        name = title(self.marginals_by)
        whose = f"{name}'" if name.endswith("s") else f"{name}'s"
        return f"{whose}{clamps}, {'converged' if self.converged else 'not converged'}"

    @property
    def _why_none(self) -> str:
        options = self.estimate.options
        if isinstance(options, ExactOptions | MiniBucketsOptions) and not options.marginals:
            return "none: log Z alone was asked for"
        some, all_of_them = ("none", "any") if np.isnan(self.marginals.flat).all() else ("some", "all")
        return f"{some}: {title(self.method)} was stopped before there were {all_of_them}"

    def log_z_in_words(self, digits: int) -> tuple[str, str]:
        """Put the answer into words, to `digits` decimals or those that its error tells, and what it is."""
        if self.standard_error is not None:
            return with_error(self.log_z, self.standard_error), f"{self.kind} by sampling"
        return round_outward(self.log_z, self.bound, digits), self.kind

    def bounds_in_words(self, digits: int) -> str:
        """Put what is proven into words."""
        if self.upper == -math.inf:
            return "Z = 0: no configuration is possible"
        return proven(self.lower, self.upper, digits=digits) + (" (rounding)" if self.bound == "exact" else "")

    @property
    def method_in_words(self) -> str:
        """The method, how it ended, and what was clamped."""
        ended = "" if self.converged else " (not converged)"
        names = ", ".join(name_of(self.model.names, i) for i in self.variables)
        clamped = f", {len(self.variables)} clamped by {self.select}: {names}" if self.variables else ""
        return f"{title(self.method)}{ended}{clamped}"

    def _card(self) -> HtmlCard:
        log_z, kind = self.log_z_in_words(DIGITS)
        columns, rows, more = marginal_rows(self.model, self.marginals)
        return HtmlCard(
            title="Solution",
            facts=[
                ("log Z", f"{log_z} ({kind})"),
                *statistical(self),
                ("proven", self.bounds_in_words(DIGITS)),
                ("method", self.method_in_words),
                ("why", self.reason),
                ("marginals", self.marginals_are),
                ("seconds", f"{self.seconds:.2f}"),
            ],
            columns=columns,
            rows=rows if self.marginals_by else [],
            more=more if self.marginals_by else "",
        )

    def __repr__(self) -> str:
        by = self.method
        if self.bound == "exact" and by != "exact":
            by = "exact" if self.bracket is None else "clamping"
        clamps = f", {len(self.variables)} clamped by {self.select}" if self.variables else ""
        error = ""
        if self.standard_error is not None:
            by, error = "sampling", f" ± {self.standard_error:.2g}"
        return (
            f"Solution({by}: log Z = {self.log_z:.10g}{error} ({self.kind}) in [{self.lower:.10g}, {self.upper:.10g}]"
            f"{clamps}; marginals: {self.marginals_are}; {self.seconds:.2g} s)"
        )
