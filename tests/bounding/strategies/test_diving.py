"""Dives: every value is a lower bound, none is below the one before, and when nothing waits all of Z is summed."""

import math

import numpy as np
import pytest
from budgets import Asked
from random_models import random_of_any_kind
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.bounding.strategies import diving
from clampz.bounding.conditioning import sum_sets
from clampz.bounding.strategies.diving import Diving
from clampz.errors import TooWideError
from clampz.exact_inference.sums import lay_out_lanes
from clampz.runtime.budget import Budget

ROUNDING = 1e-9


@pytest.fixture
def small_sums(monkeypatch):
    """Sums of a few entries, so that small models take many dives."""
    monkeypatch.setattr(diving, "LARGEST_PER_VARIABLE", 0.0)


def some_beliefs(model, seed):
    """Right by no means: at random, sometimes of nothing at all, sometimes not even numbers."""
    beliefs = np.random.default_rng(seed).random(len(model.unary.flat)) ** 4
    beliefs[beliefs < 0.01] = 0.0
    if seed % 5 == 0:
        beliefs[:2] = np.nan
    return beliefs


def wide_model(seed):
    """Dense enough that the presolve leaves most of it; with zeros in its tables, or without, and mostly not of all."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 11))
    num_states = rng.integers(1 if seed % 7 == 0 else 2, 4 if n < 8 else 3, size=n)
    zeros, possible = rng.choice([0.0, 0.15, 0.3]), rng.integers(num_states)
    factors = []
    for _ in range(4 * n):
        scope = rng.choice(n, size=int(rng.integers(2, 4)), replace=False)
        table = rng.normal(scale=rng.choice([0.5, 3.0, 30.0]), size=num_states[scope])
        impossible = rng.random(table.shape) < zeros
        impossible[tuple(possible[scope])] = seed % 10 == 0 and rng.random() < 0.02
        factors.append((scope.tolist(), np.where(impossible, -np.inf, table)))
    return cz.Model.from_factors(num_states, factors, constant=float(rng.normal()))


def all_dives(found, truth, budget=None):
    """Dive until nothing waits, looking at every value."""
    before = -math.inf
    while not found.is_over:
        assert found.ends[1] == math.inf
        value = found.step(budget or Budget())
        assert before <= value <= truth
        before = value
    assert found.ends[0] == before
    return found


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_every_value_is_a_lower_bound_and_the_last_is_log_z(small_sums, first):
    num_sums = num_contradictions = 0
    for seed in range(first, first + 100):
        model = [wide_model, wide_model, random_model, random_of_any_kind][seed % 4](seed)
        truth = Enumerated(model).log_z
        found = all_dives(Diving(model, some_beliefs(model, seed), max_table=float(seed % 3 * 8)), truth)
        lower, upper = found.ends
        assert found.complete and lower <= truth <= upper
        assert lower == upper or upper - lower < ROUNDING * (1 + abs(truth))
        num_sums, num_contradictions = num_sums + found.num_sums, num_contradictions + found.num_contradictions
    assert num_sums > 150 and num_contradictions > 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("setting", [{"SHARE": 1}, {"MOST_VARIABLES": 0}, {"MOST_VARIABLES": 0, "SHARE_IF_WIDE": 1}])
def test_variables_are_decided_one_by_one_or_many_at_once(small_sums, monkeypatch, seed, setting):
    """Many, or by degree alone, where models are large; one by one again where many contradict each other."""
    for name, value in setting.items():
        monkeypatch.setattr(diving, name, value)
    model = wide_model(seed + 1000)
    truth = Enumerated(model).log_z
    lower, upper = all_dives(Diving(model, some_beliefs(model, seed), max_table=4.0), truth).ends
    assert lower <= truth <= upper and (lower == upper or upper - lower < ROUNDING)


def test_without_zeros_too():
    model = cz.generators.complete(14, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    found = Diving(model, cz.bethe(model, max_iter=50).marginals.flat, max_table=2.0**8)
    first = found.step(Budget())
    assert truth.log_z - 5 < first < truth.log_z and not found.complete
    all_dives(found, truth.upper)
    assert found.num_sums > 10 and found.ends[1] - found.ends[0] < ROUNDING


@pytest.mark.parametrize("most", [0.0, 1.0, 2.0**40])
def test_sums_that_are_planned_and_then_not_taken(small_sums, monkeypatch, most):
    """However large those are of which a plan is made, to see whether it is worth its time."""
    monkeypatch.setattr(diving, "MOST_GAINED", most)
    model = cz.generators.grid(5, 5, weights=(-3, 3), rng=0)
    truth = cz.exact(model)
    lower, upper = all_dives(Diving(model, truth.marginals.flat, max_table=64.0), truth.upper).ends
    assert lower <= truth.upper and truth.lower <= upper and upper - lower < ROUNDING


def test_states_are_drawn_where_the_likeliest_contradict_each_other(small_sums, monkeypatch):
    """After some turns others are tried; and where Z = 0 all comes to an end."""
    monkeypatch.setattr(diving, "PATIENCE", 0)
    begun, begin_again = [], Diving._begin_again

    def spied(self):
        begun.append(self)
        return begin_again(self)

    monkeypatch.setattr(Diving, "_begin_again", spied)
    for seed in range(2000, 2030):
        model = wide_model(10 * seed)
        truth = Enumerated(model).log_z
        lower, upper = all_dives(Diving(model, some_beliefs(model, seed), max_table=4.0), truth).ends
        assert lower <= truth <= upper and (lower == upper or upper - lower < ROUNDING * (1 + abs(truth)))
    assert begun


def test_good_beliefs_are_worth_having():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=1)
    truth = cz.exact(model)
    good = Diving(model, truth.marginals.flat, max_table=64.0).step(Budget())
    bad = Diving(model, 1 - truth.marginals.flat, max_table=64.0).step(Budget())
    assert bad + 1 < good <= truth.upper


def test_z_is_zero():
    none = np.full((2, 2), -math.inf)
    model = cz.Model(np.zeros((3, 2)), {(0, 1): none, (1, 2): np.eye(2)})
    odd = [[-math.inf, 0.0], [0.0, -math.inf]]  # a triangle of which no two are alike
    for impossible in (model, cz.Model(np.zeros((3, 2)), {(0, 1): odd, (1, 2): odd, (0, 2): odd})):
        found = all_dives(Diving(impossible, np.full(6, 0.5), max_table=0.0), -math.inf)
        assert found.complete and found.ends == (-math.inf, -math.inf) and found.num_sums == 0


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("memory", [math.inf, 10_000.0])
def test_next_to_nothing_to_sum(n, memory):
    model = cz.Model([[0.0, 1.0, 2.0]] * n, constant=3.0)
    lower, upper = all_dives(Diving(model, np.full(3 * n, 1 / 3), memory=memory), 10.0).ends
    truth = 3.0 + n * math.log(1 + math.e + math.e**2)
    assert lower <= truth <= upper and upper - lower < ROUNDING


def test_a_dive_that_is_stopped_goes_on_from_where_it_was(small_sums):
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    truth = cz.exact(model)
    found, num_stops = Diving(model, truth.marginals.flat, max_table=16.0), 0
    for most in range(1, 10_000):
        if found.is_over:
            break
        budget = Asked(1 + most % 23)
        found.step(budget)
        num_stops += budget.stopped_by is not None
    assert found.complete and num_stops > 10
    assert found.ends[0] <= truth.upper and truth.lower <= found.ends[1] and found.ends[1] - found.ends[0] < ROUNDING


def test_what_there_is_no_memory_for_is_not_summed():
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    found = Diving(model, np.full(32, 0.5), memory=1000.0)
    assert found.step(Budget()) == -math.inf
    assert found.is_over and not found.complete and found.ends == (-math.inf, math.inf)


def test_sums_keep_to_the_memory(monkeypatch):
    model = cz.generators.complete(14, weights=(-2, 2), rng=0)
    truth, refused = cz.exact(model), []

    def spied(batch, memory, **kwargs):
        try:
            return lay_out_lanes(batch, memory, **kwargs)
        except TooWideError:
            refused.append(memory)
            raise

    monkeypatch.setattr(diving, "lay_out_lanes", spied)
    found = Diving(model, truth.marginals.flat, memory=100_000.0)
    all_dives(found, truth.upper)
    assert refused and found.num_sums > 1 and found.ends[1] - found.ends[0] < ROUNDING


@pytest.mark.parametrize("most", [0, 1, 2])
def test_what_is_too_much_to_remember_is_forgotten(small_sums, monkeypatch, most):
    """The likeliest are kept, and nobody says that all was summed."""
    monkeypatch.setattr(diving, "MOST_WAITING", most)
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    truth = cz.exact(model)
    found = all_dives(Diving(model, truth.marginals.flat, max_table=16.0), truth.upper)
    assert not found.complete and truth.log_z - 5 < found.ends[0] < truth.log_z and found.ends[1] == math.inf


def test_dives_for_some_time():
    model = cz.generators.complete(12, weights=(-2, 2), rng=0)
    truth = cz.exact(model)
    lower, upper = sum_sets(Diving(model, truth.marginals.flat), 60.0, Budget())
    assert lower <= truth.upper and truth.lower <= upper and upper - lower < ROUNDING
    assert sum_sets(Diving(model, truth.marginals.flat), 0.0, Budget()) == (-math.inf, math.inf)
