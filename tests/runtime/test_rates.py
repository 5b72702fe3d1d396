"""Rates begin at their priors and learn from measured work; plans without a time limit do not ask them."""

import math

import pytest

import clampz as cz
from clampz.runtime.rates import ELAPSED, RATES, TELLING_SECONDS, Rate

FRUSTRATED = cz.generators.grid(5, 5, weights=(-6, 6), labels=3, rng=0)


@pytest.fixture(autouse=True)
def _registry_and_rates_stay_as_they_are(monkeypatch):
    for name in list(RATES):
        monkeypatch.setattr(RATES[name], "learned", RATES[name].learned)
    monkeypatch.setattr("clampz.runtime.rates.RATES", dict(RATES))


def test_rates_are_known_by_their_names():
    assert RATES[ELAPSED.name] is ELAPSED and all(rate.name == name for name, rate in RATES.items())


def test_long_work_replaces_the_prior_and_short_work_moves_it():
    rate = Rate("of a test", 1e-6)
    rate.learn(1e3, 2e-3 * TELLING_SECONDS / 5e-3)
    assert 1e-6 < rate.learned < 2e-6
    rate.learn(1e6, 4.0)
    assert rate.learned == pytest.approx(4e-6)


def test_rates_stay_near_their_priors_and_nothing_is_learned_from_nothing():
    rate = Rate("of a test", 1e-6)
    rate.learn(0.0, 1.0)
    rate.learn(1.0, 0.0)
    assert rate.learned == 1e-6
    rate.learn(1.0, 60.0)
    assert rate.learned == pytest.approx(rate.highest * 1e-6)
    rate.learn(1e12, 60.0)
    assert rate.learned == pytest.approx(rate.lowest * 1e-6)


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_plans_without_a_time_limit_do_not_depend_on_what_was_learned(monkeypatch, factor):
    options = {"exact": False, "time": math.inf, "leaves": 4, "max_table": 64, "seed": 3, "threads": 1}
    expected = cz.bound(FRUSTRATED, **options)
    for rate in RATES.values():
        monkeypatch.setattr(rate, "learned", factor * rate.prior)
        monkeypatch.setattr(type(rate), "learn", lambda self, units, seconds: None)
    found = cz.bound(FRUSTRATED, **options)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
