"""Methods beside the tree: mean field, Bethe, TRW and the best configuration."""

import math

import numpy as np
import pytest
from random_factors import random_factors
from random_models import frustrated

import clampz as cz
from clampz.approximations.mean_field import mean_field
from clampz.bounding.strategies.methods import run_both, run_mean_field, run_mode, run_trw
from clampz.map_inference import mode
from clampz.runtime.budget import Budget


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
