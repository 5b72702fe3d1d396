"""Sums by conditioning: they add up to the safe side, and say when they can be asked for and what they will bring."""

import math

import numpy as np
import pytest
from lone_strategies import halving_of

import clampz as cz
from clampz.bounding.conditioning import DisjointSums, sum_sets
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import cutset
from clampz.bounding.strategies.cutset import Cutset, CutsetSums
from clampz.bounding.strategies.diving import Dives, Diving
from clampz.portfolio import scheduler
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget

WIDE = cz.generators.complete(9, weights=(-2, 2), rng=0)


class Three(DisjointSums):
    """Sets that are summed one at a time, as long as there are any."""

    left = 3

    def expected(self, seconds):
        return math.inf

    def step(self, budget):
        self.left -= 1
        self.is_over = self.left == 0
        self.add(-1.0, -1.0)
        return self.lower


def test_they_add_up_to_the_safe_side():
    sums = Three()
    assert sums.lower == -math.inf and sums.ends == (-math.inf, math.inf)
    sums.complete = True
    assert sums.ends == (-math.inf, -math.inf)
    before = -math.inf
    for number in range(1, 6):
        sums.add(100.0, 100.0)
        truth = 100.0 + math.log(number)
        assert before <= sums.lower <= truth == pytest.approx(sums.lower, abs=1e-11)
        sums.complete = False
        assert sums.ends[1] == math.inf
        sums.complete = True
        assert truth <= sums.ends[1] == pytest.approx(truth, abs=1e-11)
        before = sums.lower
    assert sums.num_sums == 5


def test_sets_are_summed_until_none_is_left_or_time_is_up():
    lower, upper = sum_sets(Three(), 60.0, Budget())
    assert lower == pytest.approx(math.log(3) - 1.0, abs=1e-11) and upper == math.inf
    assert sum_sets(Three(), 0.0, Budget()) == (-math.inf, math.inf)


# -- the strategies that make them -------------------------------------------------------------------------------------


def with_zeros(model):
    flat = model.contents.pairwise.copy()
    flat[0] = -np.inf
    return cz.Model.from_contents(model.contents._replace(pairwise=flat))


def problem_of(model, halving=None, *, bounded=True, planned=True, **options):
    """A problem whose mini-buckets have come to their end, and whose sum does not fit."""
    problem = Problem(model, BoundOptions(**options))
    if halving is not None:
        problem.frontier.root.submodel.halving = halving
    problem.facts.is_bounded, problem.facts.is_planned = bounded, planned
    return problem


def next_quantum(strategy, seconds=60.0, budget=None):
    return strategy.next(seconds, budget or Budget(60.0), 2)


@pytest.mark.parametrize(("kind", "model", "sets"), [(Cutset, WIDE, CutsetSums), (Diving, with_zeros(WIDE), Dives)])
def test_dives_where_there_are_zeros_and_cutsets_where_there_are_none(kind, model, sets):
    early = kind(problem_of(model, bounded=False))
    assert next_quantum(early) is None and not early.is_done  # nothing to go by yet
    other = kind(problem_of(WIDE if model is not WIDE else with_zeros(WIDE), halving_of(WIDE)))
    assert next_quantum(other) is None and other.is_done
    by_lower = kind(problem_of(model, halving_of(model, "lower")))
    assert (next_quantum(by_lower) is None) == (kind is Cutset)  # no upper bound to draw from
    strategy = kind(problem_of(model, halving_of(model)))
    quantum = next_quantum(strategy)
    assert isinstance(strategy._sets, sets)
    lower, upper = sum_sets(*quantum.args, quantum.budget)
    strategy.take(quantum, (lower, upper))
    truth = cz.exact(model)
    assert strategy.problem.ends[0] == lower <= truth.upper and truth.lower <= upper


def test_a_cutset_waits_for_mini_buckets_and_for_the_sum_of_the_whole():
    halving = halving_of(WIDE)
    for waits in ({"bounded": False}, {"planned": False}):
        strategy = Cutset(problem_of(WIDE, halving, **waits))
        assert next_quantum(strategy) is None and not strategy.is_done
    strategy = Cutset(problem_of(WIDE, halving))
    strategy.problem.facts.is_summing = True  # where it would do the same again
    assert next_quantum(strategy) is None and not strategy.is_done
    strategy.problem.facts.is_summing = False
    assert next_quantum(strategy) is not None
    strategy = Cutset(problem_of(WIDE, halving))
    assert next_quantum(strategy, budget=Budget(cutset.LEAST_RUN / 2)) is None and strategy.is_done


def test_fixed_plans_go_without_and_dives_are_exact_sums():
    strategies = Scheduler(problem_of(WIDE, max_table=8, leaves=4), (Cutset, Diving)).strategies
    assert strategies == []
    assert len(Scheduler(problem_of(WIDE, leaves=4), (Cutset, Diving)).strategies) == 2
    strategy = Diving(problem_of(with_zeros(WIDE), halving_of(with_zeros(WIDE)), exact=False))
    assert next_quantum(strategy) is None and strategy.is_done


def test_sums_promise_what_the_lower_end_lacks(monkeypatch):
    """Nobody knows what the first will bring; it gains nothing unless others follow."""
    monkeypatch.setattr(cutset, "LEAST_ENTRIES", 4.0)
    monkeypatch.setattr(cutset, "MOST_DRAWS", 1)
    strategy = Cutset(problem_of(WIDE, halving_of(WIDE)))
    assert strategy.expected(1.0) is None
    quantum = next_quantum(strategy)
    strategy._sets.step(Budget(60.0))  # chooses the cutset
    strategy.take(quantum, strategy._sets.ends)
    assert strategy.is_midway and not strategy._sets.num_sums
    truth = cz.exact(WIDE)
    strategy.problem.tighten(truth.lower - 1.0, truth.upper)
    promised = strategy.expected(60.0)
    assert 0.0 < promised < 2.0
    strategy.problem.tighten(truth.lower - 0.5, truth.upper)
    assert strategy.expected(60.0) == pytest.approx(promised - 0.5)
    strategy.problem.tighten(truth.lower + 5.0, math.inf)
    assert strategy.expected(60.0) == 0.0
    strategy.take(quantum, sum_sets(strategy._sets, 60.0, Budget()))
    assert not strategy.is_midway


def test_a_search_holds_with_it_and_without_exact_sums_it_never_sums_all(monkeypatch):
    model, seen, take = cz.generators.grid(10, 10, weights=(-6, 6), rng=0), [], Cutset.take

    def spied(self, quantum, found):
        take(self, quantum, found)
        seen.append((found[0], self.is_done))
        assert not self._sets.complete

    monkeypatch.setattr(Cutset, "take", spied)
    for name in ("SHORTEST", "LONGEST"):
        monkeypatch.setattr(scheduler, name, 3.0)  # to choose a cutset also on a machine that is busy
    truth = cz.exact(model)
    for found in cz.iter_bounds(model, time=60.0, gap=0.0, exact=False, max_table=64):
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if seen and seen[-1][1]:
            break
    assert all(lower <= truth.upper for lower, _ in seen) and seen[-1][0] > -math.inf and seen[-1][1]
