"""Clamping mini-buckets: where Theorem 2 of [WD16] carries over, and where it does not."""

import math

import numpy as np
from random_factors import random_factors
from slow_structures import slow_structure

import clampz as cz
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.runtime.budget import UNLIMITED

CONVERGED = 1e-6


def upper_of(tables, unary, start=None, evaluations=300):
    state = BoundState.upper(tables, unary, start, budget=UNLIMITED)
    optimise(state, evaluations, budget=UNLIMITED)
    return state


def clamped_sum(tables, variable, start=None, evaluations=300):
    """The sum over the states of a variable, each a lane of its own."""
    begin, end = tables.model.unary.start[variable : variable + 2]
    bounds = []
    for a in range(begin, end):
        unary = tables.model.unary.flat.copy()
        unary[begin:end] = -np.inf
        unary[a] = tables.model.unary.flat[a]
        bounds.append(upper_of(tables, unary, start, evaluations).bound)
    return np.logaddexp.reduce(bounds)


def test_clamping_may_loosen():
    """x = s1 xor s2 by a factor of strength A, and s1 = y1 by one over (s1, y1, y2): the parent is exact, and the sum
    over the clamps of x, which is eliminated first, is not, with shifts and weights optimised again."""
    x, s1, s2, y1, y2 = range(5)
    A = 6.0
    parity, equal = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    for a in np.ndindex(2, 2, 2):
        parity[a] = 0.0 if (a[0] + a[1] + a[2]) % 2 == 0 else -A
        equal[a] = 0.0 if a[0] == a[1] else -A
    model = cz.Model.from_factors([2] * 5, [((x, s1, s2), parity), ((s1, y1, y2), equal)])
    tables = Tables.of(model, slow_structure(model, 8, [x, s1, s2, y1, y2]), budget=UNLIMITED)
    parent = upper_of(tables, model.unary.flat)
    log_z = cz.exact(model).log_z
    assert abs(parent.bound - log_z) < CONVERGED
    for start in (None, parent.x):
        assert clamped_sum(tables, x, start) > parent.bound + 0.5


def test_clamping_the_last_variable_only_tightens():
    """All messages end in one over the variable eliminated last: with the parent's shifts and weights, bounds of the
    lanes add up to no more than the parent's, and optimising them can only lower that."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = random_factors(rng)
        tables = Tables.of(
            model,
            slow_structure(model, int(rng.choice([4, 8])), rng.permutation(model.num_variables)),
            budget=UNLIMITED,
        )
        parent = upper_of(tables, model.unary.flat, evaluations=20)
        if parent.bound == -math.inf:
            continue
        last = int(tables.structure.order[-1])
        for evaluations in (1, 5):
            total = clamped_sum(tables, last, parent.x, evaluations)
            assert total <= parent.bound + 1e-9, seed
