"""The ratio of two partition functions: between its ends."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.asking import sides
from enumerated import brute_force, log_sum, random_model

EXACT = 1e-10
# What the slow twin itself rounds.
ROUNDED = 1e-14


@pytest.mark.parametrize("seed", range(30))
def test_the_difference_is_inside(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    one = random_model(rng)
    other = random_model(rng) if seed % 3 else one.condition({0: rng.random(one.num_states[0]) + 0.1})
    if seed % 5 == 4:
        monkeypatch.setattr(sides, "_sum_both", lambda *_: False)
    a, b = log_sum(brute_force(one)), log_sum(brute_force(other))
    if a == b == -math.inf:
        with pytest.raises(cz.EvidenceError, match="there is no ratio"):
            cz.log_ratio(one, other)
        return
    found = cz.log_ratio(one, other, gap=1e-3, time=5, threads=1)
    if math.isinf(a - b):
        assert found.lower == found.upper == found.estimate == a - b and found.gap == 0.0
        return
    assert found.lower - ROUNDED <= a - b <= found.upper + ROUNDED and found.lower <= found.estimate <= found.upper
    assert found.gap <= 1e-3
    if seed % 5 != 4:
        assert found.stopped_by == "exact" and found.gap < 1e-9


def test_lanes_of_one_model_have_one_plan(monkeypatch):
    made = []
    of = sides.SumPlan.of
    monkeypatch.setattr(
        sides.SumPlan, "of", lambda batch, *args, **more: made.append(batch) or of(batch, *args, **more)
    )
    model = cz.generators.grid(3, 3, rng=0)
    cz.log_ratio(model, model.condition({4: [0.5, 1.0]}))
    cz.probability(model, {0: 1})
    cz.probability(model, {0: 1, 1: 0})
    assert [batch.num_lanes for batch in made] == [2, 2, 2]
    cz.log_ratio(model, cz.generators.grid(3, 3, rng=1))
    assert [batch.num_lanes for batch in made[3:]] == [1, 1]


def test_evidence_is_of_both():
    model = cz.generators.grid(3, 3, rng=0)
    warmer = cz.Model.from_binary(
        model.binary.theta / 2, model.binary.W / 2, model.edges, constant=model.binary.constant
    )
    found = cz.log_ratio(model, warmer, evidence={0: 1})
    wanted = cz.exact(model, evidence={0: 1}).log_z - cz.exact(warmer, evidence={0: 1}).log_z
    assert found.estimate == pytest.approx(wanted, abs=EXACT) and "log Z_a - log Z_b" in repr(found)


def test_nothing_is_known_without_time():
    model = cz.generators.grid(40, 40, rng=0)
    found = cz.log_ratio(model, model.condition({0: 0}), time=0.0)
    assert found.lower <= found.upper and found.stopped_by in ("time", "exact")


def test_an_estimate_that_the_ends_refute_is_given_up():
    """Bethe's value may be inside at first, and far outside later: then it is no estimate, let alone at an end."""
    side = sides.Side(cz.Model([[0.0, 0.0]]), guess=311.0)
    side.learn(188.0, 427.0)
    assert side.value == 311.0
    side.learn(188.0, 310.5)
    assert side.value == 310.5
    side.learn(188.0, 220.0)
    assert side.value == 204.0
