"""Samples follow the model: chi-square over all joint states, means against exact marginals, weights on average."""

from functools import cache

import numpy as np
import pytest
from random_models import random_tables
from scipy import stats
from small_models import all_configurations, p_value, possible_evidence, probabilities, random_model

import clampz as cz
from clampz.presolve.simplified import unchanged
from clampz.sampling import choice

NUM_MODELS = 200
NUM_SAMPLES = 2000
SEED = 11
# A chi-square test of this level fails by chance once in ten thousand runs of 200 models; seeds are fixed.
LEVEL = 5e-7


@cache
def cases():
    rng, found = np.random.default_rng(SEED), []
    for _ in range(NUM_MODELS):
        model = random_model(rng)
        evidence = possible_evidence(model, rng)
        found.append((model, evidence, probabilities(model, evidence)))
    return found


@pytest.fixture
def as_it_is(monkeypatch):
    """Models are drawn from as they are: most small ones are narrow after the presolve."""
    monkeypatch.setattr(choice, "simplify", lambda model, **_: unchanged(model, "sum"))


def assert_uniform(values):
    """p-values of true hypotheses are uniform, but for what is discrete about them."""
    assert min(values) > LEVEL
    assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_exact_samples_follow_the_model():
    values = []
    for seed, (model, evidence, truth) in enumerate(cases()):
        found = cz.sample(model, NUM_SAMPLES, evidence=evidence, threads=1, rng=seed)
        assert found.kind == "exact" and found.is_exact and len(found) == found.num_drawn == NUM_SAMPLES
        assert not found.log_weights.any()
        values.append(p_value(model, found.states, truth))
    assert_uniform(values)


def test_samples_by_rejection_follow_the_model(as_it_is):
    values, split = [], 0
    for seed, (model, evidence, truth) in enumerate(cases()):
        found = cz.sample(model, NUM_SAMPLES, evidence=evidence, method="rejection", max_table=2, threads=1, rng=seed)
        split += found.kind == "rejection" and found.num_drawn > NUM_SAMPLES
        assert found.is_exact and len(found) == NUM_SAMPLES
        values.append(p_value(model, found.states, truth))
    assert split > NUM_MODELS / 2
    assert_uniform(values)


def test_what_simplifying_leaves_is_drawn_from_and_the_rest_given_that():
    rng = np.random.default_rng(SEED)
    edges = [(i, j) for i in range(6) for j in range(i)] + [(5, 6), (6, 7)]
    for zeros in (0.0, 0.1):
        model = random_tables(rng, [2] * 8, edges, zeros=zeros)
        assert cz.simplify(model, marginals=False, pairwise=True).model.num_variables < 8
        found = cz.sample(model, 20_000, method="rejection", max_table=2)
        assert found.kind == "rejection"
        assert p_value(model, found.states, probabilities(model)) > LEVEL


def test_weighted_samples_are_right_on_average(as_it_is):
    """Every configuration's probability within its standard error, log Z too: dead draws count."""
    deviations = []
    for seed, (model, evidence, truth) in enumerate(cases()):
        found = cz.sample(model, NUM_SAMPLES, evidence=evidence, method="weighted", max_table=2, threads=1, rng=seed)
        assert found.kind == "weighted" and len(found) == NUM_SAMPLES
        place = np.ravel_multi_index(found.states.T, tuple(model.num_states))
        share = np.bincount(place, found.weights, len(truth))
        squares = np.bincount(place, found.weights**2, len(truth))
        error = np.sqrt(np.maximum(squares * (1 - 2 * share) + share**2 * (found.weights**2).sum(), 0.0))
        likely = (truth > 0.02) & (truth < 0.98)
        deviations += ((share - truth)[likely] / (error[likely] + 1e-9)).tolist()
        assert not share[truth == 0].any()
        given = cz.exact(model, evidence=evidence).log_z
        assert abs(found.log_z - given) < 6 * np.sqrt(1 / found.effective_size) + 1e-9
    deviations = np.array(deviations)
    assert np.abs(deviations).max() < 6 and 0.9 < deviations.std() < 1.1


def test_chains_come_close_to_the_model():
    """Where they can move: no hard zeros.  Samples of a chain depend on each other, so means alone are tested."""
    rng = np.random.default_rng(SEED)
    deviations = []
    for seed in range(10):
        model = random_model(rng, zeros=0.0)
        found = cz.sample(model, NUM_SAMPLES, method="gibbs", max_table=2, threads=1, rng=seed)
        assert found.kind == "gibbs" and not found.is_exact and found.num_chains == 16
        truth, states = probabilities(model), all_configurations(model)
        for i, (means, errors) in enumerate(zip(found.marginals, found.standard_errors, strict=True)):
            true = np.bincount(states[:, i], truth, len(means))
            deviations += ((means - true) / errors).tolist()
        assert 0 < found.effective_size <= len(found)
    assert np.abs(deviations).max() < 6 and np.std(deviations) < 1.3


def test_chains_keep_to_what_is_possible():
    rng = np.random.default_rng(SEED)
    for seed in range(10):
        model = random_model(rng, zeros=0.3)
        found = cz.sample(model, 200, method="gibbs", threads=1, rng=seed)
        assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("options", [{}, {"max_table": 2**8}, {"max_table": 2**7, "method": "weighted"}])
def test_means_of_a_torus(options):
    model = cz.generators.grid(9, 9, rng=0)
    found, exact = cz.sample(model, 4000, **options), cz.exact(model)
    assert found.kind == {None: "exact", 2**8: "rejection", 2**7: "weighted"}[options.get("max_table")]
    deviation = (found.marginals.flat - exact.marginals.flat) / found.standard_errors.flat
    assert np.abs(deviation).max() < 4
    assert 0.6 < deviation.std() < 1.3
    assert found.log_z == pytest.approx(exact.log_z, abs=1e-9 if not options else 0.1)
