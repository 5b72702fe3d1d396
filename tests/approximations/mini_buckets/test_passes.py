"""Forwards and backwards against their slow twin, against enumeration, and against finite differences."""

import math

import numpy as np
import pytest
from naive import enumerate_factors
from naive_bounds import naive_bound
from random_factors import random_factors
from slow_structures import slow_structure

from clampz.approximations.mini_buckets.beliefs import beliefs
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, backward_pass, evaluate, optimise
from clampz.runtime.budget import UNLIMITED

EXACT = 1e-10


def tables_of(model, max_table, order=None):
    return Tables.of(model, slow_structure(model, max_table, order), budget=UNLIMITED)


def random_state(rng, model, max_table, side):
    """A point that no descent begins at."""
    tables = tables_of(model, max_table)
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    state.x[:] = rng.normal(size=len(state.x))
    if side == "lower":
        state = BoundState.lower(tables, model.unary.flat, state.x, budget=UNLIMITED)
        state.x[:] = rng.normal(size=len(state.x))
    return state


def factors_of(model):
    """All of a model's tables, as pairs (scope, table)."""
    return [
        *(((i,), model.unary[i]) for i in range(model.num_variables)),
        *model.pairwise.items(),
        *((factor.scope, factor.table) for factor in model.factors),
    ]


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("block", [1, 4, 256])
def test_forwards_is_its_slow_twin(side, block, monkeypatch):
    monkeypatch.setattr("clampz.approximations.mini_buckets.clique_tables.BLOCK", block)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = random_factors(rng)
        state = random_state(rng, model, int(rng.choice([2, 8, 30])), side)
        found = evaluate(state, state.x, state.tables.new_pass(), budget=UNLIMITED)
        expected = naive_bound(model, model.unary.flat, state.tables.structure, state.x, state.main)
        assert found.value == expected or abs(found.value - expected) <= found.error, (seed, found, expected)
        assert found.error < 1e-9


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_gradients_are_finite_differences(side):
    step = 1e-5
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = random_factors(rng, zeros=0.0 if side == "lower" else None)
        state = random_state(rng, model, int(rng.choice([2, 8, 16])), side)
        work = state.tables.new_pass()
        if not math.isfinite(evaluate(state, state.x, work, budget=UNLIMITED).value):
            continue
        gradient = np.empty_like(state.x)
        assert backward_pass(state, state.x, work, gradient, budget=UNLIMITED)

        def value(k, by, state=state, work=work):
            x = state.x.copy()
            x[k] += by
            return state.sign * evaluate(state, x, work, budget=UNLIMITED).value

        for k in rng.permutation(len(state.x))[:40]:
            slope = (value(k, step) - value(k, -step)) / (2 * step)
            assert abs(slope - gradient[k]) <= 1e-5 * max(1.0, abs(slope)), (seed, k)


def test_one_clique_a_bucket_is_exact():
    """Without a limit there is nothing to shift, both bounds are log Z, and beliefs are marginals."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        model = random_factors(rng)
        log_z, unary, _ = enumerate_factors(model.num_states, factors_of(model), model.constant)
        tables = tables_of(model, 10**6)
        assert tables.structure.num_shifted == 0
        upper = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
        optimise(upper, 3, budget=UNLIMITED)
        lower = BoundState.lower(tables, model.unary.flat, upper.x, budget=UNLIMITED)
        optimise(lower, 3, budget=UNLIMITED)
        assert lower.bound <= log_z <= upper.bound
        if log_z == -math.inf:
            assert upper.bound == log_z
            continue
        assert upper.bound - lower.bound < EXACT
        found = beliefs(upper, budget=UNLIMITED)
        assert np.allclose(found.marginals, np.concatenate(unary), rtol=0, atol=EXACT)
        for c in range(len(tables.structure.parent)):
            scope, belief = found.clique(c)
            joint = enumerate_factors(model.num_states, [*factors_of(model), (scope, np.zeros(belief.shape))])[2][-1]
            assert np.allclose(belief, joint, rtol=0, atol=EXACT)
