"""Bounds from narrow parts."""

import itertools

import numpy as np
import pytest

import clampz as cz
from clampz.bracketing.narrow import Narrow, NarrowState
from clampz.watch import Overdue, Watch
from random_models import random_of_any_kind


def at(marginals):
    return NarrowState.at(marginals, marginals)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_from_narrow_parts_hold(seed):
    model = random_of_any_kind(seed)
    truth = cz.exact(model)
    start = cz.mean_field(model)
    rng = np.random.default_rng(seed)
    for limit in (4.5, 40.0, 1e6):
        narrow = Narrow.of(model, limit)
        assert np.any(narrow.masks, axis=0).all()
        found = narrow.bounds(model.unary.flat, at(start.marginals.flat), int(rng.integers(1, 30)))
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if narrow.is_exact and truth.log_z > -np.inf:
            assert found.upper - found.lower < 1e-6


def test_nothing_is_proven_where_nothing_is_possible():
    """K4 in three colours has no solution: however many looks at the clock it is stopped after, the lower bound is
    minus infinity."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((4, 3)), {(i, j): table for i, j in itertools.combinations(range(4), 2)})
    narrow = Narrow.of(model, 1.0)
    with pytest.raises(Overdue):
        narrow.bounds(model.unary.flat, at(np.full(12, 1 / 3)), 5, Watch(0.0))
    for looks in range(1, 60):
        left = iter(range(looks))
        watch = Watch(stop=lambda left=left: next(left, None) is None)
        try:
            found = Narrow.of(model, 1.0).bounds(model.unary.flat, at(np.full(12, 1 / 3)), 5, watch)
        except Overdue:
            continue
        assert found.lower == -np.inf
    assert looks and found.upper < np.inf


def test_hard_zeros_between_parts():
    """A ring in three colours: states that a neighbouring part forbids are left out of q, and a bound worth having
    remains."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((8, 3)), {(i, (i + 1) % 8): table for i in range(8)})
    start = cz.mean_field(model).marginals.flat
    for limit in (70.0, 300.0):
        found = Narrow.of(model, limit).bounds(model.unary.flat, at(start), 5)
        assert -1e-6 < found.lower <= cz.exact(model).log_z <= found.upper


def test_wider_parts_are_tighter():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=0)
    start = at(cz.mean_field(model).marginals.flat)
    gaps = []
    for limit in (2.0, 2.0**7, 2.0**14):
        found = Narrow.of(model, limit).bounds(model.unary.flat, start, 60)
        gaps.append(found.upper - found.lower)
    assert gaps[0] > gaps[1] > gaps[2]


def test_parts_of_one_variable_are_mean_field():
    model = cz.generators.grid(4, 4, rng=1)
    q = cz.mean_field(model, tol=1e-10)
    found = Narrow.of(model, 2.0).bounds(model.unary.flat, at(q.marginals.flat), 2)
    assert found.lower == pytest.approx(q.lower, abs=1e-4)
