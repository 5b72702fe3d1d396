"""Beliefs of an upper bound: of cliques and variables, and where the bound is loose."""

from dataclasses import dataclass

import numpy as np

from clampz._kernels.mini_buckets import draws
from clampz._kernels.mini_buckets.layout import DONE, Pass
from clampz.approximations.mini_buckets.descent import BoundState, backward_pass, evaluate
from clampz.approximations.mini_buckets.structure import Structure
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled

# Below it is what is impossible: exponentials stop short of 0.
LEAST_BELIEF = 1e-300
# Draws that losses are averaged over; on large models fewer, limited by their random numbers, and one at least.
NUM_DRAWS, MOST_NUMBERS = 32, 2**21


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs of one lane at its shifts and weights.

    They are estimates, which at the optimum agree between the cliques of a bucket on what they share.

    Attributes
    ----------
    marginals
        P(x_i = a), the states of all variables one after another.
    cliques
        Beliefs of all cliques end to end; `clique(c)` is one of them.
    entropies
        (C,) of a clique's first variable given the others.
    """

    structure: Structure
    num_states: Integers
    marginals: Floats
    cliques: Floats
    entropies: Floats

    def clique(self, c: int) -> tuple[tuple[int, ...], Floats]:
        """Return the variables of a clique, in order of elimination, and their joint belief, an axis for each."""
        scope = self.structure.scope[self.structure.scope_start[c] : self.structure.scope_start[c + 1]]
        table = self.cliques[self.structure.table_start[c] : self.structure.table_start[c + 1]]
        return tuple(scope.tolist()), table.reshape(self.num_states[scope])


def beliefs_and_losses(state: BoundState, budget: Budget) -> tuple[Beliefs, Floats]:
    """Compute beliefs and losses from one forward pass."""
    work = _forward_pass(state, budget)
    lost = losses(state, budget, work)
    return beliefs(state, budget, work), lost


def beliefs(state: BoundState, budget: Budget, work: Pass | None = None) -> Beliefs:
    """Compute the beliefs of a state, after a forward pass if one was made, whose tables they replace. Raises Cancelled
    where the budget is over first, or the lane has no possible configuration."""
    work, tables = _forward_pass(state, budget) if work is None else work, state.tables
    if not backward_pass(state, state.x, work, np.empty_like(state.x), budget):
        raise Cancelled
    work.table[work.table < LEAST_BELIEF] = 0.0
    start = tables.model.unary.start
    marginals = np.zeros(int(start[-1]))
    draws.fill_marginals(tables.layout, tables.structure.order, state.main, work, start, marginals)
    return Beliefs(tables.structure, tables.model.num_states, marginals, work.table, work.clique_entropy)


def losses(state: BoundState, budget: Budget, work: Pass | None = None) -> Floats:
    """(n,) estimate what an upper bound loses at each variable by Hölder's inequality, averaged over draws from its
    beliefs. The larger, the more is won by fixing that variable, or by larger cliques for it. A forward pass that was
    made stays as it is. Raises what `beliefs` does."""
    work, tables = _forward_pass(state, budget) if work is None else work, state.tables
    n = tables.model.num_variables
    rng, out = np.random.default_rng(0), np.zeros(n)
    states, log_q = np.zeros((n, 1), dtype=np.int32), np.empty(1)
    most = int(tables.model.num_states.max(initial=1))
    done = 0
    num_draws = max(1, min(NUM_DRAWS, MOST_NUMBERS // max(n, 1)))
    while done < num_draws and not (done and budget.must_stop()):
        order, scope = tables.structure.order, tables.structure.scope
        draws.draw(tables.layout, order, scope, work, rng.random((n, 1)), states, log_q, out, most)
        done += 1
    return out / done


def _forward_pass(state: BoundState, budget: Budget) -> Pass:
    """Run a forward pass where the state stands; raises Cancelled where it did not finish."""
    work = state.tables.new_pass()
    if evaluate(state, state.x, work, budget).status != DONE:
        raise Cancelled
    return work
