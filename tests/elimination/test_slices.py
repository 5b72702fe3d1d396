"""Sums in slices: whatever is fixed, the same as enumeration; plans keep to their limits and carry their order."""

import itertools
import math
import pickle

import numpy as np
import pytest

import clampz as cz
from clampz.elimination.slices import SlicedPlan, Slicer
from clampz.watch import Watch
from naive import enumerate_model

EXACT = 1e-9


def random_model(seed, zeros=0.0):
    """Up to seven variables of one to four states, weak to strong, in one component or several."""
    rng = np.random.default_rng(seed)
    num_states = rng.integers(1, 5, rng.integers(1, 8))
    density, strength = rng.random(), rng.choice([0.3, 3.0, 50.0])

    def table(*shape):
        values = rng.uniform(-strength, strength, shape)
        return np.where(rng.random(shape) < zeros, -np.inf, values)

    pairs = itertools.combinations(range(len(num_states)), 2)
    chosen = {(i, j): table(num_states[i], num_states[j]) for i, j in pairs if rng.random() < density}
    return cz.Model([table(k) for k in num_states], chosen, constant=float(rng.normal()))


@pytest.mark.parametrize("zeros", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_fixed_the_sum_is_the_same(seed, zeros):
    model = random_model(seed, zeros)
    truth, found = enumerate_model(model)[0], cz.exact(model)
    slicer = Slicer(model)
    rng = np.random.default_rng(seed)
    n = model.num_variables
    for size in {0, 1, min(2, n), n - 1, n}:
        fixed = tuple(rng.permutation(n)[:size].tolist())
        lower, upper = slicer.total(model.unary.flat, SlicedPlan(fixed, 1.0, 1))
        assert lower <= truth <= upper
        assert lower <= found.upper and found.lower <= upper
        assert upper == lower == -math.inf or upper - lower < EXACT * (1 + abs(truth))


@pytest.mark.parametrize("seed", range(10))
def test_states_that_a_lane_rules_out_count_for_nothing(seed):
    model = random_model(seed)
    unary = model.unary.flat.copy()
    unary[np.random.default_rng(seed).random(len(unary)) < 0.3] = -np.inf
    lane = cz.Model.from_flat(model.num_states, unary, model.edges, model.pairwise.flat, constant=model.constant)
    truth, slicer = enumerate_model(lane)[0], Slicer(model)
    for thorough in (False, True):
        plan = slicer.plan(unary, 10.0, thorough=thorough)
        lower, upper = slicer.total(unary, plan)
        assert lower <= truth <= upper


def test_larger_factors_are_summed_directly():
    rng = np.random.default_rng(0)
    scopes = [(0, 1, 2), (1, 3, 4), (2, 4, 5), (0, 5)]
    model = cz.Model.from_factors([2] * 6, [(scope, rng.normal(size=(2,) * len(scope))) for scope in scopes])
    slicer = Slicer(model)
    plan = slicer.plan(model.unary.flat, 1.0, thorough=True)
    assert plan is not None and not plan.fixed
    assert slicer.total(model.unary.flat, plan)[0] == pytest.approx(cz.exact(model).log_z, abs=EXACT)


def test_plans_keep_to_the_seconds_and_the_memory():
    model = cz.generators.complete(24, rng=0)
    slicer = Slicer(model)
    assert slicer.plan(model.unary.flat, 1e-3) is None
    plan = slicer.plan(model.unary.flat, 60.0, memory=2**22)
    assert plan is not None and plan.fixed and plan.order is None
    assert 8 * plan.entries + 3 * 8 * 48 * min(plan.num_sums, 2500) <= 2**22 and plan.seconds <= 60  # its lanes too


def test_nothing_to_sum():
    model = cz.Model([], constant=1.5)
    slicer = Slicer(model)
    lower, upper = slicer.total(model.unary.flat, slicer.plan(model.unary.flat, 1.0))
    assert lower <= 1.5 <= upper


def test_a_thorough_plan_carries_its_order_to_other_processes(monkeypatch):
    model = cz.generators.grid(9, 9, rng=0)
    plan = pickle.loads(pickle.dumps(Slicer(model).plan(model.unary.flat, 60.0, thorough=True)))
    assert plan.order is not None and plan.entries == plan.order.total
    truth = cz.exact(model, marginals=False)
    monkeypatch.setattr("clampz.elimination.plans.find_order", lambda *args: pytest.fail("an order was looked for"))
    lower, upper = Slicer(model).total(model.unary.flat, plan)
    assert lower <= truth.log_z <= upper


@pytest.mark.parametrize(
    "run",
    [cz.bound, cz.solve, cz.exact, cz.bound_marginals, lambda model: cz.solve(model, marginals=False)],
    ids=["bound", "solve", "exact", "bound_marginals", "log Z only"],
)
def test_an_order_is_looked_for_once(run, monkeypatch):
    from clampz.elimination import orders, plans

    calls = []

    def counted(*args):
        calls.append(args)
        return orders.find_order(*args)

    model = cz.generators.grid(9, 9, rng=0)
    monkeypatch.setattr(plans, "find_order", counted)
    run(model)
    assert len(calls) == 1


def test_a_sum_in_slices_that_is_stopped_has_what_was_summed():
    model = cz.generators.grid(4, 4, rng=0)
    truth, slicer = cz.exact(model).log_z, Slicer(model)
    plan = SlicedPlan((5, 6, 9, 10), 100.0, 16)

    def ends(num_looks):
        """Of a sum that is stopped after so many looks at the watch, and how many there were."""
        looks = []
        watch = Watch(stop=lambda: bool(looks.append(1)) or len(looks) > num_looks)
        return *slicer.total(model.unary.flat, plan, watch), len(looks)

    lower, upper, num_looks = ends(math.inf)
    assert lower <= truth <= upper < math.inf and num_looks > 15  # between slices, at the least
    lowers = [lower]
    for fewer in (1, 5, 10, 15):
        lower, upper, _ = ends(num_looks - fewer)
        assert upper == math.inf
        lowers.append(lower)
    assert lowers == sorted(set(lowers), reverse=True) and lowers[-1] > -math.inf


def test_a_run_that_is_over_has_no_order_and_says_so():
    model = cz.generators.grid(120, 120, rng=0)
    watch = Watch(0.0)
    assert Slicer(model).total(model.unary.flat, SlicedPlan((), 1.0, 1), watch) == (-math.inf, math.inf)
    assert watch.stopped_by == "time"


def test_plans_are_made_on_the_clock():
    model = cz.generators.cycle(20_000, rng=0)
    over = Watch(stop=lambda: True)
    assert over.must_stop()
    for thorough in (False, True):
        assert Slicer(model).plan(model.unary.flat, 60.0, thorough=thorough, watch=over) is None
        assert Slicer(model).plan(model.unary.flat, 60.0, thorough=thorough, watch=Watch()) is not None
