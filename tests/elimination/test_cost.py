"""What exact sums cost: the same numbers whoever asks, never less for more work."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.elimination import cost
from clampz.elimination.cost import exact_cost, seconds
from clampz.elimination.slices import SlicedPlan


def test_more_entries_take_longer():
    entries = 2.0 ** np.arange(0, 40)
    for marginals in (False, True):
        found = [seconds(each, marginals=marginals) for each in entries]
        assert (np.diff(found) > 0).all()
    assert seconds(0.0) == cost.SECONDS_PER_SUM
    assert seconds(math.inf) == math.inf


def test_beyond_the_cache_and_with_marginals_an_entry_costs_more():
    cached, beyond = cost.CACHED_ENTRIES, 8 * cost.CACHED_ENTRIES
    assert seconds(cached) - cost.SECONDS_PER_SUM == pytest.approx(cached * cost.SECONDS_PER_ENTRY)
    assert seconds(beyond) - cost.SECONDS_PER_SUM == pytest.approx(beyond * cost.SECONDS_BEYOND)
    assert seconds(beyond, marginals=True) > seconds(beyond)


def test_sums_apart_stay_in_the_cache():
    beyond = 8 * cost.CACHED_ENTRIES
    assert seconds(beyond, at_once=cost.CACHED_ENTRIES) < seconds(beyond) == seconds(beyond, at_once=beyond)


def test_slices_and_exact_count_alike():
    model = cz.generators.grid(9, 9, rng=0)
    found = exact_cost(model, marginals=False)
    assert found.plan is not None
    entries = found.plan.elimination.order.total
    alone = SlicedPlan((), entries, 1).seconds
    assert found.seconds == pytest.approx(alone + 81 * cost.SECONDS_PER_VARIABLE)
    assert SlicedPlan((0,), entries, 2).seconds == 2 * alone


def test_exact_cost():
    found = exact_cost(cz.generators.grid(5, 5, rng=0))
    assert 0 < found.seconds < 1
    assert found.num_bytes == found.plan.elimination.num_bytes()
    assert not found.at_least
    assert exact_cost(cz.generators.grid(5, 5, rng=0), marginals=False).num_bytes < found.num_bytes
    assert exact_cost(cz.generators.grid(5, 5, rng=0), marginals=False).seconds < found.seconds


def test_where_no_order_is_completed_it_takes_at_least_that():
    found = exact_cost(cz.generators.grid(60, 60, rng=0))
    assert found.at_least and found.plan is None
    assert found.num_bytes >= 8 * 2**59 and found.seconds > 1e6


def test_evidence_makes_it_cheaper():
    model = cz.generators.complete(14, rng=0)
    fixed = cz.Model([[0.0, -math.inf] if i < 6 else model.unary[i] for i in range(14)], dict(model.pairwise.items()))
    assert exact_cost(fixed).width == exact_cost(model).width - 6
