"""Estimates: lanes taken and joined, and the state that every method leaves behind."""

import numpy as np
import pytest

import clampz as cz
from clampz.model.batch import Batch

PAIRWISE = cz.generators.cycle(4, rng=0)
FACTORS = cz.Model.from_factors(
    [2, 3, 2], [((0, 1, 2), np.random.default_rng(0).normal(size=(2, 3, 2))), ((0, 1), np.eye(2, 3))]
)


@pytest.mark.parametrize("method", cz.methods())
@pytest.mark.parametrize("model", [PAIRWISE, FACTORS], ids=["pairwise", "factors"])
def test_lanes_taken_and_joined_are_the_same_estimates(model, method):
    batch = Batch.from_evidence(model, [{}, {0: 0}, {0: 1}])
    found = cz.methods()[method](batch)
    again = found.take(np.array([2, 0])).join([found.take(np.array([1]))])
    assert len(again) == 3 and repr(again).startswith(f"Estimates({method}: 3 lanes, log Z ")
    for ours, b in zip(again, [2, 0, 1], strict=True):
        assert repr(ours) == repr(found[b])
        np.testing.assert_array_equal(ours.marginals.flat, found[b].marginals.flat)
        np.testing.assert_allclose(ours.pairwise_marginals.flat, found[b].pairwise_marginals.flat, atol=1e-12)
        np.testing.assert_allclose(ours.factor_marginals.flat, found[b].factor_marginals.flat, atol=1e-12)


@pytest.mark.parametrize("model", [PAIRWISE, FACTORS], ids=["pairwise", "factors"])
def test_the_edge_weights_of_trw_are_in_its_state(model):
    rho = cz.trw(model).state.rho
    assert rho.shape[1] == 1 and (rho > 0).all() and (rho <= 1).all()
    assert cz.exact(model).state.rho is None and cz.mean_field(model).state.rho is None
