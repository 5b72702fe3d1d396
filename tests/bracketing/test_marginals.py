"""Intervals for marginals."""

import numpy as np
import pytest

import clampz as cz
from clampz.bracketing.marginals import _interval
from random_models import random_of_any_kind


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_marginals_lie_in_their_intervals(seed, exact):
    model = random_of_any_kind(seed, 7)
    truth = cz.exact(model)
    if truth.log_z == -np.inf:
        return
    found = cz.bound_marginals(model, exact=exact, time=0.3, gap=1e-3)
    for i in range(model.num_variables):
        assert (found.lower[i] <= truth.marginals[i] + 1e-9).all() and (
            truth.marginals[i] <= found.upper[i] + 1e-9
        ).all()


def test_marginals_of_some_variables_by_name():
    model = cz.generators.barbell(2.0)
    found = cz.bound_marginals(model, ["X3", 0], gap=1e-6)
    assert set(found.lower) == {2, 0} and found.stopped_by == "exact" and found.widest < 1e-6
    low, high = found.interval("X3").T
    assert (low <= cz.exact(model).marginals[2]).all() and (cz.exact(model).marginals[2] <= high).all()


def test_intervals_where_bounds_are_far_apart():
    """Neither underflow nor cancellation makes an interval too small."""
    low, high = _interval(np.array([-np.inf, -np.inf]), np.array([0.0, -800.0]))
    assert (low == 0).all() and (high == 1).all()
    low, high = _interval(np.array([-46.0, -41.0]), np.array([0.0, -40.0]))
    assert low[0] == pytest.approx(1 / (1 + np.exp(6.0)), rel=1e-6) and high[0] == 1


def test_strong_potentials_have_honest_marginals():
    rng = np.random.default_rng(3)
    model = cz.Model(
        3000 * rng.normal(size=(4, 2)), {(i, j): 3000 * rng.normal(size=(2, 2)) for i in range(4) for j in range(i)}
    )
    truth = cz.exact(model)
    found = cz.bound_marginals(model, exact=False, max_iter=1, time=0, threads=1)
    for i in range(4):
        assert (found.lower[i] <= truth.marginals[i] + 1e-9).all() and (
            truth.marginals[i] <= found.upper[i] + 1e-9
        ).all()


def test_intervals_of_wide_bounds():
    low, high = _interval(np.array([-np.inf, 0.0]), np.array([np.inf, 1.0]))
    assert (low == 0).all() and (high == 1).all()
    low, high = _interval(np.array([0.0, 0.0]), np.array([0.0, 0.0]))
    assert low == pytest.approx([0.5, 0.5]) and high == pytest.approx([0.5, 0.5])
