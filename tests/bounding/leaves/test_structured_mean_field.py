"""Structured mean field: lower bounds from narrow subgraphs."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from random_models import random_of_any_kind

import clampz as cz
from clampz.bounding.leaves.structured_mean_field import StructuredMeanField
from clampz.runtime.budget import Budget


@pytest.mark.parametrize("seed", range(60))
def test_bounds_from_narrow_parts_hold(seed):
    model = random_of_any_kind(seed)
    truth, start = cz.exact(model), cz.mean_field(model).marginals.flat
    for max_table in (4.5, 40.0, 1e6):
        subgraphs = StructuredMeanField.of(model, max_table)
        lower, _ = subgraphs.lower(model.unary.flat, [start, np.full_like(start, 0.5)])
        assert lower <= truth.upper
        if not subgraphs.labels.any() and truth.log_z > -np.inf:
            assert lower > truth.lower - 1e-6


def test_nothing_is_proven_where_nothing_is_possible():
    """K4 in three colours has no solution: however many looks at the clock it is stopped after, the lower bound is
    minus infinity."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((4, 3)), {(i, j): table for i, j in itertools.combinations(range(4), 2)})
    even = np.full(12, 1 / 3)
    assert StructuredMeanField.of(model, 1.0).lower(model.unary.flat, [even], Budget(0.0))[0] == -np.inf
    for looks in range(1, 60):
        left = iter(range(looks))
        budget = Budget(stop=lambda left=left: next(left, None) is None)
        assert StructuredMeanField.of(model, 1.0).lower(model.unary.flat, [even], budget)[0] == -np.inf


def test_hard_zeros_between_parts():
    """A ring in three colours: states that a neighbouring part forbids are left out of q, and a bound worth having
    remains."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((8, 3)), {(i, (i + 1) % 8): table for i in range(8)})
    start = cz.mean_field(model).marginals.flat
    for max_table in (70.0, 300.0):
        lower, _ = StructuredMeanField.of(model, max_table).lower(model.unary.flat, [start])
        assert -1e-6 < lower <= cz.exact(model).log_z


def test_wider_parts_are_tighter():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=0)
    start = [cz.mean_field(model).marginals.flat]
    found = [
        StructuredMeanField.of(model, max_table).lower(model.unary.flat, start)[0]
        for max_table in (2.0, 2.0**7, 2.0**14)
    ]
    assert found[0] < found[1] < found[2]


def test_parts_of_one_variable_are_mean_field():
    model = cz.generators.grid(4, 4, rng=1)
    q = cz.mean_field(model, tol=1e-10)
    lower, _ = StructuredMeanField.of(model, 2.0).lower(model.unary.flat, [q.marginals.flat])
    assert lower == pytest.approx(q.lower, abs=1e-4)


def test_parts_serve_many_threads():
    """Each has working memory of its own."""
    model = cz.generators.grid(5, 5, weights=(-6, 6), rng=0)
    sums = StructuredMeanField.of(model, 1e9).sums_of(model.unary.flat, Budget())
    lanes = [model.unary.flat + shift for shift in np.linspace(0, 1, 8)]

    def log_z(lane):
        with sums.workspace() as workspace:
            return sums.parts[0].moments(lane, model.pairwise.flat, workspace, Budget()).log_z

    wanted = [log_z(lane) for lane in lanes]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert list(pool.map(log_z, lanes)) == wanted
