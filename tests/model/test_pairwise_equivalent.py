"""The pairwise equivalent of a model with larger factors: made once per model, and gone with it."""

import gc
import weakref

import numpy as np
import pytest

import clampz as cz
from clampz.model.pairwise_equivalent import Equivalent
from clampz.runtime.budget import UNLIMITED


def model_with_a_factor(seed):
    rng = np.random.default_rng(seed)
    return cz.Model.from_factors(
        [2, 2, 3], [((0, 1, 2), rng.normal(size=(2, 2, 3))), ((0, 1), rng.normal(size=(2, 2)))]
    )


@pytest.mark.parametrize(
    ("seed", "run"),
    [
        (0, cz.trw),
        (1, cz.bethe),
        (2, lambda model: cz.clamp(model, k=1)),
        (3, lambda model: Equivalent.of(model, UNLIMITED)),
    ],
)
def test_a_model_with_factors_is_freed_when_nobody_holds_it(seed, run):
    model = model_with_a_factor(seed)
    run(model)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_a_result_keeps_its_model():
    model = model_with_a_factor(10)
    alive, estimate = weakref.ref(model), cz.trw(model)
    del model
    gc.collect()
    assert alive() is estimate.model
    assert estimate.pairwise_marginals[0, 1].sum() == pytest.approx(1)


def test_an_edge_that_would_leave_the_range_of_potentials_stays_an_edge():
    table, pair = np.full((2, 2, 2), 9e19), np.array([[8e19, 0.0], [0.0, -8e19]])
    model = cz.Model([[0, 0]] * 3, {(0, 1): pair}, factors=[((0, 1, 2), table)])
    truth, found = cz.exact(model), cz.trw(model)
    assert found.upper >= truth.lower
    assert cz.bound(model, time=5).upper >= truth.lower
