"""Work on leaves: what is asked for and what comes back."""

import math
import pickle

import numpy as np
import pytest
from random_factors import random_factors
from random_models import frustrated, random_of_any_kind

import clampz as cz
from clampz.approximations.mean_field import mean_field
from clampz.bounding.leaves.evaluate import LeafWork, run_both, run_mean_field, run_mode, run_trw, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.map_inference.mode import mode
from clampz.runtime.budget import Budget, Cancelled


def lanes_of(model):
    """(S, B) the model itself, and with each state of its first variable ruled out."""
    lanes = [model.unary.flat]
    for state in range(int(model.num_states[0])):
        lanes.append(model.unary.flat.copy())
        lanes[-1][state] = -np.inf
    return np.stack(lanes, axis=1)


def mini_buckets_of(model, max_table):
    return MiniBucketBounds(model, Shape(max_table), Shape(max_table), 1e9) if max_table else None


def work_on(model, exact=True, **asked):
    options = cz.options.BoundOptions(exact=exact)
    return LeafWork(model=model, unary=lanes_of(model), options=options, seconds=60.0, **asked)


@pytest.mark.parametrize("max_table", [0, 40])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_on_every_lane_hold(seed, exact, max_table):
    model = random_of_any_kind(seed, 7)
    work = work_on(model, exact=exact, mini_buckets=mini_buckets_of(model, max_table), num_evaluations=5)
    solved = solve_leaves(work)
    for lane, unary in enumerate(work.unary.T):
        truth = cz.exact(cz.Model.from_flat(model.num_states, unary, model.edges, model.pairwise.flat))
        assert solved.lower[lane] <= truth.upper and truth.lower <= solved.upper[lane]
        assert solved.exact[lane] == exact


def test_work_travels():
    """Sent elsewhere and back, results are the same."""
    model = frustrated(2)
    work = work_on(model, exact=False, mini_buckets=mini_buckets_of(model, 16), num_evaluations=5)
    here, there = solve_leaves(work), solve_leaves(pickle.loads(pickle.dumps(work)))
    assert (here.lower == there.lower).all() and (here.upper == there.upper).all()


def test_a_run_that_is_over_asks_for_little():
    model = frustrated(3)
    budget = Budget(60.0)
    work = work_on(model, mini_buckets=mini_buckets_of(model, 16), num_evaluations=5)
    budget.stopped_by = "interrupt"
    solved = solve_leaves(work, budget)
    assert not any(solved.exact) and not any(solved.states)
    assert solved.lower[0] <= cz.exact(model).log_z <= solved.upper[0]


@pytest.mark.parametrize("seed", range(60))
def test_fields_of_balanced_models_gain_by_bethe_and_are_lower_bounds(seed):
    rng = np.random.default_rng(seed)
    model = cz.generators.grid(3, 3, weights=(0, float(rng.choice([1, 4, 12]))), rng=seed)
    if seed % 2:
        model = model.flip(rng.random(9) < 0.5)
    alone = cz.mean_field(model, seed=0)
    start = alone.marginals.flat if seed % 3 else None
    lower, upper = run_mean_field(model, cz.options.BoundOptions(), 30.0, start=start)
    log_z = cz.exact(model).log_z
    assert lower <= log_z + 1e-9 * max(1.0, abs(log_z)) and log_z <= upper
    assert lower >= alone.lower - 1e-6


def test_fields_of_mixed_models_are_those_of_mean_field():
    model = frustrated(2)
    assert run_mean_field(model, cz.options.BoundOptions(), 30.0)[0] == cz.mean_field(model, seed=0).lower


def test_one_after_the_other_is_as_good_as_both_at_once():
    model = cz.generators.grid(6, 6, weights=(-2, 2), rng=0)
    options = cz.options.BoundOptions()
    lower, upper = run_both(model, options, 20.0)
    assert lower <= cz.exact(model).log_z <= upper
    assert lower == pytest.approx(run_mean_field(model, options, 20.0)[0], abs=1e-6)
    assert upper == pytest.approx(run_trw(model, options, 20.0)[1], abs=1e-6)
    assert run_both(model, options, 0.0, Budget(0.0))[1] == math.inf


def test_an_upper_bound_is_kept_where_time_is_over_before_the_lower_one(monkeypatch):
    model = frustrated(6, 12)

    def is_cancelled(*_):
        raise Cancelled

    monkeypatch.setattr(MiniBucketBounds, "_lower", is_cancelled)
    mini_buckets = mini_buckets_of(model, 16)
    found = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5)
    assert found.lower == -math.inf and cz.exact(model).log_z <= found.upper < math.inf
    with pytest.raises(Cancelled):
        mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5, "lower")


@pytest.mark.parametrize("has_room", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_best_configuration_is_a_lower_bound_and_mean_field_raises_it(monkeypatch, seed, has_room):
    monkeypatch.setattr(type(mean_field), "fits", lambda *_: has_room)
    model = random_factors(np.random.default_rng(seed))
    lower, upper = run_mode(model, cz.options.BoundOptions(), 30.0)
    truth, best = cz.exact(model), cz.mode(model)
    assert lower <= truth.upper and truth.lower <= upper
    assert lower >= best.score - 1e-9 * max(1.0, abs(best.score)) or best.states is None
    assert (upper == -np.inf) == (truth.log_z == -np.inf)


def test_the_best_configuration_is_not_looked_for_without_memory(monkeypatch):
    monkeypatch.setattr(mode, "SPARE_BYTES", 0)
    model = cz.generators.grid(300, 300, rng=0)
    assert run_mode(model, cz.options.BoundOptions(memory=1_000_000), 30.0) == (-np.inf, np.inf)
