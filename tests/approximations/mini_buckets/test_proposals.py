"""Draws from upper bounds: weights that the bound limits, right on average, the same for the same seed."""

import itertools
import math

import numpy as np
import pytest
from budgets import Asked
from random_factors import random_factors

from clampz.approximations.mini_buckets import clique_tables as tables
from clampz.approximations.mini_buckets import proposals
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import Structure
from clampz.runtime.budget import UNLIMITED, Cancelled

SEED = 5


def proposal(model, max_table, evaluations=8):
    state = BoundState.upper(
        Tables.of(model, Structure.of(model, max_table, budget=UNLIMITED), budget=UNLIMITED),
        model.unary.flat,
        budget=UNLIMITED,
    )
    optimise(state, evaluations, budget=UNLIMITED)
    return Proposal.of(state, model.unary.flat, budget=UNLIMITED)


def all_configurations(model):
    return np.array(list(itertools.product(*map(range, model.num_states))), dtype=np.int32)


@pytest.mark.parametrize("seed", range(30))
def test_weights_are_right_on_average_and_below_the_bound(seed):
    """Dead draws count: a model with hard zeros has the mean weight Z only with them."""
    model = random_factors(np.random.default_rng(seed), zeros=0.2 * (seed % 2))
    z = np.exp(model.scores(all_configurations(model)))
    for max_table in (2, 8, 2**16):
        found = proposal(model, max_table)
        if z.sum() == 0.0:
            assert found is None or np.isneginf(found.draw(SEED, 0).log_weights).all()
            continue
        assert math.log(z.sum()) <= found.bound
        weights = np.exp(np.concatenate([found.draw(SEED, block).log_weights for block in range(4)]))
        assert weights.max() <= math.exp(found.bound)
        error = weights.std() / math.sqrt(len(weights))
        assert abs(weights.mean() - z.sum()) <= 5 * error + 1e-9 * z.sum()
        if found.is_exact:
            assert np.allclose(weights, z.sum(), rtol=1e-9)


def test_draws_that_no_bucket_splits_are_the_models_own():
    model = random_factors(np.random.default_rng(3), zeros=0.1)
    found = proposal(model, 2**16)
    assert found.is_exact
    states = np.concatenate([found.draw(SEED, block).states for block in range(10)])
    place = np.ravel_multi_index(states.T, model.num_states)
    seen = np.bincount(place, minlength=math.prod(model.num_states))
    expected = np.exp(model.scores(all_configurations(model)))
    expected *= len(states) / expected.sum()
    assert not seen[expected == 0].any()
    likely = expected > 5
    chi_square = ((seen - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi_square < likely.sum() + 5 * math.sqrt(2 * likely.sum())


def test_a_block_is_the_same_whoever_draws_it():
    model = random_factors(np.random.default_rng(1), zeros=0.0)
    one, other = proposal(model, 4), proposal(model, 4)
    assert np.array_equal(one.draw(SEED, 7).states, other.draw(SEED, 7).states)
    assert not np.array_equal(one.draw(SEED, 7).states, one.draw(SEED, 8).states)
    assert not np.array_equal(one.draw(SEED, 7).states, one.draw(SEED + 1, 7).states)


def test_blocks_hold_what_they_are_allowed(monkeypatch):
    model = random_factors(np.random.default_rng(1), zeros=0.0)
    n = model.num_variables
    for numbers in (1, n, 3 * n - 1, 3 * n, 2**30):
        monkeypatch.setattr(proposals, "BLOCK_NUMBERS", numbers)
        found = proposal(model, 4)
        assert found.block_size == len(found.draw(SEED, 0).states) == max(1, min(numbers // n, proposals.MOST_IN_BLOCK))


def test_a_lane_is_laid_out_in_pieces_and_left_between_them(monkeypatch):
    model = random_factors(np.random.default_rng(SEED))
    layout = Tables.of(model, Structure.of(model, 2**16, budget=UNLIMITED), budget=UNLIMITED)
    whole = BoundState.upper(layout, model.unary.flat, budget=UNLIMITED).theta
    monkeypatch.setattr(tables, "PIECE", 7)
    assert np.array_equal(BoundState.upper(layout, model.unary.flat, budget=Asked(10**6)).theta, whole)
    with pytest.raises(Cancelled):
        BoundState.upper(layout, model.unary.flat, budget=Asked(2))
