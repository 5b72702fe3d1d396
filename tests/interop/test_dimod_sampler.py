"""dimod's SampleSet and a sampler that its own contract tests accept."""

import unittest
import warnings

import numpy as np
import pytest

import clampz as cz

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dimod = pytest.importorskip("dimod")
    testing = pytest.importorskip("dimod.testing")

from clampz.interop.dimod import ClampzSampler


@testing.load_sampler_bqm_tests(ClampzSampler)
class TestContract(unittest.TestCase):
    """dimod's tests of samplers, on models of its own."""

    def test_api(self):
        testing.asserts.assert_sampler_api(ClampzSampler())


def test_low_energies_are_likely():
    bqm = dimod.BinaryQuadraticModel.from_ising({"a": 0.3, 7: -0.2}, {("a", 7): -1.0, (7, (1, 2)): 0.5})
    found = ClampzSampler().sample(bqm, num_reads=20_000, beta=0.7, seed=3)
    assert list(found.variables) == ["a", 7, (1, 2)] and found.info["kind"] == "exact" and len(found) == 20_000
    exact = {tuple(s.values()): e for s, e in dimod.ExactSolver().sample(bqm).data(["sample", "energy"])}
    weights = {x: np.exp(-0.7 * energy) for x, energy in exact.items()}
    states, seen = np.unique(found.record.sample, axis=0, return_counts=True)
    for x, count in zip(states.tolist(), seen, strict=True):
        p = weights[tuple(x)] / sum(weights.values())
        assert abs(count / 20_000 - p) < 5 * np.sqrt(p * (1 - p) / 20_000)
    again = ClampzSampler().sample(bqm, num_reads=20_000, beta=0.7, seed=3)
    assert np.array_equal(found.record.sample, again.record.sample)


def test_other_ways_in():
    sampler = ClampzSampler()
    assert set(sampler.sample_ising({0: 1.0}, {(0, 1): -1.0}, num_reads=5).vartype.value) == {-1, 1}
    assert set(sampler.sample_qubo({(0, 1): -1.0}, num_reads=5).vartype.value) == {0, 1}
    with pytest.warns(UserWarning, match="unknown kwarg"):
        sampler.sample_qubo({(0, 1): -1.0}, anneal=5)


def test_samplesets():
    model = cz.generators.grid(3, 3, rng=0)
    samples = cz.sample(model, 50)
    found = cz.to_dimod_sampleset(samples, beta=2.0)
    assert found.vartype is dimod.BINARY and list(found.variables) == list(range(9))
    np.testing.assert_array_equal(found.record.sample, samples.states)
    np.testing.assert_allclose(found.record.energy, cz.to_dimod(model, beta=2.0).energies(found))
    spins = cz.to_dimod_sampleset(samples, vartype="SPIN")
    np.testing.assert_array_equal(spins.record.sample, 2 * samples.states - 1)
    weighted = cz.sample(model, 50, method="weighted", max_table=4)
    np.testing.assert_allclose(cz.to_dimod_sampleset(weighted).record.log_weight, weighted.log_weights)
    assert cz.to_dimod_sampleset(weighted).info["kind"] == "weighted"
    with pytest.raises(cz.errors.ModelError, match="variable 0 of 3 states"):
        cz.to_dimod_sampleset(cz.sample(cz.generators.cycle(4, labels=3, rng=0), 5))
    with pytest.raises(cz.errors.OptionError, match="beta: expected"):
        cz.to_dimod_sampleset(samples, beta=0)
