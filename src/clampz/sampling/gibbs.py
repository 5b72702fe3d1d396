"""Markov chains: blocked Gibbs sampling over random trees.

A step draws a forest of variables jointly, given all others; which forest is chosen at random, whatever the
configuration, so every step leaves the model's distribution as it is.  Hard zeros may keep a chain from configurations
that others reach: chains begin at different draws, and their samples are never called exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clampz._kernels.sampling.forest_gibbs import ForestFunctions, draw_forest
from clampz.approximations.mini_buckets.proposals import Draws, States
from clampz.errors import ModelError
from clampz.exact_inference.scopes import Scopes
from clampz.model import Model
from clampz.model.factors import FactorTables
from clampz.runtime.budget import Budget, run_cancellable
from clampz.runtime.workers import Workers

# Chains that are begun; steps of each before the first that counts.
NUM_CHAINS, STEPS_BEFORE = 16, 50
# Where the numbers of chains are, apart from those of draws.
CHAINS = 3 << 192
# Seconds that a step takes for each entry of the model's tables, about.
SECONDS_PER_ENTRY = 2e-8


@dataclass(frozen=True, eq=False)
class Chains:
    """Markov chains of a model, each with random numbers of its own, so that samples do not depend on threads.

    Attributes
    ----------
    start
        (C, n) where they begin.
    """

    functions: ForestFunctions
    start: States
    seed: int

    @classmethod
    def begun(cls, model: Model, draws: Draws, seed: int) -> "Chains":
        """Begin chains at weighted draws, taken by their weights; ModelError where none of them is possible."""
        top = draws.log_weights.max(initial=-np.inf)
        if top == -np.inf:
            raise ModelError(
                f"none of {len(draws.log_weights):,} draws is a possible configuration, and chains need one to begin "
                "at: raise max_table=, or allow more time= or memory="
            )
        weights = np.exp(draws.log_weights - top)
        taken = np.random.default_rng([seed, 1]).choice(len(weights), NUM_CHAINS, p=weights / weights.sum())
        return cls(functions_of(model), draws.states[taken], seed)

    @property
    def number(self) -> int:
        return len(self.start)

    def steps(self, budget: Budget, workers: Workers) -> Iterator[States]:
        """Yield the states (C, n) of all chains after every step that counts, until the budget ends.

        Where it ends before the first such step, yield where the chains are then.
        """
        states = self.start.copy()
        rngs = [
            np.random.Generator(np.random.Philox(key=self.seed, counter=CHAINS + (chain << 64)))
            for chain in range(self.number)
        ]
        n = states.shape[1]
        expected = SECONDS_PER_ENTRY * len(self.functions.values)

        def step(chain: int) -> bool:
            rng = rngs[chain]
            order, uniform = rng.permutation(n), rng.random(n)
            return bool(run_cancellable(budget, expected, draw_forest, self.functions, order, uniform, states[chain]))

        chains, number = list(range(self.number)), 0
        while not budget.must_stop() and all(workers.map(step, chains)):
            number += 1
            if number > STEPS_BEFORE:
                yield states.copy()
        if 0 < number <= STEPS_BEFORE:
            yield states


def functions_of(model: Model) -> ForestFunctions:
    """Lay out a model's tables as the kernel wants them."""
    scopes = Scopes.of(model)
    values = np.concatenate([model.unary.flat, model.pairwise.flat, model.factors.flat])
    tables = FactorTables(scopes.num_states, scopes.start, scopes.variables, values)
    of = np.argsort(scopes.variables, kind="stable")
    of_start = np.searchsorted(scopes.variables[of], np.arange(model.num_variables + 1))
    return ForestFunctions(
        num_states=tables.num_states,
        start=tables.scope_start,
        variables=tables.variables,
        strides=tables.strides,
        table_start=tables.start,
        values=tables.flat,
        home=np.repeat(np.arange(len(tables)), np.diff(tables.scope_start)),
        of_start=of_start,
        of=of,
        state_start=model.unary.start,
    )
