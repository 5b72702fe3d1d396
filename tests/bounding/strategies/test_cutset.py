"""Cutsets: every value is a lower bound, none is below the one before, joint states are summed once each and likely
ones first, and when all are summed that is log Z."""

import math

import numpy as np
import pytest
from budgets import Asked
from random_models import random_of_any_kind
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape
from clampz.bounding.strategies import cutset
from clampz.bounding.conditioning import sum_sets
from clampz.bounding.strategies.cutset import CutsetSums
from clampz.bounding.leaves.proposal_source import ProposalSource
from clampz.runtime.budget import Budget

ROUNDING = 1e-9


@pytest.fixture
def small_sums(monkeypatch):
    """Sums of a few entries, so that small models have cutsets, chosen by few draws."""
    monkeypatch.setattr(cutset, "LEAST_ENTRIES", 4.0)
    monkeypatch.setattr(cutset, "MOST_DRAWS", 1)
    monkeypatch.setattr(cutset, "MOST_ORDERS", 2)


def separated(model, max_table=8, **changes):
    source = ProposalSource(MiniBucketBounds(model, Shape(max_table), Shape(max_table), 2.0**40), None, 5)
    return CutsetSums(model, source, **{"seconds": 1.0, **changes})


def summed(found, truth, most=60, budget=None):
    """Sum until nothing is left, or this many times, looking at every value."""
    before = -math.inf
    for _ in range(most):
        if found.is_over:
            break
        value = found.step(budget or Budget())
        assert before <= value <= truth
        before = value
    return found


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_every_value_is_a_lower_bound_and_the_last_is_log_z(small_sums, first):
    num_separated = num_complete = 0
    for seed in range(first, first + 40):
        model = [random_of_any_kind, random_model][seed % 2](seed)
        truth = Enumerated(model).log_z
        found = summed(separated(model, max_table=2 ** (1 + seed % 4)), truth)
        num_separated += found.num_sums > 1
        lower, upper = found.ends
        assert lower <= truth <= upper
        if found.complete:
            num_complete += 1
            assert lower == upper or upper - lower < ROUNDING * (1 + abs(truth))
    assert num_separated > 5 and num_complete > 2


@pytest.fixture(scope="module")
def torus():
    """Cutsets of many joint states are taken where there is time for few sums."""
    model = cz.generators.grid(9, 9, weights=(-6, 6), rng=0)
    return model, cz.exact(model)


def test_the_likeliest_states_are_summed_first(torus):
    model, truth = torus
    found = separated(model, max_table=64, seconds=0.5)
    found.step(Budget())
    assert found.planned is not None and found.num_sums == 0
    summed(found, truth.upper, 3)
    likeliest = found._lower[:3]
    assert found.num_sums > 0 and found.ends[0] > truth.log_z - 1.0
    assert np.logaddexp.reduce(likeliest) > truth.log_z - 2.0


def test_what_is_promised_is_about_what_comes(torus):
    model, truth = torus
    found = separated(model, max_table=64, seconds=0.5)
    assert found.expected(1.0) == math.inf  # nobody knows yet
    found.step(Budget())
    assert -math.inf < found.expected(found.planned.seconds * 4) < found.expected(60.0) < truth.log_z + 0.5
    assert found.expected(60.0) > truth.log_z - 0.5
    summed(found, truth.upper, 2)
    assert found.expected(0.0) == pytest.approx(found.ends[0])


def test_only_a_part_where_that_is_asked_for(small_sums):
    model = cz.generators.complete(8, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    found = summed(separated(model, most_share=0.5), truth.upper, 200)
    assert found.is_over and not found.complete and found.ends[1] == math.inf
    assert 0 < found.num_sums <= 2 ** len(found.planned.cutset.fixed) / 2


@pytest.mark.parametrize("most", [1, 2, 5, 20, 100])
def test_stopped_anywhere_and_gone_on_with(small_sums, most):
    model = cz.generators.complete(9, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    found = separated(model)
    summed(found, truth.upper, 1, Asked(most))
    summed(found, truth.upper)
    assert found.is_over and (found.planned is None or found.complete)


def test_what_there_is_no_memory_or_no_need_for_is_not_summed(small_sums):
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    assert sum_sets(separated(model, memory=1000.0), 60.0, Budget()) == (-math.inf, math.inf)
    impossible = cz.Model(np.zeros((3, 2)), {(0, 1): np.full((2, 2), -np.inf)})
    for nothing in (impossible, cz.Model([], {}), cz.Model([[0.0, 1.0]], {})):
        found = summed(separated(nothing), math.inf)
        assert found.is_over and not found.complete and found.ends == (-math.inf, math.inf)


@pytest.mark.parametrize("most", [0, 1, 4])
def test_what_is_too_much_to_remember_is_forgotten(small_sums, monkeypatch, most):
    monkeypatch.setattr(cutset, "MOST_WAITING", most)
    model = cz.generators.complete(8, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    found = summed(separated(model), truth.upper, 30)
    assert found.ends[0] <= truth.upper and truth.lower <= found.ends[1]


def test_larger_factors_and_more_states_beyond_those_that_evidence_rules_out(small_sums):
    rng = np.random.default_rng(0)
    scopes = [sorted(rng.choice(8, size=3, replace=False).tolist()) for _ in range(14)]
    model = cz.Model.from_factors([3] * 8, [(scope, rng.normal(size=(3, 3, 3))) for scope in scopes])
    unary = model.unary.flat.copy()
    unary[[1, 5]] = -np.inf
    model = cz.Model.from_contents(model.contents._replace(unary=unary))
    truth = cz.exact(model)
    found = summed(separated(model, max_table=27), truth.upper, 300)
    assert found.num_sums > 1 and found.ends[0] > truth.log_z - 2.0
