"""An estimate of log Z with an error bar, by draws that are made beside a search: from its own upper bound on the
whole, and from a better one whenever that has come down enough."""

import math
from functools import cached_property
from typing import NamedTuple

from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import building_seconds
from clampz.bounding.bracket import PointEstimate
from clampz.bounding.options import LARGEST_LIMIT, BoundOptions
from clampz.bounding.strategies.proposal_source import ProposalSource
from clampz.bounding.strategies.successive_halving import FIRST_LIMIT, SuccessiveHalving
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
# The share of a worker's memory that a proposal may keep, and bytes of that for each entry of its tables, about.
KEPT_SHARE, KEPT_BYTES = 0.5, 24
# Bits of the caller's seed: proposals are numbered beyond.
SEED_BITS = 62


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
        self._upper = math.inf  # of the last origin
        self._num_origins = 0
        self._seconds = 0.0

    @cached_property
    def _rounding(self) -> float:
        return self._error + score_rounding(self.model)

    @property
    def num_doublings(self) -> int:
        """Grows whenever there is something new to say."""
        return sum(len(each.doublings) for each in self.sampled)

    def next(self, ladder: SuccessiveHalving | None, crew: Crew, budget: Budget) -> Job[DrawsEstimate] | None:
        """More draws, begun, if it is time for them.  The ladder is that of the whole; None where that is
        not bounded as one."""
        if self.options.in_order or self._seconds > SHARE * crew.num_threads * budget.used:
            return None
        seconds = min(max(SHORTEST, budget.left(PIECE_SHARE)), LONGEST)
        return self._begin(ladder, crew, budget, seconds, math.inf)

    def last(self, ladder: SuccessiveHalving | None, crew: Crew, budget: Budget) -> Job[DrawsEstimate] | None:
        """The same where nothing else is left to do: so many draws, whatever they take, as long as there is time."""
        return self._begin(ladder, crew, budget, math.inf, LAST_BLOCKS)

    def _begin(
        self, ladder: SuccessiveHalving | None, crew: Crew, budget: Budget, seconds: float, most: float
    ) -> Job[DrawsEstimate] | None:
        if self._is_busy or budget.must_stop():
            return None
        origin = self._origin(ladder, budget)
        if origin is None and self._proposal is None:
            return None
        self._is_busy = True
        if origin is not None:
            self._num_origins += 1
            return crew.at_home(self._draw_from, origin, self._num_origins, seconds, most, budget)
        return crew.at_home(self._draw, self._proposal, self.sampled[-1], self._num_origins, seconds, most, budget)

    def take(self, drawn: DrawsEstimate) -> None:
        """What came of draws."""
        self._is_busy = False
        self._seconds += drawn.seconds
        if drawn.sampled is None:
            return
        if drawn.proposal is self._proposal:
            self.sampled.pop()
        self._proposal = drawn.proposal
        self.sampled.append(drawn.sampled)

    def guess(self, lower: float, upper: float) -> PointEstimate | None:
        """The estimate, if its error is smaller than that of any number between these ends."""
        found = best(self.sampled)
        if found is None or not found.standard_error < (upper - lower) / math.sqrt(12.0):
            return None
        return PointEstimate(found.log_z, by="sampling", standard_error=found.standard_error)

    def _origin(self, ladder: SuccessiveHalving | None, budget: Budget) -> ProposalSource | None:
        """What is worth a new proposal, if there is anything."""
        if ladder is None:
            return self._own(budget)
        if ladder.mini_buckets is None or ladder.state is None:
            return None
        known = self.sampled[-1].log_z if self.sampled else -math.inf
        reach = NEARER * (self._upper - known) if math.isfinite(self._upper - known) else NEARER
        if not ladder.upper < self._upper - reach:
            return None
        self._upper = ladder.upper
        return ProposalSource(ladder.mini_buckets, ladder.state.above)

    def _own(self, budget: Budget) -> ProposalSource | None:
        """Regions of our own, small at first."""
        model, options = self.model, self.options
        if self._num_origins >= len(OWN_SHARES) or building_seconds(model) > budget.left(OWN_SHARES[-1]):
            return None
        seconds = budget.left(OWN_SHARES[self._num_origins])
        return ProposalSource.own(model, options, seconds, LARGEST_LIMIT if self._num_origins else FIRST_LIMIT)

    def _draw_from(
        self, origin: ProposalSource, number: int, seconds: float, most: float, budget: Budget
    ) -> DrawsEstimate:
        """Draws from a new proposal."""
        began = Budget()
        most_entries = KEPT_SHARE * self.options.worker_bytes / KEPT_BYTES
        proposal = origin.proposal(budget, budget, most_entries)
        if proposal is None:
            return DrawsEstimate(None, None, began.used)
        drawn = self._draw(proposal, Sampled(proposal.bound, self._rounding), number, seconds, most, budget)
        return drawn._replace(seconds=began.used)

    def _draw(
        self, proposal: Proposal, sampled: Sampled, number: int, seconds: float, most: float, budget: Budget
    ) -> DrawsEstimate:
        """Blocks in their order, for so many seconds or until there are so many; one at least."""
        until = Budget(seconds, within=budget)
        seed = self.options.seed | number << SEED_BITS
        while sampled.num_blocks == 0 or not (until.must_stop() or sampled.num_blocks >= most):
            sampled = sampled.with_block(proposal.draw(seed, sampled.num_blocks).log_weights)
        return DrawsEstimate(proposal, sampled, until.used)
