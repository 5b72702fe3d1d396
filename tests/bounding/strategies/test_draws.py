"""The estimate of a bracket by draws: inside it, honest about itself, and no part of what is proven."""

import math
from dataclasses import replace

import numpy as np
import pytest
from random_models import frustrated

import clampz as cz
from clampz.approximations.mini_buckets.descent import BoundState
from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.bounding.bracket import Bracket, PointEstimate
from clampz.bounding.leaves import proposal_source
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.leaves.successive_halving import SuccessiveHalving, Trial
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import draws
from clampz.bounding.strategies.draws import Draws
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.sampling.statistics import Sampled, Tally

OPEN = {"gap": 0.0, "exact": False, "time": 30.0}


def sampled(log_z=2.0, bound=3.0, num_blocks=4):
    """Draws whose weights are spread around a value."""
    found = Sampled(bound)
    for block in range(num_blocks):
        weights = math.exp(log_z) * np.random.default_rng(block).uniform(0.5, 1.5, 500)
        found = found.with_block(np.log(weights))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_is_inside_the_bracket_and_near_the_truth(seed):
    model = frustrated(seed, 10)
    bracket, truth = cz.bound(model, leaves=3, max_table=16, **OPEN), cz.exact(model).log_z
    low, high = bracket.interval()
    assert bracket.lower <= low <= bracket.estimate <= high <= bracket.upper
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.estimate_by == "sampling" and bracket.sampled[0].tally.number > 1000
    assert abs(bracket.estimate - truth) <= 4 * bracket.standard_error
    assert low <= truth <= high
    wider = bracket.interval(0.999)
    assert wider[0] <= low and high <= wider[1]
    assert f"± {bracket.standard_error:.2g} (statistical)" in repr(bracket)


def test_where_the_plan_is_fixed_the_draws_are_too_and_nothing_proven_depends_on_them(monkeypatch):
    model = frustrated(1, 10)
    first, again, other = (
        cz.bound(model, leaves=4, max_table=16, threads=threads, seed=seed, **OPEN)
        for threads, seed in ((2, 0), (2, 0), (2, 5))
    )
    assert (first.estimate, first.standard_error) == (again.estimate, again.standard_error)
    assert first.estimate != other.estimate
    monkeypatch.setattr(Draws, "last", lambda *args: None)
    without = cz.bound(model, leaves=4, max_table=16, threads=2, **OPEN)
    assert without.standard_error is None and without.interval() == (without.lower, without.upper)
    assert (without.lower, without.upper) == (first.lower, first.upper)


def halving_at(model, max_table):
    """Successive halving that has come to mini-buckets with tables of this size."""
    mini_buckets, halving = MiniBucketBounds(model, Shape(max_table), Shape(max_table), 1e9), SuccessiveHalving()
    found = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 10, "upper")
    asked = Trial(mini_buckets, found.state, 10, "upper")
    halving.take(asked, (found.lower, found.upper), found.state, mini_buckets, 0.1)
    return halving


def drawn(strategy, quantum):
    """What the problem has, after a quantum was done."""
    strategy.take(quantum, quantum.function(*quantum.args, quantum.budget))
    return strategy.problem.sampled


def test_better_bounds_have_proposals_of_their_own():
    problem, budget = Problem(frustrated(3, 12), cz.options.BoundOptions()), Budget(30.0)
    strategy, submodel = Draws(problem), problem.frontier.root.submodel
    assert strategy.next(1.0, budget, 1) is None  # nothing to draw from yet
    far, near = halving_at(problem.rest, 8), halving_at(problem.rest, 256)
    for halving, number in ((far, 1), (far, 1), (near, 2), (near, 2), (far, 2)):
        submodel.halving = halving
        assert len(drawn(strategy, strategy.next(1.0, budget, 1))) == number
    first, second = problem.sampled
    assert (first.bound, second.bound) == pytest.approx((far.upper, near.upper))
    assert problem.news == (problem.ends, len(first.doublings) + len(second.doublings))
    # the same numbers, and for each proposal its own
    lane = problem.rest.unary.flat
    proposal = Proposal.of(
        BoundState.upper(near.mini_buckets.tables_above(budget), lane, near.state.above, budget=UNLIMITED),
        lane,
        budget=UNLIMITED,
    )
    weights = proposal.draw(2 << draws.SEED_BITS, 0).log_weights
    assert second.doublings[0] == Tally.of(weights - proposal.bound)


def test_the_last_draws_come_to_an_end():
    """Where there are more than enough already, none are made."""
    problem, budget = Problem(frustrated(3, 8), cz.options.BoundOptions()), Budget(30.0)
    problem.frontier.root.submodel.halving = halving_at(problem.rest, 8)
    strategy = Draws(problem)
    for number in (draws.LAST_BLOCKS, draws.LAST_BLOCKS, 100, 100):
        if number == 100:
            problem.sampled[-1] = replace(problem.sampled[-1], num_blocks=100)
        assert drawn(strategy, strategy.last(budget))[-1].num_blocks == number


def test_draws_are_made_beside_the_search():
    seen = [bracket.sampled for bracket in cz.iter_bounds(frustrated(3, 30), exact=False, gap=0.0, time=1.5)]
    assert any(seen[:-1]) and seen[-1]


def test_a_model_that_falls_apart_has_proposals_of_its_own():
    apart = [frustrated(k, 9) for k in range(3)]
    pairs = {(9 * k + i, 9 * k + j): table for k, each in enumerate(apart) for (i, j), table in each.pairwise.items()}
    model = cz.Model([row for each in apart for row in each.unary], pairs)
    bracket, truth = cz.bound(model, leaves=4, max_table=16, **OPEN), cz.exact(model).log_z
    assert bracket.estimate_by == "sampling" and abs(bracket.estimate - truth) <= 4 * bracket.standard_error


def test_a_search_that_is_gone_on_with_begins_its_draws_again(tmp_path):
    model = frustrated(2, 10)
    for leaves in (3, 6):
        bracket = cz.bound(model, leaves=leaves, max_table=16, checkpoint=tmp_path / "left", **OPEN)
        low, high = bracket.interval()
        assert low <= cz.exact(model).log_z <= high and bracket.estimate_by == "sampling"


def problem_with(estimate, found):
    problem = Problem(frustrated(0, 6), cz.options.BoundOptions())
    problem.estimate, problem.sampled = estimate, [found]
    problem.tighten(1.0, 3.0)
    return problem


def test_who_comes_first():
    """What is closed, then a count, then draws, and Bethe where these have an error that says nothing."""
    good, dead = sampled(), Sampled(3.0).with_block(np.full(100, -np.inf))
    few = Sampled(3.0).with_block(np.array([2.0] * 5 + [-np.inf] * 10))
    wild = Sampled(3.0).with_block(np.log(np.array([1.0] * 60 + [1e-9] * 1_200_000)))
    for estimate, found, by in [
        (PointEstimate(1.5), good, "sampling"),
        (PointEstimate(None, "Bethe was not run."), good, "sampling"),
        (PointEstimate(1.5, by="counting"), good, "counting"),
        (PointEstimate(1.5), dead, "Bethe"),
        (PointEstimate(1.5), few, "Bethe"),
    ]:
        bracket = problem_with(estimate, found).result("time", 1.0)
        assert bracket.estimate_by == by
        assert (bracket.standard_error is not None) == (by == "sampling")
        assert bracket.lower <= bracket.estimate <= bracket.upper
        assert bracket.sampled == (found,)
    narrow = problem_with(PointEstimate(1.5), wild)
    assert narrow.result("time", 1.0).estimate_by == "sampling"
    narrow.frontier.root.upper = 1.0 + wild.standard_error  # a number from between the ends is nearer
    assert narrow.result("time", 1.0).estimate_by == "Bethe"
    closed = problem_with(PointEstimate(1.5), good)
    closed.frontier.root.upper = 1.0
    assert closed.result("exact", 1.0).estimate_by == "bounds"


def test_draws_that_chance_led_outside_the_bracket():
    """Never outside in what is said: the estimate is held inside, and an interval that misses the bracket is none."""
    bracket = problem_with(PointEstimate(None, ""), sampled(log_z=0.5)).result("time", 1.0)
    assert (bracket.estimate, bracket.interval()) == (1.0, (1.0, 3.0))
    low, high = replace(bracket, sampled=(sampled(log_z=2.99, bound=3.5),)).interval()
    assert 1.0 < low < high == 3.0


def test_no_more_than_their_share_of_time_and_memory(monkeypatch):
    model = frustrated(0, 10)
    monkeypatch.setattr(proposal_source, "KEPT_SHARE", 0.0)
    assert cz.bound(model, leaves=3, max_table=16, **OPEN).sampled == ()
    monkeypatch.setattr(proposal_source, "KEPT_SHARE", 0.5)
    monkeypatch.setattr("clampz.approximations.mini_buckets.proposals.SECONDS_PER_LOOK", 1.0)
    assert cz.bound(model, leaves=3, max_table=16, **OPEN).sampled == ()


@pytest.mark.parametrize("confidence", [0, 1.5, "high"])
def test_a_confidence_that_is_none_is_refused(confidence):
    bracket = problem_with(PointEstimate(1.5), sampled()).result("time", 1.0)
    assert isinstance(bracket, Bracket)
    with pytest.raises(cz.errors.OptionError, match="confidence"):
        bracket.interval(confidence)


def test_nothing_is_computed_before_there_are_draws(monkeypatch):
    """A search of a million variables may end before."""

    def computed(model):
        raise AssertionError("computed")

    monkeypatch.setattr(draws, "score_rounding", computed)
    problem = Problem(cz.generators.grid(3, 3, rng=0), cz.options.BoundOptions())
    assert Draws(problem).next(1.0, Budget(1.0), 1) is None and problem.news == (problem.ends, 0)
