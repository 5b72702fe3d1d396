"""The choice of a sampler: which kind the samples of a model will be, and why."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.proposals import Draws, States
from clampz.errors import EvidenceError, ModelError, OptionError
from clampz.model.conditioning import given
from clampz.numerics import Floats, Integers
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Workers
from clampz.sampling.gibbs import STEPS_BEFORE, Chains
from clampz.sampling.proposals import SampleProposal, propose
from clampz.sampling.request import SampleRequest
from clampz.sampling.samples import Kind

# Where a pilot is drawn, apart from all that is returned; its numbers, and its draws at least.
PILOT, PILOT_NUMBERS, LEAST_PILOT = 1 << 40, 2**20, 16
# Seconds that rejection may be expected to take: where no time is given, of its own accord and when asked for; and the
# share of the time that is.
SENSIBLE_SECONDS, LONGEST_SECONDS, REJECTION_SHARE = 30.0, 3600.0, 0.5
# Seconds that a proposal is worth which chains only begin at, and the share of the time.
BEGINNING_SECONDS, BEGINNING_SHARE = 3.0, 0.2
# Draws, none of which is of any use, after which there is no hope for one.
HOPELESS_DRAWS = 2**20


class Piece(NamedTuple):
    """What came of a block of draws.

    Attributes
    ----------
    states, log_weights
        Whole configurations and their log weights.
    places
        Which of the draws they are.
    all_weights
        The log weights of all draws.
    """

    states: States
    log_weights: Floats
    places: Integers
    all_weights: Floats


NO_PIECE = Piece(np.empty((0, 0), dtype=np.int32), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))


class ProposalSampler(NamedTuple):
    """A sampler by blocks of independent draws from a source, a share `rate` of which is used, about."""

    kind: Kind
    reason: str
    source: SampleProposal
    rate: float
    num_chains: int = 1

    def pieces(self, num_samples: float, budget: Budget, workers: Workers) -> Iterator[Piece]:
        """Yield piece after piece until the budget ends; `num_samples` is how many are wanted, about."""
        block, found, size = 0, 0, self.source.block_size
        rate = max(self.rate, 1 / HOPELESS_DRAWS)  # (of a pilot, which may have been of no use)
        while not budget.must_stop() and (found or block * size < HOPELESS_DRAWS):
            missing = max(1.0, (num_samples - found) / (size * rate))
            number = int(min(missing, workers.num_threads))
            for piece in workers.map(self.piece, list(range(block, block + number))):
                found += len(piece.states)
                yield piece
            block += number

    def piece(self, block: int) -> Piece:
        """Make the piece of a block."""
        draws = self.source.draw(block)
        rejecting = self.kind == "rejection"
        places = np.flatnonzero(self.source.accepted(block, draws) if rejecting else draws.log_weights > -np.inf)
        weights = draws.log_weights[places] if self.kind == "weighted" else np.zeros(len(places))
        return Piece(self.source.whole(block, draws.states[places]), weights, places, draws.log_weights)


class GibbsSampler(NamedTuple):
    """A sampler by steps of Markov chains."""

    reason: str
    source: SampleProposal
    chains: Chains
    kind: Kind = "gibbs"

    @property
    def num_chains(self) -> int:
        return self.chains.number

    def pieces(self, num_samples: float, budget: Budget, workers: Workers) -> Iterator[Piece]:
        """Yield a piece for each step of all chains until the budget ends."""
        places, weights = np.arange(self.num_chains), np.zeros(self.num_chains)
        for step, states in enumerate(self.chains.steps(budget, workers)):
            yield Piece(self.source.whole(step, states), weights, places, weights)


SamplerChoice = ProposalSampler | GibbsSampler


def find_way(asked: SampleRequest, budget: Budget, workers: Workers) -> SamplerChoice:
    """Choose the sampler that was asked for, or the best there is; Cancelled where the budget ends first."""
    method, model = asked.method, given(asked.model, asked.evidence)
    simplified = simplify(
        model, marginals=False, pairwise=not model.factors, memory=asked.bytes_left, budget=budget.share(0.25)
    )
    budget.check_stop()
    if simplified.infeasibility:
        raise impossible(asked, simplified.infeasibility)
    seconds, exact = asked.options.time, method == "exact"
    worth = min(BEGINNING_SECONDS, BEGINNING_SHARE * seconds) if method == "gibbs" else seconds
    proposal = propose(simplified.model, asked.max_table, asked.bytes_left, worth, budget, workers, exact=exact)
    if proposal is None or proposal.bound == -math.inf:
        raise impossible(asked, "")
    source = SampleProposal(simplified, proposal, asked.seed)
    if method == "gibbs":
        chains = Chains.begun(simplified.model, _pilot(source, budget), asked.seed)
        reason = f"as asked for: {chains.number} chains, {STEPS_BEFORE} steps before the first that counts"
        return GibbsSampler(reason, source, chains)
    if proposal.is_exact and method != "weighted":
        entries = proposal.tables.structure.num_entries
        tables = f", in tables of {entries:,} entries in all" if entries else ""  # none where simplifying did it all
        return ProposalSampler("exact", f"by elimination{tables}", source, 1.0)
    pilot = _pilot(source, budget).log_weights
    rate = float(np.exp(pilot - proposal.bound).mean())
    alive = max(float((pilot > -np.inf).mean()), 1e-3)
    measured = f"{_share(rate)} would be accepted"
    if method == "weighted":
        return ProposalSampler("weighted", f"as asked for; {measured}", source, alive)
    needed = math.inf if rate == 0.0 else asked.num_at_once / rate
    taken = needed * proposal.seconds_per_draw
    sensible = SENSIBLE_SECONDS if math.isinf(seconds) else REJECTION_SHARE * seconds
    if taken <= sensible or (method == "rejection" and (math.isfinite(seconds) or taken <= LONGEST_SECONDS)):
        return ProposalSampler("rejection", f"too wide for elimination; {_share(rate)} are accepted", source, rate)
    if method == "rejection":
        raise OptionError(
            f"rejection would take {needed:.2g} draws for {asked.num_at_once:,} samples, since {measured}: give it "
            'time= to see how many there are, raise max_table=, allow more memory=, or take method="weighted"'
        )
    return ProposalSampler("weighted", f"too wide for elimination, and {measured}", source, alive)


def _share(rate: float) -> str:
    """Put into words how many of the draws these are."""
    return "none of the draws" if rate == 0.0 else "all draws" if rate > 1 - 1e-9 else f"{100 * rate:.3g}% of the draws"


def _pilot(source: SampleProposal, budget: Budget) -> Draws:
    """Draw a few blocks that tell what the others will be like."""
    size = source.block_size
    number = max(1, -(-LEAST_PILOT // size), PILOT_NUMBERS // (size * max(1, source.proposal.model.num_variables)))
    found = []
    for block in range(PILOT, PILOT + min(number, 4)):
        budget.check_stop()
        found.append(source.draw(block))
    return Draws(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def impossible(asked: SampleRequest, why: str) -> EvidenceError | ModelError:
    """Make the error for a model that has no configuration."""
    text = f"Z = 0: no configuration is possible, and there is nothing to draw{': ' if why else ''}{why}"
    return ModelError(text) if asked.evidence is None else EvidenceError(f"{text} (given the evidence)")
