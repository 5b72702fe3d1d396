"""Problem: log Z of a model between two bounds, who proved them, and what strategies share."""

import math
from collections.abc import Hashable

from clampz.bounding.bracket import Bracket, BracketStop, ContradictionError, Point, PointEstimate
from clampz.bounding.leaves.mini_bucket_bounds import WarmStart
from clampz.bounding.leaves.successive_halving import SuccessiveHalving
from clampz.bounding.options import TREE_MEMORY, BoundOptions
from clampz.bounding.tree.frontier import Frontier, check_room
from clampz.exact_inference.plans import ExactPlan
from clampz.model import Model
from clampz.numerics import Floats
from clampz.portfolio.problem import Gains
from clampz.portfolio.problem import Problem as PortfolioProblem
from clampz.presolve.simplified import Simplified
from clampz.presolve.simplify import simplify_once
from clampz.runtime.budget import Budget
from clampz.sampling.statistics import MarginalTally, Sampled, best


class Facts:
    """What strategies found out that others go by.

    Attributes
    ----------
    plan
        How to sum all of the model exactly; None where that fits neither time nor memory.
    is_planned
        Whether the plan is known, or known to be none.
    is_counted
        Whether a count was asked for already.
    is_estimated
        Whether Bethe has said what it can.
    is_summing
        Whether the model is being summed in slices.
    is_bounded
        Whether mini-buckets of the whole are as good as they get, or cannot be had: from then on the tree grows.
    awaits_marginals
        Whether a sum with all marginals is planned or under way: one of log Z alone waits for it.
    marginals
        (S,) of mean field, to go on from.
    """

    plan: ExactPlan | None = None
    is_planned = False
    is_counted = False
    is_estimated = False
    is_summing = False
    is_bounded = False
    awaits_marginals = False
    marginals: Floats | None = None


class Problem(PortfolioProblem[Bracket]):
    """Log Z of a model.

    Attributes
    ----------
    rest, error, presolved
        The reduced model that presolve leaves of the user's, what its log Z may be off by, and its postsolve;
        None where it is the user's.
    frontier
        The tree over that model; its root's ends are the best known.
    estimate, sampled
        Bethe's value or a count, for brackets that draws have no better one for; and what was drawn.
    wants_marginals, tally
        Whether draws are to say what the marginals of the user's model are, and what they say.
    trace
        How the bracket closed.
    is_resumed
        Whether the tree is one that was saved: what comes before it is not done again.
    """

    def __init__(self, model: Model, options: BoundOptions, *, simplified: bool = False) -> None:
        check_room(model, options.num_bytes)
        super().__init__((1.0 - TREE_MEMORY) * options.num_bytes, enough=options.gap, in_order=options.in_order)
        self.user_model, self.facts = model, Facts()
        self.options = options if options.exact else options.without_whole()
        self.trace: list[Point] = []
        self.is_resumed = False
        self.estimate = PointEstimate(None, "There was no time for Bethe.")
        self.sampled: list[Sampled] = []
        self.wants_marginals = False
        self.tally: MarginalTally | None = None
        self.presolved: Simplified | None = None
        self._work_on(model, 0.0)
        if simplified:  # resumed: reduced as before, without limits
            self.presolve(None)

    def _work_on(self, rest: Model, error: float) -> None:
        """Begin a tree over a reduced model."""
        self.rest, self.error = rest, error
        self.frontier = Frontier(rest, self.options)

    def presolve(self, budget: Budget | None) -> None:
        """Work on the reduced model; on the user's where time or memory do not suffice for all of presolve."""
        memory = None if budget is None else self.options.num_bytes
        model, (lower, upper) = self.user_model, self.ends
        found = simplify_once(model, marginals=False, pairwise=not model.factors, memory=memory, budget=budget)
        if found.is_complete:
            self.presolved = found
            self._work_on(found.model, found.error)
            self.tighten(lower - found.error, upper + found.error)

    @property
    def worker_bytes(self) -> float:
        """Bytes that one worker may take."""
        return self.options.worker_bytes

    @property
    def simplified(self) -> bool:
        return self.rest is not self.user_model

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do."""
        return self.frontier.root.closed

    @property
    def ends(self) -> tuple[float, float]:
        """The best ends of log Z of the user's model."""
        return self.frontier.root.lower - self.error, self.frontier.root.upper + self.error

    @property
    def news(self) -> Hashable:
        """Both ends, and how far the draws are."""
        return self.ends, sum(len(each.doublings) for each in self.sampled)

    def limit_reached(self) -> BracketStop | None:
        """Return "leaves" where there are as many as allowed, and the whole is bounded and estimated."""
        most, has_begun = self.options.leaves, self.facts.is_bounded and self.facts.is_estimated
        return "leaves" if most is not None and self.frontier.num_leaves >= most and has_begun else None

    @property
    def halving(self) -> SuccessiveHalving | None:
        """The whole model's mini-buckets, if it is bounded as one."""
        root = self.frontier.root
        return root.submodel.halving if root.submodel.halving.state is not None or not root.children else None

    def tighten(self, lower: float, upper: float, *, close: bool = False) -> None:
        """Take ends of log Z of the reduced model, after which nothing may be left to do."""
        root = self.frontier.root
        root.tighten(lower, upper)
        if close:
            self.frontier.close(root.lower, root.upper)

    def tighten_log_z(self, lower: float, upper: float, *, close: bool = False) -> None:
        """Take ends of log Z of the user's model, after which nothing may be left to do."""
        self.tighten(lower + self.error, upper - self.error, close=close)

    def believe(self, beliefs: Floats) -> None:
        """Take beliefs (S,) that branches go by where mini-buckets have none."""
        root = self.frontier.root
        if not root.children and root.submodel.halving.state is None:
            root.state = WarmStart.at(beliefs)

    def sum_nothing(self) -> None:
        """Let workers have the memory that was set aside for a sum of the whole."""
        if not self.options.in_order:  # there nothing may depend on when that is known
            self.options = self.frontier.options = self.options.without_whole()

    def result(self, reason: BracketStop, seconds: float) -> Bracket:
        """Return the bracket at this moment, within all before, and add it to the trace."""
        lower, upper = self.ends
        if lower > upper:
            raise ContradictionError(
                f"the bounds {lower} and {upper} contradict each other: this is an error in clampz, please report it "
                "with the model"
            )
        if self.trace:
            lower, upper = max(lower, self.trace[-1].lower), min(upper, self.trace[-1].upper)
        seconds, num_leaves = self.seconds_before + seconds, self.frontier.num_leaves
        self.trace.append(Point(seconds, lower, upper, num_leaves))
        found = self._estimate(lower, upper).within(lower, upper, closed=reason == "exact")
        return Bracket(
            model=self.user_model,
            lower=lower,
            upper=upper,
            estimate=found.value,
            estimate_by=found.by,
            why_no_estimate=found.why_none,
            standard_error=found.standard_error,
            sampled=tuple(self.sampled),
            trace=tuple(self.trace),
            gains=Gains(self.gains),
            stopped_by=reason,
            num_leaves=num_leaves,
            seconds=seconds,
        )

    def _estimate(self, lower: float, upper: float) -> PointEstimate:
        """Return a count, or draws if their error is smaller than that of any number between the ends, or Bethe's."""
        found = best(self.sampled)
        if self.estimate.by == "counting" or found is None:
            return self.estimate
        if not found.standard_error < (upper - lower) / math.sqrt(12.0):
            return self.estimate
        return PointEstimate(found.log_z, by="sampling", standard_error=found.standard_error)
