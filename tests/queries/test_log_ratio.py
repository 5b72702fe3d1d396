"""The ratio of two partition functions: between its ends."""

import math
from functools import partial

import numpy as np
import pytest
from enumerated import brute_force, log_sum, random_model

import clampz as cz
from clampz.exact_inference import running
from clampz.queries import ratio_terms

EXACT = 1e-10
# What the slow twin itself rounds.
ROUNDED = 1e-14


@pytest.mark.parametrize("seed", range(30))
def test_the_difference_is_inside(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    one = random_model(rng)
    other = random_model(rng) if seed % 3 else one.condition({0: rng.random(one.num_states[0]) + 0.1})
    if seed % 5 == 4:
        monkeypatch.setattr("clampz.queries.log_ratio.BoundOptions", partial(cz.options.BoundOptions, exact=False))
    a, b = log_sum(brute_force(one)), log_sum(brute_force(other))
    if a == b == -math.inf:
        with pytest.raises(cz.errors.EvidenceError, match="there is no ratio"):
            cz.log_ratio(one, other)
        return
    found = cz.log_ratio(one, other, gap=1e-3, time=60, threads=1)
    if math.isinf(a - b):
        assert found.lower == found.upper == found.estimate == a - b and found.gap == 0.0
        return
    assert found.lower - ROUNDED <= a - b <= found.upper + ROUNDED and found.lower <= found.estimate <= found.upper
    assert found.gap <= 1e-3
    if seed % 5 != 4:
        assert found.stopped_by == "exact" and found.gap < 1e-9


def test_lanes_of_one_model_have_one_plan(monkeypatch):
    made, plan = [], running.plan_exact
    monkeypatch.setattr(
        running, "plan_exact", lambda batch, *args, **more: made.append(batch) or plan(batch, *args, **more)
    )
    model = cz.generators.grid(3, 3, rng=0)
    cz.log_ratio(model, model.condition({4: [0.5, 1.0]}))
    cz.probability(model, {0: 1})
    cz.probability(model, {0: 1, 1: 0})
    assert [batch.num_lanes for batch in made] == [2, 2, 2]
    assert cz.log_ratio(model, cz.generators.grid(3, 3, rng=1)).stopped_by == "exact"
    assert len(made) == 3


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
    side = ratio_terms.RatioTerm(cz.Model([[0.0, 0.0]]), point=311.0)
    other = ratio_terms.RatioTerm(side.model, lower=100.0, upper=100.0, is_closed=True)

    def taken_for():
        return ratio_terms.Interval.of_difference(side, other).estimate + 100.0

    side.tighten(188.0, 427.0)
    assert taken_for() == 311.0
    side.tighten(188.0, 310.5)
    assert taken_for() == 310.5
    side.tighten(188.0, 220.0)
    assert taken_for() == 204.0


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ({"lower": 0.0, "upper": 9.0, "point": 1.0}, {"lower": 0.0, "upper": 8.0, "point": 2.0}, -1.0),
        ({"lower": 0.0, "upper": 9.0, "point": 1.0}, {"lower": 0.0, "upper": 8.0}, 0.5),
        ({"lower": 0.0, "upper": 9.0, "point": 1.0}, {"lower": 4.0, "upper": 4.0, "is_closed": True}, -3.0),
        ({"lower": 0.0, "point": 1.0}, {"lower": 3.0, "upper": 8.0}, -3.0),
        ({"upper": 0.0}, {"lower": 3.0, "upper": 8.0}, -8.0),
        ({"upper": 0.0}, {"lower": 3.0}, math.nan),
        ({}, {}, math.nan),
    ],
)
def test_an_estimate_is_of_what_is_alike_on_both_sides(one, other, wanted):
    """Of Bethe's value for the one and the middle of far ends for the other, anything would come."""
    model = cz.Model([[0.0, 0.0]])
    found = ratio_terms.Interval.of_difference(
        ratio_terms.RatioTerm(model, **one), ratio_terms.RatioTerm(model, **other)
    )
    assert found.estimate == wanted or (math.isnan(wanted) and math.isnan(found.estimate))


def test_evidence_that_one_model_forbids_is_no_error():
    """Whether a table shows it or two zeros that follow from each other."""
    differ = [[-math.inf, 0.0], [0.0, -math.inf]]
    strict = cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ}, names="abc")
    free = cz.Model(np.zeros((3, 2)), names="abc")
    for evidence in ({"a": 0, "b": 0}, {"a": 0, "c": 1}):
        assert cz.log_ratio(strict, free, evidence=evidence).upper == -math.inf
        assert cz.log_ratio(free, strict, evidence=evidence).lower == math.inf
        with pytest.raises(cz.errors.EvidenceError, match="there is no ratio"):
            cz.log_ratio(strict, strict, evidence=evidence)
    with pytest.raises(cz.errors.EvidenceError, match="unknown variable 'd'"):
        cz.log_ratio(strict, free, evidence={"d": 0})
