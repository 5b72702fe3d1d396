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


@pytest.mark.parametrize("method", cz.methods())
@pytest.mark.parametrize("model", [PAIRWISE, FACTORS], ids=["pairwise", "factors"])
def test_marginals_of_every_lane(model, method):
    found = cz.methods()[method](model, evidence=[{}, {0: 0}, {1: 1}])
    for name in ("marginals", "pairwise_marginals", "factor_marginals"):
        lanes = getattr(found, name)
        assert len(lanes) == 3 and repr(lanes) == "PerLane(3 lanes)"
        for ours, one in zip(lanes, found, strict=True):
            assert type(ours) is type(getattr(one, name))
            np.testing.assert_array_equal(ours.flat, getattr(one, name).flat)
    assert found.marginals[1][0].tolist() == pytest.approx([1.0, 0.0], abs=1e-14)
    assert found.marginals[-1][1][1] == pytest.approx(1.0, abs=1e-14)
    with pytest.raises(IndexError):
        found.pairwise_marginals[3]


def test_marginals_of_lanes_as_one_array():
    assert np.asarray(cz.exact(PAIRWISE, evidence=[{}, {0: 1}]).marginals).shape == (2, 4, 2)
