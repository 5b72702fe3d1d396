"""Methods on all of the model, each quantum from where the last one ended, and the best configuration."""

import math

import numpy as np
import pytest
from random_factors import random_factors
from random_models import frustrated

import clampz as cz
from clampz.approximations.mean_field import mean_field
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies.best_configuration import BestConfiguration
from clampz.bounding.strategies.bethe import Bethe
from clampz.bounding.strategies.mean_field import MeanField
from clampz.bounding.strategies.trw import Trw
from clampz.map_inference import mode
from clampz.runtime.budget import Budget


def run(kind, problem, most=200):
    """Run a strategy until it has nothing left to do."""
    strategy, budget = kind(problem), Budget(60.0)
    for _ in range(most):
        quantum = strategy.next(30.0, budget, 1)
        if quantum is None or strategy.is_done:
            break
        strategy.take(quantum, quantum.function(*quantum.args, quantum.budget))
    return problem.ends


@pytest.mark.parametrize("seed", range(60))
def test_fields_of_balanced_models_gain_by_bethe_and_are_lower_bounds(seed):
    rng = np.random.default_rng(seed)
    model = cz.generators.grid(3, 3, weights=(0, float(rng.choice([1, 4, 12]))), rng=seed)
    if seed % 2:
        model = model.flip(rng.random(9) < 0.5)
    alone = cz.mean_field(model, seed=0)
    problem = Problem(model, BoundOptions())
    by_fields = run(MeanField, problem)[0] if seed % 3 else -math.inf
    lower, upper = run(Bethe, problem)
    log_z = cz.exact(model).log_z
    assert by_fields <= lower <= log_z + 1e-9 * max(1.0, abs(log_z)) and log_z <= upper
    assert lower >= alone.lower - 1e-6


def test_fields_of_mixed_models_are_those_of_mean_field():
    model = frustrated(2)
    problem = Problem(model, BoundOptions())
    lower = run(MeanField, problem)[0]
    assert lower == cz.mean_field(model, seed=0).lower
    assert run(Bethe, problem)[0] == lower  # which is no bound here


@pytest.mark.parametrize(("kind", "end"), [(MeanField, "lower"), (Trw, "upper")])
def test_many_short_quanta_come_as_far_as_a_long_one(kind, end):
    model = cz.generators.grid(6, 6, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    found = [run(kind, Problem(model, BoundOptions(max_iter=sweeps))) for sweeps in (10_000, 20)]
    for lower, upper in found:
        assert lower <= truth.upper and truth.lower <= upper
    at = ("lower", "upper").index(end)
    assert math.isfinite(found[0][at]) and found[0][at] == pytest.approx(found[1][at], abs=1e-3)


def test_trw_optimizes_its_edge_weights():
    model = cz.generators.grid(6, 6, weights=(-2, 2), rng=0)
    upper = run(Trw, Problem(model, BoundOptions()))[1]
    assert (
        upper == pytest.approx(cz.trw(model, edge_weights="optimized").upper, abs=1e-3) and upper < cz.trw(model).upper
    )


@pytest.mark.parametrize("has_room", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_best_configuration_is_a_lower_bound_and_mean_field_raises_it(monkeypatch, seed, has_room):
    monkeypatch.setattr(type(mean_field), "fits", lambda *_: has_room)
    model = random_factors(np.random.default_rng(seed))
    lower, upper = run(BestConfiguration, Problem(model, BoundOptions()), most=1)
    truth, best = cz.exact(model), cz.mode(model)
    assert lower <= truth.upper and truth.lower <= upper
    assert lower >= best.score - 1e-9 * max(1.0, abs(best.score)) or best.states is None
    assert (upper == -np.inf) == (truth.log_z == -np.inf)


def test_the_best_configuration_is_not_looked_for_without_memory(monkeypatch):
    monkeypatch.setattr(mode, "SPARE_BYTES", 0)
    problem = Problem(cz.generators.grid(300, 300, rng=0), BoundOptions(memory="40MB", threads=100))
    strategy = BestConfiguration(problem)
    quantum = strategy.next(30.0, Budget(60.0), 1)
    strategy.take(quantum, quantum.function(*quantum.args, quantum.budget))
    assert strategy.is_done and problem.ends == (-np.inf, np.inf)
