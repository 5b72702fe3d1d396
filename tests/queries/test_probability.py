"""The probability of an event: between its ends, whatever the model, the event and the evidence."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from enumerated import brute_force, log_sum, random_model

import clampz as cz
from clampz.queries.probability import as_event

EXACT = 1e-10
# What the slow twin itself rounds.
ROUNDED = 1e-14


def asked(rng, model):
    """A random event and random evidence, by index: states and likelihoods."""
    order = rng.permutation(model.num_variables).tolist()
    event = {}
    for i in order[: rng.integers(1, min(4, len(order)) + 1)]:
        size = int(model.num_states[i])
        event[i] = sorted(rng.permutation(size)[: rng.integers(1, size + 1)].tolist())
    evidence = {}
    for i in rng.permutation(model.num_variables)[: rng.integers(0, 3)].tolist():
        size = int(model.num_states[i])
        evidence[i] = int(rng.integers(size)) if rng.random() < 0.6 else (rng.random(size) + 0.1).tolist()
    return event, evidence


def truth(model, event, evidence):
    """P(event | evidence) and its logarithm, or nan, by visiting every configuration."""
    of_all = log_sum(brute_force(model, evidence))
    inside = log_sum(brute_force(model, evidence, event))
    return (math.nan, math.nan) if of_all == -math.inf else (math.exp(inside - of_all), inside - of_all)


def check(found, p, log_p):
    assert found.lower - ROUNDED * p <= p <= found.upper + ROUNDED * p
    assert found.log_lower - ROUNDED <= log_p <= found.log_upper + ROUNDED or (p == 0.0 and found.lower == 0.0)
    assert 0.0 <= found.lower <= found.estimate <= found.upper <= 1.0


@pytest.mark.parametrize("seed", range(60))
def test_narrow_models_have_exact_probabilities(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    event, evidence = asked(rng, model)
    p, log_p = truth(model, event, evidence)
    if math.isnan(p):
        with pytest.raises(cz.errors.EvidenceError, match="impossible"):
            cz.probability(model, event, evidence=evidence)
        return
    found = cz.probability(model, event, evidence=evidence)
    check(found, p, log_p)
    assert found.stopped_by == "exact" and found.gap < 1e-9
    if p in (0.0, 1.0) and len(event) == 1:
        assert found.lower == found.upper == p


@pytest.mark.parametrize("seed", range(12))
def test_brackets_of_both_hold_the_probability(seed, monkeypatch):
    """Without exact sums of the two: never outside."""
    monkeypatch.setattr("clampz.queries.probability.BoundOptions", partial(cz.options.BoundOptions, exact=False))
    rng = np.random.default_rng(1000 + seed)
    model = random_model(rng)
    event, evidence = asked(rng, model)
    p, log_p = truth(model, event, evidence)
    seen = []
    try:
        found = cz.probability(model, event, evidence=evidence, gap=1e-3, time=60, threads=1, progress=seen.append)
    except cz.errors.EvidenceError as error:
        assert math.isnan(p) and "impossible" in str(error)
        return
    check(found, p, log_p)
    assert found.gap <= 1e-3
    for earlier, later in pairwise([*seen, found]):
        check(earlier, p, log_p)
        assert earlier.stopped_by == "left" or earlier is seen[-1]
        assert earlier.lower <= later.lower and later.upper <= earlier.upper


def test_a_wide_model_is_bracketed_within_its_time():
    model = cz.generators.grid(9, 9, weights=(-2, 2), rng=0)
    event = {0: 1, 40: 0}
    exact = cz.exact(model, evidence=[event, {}]).log_z
    p = math.exp(exact[0] - exact[1])
    seen = []
    found = cz.probability(model, event, gap=0.0, time=0.3, memory="2MB", threads=1, progress=seen.append)
    assert found.lower <= p <= found.upper and found.stopped_by in ("time", "exact")
    assert seen and seen[-1].gap <= seen[0].gap

    def stop(_):
        raise StopIteration

    if found.stopped_by == "time":
        stopped = cz.probability(model, event, gap=0.0, time=5, memory="2MB", threads=1, progress=stop)
        assert stopped.stopped_by == "callback" and stopped.lower <= p <= stopped.upper


def test_there_is_an_answer_before_anything_long_begins():
    """Narrower than nothing, in next to no time, on a model of 900 variables."""
    model = cz.generators.grid(30, 30, theta=(-9, 9), weights=(-0.01, 0.01), rng=0)
    first = []
    found = cz.probability(model, {0: 1}, gap=0.0, time=0.1, progress=first.append)
    assert found.seconds < 1.0
    assert first[1].log_upper - first[1].log_lower < 99.0 and first[1].lower <= found.lower <= found.upper


def test_certain_and_impossible_events():
    model = cz.Model([[0.0, 1.0, -np.inf], [0.0, 2.0]], {(0, 1): [[0, -np.inf], [0, 0], [0, 0]]}, names="ab")
    for event, wanted in [
        ({}, 1.0),
        ({"a": [0, 1]}, 1.0),
        ({"a": [0, 1, 2], "b": [0, 1]}, 1.0),
        ({"a": 2}, 0.0),
        ({"a": 2, "b": 1}, 0.0),
        ({"a": 0, "b": 1}, 0.0),
        ({"a": [0, 1], 0: [2]}, None),
    ]:
        if wanted is None:
            assert cz.probability(model, event).upper == 0.0
            continue
        found = cz.probability(model, event)
        assert found.lower == found.estimate == found.upper == wanted and found.stopped_by == "exact"
    assert cz.probability(model, {"a": 1}, evidence={"a": 0}).upper == 0.0
    assert cz.probability(model, {"a": 1}, evidence={"a": 1}).lower == 1.0
    assert cz.probability(cz.Model([]), {}).lower == 1.0
    with pytest.raises(cz.errors.EvidenceError, match=r"impossible"):
        cz.probability(model, {"b": 0}, evidence={"a": 0, "b": 1})


def test_models_without_configurations_are_not_the_fault_of_evidence():
    """Hard zeros of three pairs leave a triangle no colouring, which no variable shows alone."""
    differ = [[-math.inf, 0.0], [0.0, -math.inf]]
    triangle = cz.Model([[0.0, 0.0]] * 3, {(0, 1): differ, (1, 2): differ, (0, 2): differ}, names=["a", "b", "c"])
    with pytest.raises(cz.errors.EvidenceError, match="Z = 0, every configuration being impossible"):
        cz.probability(triangle, {"a": 0})
    with pytest.raises(cz.errors.EvidenceError, match=r"evidence \{'b': 1\} is impossible"):
        cz.probability(triangle, {"a": 0}, evidence={"b": 1})
    pandas = pytest.importorskip("pandas")
    with pytest.raises(cz.errors.EvidenceError, match=r"evidence \{'b': 1\} is impossible"):
        cz.probability(triangle, {"a": 0}, evidence=pandas.Series({"b": 1, "c": None}))


def test_nothing_is_certain_as_long_as_all_may_be_impossible(monkeypatch):
    """Where there is no time to find out, an event that would be certain, or impossible, is not called so."""
    differ = [[-math.inf, 0.0], [0.0, -math.inf]]
    ruled_out = [[0.0, -math.inf], [0.0, 0.0], [0.0, 0.0]]
    path = cz.Model(ruled_out, {(0, 1): differ, (1, 2): differ})
    triangle = cz.Model(ruled_out, {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    free = cz.Model(ruled_out, {(0, 1): [[1.0, 0.0], [0.0, 1.0]]})
    events = [({}, 1.0), ({0: 0}, 1.0), ({0: 1}, 0.0), ({0: 1, 1: 0}, 0.0)]
    for event, value in events:
        found = cz.probability(path, event)
        assert (found.lower, found.upper, found.stopped_by) == (value, value, "exact")
    for event, value in events:
        for model in (path, triangle):
            found = cz.probability(model, event, time=0.0)
            assert (found.lower, found.estimate, found.upper, found.stopped_by) == (0.0, value, 1.0, "time")
            assert (found.log_lower, found.log_upper) == (-math.inf, 0.0)
        found = cz.probability(free, event, time=0.0)  # nothing can be impossible about it
        assert (found.lower, found.upper, found.stopped_by) == (value, value, "exact")


def test_what_is_nearly_certain_is_not_called_certain():
    model = cz.Model([[0.0, 1e15], [0.0, 800.0], [0.0, 0.0]])
    for event in ({0: 1}, {1: 1}):
        found = cz.probability(model, event)
        assert 1 - 1e-9 < found.lower < 1.0 and found.upper == 1.0 and found.log_lower < 0.0
    weaker = cz.Model([[0.0, 900.0], [0.0, 800.0], [0.0, 0.0]], constant=1e15)
    both = cz.probability(weaker, {1: 1, 0: 1})
    assert 1 - 1e-9 < both.lower < 1.0 and both.upper == 1.0 and both.log_lower < 0.0
    rare = cz.probability(model, {1: 0})
    assert 0.0 <= rare.lower <= rare.upper < 1e-300 and rare.log_lower <= -800.0 <= rare.log_upper


def test_events_by_name_and_sets_of_states():
    model = cz.Model(
        [[0.0, 1.0, 2.0], [0.0, 0.5]], names=["colour", "wet"], state_names=[["red", "green", "blue"], ["no", "yes"]]
    )
    weights = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    for said in (["red", "blue"], {"red", 2}, ("blue", "red", 0), np.array([0, 2]), range(0, 3, 2), frozenset({0, 2})):
        found = cz.probability(model, {"colour": said})
        assert found.event == {0: (0, 2)} and found.estimate == pytest.approx(weights[0] + weights[2], abs=EXACT)
    both = cz.probability(model, {"colour": "blue", "wet": True})
    assert both.estimate == pytest.approx(weights[2] / (1 + math.exp(-0.5)), abs=EXACT)
    assert "P(colour = blue, wet = yes)" in repr(both) and "stopped by exact" in repr(both)
    assert "P(0 = 0 or 2)" in repr(cz.probability(cz.Model([[0.0, 1.0, 2.0]]), {0: [0, 2]}))
    assert as_event(model, {"colour": [0, 1], 0: [1, 2]}) == {0: (1,)}
    assert as_event(model, {"colour": np.int64(1), "wet": np.array(["yes"])}) == {0: (1,), 1: (1,)}
    with pytest.raises(cz.errors.EvidenceError, match=r"unknown state array\(1\) of variable 'colour'"):
        as_event(model, {"colour": np.array(1)})


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([("a", 1)], r"event: expected a mapping \{variable: state, or a list of states\}, found list"),
        ({"c": 1}, r"unknown variable 'c'"),
        ({"a": 2}, r"unknown state 2 of variable 'a'"),
        ({"a": ["x"]}, r"unknown state 'x' of variable 'a'"),
        ({"a": []}, r"event: expected at least one state of variable 'a', found none"),
    ],
)
def test_what_is_no_event_is_refused(event, message):
    with pytest.raises(cz.errors.EvidenceError, match=message):
        cz.probability(cz.Model([[0.0, 0.0]], names="a"), event)


@pytest.mark.parametrize("limit", [{"gap": -1}, {"time": -1}, {"memory": "much"}, {"threads": 0}, {"rng": "x"}])
def test_limits_are_checked(limit):
    with pytest.raises(cz.errors.OptionError, match=next(iter(limit))):
        cz.probability(cz.Model([[0.0, 0.0]]), {0: 1}, **limit)
