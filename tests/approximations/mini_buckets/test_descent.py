"""Descents that are left and resumed, lanes side by side, numbers at their limits."""

import math

import numpy as np
import pytest
from budgets import Asked
from naive import enumerate_model
from naive_bounds import naive_bound
from slow_structures import slow_structure

import clampz as cz
from clampz._kernels.statuses import STOPPED
from clampz.approximations.mini_buckets import descent
from clampz.approximations.mini_buckets.beliefs import beliefs, beliefs_and_losses, losses
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, evaluate, optimise, optimise_lanes
from clampz.approximations.mini_buckets.structure import Structure
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled
from clampz.runtime.workers import Workers


def frustrated(max_table=8):
    model = cz.generators.complete(8, weights=(-4, 4), rng=3)
    return model, Tables.of(model, slow_structure(model, max_table), budget=UNLIMITED)


def both(tables, unary, evaluations):
    upper = BoundState.upper(tables, unary, budget=UNLIMITED)
    optimise(upper, evaluations, budget=UNLIMITED)
    lower = BoundState.lower(tables, unary, upper.x, budget=UNLIMITED)
    optimise(lower, evaluations, budget=UNLIMITED)
    return upper, lower


def test_bounds_close_in():
    """A larger limit, and more evaluations, are tighter."""
    model, _ = frustrated()
    log_z = cz.exact(model).log_z
    gaps = {}
    for max_table in (4, 16, 64, 256):
        tables = Tables.of(model, slow_structure(model, max_table), budget=UNLIMITED)
        for evaluations in (1, 60):
            upper, lower = both(tables, model.unary.flat, evaluations)
            assert lower.bound <= log_z <= upper.bound
            gaps[max_table, evaluations] = upper.bound - lower.bound
    assert all(gaps[max_table, 60] < gaps[max_table, 1] for max_table in (4, 16, 64))
    assert gaps[4, 60] > gaps[16, 60] > gaps[64, 60] > gaps[256, 60]
    assert gaps[256, 60] < 1e-9


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_a_descent_in_parts_is_one_descent(side):
    model, tables = frustrated()
    whole, parts = (BoundState.upper(tables, model.unary.flat, budget=UNLIMITED) for _ in range(2))
    if side == "lower":
        whole, parts = (
            BoundState.lower(tables, model.unary.flat, state.x, budget=UNLIMITED) for state in (whole, parts)
        )
    optimise(whole, 40, budget=UNLIMITED)
    for _ in range(10):
        optimise(parts, 4, budget=UNLIMITED)
    assert abs(whole.bound - parts.bound) < 0.02  # a step that was being cut is begun again
    one, other = (BoundState.upper(tables, model.unary.flat, budget=UNLIMITED) for _ in range(2))
    optimise(one, 6, budget=UNLIMITED)
    optimise(other, 2, budget=UNLIMITED)
    optimise(other, 4, budget=UNLIMITED)
    assert one.bound == other.bound and np.array_equal(one.x, other.x)


def test_a_stop_leaves_a_bound():
    """At whichever question the budget says stop, inside a pass included, and resumed afterwards."""
    model, tables = frustrated()
    log_z = cz.exact(model).log_z
    for most in (1, 2, 3, 10):
        state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
        optimise(state, 50, Asked(most))
        assert log_z <= state.bound < math.inf
        assert state.num_evaluations <= 1 + 5 * most
        before = state.bound
        optimise(state, 50, budget=UNLIMITED)
        assert log_z <= state.bound < before


@pytest.mark.parametrize("many", ["ENTRY", "CLIQUE"])
def test_a_pass_that_is_stopped_says_nothing(many, monkeypatch):
    monkeypatch.setattr(descent, f"SECONDS_PER_{many}", 1.0)  # so that passes look at the flag
    model, tables = frustrated()
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    budget = Budget()
    budget.stop("time")
    budget.must_stop()
    assert evaluate(state, state.x, tables.new_pass(), budget).status == STOPPED
    optimise(state, 3, budget)
    assert state.bound == math.inf and state.num_evaluations == 0 and not state.settled
    with pytest.raises(Cancelled):
        beliefs(state, budget)
    optimise(state, 3, budget=UNLIMITED)
    assert state.bound >= cz.exact(model).log_z


def test_lanes_are_alone_and_threads_do_not_matter():
    model, tables = frustrated()
    rng = np.random.default_rng(0)
    unary = [model.unary.flat + rng.normal(size=model.unary.flat.shape) for _ in range(5)]
    unary[3][4] = -np.inf
    alone = [BoundState.upper(tables, u, budget=UNLIMITED) for u in unary]
    for state in alone:
        optimise(state, 12, budget=UNLIMITED)
    for num_threads in (1, 3):
        states = [BoundState.upper(tables, u, budget=UNLIMITED) for u in unary]
        with Workers(num_threads) as workers:
            optimise_lanes(states, 12, Budget(), workers)
        assert [state.bound for state in states] == [state.bound for state in alone]


def test_a_warm_start_goes_on_from_there():
    model, tables = frustrated()
    parent = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    optimise(parent, 60, budget=UNLIMITED)
    unary = model.unary.flat + 0.1 * np.random.default_rng(0).normal(size=model.unary.flat.shape)
    warm, cold = (
        BoundState.upper(tables, unary, parent.x, budget=UNLIMITED),
        BoundState.upper(tables, unary, budget=UNLIMITED),
    )
    optimise(warm, 3, budget=UNLIMITED)
    optimise(cold, 3, budget=UNLIMITED)
    assert warm.bound < cold.bound
    assert warm.x is not parent.x


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e15, 1e19])
def test_huge_potentials(scale):
    """Ends are valid, and as far apart as rounding of such numbers is."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        model = cz.generators.complete(6, weights=(-scale, scale), rng=rng)
        tables = Tables.of(model, slow_structure(model, 8), budget=UNLIMITED)
        log_z = enumerate_model(model)[0]
        upper, lower = both(tables, model.unary.flat, 25)
        assert lower.bound <= log_z <= upper.bound
        assert not math.isnan(upper.bound) and not math.isnan(lower.bound)
        assert upper.bound < math.inf
        x = upper.x
        found = evaluate(upper, x, tables.new_pass(), budget=UNLIMITED)
        expected = naive_bound(model, model.unary.flat, tables.structure, x, upper.main)
        assert abs(found.value - expected) <= found.error < 1e-9 * scale


def test_shifts_beyond_all_numbers_prove_nothing():
    model, tables = frustrated()
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    state.x[: tables.structure.num_shifted] = np.resize([np.inf, -1e308, 1e308], tables.structure.num_shifted)
    evaluate(state, state.x, tables.new_pass(), budget=UNLIMITED)
    assert state.bound == math.inf


def test_models_of_nothing_and_of_one_state():
    for model in (cz.Model([]), cz.Model([[0.5]]), cz.Model([[0.25], [1.0, 2.0], [0.5]], constant=3.0)):
        tables = Tables.of(model, slow_structure(model, 4), budget=UNLIMITED)
        upper, lower = both(tables, model.unary.flat, 5)
        log_z = cz.exact(model).log_z
        assert lower.bound <= log_z <= upper.bound <= lower.bound + 1e-12


def test_no_configuration_is_an_upper_bound_of_nothing():
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    tables = Tables.of(model, slow_structure(model, 8), budget=UNLIMITED)
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    optimise(state, 5, budget=UNLIMITED)
    assert state.bound == -math.inf and state.settled and state.num_evaluations == 1


def test_losses_are_where_cliques_disagree(monkeypatch):
    """Nothing is lost at a variable whose bucket is one clique; what is lost in all is about the slack."""
    model, tables = frustrated(16)
    log_z = cz.exact(model).log_z
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    optimise(state, 100, budget=UNLIMITED)
    monkeypatch.setattr("clampz.approximations.mini_buckets.beliefs.NUM_DRAWS", 2000)
    lost = losses(state, budget=UNLIMITED)
    single = np.diff(tables.structure.bucket_start) == 1
    assert (lost >= 0).all() and (lost[tables.structure.order[single]] == 0).all()
    # the draws are not from the model, so only about: upper - log Z is the loss averaged over the model, and more
    assert 0.2 * (state.bound - log_z) < lost.sum() < 5 * (state.bound - log_z)
    assert np.array_equal(lost, losses(state, budget=UNLIMITED))
    both = beliefs_and_losses(state, budget=UNLIMITED)
    assert np.array_equal(both[0].marginals, beliefs(state, budget=UNLIMITED).marginals) and np.array_equal(
        both[1], losses(state, budget=UNLIMITED)
    )


def test_marginals_are_near():
    model, tables = frustrated(64)
    upper, lower = both(tables, model.unary.flat, 100)
    exact = np.concatenate(cz.exact(model).marginals)
    for state in (upper, lower):
        found = beliefs(state, budget=UNLIMITED)
        assert np.abs(found.marginals - exact).max() < 0.25
        assert np.allclose(np.add.reduceat(found.marginals, model.unary.start[:-1]), 1.0)
        for c in range(len(tables.structure.parent)):
            assert abs(found.clique(c)[1].sum() - 1.0) < 1e-9


def test_memory_is_what_is_said():
    """Of all arrays that states, what they share and a pass hold."""
    model = cz.generators.grid(5, 5, labels=3, potentials="table", rng=0)
    tables = Tables.of(model, slow_structure(model, 3**5), budget=UNLIMITED)
    states = [BoundState.upper(tables, model.unary.flat, budget=UNLIMITED) for _ in range(3)]
    for state in states:
        optimise(state, 4, budget=UNLIMITED)

    def held(value):
        if isinstance(value, np.ndarray):
            return value.nbytes
        if isinstance(value, tuple):
            return sum(held(each) for each in value)
        return 0

    shared = held(tuple(vars(tables.structure).values())) + held(tables.layout) + held(tables._kept)
    lanes = sum(held(tuple(value for name, value in vars(state).items() if name != "tables")) for state in states)
    work = held(tables.new_pass()) + 3 * states[0].x.nbytes
    said = tables.structure.num_bytes(3, 1)
    assert 0.8 * said <= shared + lanes + work <= 1.1 * said + 20_000


def test_large_tables_are_laid_out_anew_and_few_steps_remembered(monkeypatch):
    """Neither changes what a lane begins with, or the bounds, by more than the way down to them."""
    model = cz.generators.grid(6, 6, rng=0)
    structure, lanes, bounds = Structure.of(model, 8, budget=UNLIMITED), [], []
    evidence = np.where(np.arange(len(model.unary.flat)) == 1, -np.inf, model.unary.flat)
    usual = structure.num_bytes()
    for large in (False, True):
        if large:
            monkeypatch.setattr("clampz.approximations.mini_buckets.clique_tables.KEPT_ENTRIES", 0)
            monkeypatch.setattr("clampz.approximations.mini_buckets.structure.MANY_NUMBERS", 0)
        tables = Tables.of(model, structure, budget=UNLIMITED)
        lanes.append([each.tobytes() for each in tables.lane(evidence, np.full(36, -1), budget=UNLIMITED)])
        state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
        optimise(state, 60, budget=UNLIMITED)
        bounds.append(state.bound)
    assert lanes[0] == lanes[1] and tables._kept is None
    assert bounds[0] != bounds[1] == pytest.approx(bounds[0], abs=0.05)
    assert structure.num_bytes() < usual


def test_losses_of_large_models_are_of_fewer_draws(monkeypatch):
    model, tables = frustrated()
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    optimise(state, 5, budget=UNLIMITED)
    usual = losses(state, budget=UNLIMITED)
    with monkeypatch.context() as patch:
        patch.setattr("clampz.approximations.mini_buckets.beliefs.NUM_DRAWS", 1)
        single = losses(state, budget=UNLIMITED)
    monkeypatch.setattr("clampz.approximations.mini_buckets.beliefs.MOST_NUMBERS", 1)
    assert np.array_equal(losses(state, budget=UNLIMITED), single) and not np.array_equal(usual, single)


def test_shifts_that_matching_takes_back_are_charged():
    """Large shifts are rounded into the tables before they are cancelled."""
    rng = np.random.default_rng(0)
    pairs = ((0, 1), (0, 2), (1, 2))
    model = cz.Model(rng.normal(size=(3, 2)), {pair: rng.normal(size=(2, 2)) for pair in pairs})
    tables, truth = Tables.of(model, Structure.of(model, 4, budget=UNLIMITED), budget=UNLIMITED), cz.exact(model).log_z
    for seed in range(100):
        shifts = np.random.default_rng(seed)
        x = np.zeros(tables.structure.num_shifted + tables.structure.num_cliques)
        x[: tables.structure.num_shifted] = shifts.normal(size=tables.structure.num_shifted) * 10.0 ** shifts.uniform(
            10, 20
        )
        lower, upper = (
            BoundState.lower(tables, model.unary.flat, x, budget=UNLIMITED),
            BoundState.upper(tables, model.unary.flat, x, budget=UNLIMITED),
        )
        for state in (lower, upper):
            optimise(state, 2, budget=UNLIMITED)
        assert lower.bound <= truth + 1e-9 and truth - 1e-9 <= upper.bound
