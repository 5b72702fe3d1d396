"""lower <= log Z <= upper at every evaluation, by enumeration: factors, labels, hard zeros, evidence, clamps, warm
starts."""

import math

import numpy as np
import pytest
from enumerated_lanes import TRUTH, lanes_of, log_z_of, scores_of
from random_factors import random_factors
from slow_structures import slow_structure

from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.runtime.budget import UNLIMITED

EVALUATIONS = 7


def check(seed):
    """How many bounds were held against log Z."""
    rng = np.random.default_rng(seed)
    model = random_factors(rng)
    order = rng.permutation(model.num_variables).tolist() if rng.random() < 0.5 else None
    tables = Tables.of(model, slow_structure(model, int(rng.choice([2, 4, 8, 16, 32])), order), budget=UNLIMITED)
    scores = scores_of(model)
    checked = 0
    start = None
    for unary in lanes_of(rng, model):
        log_z = log_z_of(model, scores, unary)
        slack = TRUTH * max(1.0, abs(log_z)) if log_z > -np.inf else 0.0
        upper = BoundState.upper(tables, unary, start, budget=UNLIMITED)
        for side in ("upper", "lower"):
            state = upper if side == "upper" else BoundState.lower(tables, unary, upper.x, budget=UNLIMITED)
            before = state.bound
            for _ in range(EVALUATIONS):
                optimise(state, 1, budget=UNLIMITED)
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
