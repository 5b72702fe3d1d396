"""`exact` by each of its engines, against enumeration."""

import math

import numpy as np
import pytest
from engines import planned
from random_models import random_of_any_kind
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.exact_inference import plans, presolved, running
from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.presolved import PresolvedBatch
from clampz.exact_inference.running import exact_cost, run_plan
from clampz.model.batch import Batch
from clampz.model_counting.count import is_available
from clampz.planar import plans as planar_plans
from clampz.runtime.budget import Budget


@pytest.fixture
def always_simplified(monkeypatch):
    monkeypatch.setattr(plans, "_is_quick", lambda *asked: False)


def planar_grid(n: int, **drawing) -> cz.Model:
    return cz.generators.grid(n, n, toroidal=False, **{"theta": (0, 0), "weights": (-3, 3), "rng": 0, **drawing})


@pytest.mark.parametrize("seed", range(60))
def test_what_simplifying_leaves_has_the_same_sums_and_marginals(always_simplified, seed):
    model = random_model(seed)
    truth, found = Enumerated(model), cz.exact(model)
    assert found.lower - 1e-9 <= truth.log_z <= found.upper + 1e-9
    if truth.log_z == -math.inf:
        assert "Z = 0" in found.note
        return
    beliefs = found.marginals.flat, found.pairwise_marginals.flat, found.factor_marginals.flat
    assert np.allclose(np.concatenate(beliefs), truth.beliefs, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_lanes_keep_the_variables_in_which_they_differ(always_simplified, seed):
    rng = np.random.default_rng(seed)
    model = random_of_any_kind(seed)
    unary = np.repeat(model.unary.flat[:, None], 3, axis=1)
    i = int(rng.integers(model.num_variables))
    own = slice(model.unary.start[i], model.unary.start[i + 1])
    unary[own] += rng.normal(size=unary[own].shape)
    batch = Batch(model, unary)
    simpler = PresolvedBatch.of(batch, marginals=True)
    assert i in simpler.simplified.variables.tolist() or simpler.simplified.infeasibility
    together, alone = cz.exact(batch), [cz.exact(batch.lane(b), engine="elimination") for b in range(3)]
    for lane, each in zip(together, alone, strict=True):
        assert lane.log_z == pytest.approx(each.log_z, abs=1e-9)
        assert np.allclose(lane.marginals.flat, each.marginals.flat, atol=1e-9, equal_nan=True)


def test_potentials_that_would_leave_the_range_are_not_added_up(always_simplified, monkeypatch):
    """What is summed out of variable 1 and what the lanes have of variable 0 may be too large together for a model."""
    model = cz.generators.from_graph(3, [(0, 1), (1, 2)], rng=0)
    batch = Batch(model, np.stack([model.unary.flat, model.unary.flat * [1.0, 3.0, 1.0, 1.0, 1.0, 1.0]], axis=1))
    expected = cz.exact(batch)
    monkeypatch.setattr(presolved, "LARGEST_POTENTIAL", 0.1)
    assert PresolvedBatch.of(batch, marginals=True).batch is batch
    found = cz.exact(batch)
    np.testing.assert_allclose(found.log_z, expected.log_z, rtol=1e-12)
    for lane, same in zip(found, expected, strict=True):
        np.testing.assert_allclose(lane.marginals.flat, same.marginals.flat, rtol=1e-9)


def test_no_time_for_a_planar_sum_says_nothing_about_others(always_simplified, monkeypatch):
    """The time that a planar graph would take is no reason to end before a sum by elimination is begun."""
    model = cz.generators.grid(4, 4, rng=0)
    expected = cz.exact(model, time=60.0)
    monkeypatch.setattr(planar_plans, "SECONDS_PER_EDGE", 1e6)
    model = cz.generators.grid(4, 4, rng=0)  # anew: what was found is kept with a model
    found = cz.exact(model, time=60.0)
    assert found.stopped_by == "tol" and found.log_z == expected.log_z
    refused = cz.exact(model, time=60.0, engine="planar")
    assert math.isnan(refused.log_z)


def test_what_there_is_no_memory_to_simplify_is_summed_as_it_is(always_simplified, monkeypatch):
    model = cz.generators.cycle(12, rng=0)
    expected = cz.exact(model)
    assert planned(Batch.of(model)).summed.model.num_variables == 0
    assert planned(Batch.of(model), room=100).summed.model is model
    monkeypatch.setattr("clampz.presolve.simplify.num_bytes", lambda model: 2**60)
    assert cz.exact(model).log_z == pytest.approx(expected.log_z, abs=1e-9)


def test_what_there_was_no_time_to_simplify_says_so_where_it_is_too_wide(monkeypatch):
    model = cz.generators.grid(40, 40, rng=0)
    with pytest.raises(cz.errors.TooWideError) as caught:
        cz.exact(model, memory="100MB", time=60.0)
    assert "time=" not in str(caught.value)
    monkeypatch.setattr("clampz.presolve.simplify.SECONDS_PER_TABLE", 1.0)
    model = cz.generators.grid(40, 40, rng=0)  # anew: what was found is kept with a model
    with pytest.raises(cz.errors.TooWideError, match=r"no time to simplify it.* allow more with time=") as caught:
        cz.exact(model, memory="100MB", time=60.0)
    assert caught.value.width > 40


def test_a_planar_graph_is_solved_however_wide():
    model = planar_grid(30)
    with pytest.raises(cz.errors.TooWideError):
        cz.exact(model, engine="elimination", memory="100MB")
    found = cz.exact(model, memory="1GB", marginals=False)
    assert found.bound == "exact" and found.upper - found.lower < 1e-8
    bracket = cz.bound(model, time=30)
    assert bracket.stopped_by == "exact" and found.lower <= bracket.upper and bracket.lower <= found.upper


def test_planar_sums_have_the_marginals_of_elimination():
    model = planar_grid(4)
    planar, swept = cz.exact(model, engine="planar"), cz.exact(model, engine="elimination")
    assert planar.log_z == pytest.approx(swept.log_z, abs=1e-9)
    assert np.allclose(planar.marginals.flat, swept.marginals.flat, atol=1e-9)
    assert np.allclose(planar.pairwise_marginals.flat, swept.pairwise_marginals.flat, atol=1e-9)
    lanes = cz.exact(Batch(model, np.repeat(model.unary.flat[:, None], 2, axis=1)), engine="planar")
    assert lanes.log_z.tolist() == 2 * [planar.log_z]


def test_engines_that_are_not_for_a_model_say_why():
    with pytest.raises(cz.errors.OptionError, match=r"no planar sum of this model: .*face"):
        cz.exact(cz.generators.grid(5, 5, toroidal=False, rng=0), engine="planar")
    with pytest.raises(cz.errors.OptionError, match="engine"):
        cz.exact(planar_grid(3), engine="planer")


def test_counting_that_is_missing_says_what_it_would_bring(monkeypatch):
    monkeypatch.setattr(running, "is_available", lambda: False)
    with pytest.raises(cz.errors.OptionError, match=r"clampz\[counting\]"):
        cz.exact(planar_grid(3), engine="counting")


@pytest.mark.skipif(not is_available(), reason="nothing that counts is installed")
def test_a_count_is_exact_only_where_it_is_proven(monkeypatch):
    from clampz.model_counting.count import Counted

    implies = [[0.0, 0.0], [-math.inf, 0.3]]
    model = cz.Model(np.zeros((4, 2)), {(0, 1): implies, (1, 2): implies, (2, 3): implies})
    truth = cz.exact(model, engine="elimination").log_z
    found = cz.exact(model, engine="counting")
    assert found.log_z == pytest.approx(truth, abs=1e-9)
    assert found.bound in ("exact", None) and found.lower <= truth + 1e-9 <= found.upper + 2e-9
    monkeypatch.setattr(running, "count", lambda *args, **options: Counted(log_z=1.5, error=0.0, lower=1.0))
    unproven = cz.exact(model, engine="counting", marginals=False)
    assert (unproven.bound, unproven.lower, unproven.upper) == (None, 1.0, math.inf) and "counted" in unproven.note
    monkeypatch.setattr(running, "count", lambda *args, **options: Counted(why_none="it was killed"))
    nothing = cz.exact(model, engine="counting")
    assert math.isnan(nothing.log_z) and nothing.bound is None and "killed" in nothing.note


def test_lanes_of_which_one_is_not_proven_are_not_called_exact(monkeypatch):
    from clampz.model_counting.count import Counted

    counts = iter([Counted(log_z=1.0, error=0.0, is_proven=True, lower=1.0), Counted(log_z=2.0, lower=0.5)])
    monkeypatch.setattr(running, "is_available", lambda: True)
    monkeypatch.setattr(running, "count", lambda *args, **options: next(counts))
    model = planar_grid(2)
    found = cz.exact(model, evidence=[{0: 0}, {0: 1}], engine="counting", marginals=False)
    assert found.bound is None and [each.bound for each in found] == [None, None]
    assert found.lower.tolist() == [1.0, 0.5] and found.upper.tolist() == [1.0, math.inf]


def test_what_exact_inference_takes_is_that_of_the_rest(always_simplified):
    edges = [(i, j) for i in range(20) for j in range(i)] + [(i % 20, 20 + i) for i in range(200)]
    wide = cz.generators.from_graph(220, edges, rng=0)
    cost = exact_cost(wide)
    assert cost.plan is not None and cost.plan.presolved is not None
    assert cost.plan.summed.model.num_variables <= 20 and "Simplifying leaves" in cost.plan.words()
    found = run_plan(planned(Batch.of(wide)), ExactOptions(), Budget())
    plain = run_exact(Batch.of(wide), ExactOptions())[0]
    assert found.log_z[0] == pytest.approx(plain.log_z, abs=1e-9)
    assert np.allclose(found.marginals_flat[:, 0], plain.marginals.flat, atol=1e-9)


def test_a_cost_is_not_looked_for_longer_than_its_share_of_the_time():
    """All that is known then is that a sum takes longer; who needs the plan for an answer has all of the time."""
    wide, whole = cz.generators.grid(30, 30, rng=0), Budget(100.0)
    over = Budget(0.0, within=whole)
    found = exact_cost(wide, budget=over)
    assert found.plan is None and found.seconds == math.inf and found.num_bytes == 0
    assert exact_cost(wide).num_bytes > 0 and exact_cost(cz.generators.cycle(9, rng=0), budget=over).plan is not None


@pytest.mark.skipif(not is_available(), reason="no program that counts")
def test_a_count_says_why_it_has_no_tables():
    clause = np.zeros((2, 2, 2))
    clause[0, 1, 0] = -np.inf
    found = cz.exact(cz.Model.from_factors([2, 2, 2], [((0, 1, 2), clause)]), engine="counting")
    assert found.marginals[0] == pytest.approx([3 / 7, 4 / 7])
    with pytest.raises(cz.errors.OptionError, match="a count has those of the variables alone"):
        found.factor_marginals  # noqa: B018 (refuses)
