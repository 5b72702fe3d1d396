"""Marginals block by block, against enumeration."""

import math

import numpy as np
import pytest
from engines import planned
from simplifiable import Enumerated, cone_marginal, gates, random_model

import clampz as cz
from clampz.exact_inference import marginal_queries, plans, running
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.marginal_queries import Asked
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.presolved import PresolvedBatch
from clampz.exact_inference.running import run_plan
from clampz.exact_inference.sums import lay_out_lanes
from clampz.model.batch import Batch
from clampz.runtime.budget import Budget


@pytest.fixture
def smallest_blocks(monkeypatch):
    """Each scope on its own, however quick more of them would be."""
    for name in ("QUICK_ENTRIES", "QUICK_PER_ENTRY"):
        monkeypatch.setattr(marginal_queries, name, 0)


@pytest.fixture
def always_in_blocks(monkeypatch, smallest_blocks):
    """However quick and narrow a model is, if it has variables that log Z does not need."""
    monkeypatch.setattr(plans, "_is_quick", lambda *asked: False)
    monkeypatch.setattr(plans, "LONG_SECONDS", -1.0)
    monkeypatch.setattr(ExactPlan, "visits", math.inf)
    monkeypatch.setattr(running, "LONG_ENOUGH", math.inf)


def all_variables(model):
    return Asked.of_variables(model, np.arange(model.num_variables))


@pytest.mark.parametrize("seed", range(60))
def test_all_beliefs_are_those_of_the_whole(smallest_blocks, seed):
    model = random_model(seed)
    truth = Enumerated(model)
    if truth.log_z == -math.inf:
        return
    found = [
        marginal_queries.beliefs_in_blocks(model, asked(model), None, Budget())
        for asked in (all_variables, Asked.tables_of)
    ]
    assert np.allclose(np.concatenate([each.flat for each in found]), truth.beliefs, atol=1e-9)
    assert not any(each.why_none for each in found)


def test_lanes(always_in_blocks):
    model, _ = gates(np.random.default_rng(4), 6, 5)
    batch = Batch.from_evidence(model, [{}, {7: 1}, {2: 0, 12: 1}])
    assert planned(batch).in_parts
    for lane, found in enumerate(cz.exact(batch)):
        truth = Enumerated(batch.lane(lane))
        assert found.log_z == pytest.approx(truth.log_z, abs=1e-9)
        assert np.allclose(found.marginals.flat, np.concatenate(truth.unary), atol=1e-9)
        assert np.allclose(found.factor_marginals.flat, truth.beliefs[-len(model.factors.flat) :], atol=1e-9)


@pytest.fixture(scope="module")
def wide():
    return gates(np.random.default_rng(1), 40, 60)


def test_a_wide_network_whose_variables_depend_on_little(wide):
    model, factors = wide
    with pytest.raises(cz.errors.TooWideError):
        lay_out_lanes(Batch.of(cz.simplify(model).model), "100MB")
    found = cz.exact(model, memory="100MB")
    assert found.bound == "exact" and found.log_z == pytest.approx(0.0, abs=1e-9) and not found.note
    for v in range(0, model.num_variables, 7):
        assert np.allclose(found.marginals[v], cone_marginal(factors, v), atol=1e-9)


def test_log_z_is_not_lost_when_time_is_up(wide, monkeypatch):
    """The first block takes all of the time."""
    model, _ = wide
    budget, fill = Budget(), marginal_queries.Block.fill

    def fill_once(self, *args):
        fill(self, *args)
        budget.stop("time")

    monkeypatch.setattr(marginal_queries.Block, "fill", fill_once)
    found = run_plan(planned(Batch.of(model), "100MB"), ExactOptions(), budget)[0]
    assert found.bound == "exact" and found.log_z == pytest.approx(0.0, abs=1e-9)
    assert found.note == marginal_queries.OUT_OF_TIME
    assert 0 < np.count_nonzero(np.isnan(found.marginals.flat)) < len(found.marginals.flat)


def test_nor_where_memory_is_too_short_for_some(wide, monkeypatch):
    model, _ = wide

    def too_wide(self, *args):
        if 0 in self.asked.place:
            raise cz.errors.TooWideError("a hundred bytes", width=9, num_bytes=100)
        return fill(self, *args)

    fill = marginal_queries.Block.fill
    monkeypatch.setattr(marginal_queries.Block, "fill", too_wide)
    found = cz.exact(model, memory="100MB")
    assert found.bound == "exact" and found.note == f"{marginal_queries.TOO_WIDE}: a hundred bytes"
    assert [np.isnan(row).all() for row in found.marginals].count(True) == 1  # the first that is not known


def test_blocks_that_gain_nothing_are_not_taken(always_in_blocks, monkeypatch):
    """The whole is summed where that visits fewer entries than its parts do."""
    monkeypatch.setattr(ExactPlan, "visits", 2.0**20)
    model, _ = gates(np.random.default_rng(4), 6, 5)
    monkeypatch.setattr(marginal_queries, "sum_entries", lambda scopes, most, budget: 2.0**30)
    monkeypatch.setattr(plans, "sum_entries", lambda scopes, most, budget: 0.0)
    filled = []
    monkeypatch.setattr(marginal_queries.Block, "fill", lambda *args: filled.append(args))
    found = cz.exact(model)
    assert not filled and np.allclose(found.marginals.flat, np.concatenate(Enumerated(model).unary), atol=1e-9)


def test_halves_without_gain_are_looked_at_for_a_while_only(wide, monkeypatch):
    """However many variables there are, where no half is narrower than the whole."""
    model, _ = wide
    looked = []
    block = marginal_queries.Block(model, all_variables(model), 1e6)

    def halves(self, most, budget):
        looked.append(len(self.asked.place))
        return [marginal_queries.Block(model, half, 1e6) for half in self.asked.halves()]

    monkeypatch.setattr(marginal_queries.Block, "halves", halves)
    assert marginal_queries._quickest(block, math.inf, Budget(), marginal_queries.PATIENCE) == (1e6, [block])
    assert len(looked) <= 2**marginal_queries.PATIENCE


@pytest.mark.parametrize("seed", range(20))
def test_tables_that_fell_apart_come_a_few_at_a_time_where_all_are_too_wide(monkeypatch, seed):
    """Findings of a diagnosis leave one table for each cause; held together they are as wide as all causes are."""
    model = random_model(seed)
    truth = Enumerated(model)
    if truth.log_z == -math.inf:
        return

    def too_wide(*asked):
        raise cz.errors.TooWideError("too wide", width=60, num_bytes=2**60)

    monkeypatch.setattr(plans, "_is_quick", lambda *asked: False)
    monkeypatch.setattr(PresolvedBatch, "tables", too_wide)
    found = cz.exact(model)
    tables = np.concatenate([found.pairwise_marginals.flat, found.factor_marginals.flat])
    assert np.allclose(tables, truth.beliefs[len(model.unary.flat) :], atol=1e-9)
