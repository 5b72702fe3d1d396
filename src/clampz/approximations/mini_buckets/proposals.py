"""Proposals: configurations drawn from an upper bound, with weights that the bound limits, `f(x) / q(x) <= exp(bound)`.

Where no bucket is split the bound is log Z, every weight is Z, and the draws are the model's own. A block of draws
follows from the seed and the block's number alone.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.mini_buckets import draws
from clampz._kernels.mini_buckets.layout import DONE, NOTHING, Pass
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import SECONDS_PER_ENTRY, BoundState, evaluate
from clampz.model.model import Model
from clampz.numerics import Floats
from clampz.runtime.budget import Budget, Cancelled, run_cancellable

# Random numbers that a block of draws takes at most; and draws in it at most.
BLOCK_NUMBERS, MOST_IN_BLOCK = 2**19, 2**11
# Seconds that a draw takes for each entry of the tables that it looks at, and each axis of those.
SECONDS_PER_LOOK = 10e-9
NO_LOSSES = np.empty(0)

States = NDArray[np.int32]


class Draws(NamedTuple):
    """Configurations (N, n) and log f / q of each (N,). -inf where a draw ran into no possible state, or into an
    impossible one: it counts, with weight zero."""

    states: States
    log_weights: Floats


@dataclass(frozen=True, eq=False)
class Proposal:
    """A distribution q over the configurations of one lane.

    Attributes
    ----------
    model
        With the lane's unary tables.
    bound
        Certified: log f(x) / q(x) <= bound for every configuration, and log Z <= bound.
    is_exact
        No bucket is split: every weight is Z but for rounding.
    """

    model: Model
    tables: Tables
    bound: float
    is_exact: bool
    _pass: Pass

    @classmethod
    def of(cls, state: BoundState, unary: Floats, budget: Budget) -> "Proposal | None":
        """Make the proposal of an upper bound for the lane with these unary tables; None where it shows that Z = 0.
        Raises Cancelled where the budget is over first."""
        tables, work = state.tables, state.tables.new_pass()
        found = evaluate(state, state.x, work, budget, matching=state.matching)
        if found.status == NOTHING:
            return None
        if found.status != DONE:
            raise Cancelled
        expected = SECONDS_PER_ENTRY * len(work.table)
        if not run_cancellable(budget, expected, draws.fill_proposal, tables.layout, state.theta, state.x, work):
            raise Cancelled
        model = Model.from_contents(tables.model.contents._replace(unary=unary))
        is_exact = tables.structure.num_cliques == model.num_variables
        return cls(model, tables, found.value + found.error, is_exact, work)

    @property
    def block_size(self) -> int:
        """Return the number of draws in a block, fixed for a model."""
        return max(1, min(MOST_IN_BLOCK, BLOCK_NUMBERS // max(1, self.model.num_variables)))

    @property
    def seconds_per_draw(self) -> float:
        """Estimate the seconds of a draw."""
        structure = self.tables.structure
        first = structure.scope[structure.scope_start[:-1]]
        return SECONDS_PER_LOOK * (len(structure.scope) + int(self.model.num_states[first].sum()))

    def draw(self, seed: int, block: int, size: int | None = None) -> Draws:
        """Draw a block of `size` configurations, the same for the same seed, number and size."""
        n, structure = self.model.num_variables, self.tables.structure
        size = self.block_size if size is None else min(size, self.block_size)
        rng = np.random.Generator(np.random.Philox(key=seed, counter=block << 64))
        uniform = rng.random((n, size))
        drawn = np.zeros((n, size), dtype=np.int32)
        log_q = np.empty(size)
        most = int(self.model.num_states.max(initial=1))
        draws.draw(
            self.tables.layout, structure.order, structure.scope, self._pass, uniform, drawn, log_q, NO_LOSSES, most
        )
        states = np.ascontiguousarray(drawn.T)
        log_weights = np.minimum(self.model.scores(states) - log_q, self.bound)  # rounding aside, it is
        return Draws(states, log_weights)
