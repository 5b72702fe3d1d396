"""Marginals with standard errors, by draws from an upper bound on the user's own model."""

from typing import NamedTuple

from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import building_seconds
from clampz.bounding.leaves.proposal_source import ProposalSource
from clampz.bounding.options import LARGEST_TABLE, BoundOptions
from clampz.model import Model
from clampz.model.tables import UnaryTables
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Workers
from clampz.sampling.statistics import LEAST_EFFECTIVE, MarginalTally

# The share of the time that the bound may take; the draws have the rest.
BOUND_SHARE = 0.4
# Draws of equal weight that are enough: errors are then two thousandths at most.
ENOUGH = 100_000.0
# The share that building may take, which cannot be stopped.
BUILDING_SHARE = 0.25


class DrawnMarginals(NamedTuple):
    """Estimates of marginals, their standard errors, and the draws of equal weight that they are worth."""

    marginals: UnaryTables
    errors: UnaryTables
    effective: float


def draw_marginals(model: Model, options: BoundOptions, budget: Budget) -> DrawnMarginals | None:
    """Estimate marginals by draws, as far as time goes or until they suffice; None where they are worth too few."""
    if not model.num_variables or building_seconds(model) > budget.left(BUILDING_SHARE):
        return None
    bounding = budget.share(BOUND_SHARE)
    proposal = ProposalSource.own(model, options, bounding.left(), LARGEST_TABLE).proposal(bounding, budget)
    if proposal is None:
        return None
    tally = _tally(proposal, options, budget)
    if tally is None or tally.tally.effective < LEAST_EFFECTIVE:
        return None
    marginals, errors = (model.unary.with_flat(flat) for flat in tally.marginals())
    return DrawnMarginals(marginals, errors, tally.tally.effective)


def _tally(proposal: Proposal, options: BoundOptions, budget: Budget) -> MarginalTally | None:
    """Draw blocks in their order, as many at once as there are threads, and add up what they say."""

    def drawn(block: int) -> MarginalTally:
        return MarginalTally.of(proposal.model, proposal.draw(options.seed, block), proposal.bound)

    tally, number = None, 0
    with Workers(options.num_threads) as workers:
        while not (budget.must_stop() or (tally is not None and tally.tally.effective >= ENOUGH)):
            for found in workers.map(drawn, list(range(number, number + options.num_threads))):
                tally = found if tally is None else tally.plus(found)
            number += options.num_threads
    return tally
