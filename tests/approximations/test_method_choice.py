"""Which approximation is nearer: mean field on dense, mixed and strong models, Bethe on all others."""

import numpy as np
import pytest

import clampz as cz
from clampz import generators
from clampz.approximations.method_choice import prefers_mean_field


def with_larger_factors() -> cz.Model:
    rng = np.random.default_rng(0)
    return cz.Model.from_factors([2] * 8, [((i, i + 1, i + 2), 9 * rng.normal(size=(2, 2, 2))) for i in range(6)])


def with_zeros() -> cz.Model:
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    return cz.Model([np.zeros(3)] * 8, {(i, j): differ for i in range(8) for j in range(i)})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (generators.complete(15, weights=(-12, 12), rng=0), True),
        (generators.complete(15, weights=(-6, 6), rng=0), True),
        (generators.complete(20, weights=(-2, 2), rng=0), False),  # dense, weak
        (generators.complete(15, weights=(0, 12), rng=0), False),  # attractive
        (generators.grid(7, 7, weights=(-6, 6), rng=0), False),  # sparse
        (generators.complete(10, labels=3, weights=(-12, 12), rng=0), True),
        (generators.grid(5, 5, labels=3, weights=(-12, 12), rng=0), False),
        (with_zeros(), False),
        (with_larger_factors(), False),
        (cz.Model([]), False),
    ],
)
def test_what_is_dense_and_strong(model, expected):
    assert prefers_mean_field(model) is expected
