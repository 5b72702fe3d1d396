"""Exact sums by fixing a few variables first."""

import numpy as np
import pytest

import clampz as cz
from clampz.elimination.slices import Finish, Finisher
from random_models import random_of_any_kind


@pytest.mark.parametrize("seed", range(20))
def test_fixing_variables_sums_to_the_whole(seed):
    model = random_of_any_kind(seed, 7)
    finisher, truth = Finisher(model), cz.exact(model)
    for fixed in [(), (0,), (1, 0), tuple(range(model.num_variables - 1))]:
        lower, upper = finisher.total(model.unary.flat, Finish(fixed, 1.0, 1))
        assert lower <= truth.upper and truth.lower <= upper
        assert upper - lower < 1e-6 or upper == -np.inf


def test_plans_keep_to_the_seconds():
    model = cz.generators.complete(24, rng=0)
    finisher = Finisher(model)
    assert finisher.plan(model.unary.flat, 1e-3) is None
    plan = finisher.plan(model.unary.flat, 60.0, memory=2**20)
    assert plan is not None and plan.fixed and 8 * plan.entries <= 2**20 and plan.seconds <= 60
