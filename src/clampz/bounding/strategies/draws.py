"""Estimates with error bars, of log Z and of marginals, by draws from the upper bound on the whole.

A new proposal is made whenever that bound has come down enough.
"""

import math
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.proposals import BLOCK_NUMBERS, Proposal
from clampz.approximations.mini_buckets.proposals import Draws as Block
from clampz.approximations.mini_buckets.structure import building_seconds
from clampz.bounding.leaves.proposal_source import SEED_BITS, ProposalSource
from clampz.bounding.leaves.successive_halving import FIRST_TABLE, SuccessiveHalving
from clampz.bounding.options import LARGEST_TABLE
from clampz.bounding.problem import Problem
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.sampling.statistics import MarginalTally, Sampled, score_rounding

# The share of all threads' time that draws may take, for log Z alone and for marginals too, and that of one piece of
# them, in seconds at least and at most.
SHARE, MARGINALS_SHARE, PIECE_SHARE, SHORTEST, LONGEST = 0.1, 0.25, 0.03, 0.02, 0.5
# A bound that has come nearer to the estimate by this share is worth a proposal of its own.
NEARER = 0.15
# Where the search has no bound on the whole as one: shares of the time for proposals of our own, one after another.
OWN_SHARES = (0.02, 0.1)
# Blocks of draws where the plan is fixed, or there is nothing else left to do.
LAST_BLOCKS = 16


class DrawsEstimate(NamedTuple):
    """What came of draws: their proposal, None where there is none to be had, and what they say of log Z and more."""

    proposal: Proposal | None
    sampled: Sampled | None
    tally: MarginalTally | None = None


class Draws(Strategy[Problem]):
    """Draws from the newest proposal, block after block."""

    name = "draws"
    share = SHARE
    keeps_going = is_in_order = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._proposal: Proposal | None = None
        self._tally: MarginalTally | None = None  # of its draws
        self._upper = math.inf  # of the last source
        self._num_sources = 0
        if problem.wants_marginals:
            self.share, self.closes_gap = MARGINALS_SHARE, False

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for draws, from the mini-buckets of the whole where it is bounded as one."""
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
        self._proposal, self._tally = found.proposal, found.tally
        self.problem.sampled.append(found.sampled)
        self.problem.tally = max(self.problem.tally, found.tally, key=effective_draws)

    def _source(self, halving: SuccessiveHalving | None, budget: Budget) -> ProposalSource | None:
        """Return what is worth a new proposal: a tighter bound on the whole, or small mini-buckets of our own."""
        if halving is None or (halving.state is None and self.problem.narrow() is not None):
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
            proposal, sampled, tally = self._proposal, problem.sampled[-1], self._tally
        else:
            proposal = None
            while proposal is None and source is not None and not budget.must_stop():
                proposal = source.proposal(budget, budget, problem.worker_bytes)
                source = source.smaller
            if proposal is None:
                return DrawsEstimate(None, None)
            sampled, tally = Sampled(proposal.bound, problem.error + score_rounding(problem.rest)), None
        assert proposal is not None
        size = None  # a whole configuration is larger than one of what presolve left
        if problem.wants_marginals:
            size = max(1, BLOCK_NUMBERS // max(1, problem.user_model.num_variables))
        until, seed = Budget(seconds, within=budget), problem.options.seed | number << SEED_BITS
        while sampled.num_blocks == 0 or not (until.must_stop() or sampled.num_blocks >= most):
            block = proposal.draw(seed, sampled.num_blocks, size)
            if problem.wants_marginals:
                tally = self._tallied(block, proposal.bound, (seed, sampled.num_blocks), tally)
            sampled = sampled.with_block(block.log_weights)
        return DrawsEstimate(proposal, sampled, tally)

    def _tallied(self, block: Block, bound: float, seed: tuple[int, int], tally: MarginalTally | None) -> MarginalTally:
        """Add what a block of draws says of the marginals of the user's model."""
        problem, (states, log_weights) = self.problem, block
        if problem.presolved is not None:
            alive = log_weights > -math.inf
            states = np.zeros((len(log_weights), problem.user_model.num_variables), dtype=np.int32)
            states[alive] = problem.presolved.states(block.states[alive], np.random.default_rng(seed))
        found = MarginalTally.of(problem.user_model, Block(states, log_weights), bound)
        return found if tally is None else tally.plus(found)


def effective_draws(tally: MarginalTally | None) -> float:
    """Return the draws of equal weight that these are worth."""
    return 0.0 if tally is None else tally.tally.effective
