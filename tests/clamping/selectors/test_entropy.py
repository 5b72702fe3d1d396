"""Entropies under TRW: averaged over branches, and what the +TRE selectors make of them."""

import naive
import numpy as np
import pytest

from clampz import generators
from clampz.approximations.trw import trw
from clampz.clamping.selectors import scores, singleton_entropies
from clampz.model import Model

PLAIN = ["maxW0", "maxW", "Mpower", "frustCycles", "strongCycles"]


@pytest.mark.parametrize("name", PLAIN)
def test_tre_multiplies_by_the_entropy(name):
    model = generators.grid(4, 4, rng=0)
    plain = scores(model, name)
    given = np.random.default_rng(0).random(16)
    np.testing.assert_array_equal(scores(model, f"{name}+TRE", entropy=given), plain * given)
    np.testing.assert_array_equal(scores(model, name, entropy=given), plain)
    np.testing.assert_allclose(scores(model, f"{name}+TRE"), plain * singleton_entropies(trw(model)), rtol=1e-3)
    np.testing.assert_array_equal(
        scores(model, f"{name}+TRE", clamped=[3], entropy=given), scores(model, name, clamped=[3]) * given
    )


def test_entropies_are_averaged_with_the_weights_of_the_branches():
    model = generators.grid(3, 3, rng=0)
    estimates = trw(model, evidence=[{4: 0}, {4: 1}])
    weight = np.exp(estimates.log_z - estimates.log_z.max())
    weight /= weight.sum()
    expected = sum(
        w * np.array([naive.entropy(table) for table in estimate.marginals])
        for w, estimate in zip(weight, estimates, strict=True)
    )
    found = singleton_entropies(estimates)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert found[4] == 0


def test_entropies_of_any_labels():
    model = Model([np.zeros(3), np.zeros(2), np.zeros(4)])
    np.testing.assert_allclose(singleton_entropies(trw(model)), np.log([3, 2, 4]), rtol=1e-9)
