"""Trivial bounds: ends of log Z from one look at each table."""

import numpy as np
import pytest
from random_models import random_of_any_kind

import clampz as cz
from clampz.bounding.strategies.trivial_bounds import trivial_bounds


@pytest.mark.parametrize("seed", range(200))
def test_they_hold_on_models_of_any_kind(seed):
    model = random_of_any_kind(seed)
    truth = cz.exact(model)
    lower, upper = trivial_bounds(model)
    assert lower <= truth.upper and truth.lower <= upper


@pytest.mark.parametrize("size", [1.0, 1e6, 1e15])
def test_rounding_is_charged(size):
    """Independent variables: log Z is the upper end but for rounding, and of one state each also the lower one."""
    for labels in (1, 2, 1000):
        unary = size + np.full((50, labels), np.log(2.0))
        model = cz.Model.from_arrays(unary, np.empty((0, 2), dtype=int), np.empty((0, labels, labels)))
        lower, upper = trivial_bounds(model)
        truth = 50 * (size + np.log(2.0) + np.log(labels))
        assert lower <= truth <= upper and upper - truth <= 1e-12 * (truth + 50 * labels)


def test_a_bracket_has_them_though_there_is_no_time():
    """However large the model: both ends are finite at once."""
    model = cz.generators.grid(120, 120, weights=(-4, 4), rng=0)
    found = cz.bound(model, time=0.0)
    lower, upper = trivial_bounds(model)
    assert lower <= found.lower < found.upper <= upper < np.inf
