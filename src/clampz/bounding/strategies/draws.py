"""An estimate of log Z with an error bar, by draws beside a search from its own upper bound on the whole.

A new proposal is made whenever that bound has come down enough.
"""

import math
from functools import cached_property
from typing import NamedTuple

from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import building_seconds
from clampz.bounding.bracket import PointEstimate
from clampz.bounding.options import LARGEST_TABLE, BoundOptions
from clampz.bounding.strategies.proposal_source import SEED_BITS, ProposalSource
from clampz.bounding.strategies.successive_halving import FIRST_TABLE, SuccessiveHalving
from clampz.model import Model
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew, Job
from clampz.sampling.statistics import Sampled, best, score_rounding

# The share of all threads' time that draws may take, and that of one piece of them, in seconds at least and at most.
SHARE, PIECE_SHARE, SHORTEST, LONGEST = 0.2, 0.03, 0.02, 0.5
# A bound that has come nearer to the estimate by this share is worth a proposal of its own.
NEARER = 0.15
# Where the search has no bound on the whole as one: shares of the time for proposals of our own, one after another.
OWN_SHARES = (0.02, 0.1)
# Blocks of draws where the plan is fixed, or there is nothing else left to do.
LAST_BLOCKS = 16


class DrawsEstimate(NamedTuple):
    """What came of draws: their proposal (None where there is none to be had), what they say, and the seconds taken."""

    proposal: Proposal | None
    sampled: Sampled | None
    seconds: float


class Estimator:
    """The draws of a search.

    Attributes
    ----------
    sampled
        What was drawn, proposal by proposal.
    """

    def __init__(self, model: Model, options: BoundOptions, error: float) -> None:
        self.model, self.options = model, options
        self.sampled: list[Sampled] = []
        self._error = error
        self._proposal: Proposal | None = None
        self._is_busy = False
        self._upper = math.inf  # of the last source
        self._num_sources = 0
        self._seconds = 0.0

    @cached_property
    def _rounding(self) -> float:
        return self._error + score_rounding(self.model)

    @property
    def num_doublings(self) -> int:
        """A number that grows whenever there is something new to say."""
        return sum(len(each.doublings) for each in self.sampled)

    def next(self, halving: SuccessiveHalving | None, crew: Crew, budget: Budget) -> Job[DrawsEstimate] | None:
        """Begin more draws if it is time for them, from the mini-buckets of the whole where it is bounded as one."""
        if self.options.in_order or self._seconds > SHARE * crew.num_threads * budget.used:
            return None
        return self._begin(halving, crew, budget, min(max(SHORTEST, budget.left(PIECE_SHARE)), LONGEST), math.inf)

    def last(self, halving: SuccessiveHalving | None, crew: Crew, budget: Budget) -> Job[DrawsEstimate] | None:
        """Begin a fixed number of draws, whatever they take, where nothing else is left to do."""
        return self._begin(halving, crew, budget, math.inf, LAST_BLOCKS)

    def _begin(
        self, halving: SuccessiveHalving | None, crew: Crew, budget: Budget, seconds: float, most: float
    ) -> Job[DrawsEstimate] | None:
        if self._is_busy or budget.must_stop():
            return None
        source = self._source(halving, budget)
        if source is None and self._proposal is None:
            return None
        self._is_busy, self._num_sources = True, self._num_sources + (source is not None)
        return crew.at_home(self._draw, source, self._num_sources, seconds, most, budget)

    def take(self, drawn: DrawsEstimate) -> None:
        """Take what came of draws."""
        self._is_busy = False
        self._seconds += drawn.seconds
        if drawn.sampled is None:
            return
        if drawn.proposal is self._proposal:
            self.sampled.pop()
        self._proposal = drawn.proposal
        self.sampled.append(drawn.sampled)

    def estimate(self, lower: float, upper: float) -> PointEstimate | None:
        """Return the estimate, if its error is smaller than that of any number between these ends."""
        found = best(self.sampled)
        if found is None or not found.standard_error < (upper - lower) / math.sqrt(12.0):
            return None
        return PointEstimate(found.log_z, by="sampling", standard_error=found.standard_error)

    def _source(self, halving: SuccessiveHalving | None, budget: Budget) -> ProposalSource | None:
        """Return what is worth a new proposal: a tighter bound on the whole, or small mini-buckets of our own."""
        if halving is None:
            if self._num_sources >= len(OWN_SHARES) or building_seconds(self.model) > budget.left(OWN_SHARES[-1]):
                return None
            seconds = budget.left(OWN_SHARES[self._num_sources])
            largest = LARGEST_TABLE if self._num_sources else FIRST_TABLE
            return ProposalSource.own(self.model, self.options, seconds, largest)
        if halving.mini_buckets is None or halving.state is None:
            return None
        known = self.sampled[-1].log_z if self.sampled else -math.inf
        reach = NEARER * (self._upper - known) if math.isfinite(self._upper - known) else NEARER
        if not halving.upper < self._upper - reach:
            return None
        self._upper = halving.upper
        return ProposalSource(halving.mini_buckets, halving.state.above)

    def _draw(
        self, source: ProposalSource | None, number: int, seconds: float, most: float, budget: Budget
    ) -> DrawsEstimate:
        """Draw blocks in their order from a new source or the last proposal: one at least, then until either limit."""
        began = Budget()
        if source is None:
            proposal, sampled = self._proposal, self.sampled[-1]
        else:
            proposal = source.proposal(budget, budget, self.options.worker_bytes)
            if proposal is None:
                return DrawsEstimate(None, None, began.used)
            sampled = Sampled(proposal.bound, self._rounding)
        assert proposal is not None
        until, seed = Budget(seconds, within=budget), self.options.seed | number << SEED_BITS
        while sampled.num_blocks == 0 or not (until.must_stop() or sampled.num_blocks >= most):
            sampled = sampled.with_block(proposal.draw(seed, sampled.num_blocks).log_weights)
        return DrawsEstimate(proposal, sampled, began.used)
