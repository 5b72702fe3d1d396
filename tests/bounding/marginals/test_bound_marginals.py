"""Intervals for marginals."""

from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest
from random_models import random_of_any_kind

import clampz as cz
from clampz.bounding.marginals import goal
from clampz.bounding.marginals.intervals import intervals_of


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


def interval(low, high):
    lower, upper = intervals_of(np.array([low]), np.array([high]))
    return lower[0], upper[0]


def exact_interval(low, high, a):
    """The ends for state a by decimal arithmetic of many digits."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, MIN_EMIN, MAX_EMAX
        ends = []
        for own, rest in ((low[a], np.delete(high, a)), (high[a], np.delete(low, a))):
            top = Decimal(float(max(own, *rest)))
            mine, *others = ((Decimal(float(log)) - top).exp() if log > -np.inf else Decimal(0) for log in (own, *rest))
            ends.append(mine / (mine + sum(others)) if mine else Decimal(0))
        return ends


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9, 1e17])
def test_intervals_are_rounded_outwards(size):
    """Whatever the size of the bounds, and however far apart states are."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        states = int(rng.integers(2, 6))
        low = size * rng.normal(size=states).round(1) + rng.normal(size=states)
        low = np.where(rng.random(states) < 0.1, -np.inf, low)
        high = np.where(low > -np.inf, low, size * rng.normal(size=states)) + rng.exponential(size=states)
        lower, upper = interval(low, high)
        for a in range(states):
            true_lower, true_upper = exact_interval(low, high, a)
            assert Decimal(float(lower[a])) <= true_lower and true_upper <= Decimal(float(upper[a]))
            if size <= 1e3:
                assert float(true_lower) - lower[a] < 1e-9 and upper[a] - float(true_upper) < 1e-9


def test_many_variables_share_the_time_and_the_memory():
    """More lanes than time or memory allow: those that were not reached have the widest interval, and it holds."""
    model = cz.generators.grid(9, 9, weights=(-3, 3), rng=0)
    truth = cz.exact(model)
    for limits in ({"time": 0.1}, {"time": 0.1, "memory": "300KB"}, {"time": 0.0}):
        found = cz.bound_marginals(model, exact=False, threads=1, **limits)
        for i in range(81):
            assert (found.lower[i] <= truth.marginals[i] + 1e-9).all()
            assert (found.upper[i] >= truth.marginals[i] - 1e-9).all()


def test_intervals_where_bounds_are_far_apart():
    """Neither underflow nor cancellation makes an interval too small."""
    low, high = interval([-np.inf, -np.inf], [0.0, -800.0])
    assert (low == 0).all() and (high == 1).all()
    low, high = interval([-46.0, -41.0], [0.0, -40.0])
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
    low, high = interval([-np.inf, 0.0], [np.inf, 1.0])
    assert (low == 0).all() and (high == 1).all()
    low, high = interval([0.0, 0.0], [0.0, 0.0])
    assert low == pytest.approx([0.5, 0.5]) and high == pytest.approx([0.5, 0.5])


def test_where_z_is_zero_there_are_no_intervals():
    table = [[1.0, 0.0], [0.0, 1.0]]
    model = cz.Model([[-np.inf, -np.inf], [0, 1], [0, 2]], {(0, 1): table, (1, 2): table})
    for exact in (True, False):
        found = cz.bound_marginals(model, exact=exact, time=5)
        assert np.isnan(found.lower[1]).all() and np.isnan(found.upper[2]).all()
    assert cz.bethe(model).log_z == -np.inf and cz.bethe(model).lower == -np.inf


@pytest.mark.parametrize("seed", range(6))
def test_intervals_hold_and_only_narrow_as_they_close(seed):
    """At every result on the way, by shared mini-buckets and by searches."""
    model, seen = random_of_any_kind(100 + seed, 8), []
    truth = cz.exact(model)
    if truth.log_z == -np.inf:
        return
    found = cz.bound_marginals(model, exact=False, time=1.0, gap=1e-6, progress=seen.append)
    lower, upper = np.zeros(len(found.lower.flat)), np.ones(len(found.lower.flat))
    for each in [*seen, found]:
        assert (lower <= each.lower.flat).all() and (each.upper.flat <= upper).all()
        lower, upper = each.lower.flat, each.upper.flat
        assert (lower <= truth.marginals.flat + 1e-9).all() and (truth.marginals.flat <= upper + 1e-9).all()


def test_searches_are_kept_within_their_number(monkeypatch):
    """One that is wanted no more makes room; none begins anew, again and again."""
    begun, begin = [], goal.Searches._begun

    def counted(self, row, *args):
        assert len(self._searches) < 2
        begun.append(row)
        return begin(self, row, *args)

    monkeypatch.setattr(goal, "MOST_SEARCHES", 2)
    monkeypatch.setattr(goal.SharedLanes, "next", lambda self, *_: None)
    monkeypatch.setattr(goal.Searches, "_begun", counted)
    model = cz.generators.grid(3, 3, labels=2, rng=0)
    found, truth = cz.bound_marginals(model, exact=False, time=2.0, gap=0.05, threads=2), cz.exact(model)
    assert begun
    assert (found.lower.flat <= truth.marginals.flat + 1e-9).all()
    assert (truth.marginals.flat <= found.upper.flat + 1e-9).all()


def test_without_memory_for_a_search_it_is_said(monkeypatch):
    monkeypatch.setattr(goal, "MOST_SEARCHES", 0)
    monkeypatch.setattr(goal.SharedLanes, "next", lambda self, *_: None)
    found = cz.bound_marginals(cz.generators.grid(3, 3, rng=0), exact=False, time=5.0)
    assert found.stopped_by == "memory" and found.widest == 1.0


def test_the_callback_stops_intervals():
    def stop(_):
        raise StopIteration

    found = cz.bound_marginals(cz.generators.grid(9, 9, rng=0), exact=False, time=60.0, gap=0.0, progress=stop)
    assert found.stopped_by == "callback" and found.seconds < 30.0
