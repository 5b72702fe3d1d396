"""Scores of configurations, and local search for one of large score in all tables of a model end to end."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.map_inference import local_search
from clampz.model import Model
from clampz.model.data import add_exactly
from clampz.model.tables import offsets
from clampz.numerics import EPS, Floats, Integers
from clampz.runtime.budget import Budget

States = NDArray[np.int32]

# Variables that a kick may change at most.
KICKED = 4
# A hard zero costs this many times what a variable could gain otherwise.
PENALTY = 4.0
# Kicks between two looks at the clock, or one for this many variables: each look costs a pass over all of them.
KICKS, VARIABLES_PER_KICK = 256, 64
# Inverse temperatures at which annealing begins and ends, in units of what is at stake at a variable, and numbers that
# are drawn for it at a time.
HOT, COLD, DRAWN_AT_A_TIME = 3.0, 20.0, 2**20
# Seconds that a sweep of it takes for each state of each variable of a table, about.
SWEEP_SECONDS = 8e-9


@dataclass(frozen=True, eq=False)
class Terms:
    """The tables of variables, edges and larger factors, in this order.

    Attributes
    ----------
    arrays
        What `_kernels.map_inference.local_search` takes.
    sweep_seconds, kick_seconds
        Seconds that a sweep of annealing takes, about, and a kick, after which neighbours are visited.
    """

    arrays: tuple[NDArray[Any], ...]
    sweep_seconds: float
    kick_seconds: float

    @classmethod
    def of(cls, model: Model, budget: Budget) -> "Terms":
        """Lay out the tables of a model; Cancelled where the budget ends first."""
        n, m, factors = model.num_variables, model.num_edges, model.factors
        edges, states = model.edges.astype(np.int64), model.num_states
        scope = np.concatenate([np.arange(n), edges.ravel(), factors.variables])
        scope_start = np.concatenate([np.arange(n), n + 2 * np.arange(m), n + 2 * m + factors.scope_start])
        budget.check_stop()
        pairs = np.ones((m, 2), dtype=np.int64)
        pairs[:, 0] = states[edges[:, 1]]
        tables = (model.unary, model.pairwise, factors)
        start = offsets(np.concatenate([np.diff(each.start) for each in tables]))
        budget.check_stop()
        by_variable = np.argsort(scope, kind="stable")
        budget.check_stop()
        strides = np.concatenate([np.ones(n, dtype=np.int64), pairs.ravel(), factors.strides])
        budget.check_stop()
        flat = _without_zeros(np.concatenate([each.flat for each in tables]), start, scope_start, scope)
        budget.check_stop()
        table_of = np.repeat(np.arange(len(start) - 1), np.diff(scope_start))
        at = offsets(np.bincount(scope, minlength=n)), by_variable
        arrays = (np.array(states), scope_start, scope, strides, start, flat, table_of, *at)
        sweep_seconds, arities = SWEEP_SECONDS * float(states[scope].sum()), np.diff(scope_start)
        visits = 2.0 * min(n, KICKED * (1.0 + float((arities * (arities - 1)).sum()) / max(n, 1)))  # and back
        return cls(arrays, sweep_seconds, visits * sweep_seconds / max(n, 1))

    def climb(self, states: States, num_kicks: int, rng: np.random.Generator, budget: Budget) -> States:
        """Return a configuration that is no worse, after `num_kicks` or at the end of the budget."""
        x = states.copy()
        at_a_time = max(KICKS, len(x) // VARIABLES_PER_KICK)
        for first in range(0, max(num_kicks, 1), at_a_time):
            uniform = rng.random((min(at_a_time, num_kicks - first), 1 + 3 * KICKED))
            budget.run(local_search.hill_climb, *self.arrays, uniform, x)
            if budget.must_stop():
                break
        return x

    def anneal(self, states: States, num_sweeps: int, rng: np.random.Generator, budget: Budget) -> States:
        """Return a configuration after sweeps that cool down, scaled by what is at stake at a local maximum.

        It is returned as it is where nothing is at stake, or there is no time for all sweeps.
        """
        stakes = np.empty(len(states))
        local_search.fill_stakes(*self.arrays, states, stakes)
        at_stake = stakes[stakes > 0.0]
        if not len(at_stake) or num_sweeps * self.sweep_seconds > budget.left():
            return states
        x, betas = states.copy(), np.geomspace(HOT, COLD, num_sweeps) / np.median(at_stake)
        for some in np.array_split(betas, max(1, len(x) * num_sweeps // DRAWN_AT_A_TIME)):
            budget.run(local_search.anneal, *self.arrays, some, rng.random((len(some), len(x))), x)
            if budget.must_stop():
                break
        return self.climb(x, 0, rng, budget)


def first_states(model: Model) -> States:
    """Return the configuration that the variables' own tables would choose."""
    unary, start = model.unary.flat, model.unary.start
    if not model.num_variables:
        return np.zeros(0, dtype=np.int32)
    top = np.repeat(np.maximum.reduceat(unary, start[:-1]), model.num_states)
    best = np.flatnonzero(unary == top)
    found = best[np.searchsorted(best, start[:-1])] - start[:-1]
    return found.astype(np.int32)


def score_of(model: Model, states: States) -> float:
    """Return the score of a configuration, rounded once."""
    x, (i, j), factors = states.astype(np.int64), model.edges.T, model.factors
    steps = x[factors.variables] * factors.strides
    places = np.add.reduceat(steps, factors.scope_start[:-1]) if len(factors) else steps
    values = [
        model.unary.flat[model.unary.start[:-1] + x],
        model.pairwise.flat[model.pairwise.start[:-1] + x[i] * model.num_states[j] + x[j]],
        factors.flat[factors.start[:-1] + places],
    ]
    return added_once([model.constant], *values)


def largest_sum(model: Model) -> float:
    """Return what no configuration exceeds: the largest entries of all tables, rounded up."""
    tables = model.unary, model.pairwise, model.factors
    tops = [np.maximum.reduceat(each.flat, each.start[:-1]) for each in tables if len(each.flat)]
    total = added_once([model.constant], *tops)
    return total + EPS * abs(total) if total > -np.inf else total


def folding_error(model: Model) -> float:
    """Return what a score may be off by where entries of tables were added up before, each sum rounded once."""
    total = abs(model.constant)
    for each in (model.unary, model.pairwise, model.factors):
        if len(each.flat):
            sizes = np.abs(np.where(np.isfinite(each.flat), each.flat, 0.0))
            total += float(np.maximum.reduceat(sizes, each.start[:-1]).sum())
    return 2 * EPS * total


def rounded_sum(values: list[float], sense: float) -> float:
    """Return the sum of rounded numbers, moved up (sense 1) or down by what that may have changed."""
    total = math.fsum(values)
    return total + sense * 2 * EPS * math.fsum(map(abs, values)) if math.isfinite(total) else total


def added_once(*parts: Floats | list[float]) -> float:
    """Return the sum of all numbers, as if exactly and then rounded."""
    terms = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    return float(add_exactly(np.zeros(1), np.zeros(len(terms), dtype=np.int64), terms)[0])


def num_bytes(model: Model) -> int:
    """Return the bytes that the terms of a model take, and making them."""
    num_places = model.num_variables + 2 * model.num_edges + len(model.factors.variables)
    return 8 * (3 * model.num_entries + 10 * num_places + 12 * model.num_variables)


def _without_zeros(flat: Floats, start: Integers, scope_start: Integers, scope: Integers) -> Floats:
    """Replace hard zeros by numbers that no variable gains as much from as they cost."""
    zero = flat == -np.inf
    if not zero.any():
        return flat
    flat[zero] = 0.0
    ranges = np.maximum.reduceat(flat, start[:-1]) - np.minimum.reduceat(flat, start[:-1])
    gains = np.bincount(scope, np.repeat(ranges, np.diff(scope_start)))
    flat[zero] = -PENALTY * (1.0 + float(gains.max()))
    return flat
