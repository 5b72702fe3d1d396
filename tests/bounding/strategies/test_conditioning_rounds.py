"""Rounds of sums beside a search: which sets, when they begin, and when they are left alone."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies import conditioning_rounds, cutset
from clampz.bounding.strategies.conditioning_rounds import ConditioningRounds
from clampz.bounding.strategies.cutset import CutsetSums
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.leaves.successive_halving import SuccessiveHalving, Trial
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew

WIDE = cz.generators.complete(9, weights=(-2, 2), rng=0)
NO_ENDS = (-math.inf, math.inf)


def halving_of(model, ends="upper", *, finished=True):
    halving = SuccessiveHalving()
    halving.end_with(MiniBucketBounds(model, Shape(8), Shape(8), 2.0**40))
    found = halving.mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5, ends)
    asked = Trial(halving.mini_buckets, found.state, 5, ends)
    halving.take(asked, (found.lower, found.upper), found.state, halving.mini_buckets, 0.1)
    halving.state, halving.finished = found.state, finished
    return halving


def with_zeros(model):
    flat = model.contents.pairwise.copy()
    flat[0] = -np.inf
    return cz.Model.from_contents(model.contents._replace(pairwise=flat))


def next_job(sums, halving, ends=NO_ENDS, crew=None, budget=None, summed=False):
    return sums.next(halving, ends, crew, budget or Budget(60.0), whole_is_summed=summed)


@pytest.fixture
def crew():
    with Crew(None, 2) as found:
        yield found


@pytest.mark.parametrize(("model", "kind"), [(WIDE, CutsetSums), (with_zeros(WIDE), Diving)])
def test_dives_where_there_are_zeros_and_separators_where_there_are_none(crew, model, kind):
    sums = ConditioningRounds(model, BoundOptions())
    assert next_job(sums, None, crew=crew) is None and next_job(sums, SuccessiveHalving(), crew=crew) is None
    assert (next_job(sums, halving_of(model, "lower"), crew=crew) is None) == (kind is CutsetSums)  # no upper bound yet
    sums = ConditioningRounds(model, BoundOptions())
    job = next_job(sums, halving_of(model), crew=crew)
    assert job is not None and isinstance(sums._sets, kind)
    assert next_job(sums, halving_of(model), crew=crew) is None  # one at a time
    assert job.result()[0] <= cz.exact(model).upper


def test_fixed_plans_and_sums_of_the_whole_go_without(crew):
    assert next_job(ConditioningRounds(WIDE, BoundOptions(max_table=8, leaves=4)), halving_of(WIDE), crew=crew) is None
    assert (
        next_job(
            ConditioningRounds(with_zeros(WIDE), BoundOptions(exact=False)),
            halving_of(with_zeros(WIDE)),
            crew=crew,
        )
        is None
    )
    sums = ConditioningRounds(WIDE, BoundOptions())
    assert next_job(sums, halving_of(WIDE), crew=crew, summed=True) is None
    assert next_job(sums, halving_of(WIDE), crew=crew) is not None


def after_first_round(crew, monkeypatch, **options):
    """A cutset is chosen."""
    monkeypatch.setattr(cutset, "LEAST_ENTRIES", 4.0)
    monkeypatch.setattr(cutset, "MOST_DRAWS", 1)
    monkeypatch.setattr(cutset, "MOST_ORDERS", 2)
    monkeypatch.setattr(conditioning_rounds, "sum_sets", lambda sets, seconds, budget: (sets.step(budget), math.inf))
    sums, budget = ConditioningRounds(WIDE, BoundOptions(**options)), Budget(60.0)
    found = next_job(sums, halving_of(WIDE), crew=crew, budget=budget).result()
    sums.take(found, NO_ENDS, crew, budget)
    assert sums._sets.planned is not None and not sums._sets.num_sums
    return sums, budget


def test_sums_wait_for_the_ladder_and_must_promise_something(crew, monkeypatch):
    sums, budget = after_first_round(crew, monkeypatch)
    truth = cz.exact(WIDE).log_z
    assert next_job(sums, halving_of(WIDE, finished=False), crew=crew, budget=budget) is None
    assert next_job(sums, halving_of(WIDE), ends=(truth + 5, truth + 6), crew=crew, budget=budget) is None
    assert next_job(sums, halving_of(WIDE), crew=crew, budget=budget) is None  # it is over for good


def test_a_round_waits_while_the_others_close_more(crew, monkeypatch):
    sums, budget = after_first_round(crew, monkeypatch)
    truth = cz.exact(WIDE).log_z
    ends = truth - 1.0, truth + 1.0
    sums._rate = 1e6
    assert next_job(sums, halving_of(WIDE), ends, crew, budget) is None and sums._until > budget.used
    sums._until = budget.used  # the pause is over, and the others have done nothing
    assert next_job(sums, halving_of(WIDE), ends, crew, budget) is not None


def test_rounds_that_come_to_nothing_are_the_last(crew, monkeypatch):
    sums, budget = after_first_round(crew, monkeypatch)
    for _ in range(conditioning_rounds.MOST_IDLE):
        assert not sums._is_over
        sums._num_rounds += 1
        sums.take(NO_ENDS, (0.0, 1.0), crew, budget)
    assert sums._is_over


def test_one_thread_takes_turns(monkeypatch):
    with Crew(None, 1) as crew:
        sums, _ = after_first_round(crew, monkeypatch)
        assert sums._until > 0.0


def test_a_search_holds_with_it_and_without_exact_sums_it_never_sums_all(monkeypatch):
    model, rounds, take = cz.generators.grid(10, 10, weights=(-6, 6), rng=0), [], ConditioningRounds.take

    def spied(self, found, ends, *more):
        rounds.append(found)
        take(self, found, ends, *more)
        assert not self.complete

    monkeypatch.setattr(ConditioningRounds, "take", spied)
    truth = cz.exact(model)
    for found in cz.iter_bounds(model, time=60.0, gap=0.0, exact=False, max_table=64):
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if len(rounds) > 1:
            break
    assert rounds and all(lower <= truth.upper for lower, _ in rounds)
