"""lower <= log Z <= upper at every evaluation, by enumeration: factors, labels, hard zeros, evidence, clamps, warm
starts."""

import math

import numpy as np
import pytest
from random_factors import random_factors
from slow_structures import slow_structure

from clampz.approximations.mini_buckets.descent import State, optimise
from clampz.approximations.mini_buckets.tables import Tables

# What the enumeration itself may be wrong by, in extended precision.
TRUTH = 1e-15
EVALUATIONS = 7


def scores_of(model):
    """Scores of all configurations, less the unary tables."""
    n = model.num_variables
    out = np.full(model.num_states, model.constant, dtype=np.longdouble)

    def wide(scope, table):
        shape = [int(model.num_states[i]) if i in scope else 1 for i in range(n)]
        return np.transpose(table.astype(np.longdouble), np.argsort(scope)).reshape(shape)

    for pair, table in model.pairwise.items():
        out = out + wide(pair, table)
    for factor in model.factors:
        out = out + wide(factor.scope, factor.table)
    return out


def log_z_of(model, scores, unary):
    for i in range(model.num_variables):
        shape = [1] * model.num_variables
        shape[i] = -1
        start = model.unary.start
        scores = scores + unary[start[i] : start[i + 1]].reshape(shape)
    top = scores.max()
    return top if top == -np.inf else top + np.log(np.exp(scores - top).sum())


def lanes_of(rng, model):
    """The model's own unary tables, others, and some with states ruled out: evidence, and both sides of a clamp."""
    own = model.unary.flat
    other = own + rng.normal(size=own.shape)
    i = int(rng.integers(model.num_variables))
    begin, end = model.unary.start[i], model.unary.start[i + 1]
    clamped = own.copy()
    clamped[begin:end][np.arange(end - begin) != rng.integers(end - begin)] = -np.inf
    return [own, other, clamped]


def check(seed):
    """How many bounds were held against log Z."""
    rng = np.random.default_rng(seed)
    model = random_factors(rng)
    order = rng.permutation(model.num_variables).tolist() if rng.random() < 0.5 else None
    tables = Tables.of(model, slow_structure(model, int(rng.choice([2, 4, 8, 16, 32])), order))
    scores = scores_of(model)
    checked = 0
    start = None
    for unary in lanes_of(rng, model):
        log_z = log_z_of(model, scores, unary)
        slack = TRUTH * max(1.0, abs(log_z)) if log_z > -np.inf else 0.0
        upper = State.upper(tables, unary, start)
        for side in ("upper", "lower"):
            state = upper if side == "upper" else State.lower(tables, unary, upper.x)
            before = state.bound
            for _ in range(EVALUATIONS):
                optimise(state, 1)
                checked += 1
                assert not math.isnan(state.bound)
                if side == "upper":
                    assert log_z - slack <= state.bound <= before, (seed, log_z, state.bound)
                else:
                    assert before <= state.bound <= log_z + slack, (seed, log_z, state.bound)
                before = state.bound
                if state.settled:
                    break
        start = upper.x
    return checked


def test_bounds_hold_at_every_evaluation():
    assert sum(check(seed) for seed in range(600)) > 9_000


@pytest.mark.large
def test_bounds_hold_on_many_models():
    assert sum(check(seed) for seed in range(600, 30_000)) > 300_000
