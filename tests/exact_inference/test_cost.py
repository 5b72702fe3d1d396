"""What exact sums cost: the same numbers whoever asks, never less for more work."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.exact_inference import cost
from clampz.exact_inference.cost import Speed, seconds
from clampz.exact_inference.running import exact_cost
from clampz.exact_inference.slicing import Slicing


def test_more_entries_take_longer():
    entries = 2.0 ** np.arange(0, 40)
    for marginals in (False, True):
        found = [seconds(each, marginals=marginals) for each in entries]
        assert (np.diff(found) > 0).all()
    assert seconds(0.0) == cost.SECONDS_PER_SUM
    assert seconds(math.inf) == math.inf


def test_beyond_the_cache_and_with_marginals_an_entry_costs_more():
    cached, beyond = cost.CACHED_ENTRIES, 8 * cost.CACHED_ENTRIES
    new = Speed()
    assert seconds(cached, speed=new) - cost.SECONDS_PER_SUM == pytest.approx(cached * cost.SECONDS_PER_ENTRY)
    assert seconds(beyond, speed=new) - cost.SECONDS_PER_SUM == pytest.approx(beyond * cost.SECONDS_BEYOND)
    assert seconds(beyond, marginals=True) > seconds(beyond)


def test_sums_apart_stay_in_the_cache():
    beyond, new = 8 * cost.CACHED_ENTRIES, Speed()
    whole = seconds(beyond, speed=new)
    assert seconds(beyond, at_once=cost.CACHED_ENTRIES, speed=new) < whole == seconds(beyond, at_once=beyond, speed=new)


def test_the_machine_at_hand_tells_how_fast_it_is():
    cached, beyond = cost.CACHED_ENTRIES, 2.0**30
    speed = Speed()
    for _ in range(50):
        speed.learn(cached, 20, 3 * cached * 8e-9, marginals=True)
    assert speed.rate(cached) == pytest.approx(3 * 8e-9 / cost.WITH_MARGINALS)
    assert speed.rate(beyond) == cost.SECONDS_BEYOND
    for _ in range(50):
        speed.learn(beyond, 30, beyond * 30e-9, marginals=False)
    assert speed.rate(beyond) == pytest.approx(30e-9)
    assert seconds(beyond, speed=speed) == pytest.approx(beyond * 30e-9, rel=1e-3)


def test_contractions_have_a_rate_of_their_own():
    speed = Speed()
    for _ in range(50):
        speed.learn(2.0**30, 30, 2.0**30 * 5e-9, marginals=False, contracted=True)
    assert speed.rate(2.0**30, contracted=True) == pytest.approx(5e-9)
    assert speed.rate(2.0**30) == cost.SECONDS_BEYOND
    assert seconds(2.0**30, contracted=True, speed=speed) == pytest.approx(2.0**30 * 5e-9, rel=1e-3)


def test_one_sum_in_a_bad_moment_does_not_end_all_trying():
    cached, beyond = cost.CACHED_ENTRIES, 2.0**30
    speed = Speed()
    for took in (1e4, 1e-1):
        for _ in range(50):
            speed.learn(cached, 20, took, marginals=False)
            assert cost.SECONDS_PER_ENTRY / 3 <= speed.rate(cached) <= 10 * cost.SECONDS_PER_ENTRY
            assert speed.rate(cached) <= speed.rate(beyond)  # never less for more


def test_nothing_is_learned_from_sums_that_are_short_or_spend_their_time_elsewhere():
    speed = Speed()
    for entries, variables in ((0.0, 0), (1e5, 10)):  # whoever else was at work then
        speed.learn(entries, variables, 1.0, marginals=False)
    speed.learn(4e6, 10**6, 5.0, marginals=False)
    assert speed.rate(cost.CACHED_ENTRIES) == cost.SECONDS_PER_ENTRY and speed.rate(2.0**30) == cost.SECONDS_BEYOND


def test_sums_are_what_is_learned_from(monkeypatch):
    learned = []
    monkeypatch.setattr(cost.SPEED, "learn", lambda entries, variables, took, **how: learned.append(entries))
    model = cz.generators.grid(5, 5, rng=0)
    cz.exact(model)
    learned.clear()
    cz.exact(model)
    cz.exact(model, marginals=False)
    assert learned == 2 * [exact_cost(model).plan.how.visits]


def test_slices_and_exact_count_alike():
    model = cz.generators.grid(9, 9, rng=0)
    found = exact_cost(model, marginals=False)
    assert found.plan is not None
    elimination = found.plan.how
    alone = Slicing((), elimination.visits, 1, tree=elimination.tree).seconds
    assert found.seconds == pytest.approx(alone + 81 * cost.SECONDS_PER_VARIABLE)
    assert Slicing((0,), elimination.visits, 2, tree=elimination.tree).seconds == 2 * alone
    assert Slicing((0,), 1e6, 2).seconds == 2 * seconds(1e6)


def test_exact_cost():
    found = exact_cost(cz.generators.grid(5, 5, rng=0))
    assert 0 < found.seconds < 1
    assert found.num_bytes == found.plan.how.num_bytes()
    assert not found.at_least
    assert exact_cost(cz.generators.grid(5, 5, rng=0), marginals=False).num_bytes < found.num_bytes
    assert exact_cost(cz.generators.grid(5, 5, rng=0), marginals=False).seconds < found.seconds


def test_where_no_order_is_completed_it_takes_at_least_that():
    found = exact_cost(cz.generators.grid(60, 60, rng=0))
    assert found.at_least and found.plan is None
    assert found.num_bytes >= 8 * 2**59 and found.seconds > 1e6


def test_tables_beyond_all_floats_are_counted_as_far_as_makes_sense():
    found = exact_cost(cz.generators.complete(1100, rng=0))
    assert found.at_least and found.width == 1099 and 2**100 < found.num_bytes < 2**104


def test_evidence_makes_it_cheaper():
    model = cz.generators.complete(14, rng=0)
    fixed = cz.Model([[0.0, -math.inf] if i < 6 else model.unary[i] for i in range(14)], dict(model.pairwise.items()))
    assert exact_cost(fixed).width == exact_cost(model).width - 6
