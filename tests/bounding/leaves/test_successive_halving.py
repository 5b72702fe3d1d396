"""Both ends of lanes by mini-buckets, and successive halving over the limits of their tables."""

import itertools
import math
import pickle

import numpy as np
import pytest
from random_models import frustrated, random_of_any_kind
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.options import LARGEST_TABLE
from clampz.bounding.strategies import successive_halving
from clampz.bounding.leaves.successive_halving import (
    SMALLEST_TABLE,
    TABLE_FOR_NOTHING,
    SuccessiveHalving,
    max_table_in_time,
)
from clampz.model.batch import Batch
from clampz.runtime.budget import UNLIMITED, Budget

MUCH = 1e9


def lanes_of(model):
    """The model itself, and with each state of its first variable ruled out."""
    yield model.unary.flat
    for state in range(int(model.num_states[0])):
        lane = model.unary.flat.copy()
        lane[state] = -np.inf
        yield lane


@pytest.mark.parametrize("seed", range(80))
def test_both_ends_of_every_lane_hold(seed):
    """Pairwise models and those of larger factors, warm-started from lane to lane."""
    model = random_of_any_kind(seed, 7) if seed % 2 else random_model(seed)
    if not model.num_variables:
        return
    shapes = Shape((4, 16, 64)[seed % 3], seed % 4), Shape((16, 4, 64)[seed % 3], seed % 3)
    mini_buckets, state = MiniBucketBounds(model, *shapes, MUCH), WarmStart.even(model)
    for lane in lanes_of(model):
        truth = Enumerated(Batch(model, lane[:, None]).lane(0)).log_z
        found = mini_buckets.bounds(lane, state, 5)
        slack = 1e-9 * max(1.0, abs(truth)) if truth > -math.inf else 0.0
        assert found.lower <= truth + slack and truth - slack <= found.upper
        state = found.state


@pytest.mark.parametrize("ends", ["both", "upper", "lower"])
def test_lanes_have_the_same_bounds_alone_and_together(ends):
    model = cz.generators.grid(5, 5, weights=(-4, 4), rng=0)
    mini_buckets = MiniBucketBounds(model, Shape(16), Shape(8), MUCH)
    whole = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 20)
    lanes = np.stack([*lanes_of(model)] * 6, axis=1)
    one = [mini_buckets.bounds(lane, whole.state, 4, ends) for lane in lanes.T]
    little = MiniBucketBounds(model, Shape(16), Shape(8), 1e-6 * MUCH, mini_buckets.main)
    little._above, little._below = mini_buckets.tables_above(UNLIMITED), mini_buckets.tables_below(UNLIMITED)
    assert (
        mini_buckets._together(lanes.shape[1], ends, UNLIMITED) > 1 == little._together(lanes.shape[1], ends, UNLIMITED)
    )
    for each in (mini_buckets, little):
        several = list(each.bounds_of_lanes(lanes, whole.state, 4, ends))
        for found, other in zip(several, one, strict=True):
            assert (found.lower, found.upper) == (other.lower, other.upper)
            for array, same in zip(found.state.arrays, other.state.arrays, strict=True):
                np.testing.assert_array_equal(array, same)
    unasked = list(mini_buckets.bounds_of_lanes(lanes, whole.state, 4, ends, beliefs=False))
    assert [(found.lower, found.upper) for found in unasked] == [(found.lower, found.upper) for found in one]
    assert all(found.state.loss is whole.state.loss for found in unasked)
    budget = Budget()
    budget.stop("time")
    assert list(mini_buckets.bounds_of_lanes(lanes, whole.state, 4, ends, budget)) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_clamp_leaves_the_lower_bound_standing(seed):
    """States that are ruled out are hard zeros, but none that the lower bound minds."""
    model = cz.generators.grid(4, 4, weights=(-4, 4), labels=2 + seed % 2, rng=seed)
    assert not has_zeros(model)
    mini_buckets = MiniBucketBounds(model, Shape(8), Shape(8), MUCH)
    whole = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 30)
    lane = model.unary.flat.copy()
    lane[2 * (seed % 4)] = -np.inf
    found = mini_buckets.bounds(lane, whole.state, 10)
    truth = cz.exact(Batch(model, lane[:, None])).log_z[0]
    assert truth - 10.0 < found.lower <= truth + 1e-9 and truth - 1e-9 <= found.upper < truth + 10.0


def test_large_regions_are_tight():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=0)
    gaps = []
    for max_table in (8, 2**5, 2**14):
        found = MiniBucketBounds(model, Shape(max_table), Shape(max_table), MUCH).bounds(
            model.unary.flat, WarmStart.even(model), 60
        )
        gaps.append(found.upper - found.lower)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6  # no bucket has more than one clique


def test_regions_travel_without_their_tables():
    model = frustrated(3)
    mini_buckets = MiniBucketBounds(model, Shape(16, 1), Shape(8, 2), MUCH)
    here = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5)
    sent = pickle.loads(pickle.dumps(mini_buckets))
    there = sent.bounds(model.unary.flat, here.state, 5)
    again = mini_buckets.bounds(model.unary.flat, here.state, 5)
    assert (there.lower, there.upper) == (again.lower, again.upper)


def test_a_ladder_begins_many_and_ends_one(monkeypatch):
    """One structure of the first limit for each bound; of a larger one six and two, the best three of them and the
    better one, the best ones; and so on, while there is time."""
    monkeypatch.setattr(successive_halving, "FIRST_TABLE", 8)
    monkeypatch.setattr(successive_halving, "TABLE_FOR_LITTLE", 8)
    model, options = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions()
    halving, asked = SuccessiveHalving(), []
    while (step := halving.next(model, options, 1.0 if len(asked) < 9 else 0.0)) is not None:
        asked.append(step)
        shape = step.mini_buckets.above if step.ends == "upper" else step.mini_buckets.below
        tightness = shape.seed + step.num_evaluations / 100 + math.log2(shape.max_table)
        halving.take(step, (tightness, 100.0 - tightness), step.state, step.mini_buckets, 1e-3)
    assert halving.finished and not halving.is_busy
    first, second = asked[:2], asked[2:]
    assert [(*step.mini_buckets.above, step.ends) for step in first] == [(8, 0, "upper"), (8, 0, "lower")]
    assert (
        len({step.mini_buckets.above.max_table for step in second}) == 1
        and second[0].mini_buckets.above.max_table >= 16
    )
    assert [step.mini_buckets.above.seed for step in second if step.ends == "upper"] == [0, 1, 2, 3, 4, 5, 5, 4, 3, 5]
    assert [step.mini_buckets.below.seed for step in second if step.ends == "lower"] == [0, 1, 1, 1]
    max_table = second[0].mini_buckets.above.max_table
    assert halving.mini_buckets.above == (max_table, 5) and halving.mini_buckets.below == (max_table, 1)


def test_a_ladder_without_time_for_a_choice_takes_one_of_each(monkeypatch):
    monkeypatch.setattr(successive_halving, "TABLE_FOR_NOTHING", 8)
    monkeypatch.setattr(successive_halving, "FIRST_TABLE", 8)
    monkeypatch.setattr(successive_halving, "TABLE_FOR_LITTLE", 8)
    model, options, asked = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions(), []
    halving = SuccessiveHalving()
    while (step := halving.next(model, options, 0.08)) is not None and len(asked) < 4:
        asked.append(step)
        halving.take(step, (0.0, 1.0), step.state, step.mini_buckets, 2e-3)
    assert [step.ends for step in asked] == ["upper", "lower"] * 2
    assert asked[2].mini_buckets.above.max_table >= 16 and asked[2].num_evaluations == 40


def test_larger_tables_for_few_evaluations_come_after_few_or_where_they_are_much_larger(monkeypatch):
    """Where the last limit has had many, and is not resumed, that is all."""
    for name in ("TABLE_FOR_NOTHING", "FIRST_TABLE", "TABLE_FOR_LITTLE"):
        monkeypatch.setattr(successive_halving, name, 2**9)
    model, options = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions()
    few, many, none = [10, 10], [40, 40], list[int]()
    for first, then, wanted in ((0.012, 0.0, few), (0.05, 0.006, many), (0.05, 0.012, many + few), (0.001, 0.0, none)):
        halving, asked = SuccessiveHalving(), []
        seconds = itertools.chain([0.08, 0.08, first, first, then], itertools.repeat(0.0))
        while (step := halving.next(model, options, next(seconds))) is not None and len(asked) < 9:
            asked.append(step.num_evaluations)
            halving.take(step, (0.0, 1.0), step.state, step.mini_buckets, 2e-3)
        assert asked[2:] == wanted and halving.finished, (first, then)


def test_a_limit_that_is_given_is_the_only_one():
    model, options = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions(max_table=32)
    halving, limits = SuccessiveHalving(), []
    while (step := halving.next(model, options, 1e6)) is not None:
        limits.append(step.mini_buckets.above.max_table)
        halving.take(step, (0.0, 1.0), step.state, step.mini_buckets, 1e-3)
    assert limits == [32] * 14


def test_a_ladder_that_gets_nowhere_ends():
    model, options = cz.generators.grid(4, 4, rng=0), cz.options.BoundOptions()
    halving = SuccessiveHalving()
    while (step := halving.next(model, options, 1.0)) is not None:
        halving.take(step, (-math.inf, math.inf), None, None, 0.0)
    assert halving.finished and halving.mini_buckets is None


def test_limits_are_those_that_time_allows():
    options = cz.options.BoundOptions()
    model = cz.generators.grid(10, 10, rng=0)
    found = [max_table_in_time(model, options, seconds, LARGEST_TABLE) for seconds in (0.0, 1e-4, 1e-2, math.inf)]
    assert found[0] == TABLE_FOR_NOTHING and found == sorted(found) and found[-1] == LARGEST_TABLE
    assert max_table_in_time(model, cz.options.BoundOptions(memory=10**4), 0.0, LARGEST_TABLE) == SMALLEST_TABLE
    little = [
        max_table_in_time(model, cz.options.BoundOptions(memory=b, threads=1), math.inf, LARGEST_TABLE)
        for b in (10**6, 10**7)
    ]
    assert SMALLEST_TABLE < little[0] < little[1] < LARGEST_TABLE  # however much time there is
    small = cz.generators.grid(2, 3, rng=0)
    assert max_table_in_time(small, cz.options.BoundOptions(exact=False), math.inf, LARGEST_TABLE) == 2**4


def test_the_last_limit_is_gone_on_with_while_that_gains_more_than_a_clamp(monkeypatch):
    monkeypatch.setattr(successive_halving, "LARGE_MODEL", 64)
    model, options = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions(max_table=8)
    loss = np.full(model.num_variables, 0.5)
    halving, upper, gains = SuccessiveHalving(), 100.0, [5.0, 1.0, 0.75, 0.25, 9.0]
    last = successive_halving.ROUNDS[-1].evaluations
    num_tries = 0
    while (step := halving.next(model, options, 1e6)) is not None:
        if step.num_evaluations in (last, successive_halving.ONWARDS_EVALUATIONS) and step.ends == "upper":
            upper -= gains[num_tries]
            num_tries += 1
        state = WarmStart(step.state.beliefs, loss=loss)
        halving.take(step, (0.0, upper), state, step.mini_buckets, 1e-3)
    assert halving.finished and num_tries == 4  # which gained less than half a nat


def test_what_is_gone_on_with_is_the_best_of_whichever_limit(monkeypatch):
    """The first limit has the better upper bound, a larger one the better lower one."""
    monkeypatch.setattr(successive_halving, "LARGE_MODEL", 64)
    for name in ("TABLE_FOR_NOTHING", "FIRST_TABLE", "TABLE_FOR_LITTLE"):
        monkeypatch.setattr(successive_halving, name, 8)
    model, options = cz.generators.grid(8, 8, rng=0), cz.options.BoundOptions()
    loss = np.full(model.num_variables, 0.5)
    halving, asked = SuccessiveHalving(), []
    seconds = itertools.chain([0.08] * 4, itertools.repeat(0.0))
    while (step := halving.next(model, options, next(seconds))) is not None and len(asked) < 9:
        asked.append(step)
        state = WarmStart(step.state.beliefs, loss=loss)
        halving.take(step, (float(step.max_table), 100.0 + step.max_table), state, step.mini_buckets, 2e-3)
    limits = [(step.ends, step.max_table) for step in asked]
    assert limits[:2] == [("upper", 8), ("lower", 8)] and limits[2][1] == limits[3][1] > 8
    assert sorted(limits[4:]) == [("lower", limits[3][1]), ("upper", 8)] and halving.finished


def test_regions_are_begun_where_time_and_memory_allow():
    model = cz.generators.grid(100, 100, rng=0)
    assert not successive_halving.may_begin(model, cz.options.BoundOptions(), 1e-3)
    assert successive_halving.may_begin(model, cz.options.BoundOptions(), 10.0)
    assert not successive_halving.may_begin(model, cz.options.BoundOptions(memory="20MB"), 10.0)
