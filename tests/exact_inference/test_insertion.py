"""What was left out of a sum comes back into it: marginals in rounds, against enumeration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from engines import planned
from simplifiable import Enumerated, cone_marginal, gates, random_model

import clampz as cz
from clampz.exact_inference import contraction_trees, insertion, plans, running
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.presolved import PresolvedBatch
from clampz.exact_inference.slicing import Slicing
from clampz.exact_inference.sums import lay_out_lanes
from clampz.model.batch import Batch
from clampz.presolve.simplified import postsolve
from clampz.runtime.budget import Budget

CLOSE = 1e-9


@pytest.fixture
def always_in_rounds(monkeypatch):
    """However quick and narrow a model is, if it has variables that log Z does not need."""
    monkeypatch.setattr(plans, "_is_quick", lambda *asked: False)
    monkeypatch.setattr(plans, "LONG_SECONDS", -1.0)
    monkeypatch.setattr(running, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(ExactPlan, "visits", math.inf)


@pytest.fixture(params=["many at a time", "one at a time"])
def pace(request, monkeypatch):
    """With room for all, and with room for none but the first of a round."""
    if request.param == "one at a time":
        for name in ("LEAST_MORE", "TIMES_MORE"):
            monkeypatch.setattr(insertion, name, 0.0)
    return request.param


def asked_of(model, simplified, rng):
    """The lost variables, and scopes of up to three of any."""
    scopes = [tuple(rng.permutation(model.num_variables)[: rng.integers(1, 4)].tolist()) for _ in range(4)]
    return [(v,) for v in postsolve(simplified).lost.tolist()] + scopes


@pytest.mark.parametrize("seed", range(80))
def test_all_beliefs_are_those_of_enumeration(seed, pace):
    model, rng = random_model(seed), np.random.default_rng(seed)
    truth, batch = Enumerated(model), Batch.of(model)
    simpler = PresolvedBatch.of(batch, marginals=False)
    if truth.log_z == -math.inf or simpler.simplified.is_trivial:
        return
    asked = asked_of(model, simpler.simplified, rng)
    found = insertion.Insertion(simpler, lay_out_lanes(simpler.batch, marginals=False), asked, None, Budget())
    flat, tables = found.run(0, 2, Budget())
    exact = np.concatenate(truth.unary)
    known = ~np.isnan(flat)
    assert np.allclose(flat[known], exact[known], atol=CLOSE)
    assert {v for (v,) in asked[:-4]} == {v for v in range(model.num_variables) if np.isnan(flat[model.unary.start[v]])}
    for scope, table in zip(asked, tables, strict=True):
        assert table.shape == tuple(model.num_states[list(scope)])
        assert np.allclose(table, truth.joint(scope), atol=CLOSE)
    assert not found.why_none
    assert pace == "many at a time" or len(found.rounds) >= min(2, len(asked) - 4)


@pytest.mark.checked
def test_lanes(always_in_rounds, pace):
    model, _ = gates(np.random.default_rng(4), 6, 5)
    batch = Batch.from_evidence(model, [{}, {7: 1}, {2: 0, 12: 1}])
    assert planned(batch).in_parts
    for lane, found in enumerate(cz.exact(batch)):
        truth = Enumerated(batch.lane(lane))
        assert found.log_z == pytest.approx(truth.log_z, abs=CLOSE)
        assert np.allclose(found.marginals.flat, np.concatenate(truth.unary), atol=CLOSE)
        assert np.allclose(found.factor_marginals.flat, truth.beliefs[-len(model.factors.flat) :], atol=CLOSE)


@pytest.fixture(scope="module")
def wide():
    return gates(np.random.default_rng(1), 40, 60)


def test_a_wide_network_whose_variables_depend_on_little(always_in_rounds, wide):
    model, factors = wide
    found = cz.exact(model, memory="100MB")
    assert found.bound == "exact" and found.log_z == pytest.approx(0.0, abs=CLOSE) and not found.note
    for v in range(0, model.num_variables, 7):
        assert np.allclose(found.marginals[v], cone_marginal(factors, v), atol=CLOSE)


def test_rounds_do_not_depend_on_threads(always_in_rounds, wide):
    model, _ = wide
    one, two = (cz.exact(model, memory="100MB", threads=threads).marginals.flat for threads in (1, 2))
    assert np.array_equal(one, two)


def test_log_z_is_not_lost_when_time_is_up(always_in_rounds, wide, monkeypatch):
    """The first round takes all of the time."""
    model, _ = wide
    budget, sum_out = Budget(), insertion.sum_out

    def sum_once(*args, **more):
        found = sum_out(*args, **more)
        budget.stop("time")
        return found

    monkeypatch.setattr(insertion, "sum_out", sum_once)
    found = running.run_plan(planned(Batch.of(model), "100MB"), ExactOptions(threads=1), budget)[0]
    assert found.bound == "exact" and found.log_z == pytest.approx(0.0, abs=CLOSE)
    assert found.note == insertion.OUT_OF_TIME
    assert 0 < np.count_nonzero(np.isnan(found.marginals.flat)) < len(found.marginals.flat)


def test_nor_where_memory_is_too_short_for_some(always_in_rounds, wide, monkeypatch):
    """Rounds that do not fit are left out, and said."""
    model, _ = wide
    monkeypatch.setattr(insertion, "LEAST_MORE", 0.0)
    sizes = []

    def fits_into(memory, num_bytes):
        sizes.append(num_bytes)
        return len(sizes) < 2 or num_bytes != sizes[1]

    monkeypatch.setattr(insertion, "fits_into", fits_into)
    found = cz.exact(model, memory="100MB")
    assert len(sizes) > 2 and found.bound == "exact" and found.note == insertion.TOO_WIDE
    assert 0 < np.count_nonzero(np.isnan(found.marginals.flat)) < len(found.marginals.flat)


def test_nor_where_some_are_beyond_all_memory(always_in_rounds, wide, monkeypatch):
    """Their tables have more entries than can be counted."""
    model, _ = wide
    monkeypatch.setattr(insertion, "LEAST_MORE", 0.0)
    monkeypatch.setattr(contraction_trees, "BEYOND_ALL", 2.0**4)
    found = cz.exact(model, memory="100MB")
    assert found.bound == "exact" and found.note == insertion.TOO_WIDE
    assert 0 < np.count_nonzero(np.isnan(found.marginals.flat)) < len(found.marginals.flat)


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("seed", [1, 4, 21, 22, 23, 24])
def test_where_rounds_do_not_fit_all_marginals_come_in_slices(always_in_rounds, monkeypatch, seed, fits):
    """Joint beliefs that do not fit at once, of a model whose log Z does; and what there is, where slices do not fit
    either."""
    model, _ = gates(np.random.default_rng(seed), 6, 5)
    truth, taken = Enumerated(model), []
    plan = planned(Batch.of(model))
    assert plan.in_parts
    joint = plan.joint.how
    monkeypatch.setattr(ExactPlan, "num_bytes", property(lambda self: 0 if self.in_parts else 2**60))

    def in_slices(self, options, most_seconds, budget):
        if self.in_parts:
            return None
        taken.append(self)
        num_sums = int(np.prod(self.summed.model.num_states[:2]))
        tree, memory = joint.scopes.tree(joint.order), math.inf if fits else 1.0
        return replace(self, slices=Slicing((0, 1), 1.0, num_sums, joint.order, tree=tree, memory=memory))

    monkeypatch.setattr(ExactPlan, "in_slices", in_slices)
    monkeypatch.setattr(insertion.InsertionRound, "fits_into", lambda self, memory: False)
    found = running.run_plan(plan, ExactOptions(), Budget())[0]
    assert len(taken) == 1 and found.log_z == pytest.approx(truth.log_z, abs=CLOSE)
    there = ~np.isnan(found.marginals.flat)
    assert there.all() == fits and bool(found.note) != fits
    assert np.allclose(found.marginals.flat[there], np.concatenate(truth.unary)[there], atol=CLOSE)
