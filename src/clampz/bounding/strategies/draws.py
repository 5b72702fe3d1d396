"""An estimate of log Z with an error bar, by draws beside a search from its own upper bound on the whole.

A new proposal is made whenever that bound has come down enough.
"""

import math
from typing import NamedTuple

from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import building_seconds
from clampz.bounding.leaves.proposal_source import SEED_BITS, ProposalSource
from clampz.bounding.leaves.successive_halving import FIRST_TABLE, SuccessiveHalving
from clampz.bounding.options import LARGEST_TABLE
from clampz.bounding.problem import Problem
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.sampling.statistics import Sampled, score_rounding

# The share of all threads' time that draws may take, and that of one piece of them, in seconds at least and at most.
SHARE, PIECE_SHARE, SHORTEST, LONGEST = 0.1, 0.03, 0.02, 0.5
# A bound that has come nearer to the estimate by this share is worth a proposal of its own.
NEARER = 0.15
# Where the search has no bound on the whole as one: shares of the time for proposals of our own, one after another.
OWN_SHARES = (0.02, 0.1)
# Blocks of draws where the plan is fixed, or there is nothing else left to do.
LAST_BLOCKS = 16


class DrawsEstimate(NamedTuple):
    """What came of draws: their proposal, None where there is none to be had, and what they say."""

    proposal: Proposal | None
    sampled: Sampled | None


class Draws(Strategy[Problem]):
    """Draws from the newest proposal, block after block."""

    name = "draws"
    share = SHARE
    keeps_going = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._proposal: Proposal | None = None
        self._upper = math.inf  # of the last source
        self._num_sources = 0

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for draws, from the mini-buckets of the whole where it is bounded as one; fixed plans have the last."""
        if self.problem.in_order:
            return None
        return self._begin(budget, min(max(SHORTEST, budget.left(PIECE_SHARE)), LONGEST), math.inf)

    def last(self, budget: Budget) -> Quantum | None:
        """Ask for a fixed number of draws, whatever they take, where nothing else is left to do."""
        return self._begin(budget, math.inf, LAST_BLOCKS)

    def _begin(self, budget: Budget, seconds: float, most: float) -> Quantum | None:
        if budget.must_stop():
            return None
        source = self._source(self.problem.halving, budget)
        if source is None and self._proposal is None:
            return None
        self._num_sources += source is not None
        return Quantum(self._draw, (source, self._num_sources, seconds, most), budget.share())

    def take(self, quantum: Quantum, found: DrawsEstimate) -> None:
        """Take what came of draws."""
        if found.sampled is None:
            return
        if found.proposal is self._proposal:
            self.problem.sampled.pop()
        self._proposal = found.proposal
        self.problem.sampled.append(found.sampled)

    def _source(self, halving: SuccessiveHalving | None, budget: Budget) -> ProposalSource | None:
        """Return what is worth a new proposal: a tighter bound on the whole, or small mini-buckets of our own."""
        if halving is None:
            if self._num_sources >= len(OWN_SHARES) or building_seconds(self.problem.rest) > budget.left(
                OWN_SHARES[-1]
            ):
                return None
            seconds = budget.left(OWN_SHARES[self._num_sources])
            largest = LARGEST_TABLE if self._num_sources else FIRST_TABLE
            return ProposalSource.own(self.problem.rest, self.problem.options, seconds, largest)
        if halving.mini_buckets is None or halving.state is None:
            return None
        sampled = self.problem.sampled
        known = sampled[-1].log_z if sampled else -math.inf
        reach = NEARER * (self._upper - known) if math.isfinite(self._upper - known) else NEARER
        if not halving.upper < self._upper - reach:
            return None
        self._upper = halving.upper
        return ProposalSource(halving.mini_buckets, halving.state.above)

    def _draw(
        self, source: ProposalSource | None, number: int, seconds: float, most: float, budget: Budget
    ) -> DrawsEstimate:
        """Draw blocks in their order from a new source or the last proposal: one at least, then until either limit."""
        problem = self.problem
        if source is None:
            proposal, sampled = self._proposal, problem.sampled[-1]
        else:
            proposal = source.proposal(budget, budget, problem.worker_bytes)
            if proposal is None:
                return DrawsEstimate(None, None)
            sampled = Sampled(proposal.bound, problem.error + score_rounding(problem.rest))
        assert proposal is not None
        until, seed = Budget(seconds, within=budget), problem.options.seed | number << SEED_BITS
        while sampled.num_blocks == 0 or not (until.must_stop() or sampled.num_blocks >= most):
            sampled = sampled.with_block(proposal.draw(seed, sampled.num_blocks).log_weights)
        return DrawsEstimate(proposal, sampled)
