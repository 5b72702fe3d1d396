"""What weights of draws say: estimates, errors and intervals, against slow twins and against the truth."""

import itertools
import math

import numpy as np
import pytest
from random_models import random_edges, random_tables

import clampz as cz
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.proposals import Draws, Proposal
from clampz.approximations.mini_buckets.structure import Structure
from clampz.runtime.budget import UNLIMITED
from clampz.sampling import statistics
from clampz.sampling.statistics import MarginalTally, Sampled, Tally, best, interval, score_rounding

EXACT = 1e-9


def slow_interval(y, blocks, delta):
    """Of numbers y in [0, 1] that come in blocks: Maurer and Pontil at the doublings, by the book."""
    low, high, k, n = 0.0, 1.0, 0, 0
    for number, size in enumerate(blocks, 1):
        n += size
        if number in (1, 2, 4, 8, 16, 32):
            k += 1
            mean = sum(y[:n]) / n
            variance = sum((a - b) ** 2 for a, b in itertools.combinations(y[:n], 2)) / (n * (n - 1))
            asked = math.log(2 / (delta / (k * (k + 1)) / 2))
            margin = math.sqrt(2 * variance * asked / n) + 7 * asked / (3 * (n - 1))
            low, high = max(low, mean - margin), min(high, mean + margin)
    return low, high


def with_blocks(sampled, log_weights, size):
    for begin in range(0, len(log_weights), size):
        sampled = sampled.with_block(log_weights[begin : begin + size])
    return sampled


@pytest.mark.parametrize("num_blocks", [1, 3, 4, 7])
def test_the_interval_is_the_slow_ones(num_blocks):
    rng, size, bound = np.random.default_rng(num_blocks), 60, -1000.0
    y = 0.7 + 0.2 * rng.random(num_blocks * size)
    sampled = with_blocks(Sampled(bound), np.log(y) + bound, size)
    low, high = slow_interval(y.tolist(), [size] * num_blocks, 0.1)
    assert np.allclose(sampled.interval(0.1), (bound + math.log(low), bound + math.log(high)), atol=EXACT)
    # the j-th proposal has 1 / (j (j + 1)) of what may go wrong; here it has all of the draws
    of_second = slow_interval(y.tolist(), [size] * num_blocks, 0.1 / 6)
    found = interval([Sampled(bound + 5.0), sampled], 0.9)
    assert np.allclose(found, bound + np.log(of_second), atol=EXACT)


def test_few_draws_and_dead_ones_say_little():
    assert Sampled(3.0).interval(0.05) == (-math.inf, 3.0)
    dead = Sampled(3.0).with_block(np.full(1000, -np.inf))
    low, high = dead.interval(0.05)
    assert low == -math.inf and math.log(7 * math.log(160) / 3 / 1000) + 3.0 <= high < 3.0
    assert (dead.log_z, dead.standard_error, dead.tally.effective, dead.tally.num_dead) == (
        -math.inf,
        math.inf,
        0,
        1000,
    )
    assert best([dead, Sampled(3.0)]) is None
    assert Sampled(3.0).with_block(np.array([2.0])).standard_error == math.inf


def test_the_best_has_the_smallest_error_of_those_that_are_worth_enough(monkeypatch):
    rng = np.random.default_rng(0)
    wide, narrow = (Sampled(1.0).with_block(np.log(rng.random(n))) for n in (1000, 4000))
    one = Sampled(1.0).with_block(np.array([0.0] * 10))
    assert one.standard_error == 0.0 and best([wide, one, narrow]) is narrow
    monkeypatch.setattr(statistics, "LEAST_EFFECTIVE", 5.0)
    assert best([wide, one, narrow]) is one


def test_tallies_are_the_same_in_any_pieces():
    log_y = np.log(np.random.default_rng(3).random(100))
    log_y[::7] = -np.inf
    whole, pieces = Tally.of(log_y), Tally.of(log_y[:30]).plus(Tally.of(log_y[30:]))
    assert np.allclose(whole, pieces, atol=EXACT)
    y = np.exp(log_y)
    assert whole.relative_variance == pytest.approx(y.var(ddof=1) / y.mean() ** 2)
    assert whole.standard_error == pytest.approx(y.std(ddof=1) / 10 / y.mean())
    assert whole.effective == pytest.approx(y.sum() ** 2 / (y**2).sum())


@pytest.mark.parametrize("wrong", [0.0, 1.0, -1, "95%", True])
def test_a_confidence_is_a_share(wrong):
    with pytest.raises(cz.errors.OptionError, match="confidence: expected a number above 0 and below 1"):
        interval([], wrong)


def a_model(*, zeros=0.0):
    rng = np.random.default_rng(11)
    return random_tables(rng, [3, 2, 3, 2, 3, 2, 3], random_edges(rng, 7, 0.7), zeros=zeros)


def proposal_of(model, max_table, evaluations=5):
    state = BoundState.upper(
        Tables.of(model, Structure.of(model, max_table, budget=UNLIMITED), budget=UNLIMITED),
        model.unary.flat,
        budget=UNLIMITED,
    )
    optimise(state, evaluations, budget=UNLIMITED)
    return Proposal.of(state, model.unary.flat, budget=UNLIMITED)


def runs_of(model, max_table, num_seeds, num_blocks, size):
    """What different seeds say of a model, each in blocks of this size."""
    proposal = proposal_of(model, max_table)
    for seed in range(num_seeds):
        drawn = np.concatenate([proposal.draw(seed, b).log_weights for b in range(num_blocks * size // 2048 + 1)])
        yield with_blocks(Sampled(proposal.bound, score_rounding(model)), drawn[: num_blocks * size], size)


@pytest.mark.parametrize("zeros", [0.0, 0.1])
def test_intervals_hold_and_errors_are_honest(zeros):
    """200 seeds: intervals miss at most one time in twenty, though each is the narrowest over its run (a run that stops
    when it looks best is not led astray), and about two thirds of the errors are within one standard error."""
    model = a_model(zeros=zeros)
    truth = cz.exact(model).log_z
    missed, within = 0, []
    for sampled in runs_of(model, 4, 200, 8, 250):
        low, high = interval([sampled], 0.95)
        missed += not low <= truth <= high
        within.append(abs(sampled.log_z - truth) <= sampled.standard_error)
    assert missed <= 10
    assert 0.55 <= np.mean(within) <= 0.8
    if zeros:
        assert sampled.tally.num_dead > 0
        alive = sampled.log_z + math.log(sampled.tally.number / (sampled.tally.number - sampled.tally.num_dead))
        assert abs(alive - truth) > 5 * sampled.standard_error > abs(sampled.log_z - truth)


def test_marginals_and_their_errors():
    model = a_model()
    proposal, exact = proposal_of(model, 4), cz.exact(model).marginals.flat
    within = []
    for seed in range(20):
        parts = [MarginalTally.of(model, proposal.draw(seed, block), proposal.bound) for block in range(3)]
        share, error = parts[0].plus(parts[1]).plus(parts[2]).marginals()
        assert np.allclose(np.add.reduceat(share, model.unary.start[:-1]), 1.0)
        within.append(np.abs(share - exact) <= error + EXACT)
    assert 0.55 <= np.mean(within) <= 0.8


def test_marginals_are_the_slow_ones():
    model = a_model()
    rng, scale = np.random.default_rng(0), -3000.0  # beyond what floats have
    states = np.stack([rng.integers(0, k, 50) for k in model.num_states], axis=1).astype(np.int32)
    weights = rng.random(50)
    weights[:20] = 0.0
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights) + scale
    one, other = (
        MarginalTally.of(model, Draws(states[part], log_weights[part]), 0.0) for part in np.split(np.arange(50), [15])
    )
    share, error = one.plus(other).marginals()
    for i, k in enumerate(model.num_states):
        for a in range(k):
            hit = states[:, i] == a
            p = weights[hit].sum() / weights.sum()
            spread = math.sqrt((weights**2 * (hit - p) ** 2).sum()) / weights.sum()
            assert share[model.unary.start[i] + a] == pytest.approx(p)
            assert error[model.unary.start[i] + a] == pytest.approx(spread)


def test_rounding_is_charged_by_the_size_of_the_tables():
    small = cz.Model.from_binary([0.5, 0.5], [1.0], [(0, 1)])
    large = cz.Model.from_binary([0.5, 1e15], [1.0], [(0, 1)])
    assert score_rounding(small) < 1e-13 and 0.1 < score_rounding(large) < 10
    assert score_rounding(cz.Model.from_factors([], [])) == 0.0
