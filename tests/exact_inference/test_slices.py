"""Sums in slices: whatever is fixed, the same as enumeration; plans keep to their limits and carry their order."""

import itertools
import math
import pickle

import numpy as np
import pytest
from naive import enumerate_factors, enumerate_model

import clampz as cz
from clampz._kernels import graph
from clampz.exact_inference import slicing, sums
from clampz.exact_inference.cuts import Cuts
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.orders import find_order
from clampz.exact_inference.slices import Slices, run_slices, sum_in_slices, sum_lane, sum_slices
from clampz.exact_inference.slicing import SLICE_SECONDS, Slicer, Slicing, _that_moves
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew

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
    rng = np.random.default_rng(seed)
    n = model.num_variables
    for size in {0, 1, min(2, n), n - 1, n}:
        fixed = tuple(rng.permutation(n)[:size].tolist())
        if model.num_states[list(fixed)].prod() > 2000:
            continue
        lower, upper = sum_lane(model, model.unary.flat, Slicing(fixed, 1.0, 1))
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
        lower, upper = sum_lane(model, unary, plan)
        assert lower <= truth <= upper


def model_of_factors(seed, zeros=0.0):
    """Up to eight variables of one to three states in factors of one to four, and these factors."""
    rng = np.random.default_rng(seed)
    num_states = rng.integers(1, 4, rng.integers(2, 9))
    factors = []
    for _ in range(int(rng.integers(1, 12))):
        scope = tuple(rng.permutation(len(num_states))[: rng.integers(1, 5)].tolist())
        table = rng.choice([1.0, 30.0]) * rng.normal(size=tuple(num_states[list(scope)]))
        factors.append((scope, np.where(rng.random(table.shape) < zeros, -np.inf, table)))
    return cz.Model.from_factors(num_states.tolist(), factors), factors


def in_slices(model, fixed, **options):
    """All of a model by slices, whatever the order that they are done in."""
    plan = Slicing(tuple(fixed), 1.0, 1, num_workers=2)
    return sum_in_slices(model, plan, ExactOptions(threads=2, **options), Budget())[0]


@pytest.mark.parametrize("zeros", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(20))
def test_slices_of_any_factors_have_the_sum_and_all_marginals(seed, zeros):
    model, factors = model_of_factors(seed, zeros)
    log_z, unary, joint = enumerate_factors(model.num_states, factors)
    fixed = np.random.default_rng(seed).permutation(model.num_variables)[: seed % (model.num_variables + 1)].tolist()
    found = in_slices(model, fixed)
    assert found.bound == "exact" and found.lower <= log_z <= found.upper
    if log_z == -math.inf:
        assert np.isnan(found.marginals.flat).all()
        return
    assert found.upper - found.lower < EXACT * (1 + abs(log_z))
    for i, marginal in enumerate(unary):
        np.testing.assert_allclose(found.marginals[i], marginal, atol=EXACT)
    for (scope, _), table in zip(factors, joint, strict=True):
        np.testing.assert_allclose(found.marginal(scope), table, atol=EXACT)
    alone = in_slices(model, fixed, marginals=False)
    assert alone.log_z == pytest.approx(log_z, abs=EXACT * (1 + abs(log_z))) and np.isnan(alone.marginals.flat).all()


@pytest.mark.parametrize("num_fixed", [1, 8, 12])
def test_slices_lose_little_to_rounding_however_many(num_fixed):
    """A chain of equal weights: 4,096 slices of as much each, and log Z is known."""
    n = 18
    model = cz.Model.from_binary(np.zeros(n), np.zeros(n - 1), [(i, i + 1) for i in range(n - 1)])
    lower, upper = sum_lane(model, model.unary.flat, Slicing(tuple(range(num_fixed)), 64.0, 2**num_fixed))
    assert lower <= n * math.log(2) <= upper
    whole = cz.exact(model)
    assert upper - lower < whole.upper - whole.lower + 1e-13


def test_the_first_variables_to_be_fixed_are_in_the_large_tables():
    """Two cliques that share two variables: one of these is in all tables that matter, and costs nothing."""
    edges = [(i, j) for i in range(16) for j in range(i) if i < 9 or j in (0, 1) or j >= 9]
    order = find_order(np.full(16, 2), *graph.neighbour_lists(16, np.array(edges, dtype=np.int32))[:2])
    cuts = Cuts(order, np.full(16, 2), np.array(edges))
    assert cuts.order.total == order.total and cuts.order.log2_largest == order.log2_largest
    for _ in range(2):
        assert cuts.fix_one() in (0, 1)
    assert cuts.order.total == 2 * (2**8 - 2) + 2  # of a clique of seven each, and of those that are fixed
    while cuts.fix_one() is not None:
        pass
    assert sorted(cuts.fixed) == list(range(16)) and cuts.order.total == 16


def test_variables_are_fixed_by_their_price():
    """All in one clique take as much from it: the cheapest go first, as many at once as are asked for."""
    edges = np.array([(j, i) for i in range(8) for j in range(i)])
    order = find_order(np.full(8, 2), *graph.neighbour_lists(8, edges.astype(np.int32))[:2])
    place, price = np.argsort(order.variables), np.full(8, 100.0)
    price[place >= 4] = np.arange(1.0, 5.0)  # (those that are eliminated last are in the largest tables)
    cuts = Cuts(order, np.full(8, 2), edges)
    chosen = cuts.fix_some(3, price)
    assert len(chosen) == 3 and set(chosen) <= set(np.flatnonzero(place >= 4).tolist())
    assert cuts.fixed == chosen and cuts.order.total == sum(2**k for k in range(1, 6)) + 3
    assert len(cuts.fix_some(100, price)) == 5 and cuts.fix_some(1, price) == []


def test_plans_keep_to_the_seconds_and_the_memory(monkeypatch):
    model = cz.generators.complete(24, rng=0)
    slicer = Slicer(model)
    assert slicer.plan(model.unary.flat, 1e-3) is None
    for memory, workers in ((2**24, 1), (2**22, 1), (2**22, 2), (2**20, 1)):
        plan = slicer.plan(model.unary.flat, 60.0, memory=memory, num_workers=workers)
        assert plan is not None and plan.fixed and plan.num_sums == 2 ** len(plan.fixed)
        beside = slicer.scopes.num_bytes + 3 * 8 * 48 * plan.num_at_once
        assert plan.num_workers * (8 * plan.entries + beside) <= memory and plan.duration <= 60
        assert plan.num_workers == workers and plan.entries == plan.order.total
        assert slicer.plan(model.unary.flat, 60.0, memory=memory, marginals=True).entries <= plan.entries
    assert slicer.plan(model.unary.flat, 60.0, memory=slicer.scopes.num_bytes) is None
    # for two there would be memory only in more slices than there may be
    monkeypatch.setattr(slicing, "MOST_SLICES", plan.num_sums)
    assert slicer.plan(model.unary.flat, 60.0, memory=2**20, num_workers=8).num_workers == 1
    truth, ends = cz.exact(model, marginals=False), sum_lane(model, model.unary.flat, plan)
    assert ends[0] <= truth.log_z <= ends[1] and ends[1] - ends[0] < EXACT * (1 + abs(truth.log_z))


def test_a_long_sum_is_cut_for_all_workers():
    for workers in (1, 2, 8):
        plans = [Slicing((0,) * k, 1e9 / 2**k * 1.01**k, 2**k, None, min(workers, 2**k)) for k in range(12)]
        plan = _that_moves(plans)
        assert plan.slice_seconds <= SLICE_SECONDS and plan.num_sums >= workers
        assert plan.duration <= 1.25 * min(each.duration for each in plans)
    assert _that_moves(plans[:1]) is plans[0] and _that_moves([]) is None


def test_nothing_to_sum():
    model = cz.Model([], constant=1.5)
    slicer = Slicer(model)
    lower, upper = sum_lane(model, model.unary.flat, slicer.plan(model.unary.flat, 1.0))
    assert lower <= 1.5 <= upper


def test_a_thorough_plan_carries_its_order_to_other_processes(monkeypatch):
    model = cz.generators.grid(7, 7, rng=0)
    plan = pickle.loads(pickle.dumps(Slicer(model).plan(model.unary.flat, 60.0, thorough=True)))
    assert plan.order is not None and plan.entries == plan.order.total
    truth = cz.exact(model, marginals=False)
    monkeypatch.setattr(sums, "find_order", lambda *args: pytest.fail("an order was looked for"))
    lower, upper = sum_lane(model, model.unary.flat, plan)
    assert lower <= truth.log_z <= upper


@pytest.mark.parametrize(
    "run",
    [cz.bound, cz.solve, cz.exact, cz.bound_marginals, lambda model: cz.solve(model, marginals=False)],
    ids=["bound", "solve", "exact", "bound_marginals", "log Z only"],
)
def test_an_order_is_looked_for_once_at_most(run, monkeypatch):
    from clampz.exact_inference import orders

    calls = []

    def counted(*args):
        calls.append(args)
        return orders.find_order(*args)

    model = cz.generators.grid(9, 9, rng=0)
    monkeypatch.setattr(sums, "find_order", counted)
    run(model)
    assert len(calls) == (run is not cz.bound)  # which sums it along a quick order


def test_a_sum_in_slices_that_is_stopped_has_what_was_summed():
    model = cz.generators.grid(4, 4, rng=0)
    truth = cz.exact(model).log_z
    plan = Slicing((5, 6, 9, 10), 100.0, 16)

    def ends(num_looks):
        """Of a sum that is stopped after so many looks at the watch, and how many there were."""
        looks = []
        budget = Budget(stop=lambda: bool(looks.append(1)) or len(looks) > num_looks)
        again = cz.generators.grid(4, 4, rng=0)  # what was found is kept with a model
        return *sum_lane(again, again.unary.flat, plan, budget), len(looks)

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
    budget = Budget(0.0)
    assert sum_lane(model, model.unary.flat, Slicing((), 1.0, 1), budget) == (-math.inf, math.inf)
    assert budget.stopped_by == "time"


def test_plans_are_made_on_the_clock():
    model = cz.generators.cycle(20_000, rng=0)
    over = Budget(stop=lambda: True)
    assert over.must_stop()
    for thorough in (False, True):
        assert Slicer(model).plan(model.unary.flat, 60.0, thorough=thorough, budget=over) is None
        assert Slicer(model).plan(model.unary.flat, 60.0, thorough=thorough, budget=Budget()) is not None


def test_slices_done_and_bounds_on_the_rest_are_a_bracket():
    """Whatever the order of the slices, ends hold at any moment and only close; without bounds there is no upper one
    until all are done."""
    model, factors = model_of_factors(3)
    truth = enumerate_factors(model.num_states, factors)[0]
    fixed = [i for i in range(model.num_variables) if model.num_states[i] > 1][:3]
    for bounded in (False, True):
        slices = Slices(model, model.unary.flat, Slicing(tuple(fixed), 1e9, 1))
        every = slices.waiting.copy()
        assert len(every) == np.prod(model.num_states[fixed]) > 4
        if bounded:
            lanes = cz.Batch(model, slices.lanes(every))
            fields, trees = cz.mean_field(lanes), cz.trw(lanes)
            slices.bound(every, fields.lower, trees.upper)
            assert (np.diff(slices.upper[slices.waiting]) <= 0).all()  # likeliest first
        lower, upper = slices.ends
        assert lower <= truth <= upper and (upper < math.inf) == bounded
        while (some := slices.next()).size:
            assert len(some) == 1 and not slices.complete
            slices.take(sum_slices(*slices.work(some)))
            assert lower <= slices.ends[0] <= truth <= slices.ends[1] <= upper
            lower, upper = slices.ends
            assert (upper < math.inf) == (bounded or slices.complete)
        assert slices.complete and upper - lower < EXACT * (1 + abs(truth))


def test_slices_that_are_known_to_be_empty_are_not_summed():
    model = cz.Model(np.zeros((4, 2)), {(0, 1): [[0.0, -np.inf], [-np.inf, 0.0]], (1, 2): np.ones((2, 2))})
    slices = Slices(model, model.unary.flat, Slicing((0, 1), 10.0, 4))
    slices.bound(np.arange(4), np.full(4, -np.inf), np.array([np.inf, -np.inf, -np.inf, np.inf]))
    with Crew(None, 2) as crew:
        ends = list(run_slices(slices, crew, Budget()))
    assert slices.complete and np.count_nonzero(slices.is_done) == 2
    assert ends[-1][0] <= enumerate_model(model)[0] <= ends[-1][1]


def test_a_sum_by_slices_tells_how_far_it_is_and_can_be_left():
    model = cz.generators.grid(4, 4, rng=0)
    plan = Slicing((5, 6, 9, 10), 1e9, 16)
    seen = []

    def progress(point):
        seen.append(point)
        if len(seen) == 3:
            raise StopIteration

    found = sum_in_slices(model, plan, ExactOptions(threads=1), Budget(progress=progress))[0]
    assert [point.num_finished for point in seen] == [1, 2, 3] and {point.num_lanes for point in seen} == {16}
    assert found.bound is None and found.stopped_by == "callback" and np.isnan(found.log_z)
    seen.clear()
    found = sum_in_slices(model, plan, ExactOptions(threads=1), Budget())[0]
    assert found.bound == "exact"
    assert all(a.log_z <= b.log_z <= found.upper for a, b in itertools.pairwise(seen))


def test_work_on_slices_goes_to_other_processes():
    model, _ = model_of_factors(5)
    slices = Slices(model, model.unary.flat, Slicing((0, 1), 10.0, 4), marginals=True)
    work = slices.work(slices.next())
    again = sum_slices(*pickle.loads(pickle.dumps(work)))
    np.testing.assert_array_equal(again.lower, sum_slices(*work).lower)
    assert pickle.loads(pickle.dumps(again)).mixture.log_weight == again.mixture.log_weight
