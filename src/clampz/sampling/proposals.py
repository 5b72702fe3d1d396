"""The proposals of samples: the best that memory and time allow, of the model that presolve leaves.

Which structures are tried, and for how many evaluations, follows from sizes and from the seconds that are allowed, by
rates that are fixed beforehand: so the same seed gives the same samples, unless the clock ends the work before.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import (
    SECONDS_PER_CLIQUE,
    SECONDS_PER_ENTRY,
    BoundState,
    optimise,
    optimise_lanes,
)
from clampz.approximations.mini_buckets.method import FIRST_EVALUATIONS
from clampz.approximations.mini_buckets.proposals import Draws, Proposal, States
from clampz.approximations.mini_buckets.structure import ENDLESS, Structure, building_seconds, limit_of_entries
from clampz.errors import TooWideError
from clampz.exact_inference.running import EXACT_SHARE, PLANNING_SHARE
from clampz.exact_inference.scopes import Restriction, Scopes
from clampz.exact_inference.sums import order_of
from clampz.model import Model
from clampz.presolve.simplified import Simplified
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words
from clampz.runtime.workers import Workers

# Seconds that a bound is worth where no time is given.
EFFORT = 5.0
# The share of the time for the bound.
BOUND_SHARE = 0.3
# Structures that are begun, and evaluations of the best one at the most.
NUM_STRUCTURES, MOST_EVALUATIONS = 4, 100
# Passes over its tables that an exact proposal takes, laid out and all; bytes of a table entry, in all copies.
EXACT_PASSES, ENTRY_BYTES = 6.0, 40
# Seconds that a table entry of a structure, and a clique, take until there is a bound by it: not to be left half way.
LAYING_SECONDS, LAYING_CLIQUE_SECONDS = 2.5e-8, 1e-6
# Entries of a clique at least, and at most, where nobody says.
SMALLEST_TABLE, LARGEST_TABLE = 2**3, 2**22
# Numbers of a block of draws, whole configurations counted.
BLOCK_STATES = 2**19
# Where the numbers for acceptance are, apart from those of the draws themselves.
ACCEPTANCE = 1 << 192


@dataclass(frozen=True, eq=False)
class SampleProposal:
    """A source of draws in blocks, which do not depend on threads.

    Attributes
    ----------
    simplified
        The model with its evidence, and what is left of it; what left is drawn given the rest.
    proposal
        Of the rest.  The weight of a whole configuration is that of its rest.
    """

    simplified: Simplified
    proposal: Proposal
    seed: int

    @cached_property
    def block_size(self) -> int:
        """Draws in a block."""
        whole = BLOCK_STATES // max(1, self.simplified.original.num_variables)
        return max(1, min(self.proposal.block_size, whole))

    def draw(self, block: int) -> Draws:
        """Draw a block of configurations of the reduced model."""
        return self.proposal.draw(self.seed, block, self.block_size)

    def accepted(self, block: int, draws: Draws) -> NDArray[np.bool_]:
        """Accept draws with probability f / (q e^bound): these follow the model."""
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=ACCEPTANCE + (block << 64)))
        rate = np.exp(draws.log_weights - self.proposal.bound)
        return np.asarray(rng.random(len(rate)) < rate)

    def whole(self, block: int, states: NDArray[np.integer]) -> States:
        """Extend configurations of the reduced model to whole ones."""
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=2 * ACCEPTANCE + (block << 64)))
        return self.simplified.states(states, rng).astype(np.int32)


def propose(
    model: Model,
    max_table: int | None,
    allowed: int,
    seconds: float,
    budget: Budget,
    workers: Workers,
    *,
    exact: bool = False,
) -> Proposal | None:
    """Return the best proposal within these bytes and seconds, or with this table size; None where Z = 0.

    Cancelled where the budget ends before there is one; TooWideError where memory is too short for any, or, if it has
    to be `exact`, for that.
    """
    unary, structure = model.unary.flat, None
    if max_table is None or exact:
        structure = _exact_structure(model, allowed, seconds, budget, must_be=exact)
    if structure is not None:
        return Proposal.of(BoundState.upper(Tables.of(model, structure, budget), unary, budget=budget), unary, budget)
    if budget.left() < building_seconds(model):
        raise Cancelled
    worth = BOUND_SHARE * seconds if math.isfinite(seconds) else EFFORT
    chosen = _largest_limit(model, allowed, worth) if max_table is None else max_table
    while structure is None:
        try:
            structure = Structure.of(model, chosen, most_bytes=allowed, budget=budget)
        except TooWideError:
            if max_table is not None or chosen <= SMALLEST_TABLE:
                raise
            chosen = max(chosen // 4, SMALLEST_TABLE)
            continue
        laying = LAYING_SECONDS * structure.num_entries + LAYING_CLIQUE_SECONDS * structure.num_cliques
        if max_table is None and laying > worth and chosen > SMALLEST_TABLE:  # a dense model has more than is usual
            chosen = 1 << int(math.log2(max(0.5 * chosen * worth / laying, SMALLEST_TABLE)))
            structure = None
        elif laying > budget.left():
            raise Cancelled
    state = BoundState.upper(Tables.of(model, structure, budget), unary, budget=budget)
    if structure.num_cliques > model.num_variables:
        share = budget.share(2 * BOUND_SHARE)  # the rates that it is planned by may be wrong
        state = _optimised(model, state, chosen, allowed, worth, share, workers)
    return Proposal.of(state, unary, budget)


def _exact_structure(model: Model, allowed: int, seconds: float, budget: Budget, *, must_be: bool) -> Structure | None:
    """Return a structure that splits no bucket, by the best order found; None where memory or time are short."""
    try:
        whole = Restriction.none(Scopes.of(model))
        order = order_of(whole, model.problem, budget if must_be else budget.share(PLANNING_SHARE))
    except Cancelled:
        budget.check_stop()
        return None
    needed = order.total * ENTRY_BYTES
    if math.isinf(order.total) or len(order.variables) < model.num_variables or needed > allowed:
        budget.check_stop()
        if must_be:
            raise _too_wide(order.log2_largest, needed, allowed)
        return None
    if not must_be and order.total * EXACT_PASSES * SECONDS_PER_ENTRY > EXACT_SHARE * seconds:
        return None
    try:
        return Structure.of(model, ENDLESS, order=order.variables, most_bytes=allowed, budget=budget)
    except TooWideError as error:
        if must_be:
            raise _too_wide(order.log2_largest, error.num_bytes, allowed) from None
        return None


def _too_wide(log2_largest: float, num_bytes: float, allowed: int) -> TooWideError:
    taken = f"about {bytes_in_words(num_bytes)}" if math.isfinite(num_bytes) else "more memory than any machine has"
    return TooWideError(
        f"exact samples need {taken}, and {bytes_in_words(allowed)} are allowed: allow more with memory=, or take what "
        'there is with method="auto" (by rejection, or weighted)',
        width=int(log2_largest) if math.isfinite(log2_largest) else 0,
        num_bytes=int(num_bytes) if math.isfinite(num_bytes) else ENDLESS,
    )


def _largest_limit(model: Model, allowed: int, worth: float) -> int:
    """Return the largest table size within these bytes and seconds, about."""
    num_passes = 2 * (NUM_STRUCTURES * FIRST_EVALUATIONS + MOST_EVALUATIONS)
    entries = min(worth / (num_passes * SECONDS_PER_ENTRY), allowed / ENTRY_BYTES)
    most = limit_of_entries(entries / max(1, model.num_variables))
    return 1 << int(math.log2(min(max(most, SMALLEST_TABLE), LARGEST_TABLE)))


def _optimised(
    model: Model, first: BoundState, max_table: int, allowed: int, worth: float, budget: Budget, workers: Workers
) -> BoundState:
    """Return the best of several structures, optimised as far as `worth` seconds go by size alone.

    It ends early only with the budget.
    """
    structure = first.tables.structure
    evaluation = 2 * (SECONDS_PER_ENTRY * structure.num_entries + SECONDS_PER_CLIQUE * structure.num_cliques)
    possible, building = int(worth / evaluation), building_seconds(model) / evaluation
    states, taken = [first], structure.num_bytes()
    while len(states) < NUM_STRUCTURES and (len(states) + 1) * (FIRST_EVALUATIONS + building) < possible / 2:
        try:
            other = Structure.of(model, max_table, seed=len(states), most_bytes=allowed, budget=budget)
            taken += other.num_bytes()
            if taken > allowed:
                break
            states.append(BoundState.upper(Tables.of(model, other, budget), model.unary.flat, budget=budget))
        except (Cancelled, TooWideError):  # those that there are will do
            break
    spent = len(states) * FIRST_EVALUATIONS if len(states) > 1 else 0
    if spent:
        optimise_lanes(states, FIRST_EVALUATIONS, budget, workers)
    best = min(states, key=lambda state: state.bound)
    optimise(best, max(1, min(MOST_EVALUATIONS, possible - spent)), budget)
    return best
