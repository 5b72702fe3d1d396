"""Batches: lanes equal single runs, threads change no bit, finished lanes keep their own numbers, impossible lanes
disturb nobody."""

import importlib
import itertools

import numpy as np
import pytest
from random_models import as_general, random_binary, random_edges, random_tables

import clampz as cz
from clampz._kernels.approximations import state_tables as tables
from clampz._kernels.approximations.message_passing.binary import FULL_LANES
from clampz.approximations.edge_weights import uniform_weights
from clampz.approximations.layouts import layout_of
from clampz.approximations.message_passing import lanes_of
from clampz.runtime.budget import UNLIMITED
from clampz.runtime.workers import MAX_BLOCK, MIN_RANGE, SUM_BLOCK, Workers, cut, lane_blocks, padded, sum_blocks

SAME = 1e-9
METHODS = list(cz.methods())
MARKED = [pytest.param(name, marks=pytest.mark.nojit) for name in METHODS]
ARRAYS = ("log_z", "lower", "upper", "value", "residual", "num_iter", "converged", "marginals_flat")


def model_of(kind, rng):
    n = 7
    edges = random_edges(rng, n, 0.6)
    if kind == "labels":
        return random_tables(rng, rng.integers(2, 4, n), edges, 2.0)
    model = random_binary(rng, n, edges, 3.0)
    return as_general(model) if kind == "general" else model


def run(method, batch, num_sweeps, **changes):
    """A fixed number of sweeps, so that lanes are compared point by point (but where nothing is left to do: what
    rounding leaves of a residual may be 0 or not); mean field and Bethe from fewer starts to be quick."""
    if method == "mean_field":
        changes["num_starts"] = 2
    if method == "bethe":
        changes["num_starts"] = 0
    return cz.methods()[method](batch, tol=1e-15, max_iter=num_sweeps, **changes)


def lane_model(batch, b):
    """The model of a lane, on the same kernels as the batch."""
    lane = batch.lane(b)
    if batch.model.pair_form is None:
        lane.__dict__["pair_form"] = None
    return lane


def assert_same_lane(one, other):
    size = SAME * max(1.0, abs(one.log_z)) if np.isfinite(one.log_z) else 0.0
    for name in ("log_z", "value", "lower", "upper", "residual"):
        a, b = getattr(one, name), getattr(other, name)
        assert a == b or abs(a - b) <= size, name
    assert (one.num_iter, one.converged, one.stopped_by, one.note) == (
        other.num_iter,
        other.converged,
        other.stopped_by,
        other.note,
    )
    np.testing.assert_allclose(one.marginals.flat, other.marginals.flat, atol=SAME)
    np.testing.assert_allclose(one.pairwise_marginals.flat, other.pairwise_marginals.flat, atol=SAME)


def assert_identical(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert list(one.stopped_by) == list(other.stopped_by)
    np.testing.assert_array_equal(
        one[len(one) - 1].pairwise_marginals.flat, other[len(other) - 1].pairwise_marginals.flat
    )


@pytest.mark.parametrize("num_lanes", [2, 7, 8, 9, 33])
@pytest.mark.parametrize("kind", ["binary", "general", "labels"])
@pytest.mark.parametrize("method", MARKED)
def test_lanes_equal_single_runs(method, kind, num_lanes):
    rng = np.random.default_rng(num_lanes)
    model = model_of(kind, rng)
    batch = cz.Batch(model, rng.normal(size=(len(model.unary.flat), num_lanes)))
    many = run(method, batch, 6)
    assert len(many) == num_lanes
    for b in {0, 1, num_lanes // 2, num_lanes - 1}:
        assert_same_lane(many[b], run(method, lane_model(batch, b), 6))


@pytest.mark.parametrize("kind", ["binary", "general", "labels"])
@pytest.mark.parametrize("method", MARKED)
def test_lanes_with_evidence_on_different_variables(method, kind):
    rng = np.random.default_rng(40)
    model = model_of(kind, rng)
    sets = [
        {},
        {0: 1},
        {1: 0, 4: 1},
        {2: 1},
        {},
        {3: 0, 5: 0, 6: 1},
        {i: 0 for i in range(7)},
        {6: 0},
        {0: 0, 1: 1},
        {4: 1},
    ]
    batch = cz.Batch.from_evidence(model, sets)
    many = run(method, batch, 6)
    for b, evidence in enumerate(sets):
        assert_same_lane(many[b], run(method, lane_model(batch, b), 6))
        assert all(many[b].marginals[i][a] == pytest.approx(1.0, abs=1e-14) for i, a in evidence.items())


# -- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_lanes", [3, 9, 17, 33, 130])
@pytest.mark.parametrize("kind", ["binary", "general", "labels"])
@pytest.mark.parametrize("method", METHODS)
def test_threads_change_no_bit(method, kind, num_lanes):
    rng = np.random.default_rng(50)
    model = model_of(kind, rng)
    batch = cz.Batch(model, rng.normal(size=(len(model.unary.flat), num_lanes)))
    one = run(method, batch, 10, threads=1)
    for threads in (2, 3):
        assert_identical(one, run(method, batch, 10, threads=threads))


@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
def test_threads_change_no_bit_until_convergence_and_with_evidence(method):
    rng = np.random.default_rng(51)
    model = model_of("binary", rng)
    batch = cz.Batch.from_evidence(model, [{}, {0: 0}, {1: 1}] * 5)
    solve = cz.methods()[method]
    for threads in (2, 3):
        assert_identical(solve(batch, threads=1), solve(batch, threads=threads))


def test_threads_change_no_bit_of_lanes_that_move_on_to_longer_inner_loops(monkeypatch):
    bethe = importlib.import_module("clampz.approximations.bethe")
    monkeypatch.setattr(bethe, "PATIENCE", 4)  # impatient: most lanes move on, few at a time
    monkeypatch.setattr(bethe, "PROGRESS", 0.5)
    rng = np.random.default_rng(0)
    model = cz.generators.complete(10, weights=(-12, 12), rng=0)
    batch = cz.Batch(model, rng.normal(size=(20, 24)))
    one = cz.bethe(batch, threads=1)
    for threads in (2, 3):
        assert_identical(one, cz.bethe(batch, threads=threads))


@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
@pytest.mark.parametrize("labels", [2, 3])
def test_threads_change_no_bit_of_one_large_model(method, labels):
    side = 200 if labels == 2 else 100
    model = cz.generators.grid(side, side, labels=labels, rng=0)
    if method != "mean_field":
        assert 2 * model.num_edges * (1 if labels == 2 else labels) > MIN_RANGE
    start = np.full((len(model.unary.flat), 1), 1 / labels)
    changes = {"mean_field": {"num_starts": 0, "start": start}, "bethe": {"num_starts": 0}, "trw": {}}[method]
    one = cz.methods()[method](model, tol=0.0, max_iter=3, threads=1, **changes)
    for threads in (2, 3):
        other = cz.methods()[method](model, tol=0.0, max_iter=3, threads=threads, **changes)
        assert (one.value, one.upper, one.lower, one.residual) == (
            other.value,
            other.upper,
            other.lower,
            other.residual,
        )
        np.testing.assert_array_equal(one.marginals.flat, other.marginals.flat)


@pytest.mark.nojit
@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
@pytest.mark.parametrize("min_range", [1, 10**9])
def test_whoever_is_first_changes_nothing(method, min_range, monkeypatch):
    """What threads are given at once may be done in any order: no two of them are neighbours.  Models with few values
    and large tables, which are cut for the budget alone, were given to threads neighbours and all."""

    def last_first(workers, function, items):
        return [function(item) for item in items[::-1]][::-1]

    model = cz.generators.grid(4, 4, labels=4, potentials="table", rng=0)
    monkeypatch.setattr("clampz.approximations.lanes.PART", 32)
    for module in ("lanes", "restarts"):
        monkeypatch.setattr(f"clampz.approximations.{module}.MIN_RANGE", min_range)
    one = run(method, model, 5, threads=2)
    monkeypatch.setattr(Workers, "map", last_first)
    other = run(method, model, 5, threads=2)
    assert (one.value, one.residual) == (other.value, other.residual)
    np.testing.assert_array_equal(one.marginals.flat, other.marginals.flat)


@pytest.mark.nojit
def test_ranges_are_cut_completely():
    for num_lanes in (0, 1, 7, 8, 9, 64, 65, 200):
        for threads in (1, 2, 3, 16):
            blocks = lane_blocks(num_lanes, threads)
            assert np.concatenate([*blocks, []]).tolist() == list(range(num_lanes))
            assert all(0 < len(block) < MAX_BLOCK + FULL_LANES for block in blocks)
            # fewer lanes than that take other kernels: whether they do must not depend on the threads
            assert len(blocks) < 2 or min(map(len, blocks)) >= FULL_LANES
    for first, last in ((0, 0), (0, 1), (5, 12), (0, 1000)):
        for parts in (1, 2, 3, 7):
            assert [k for a, b in cut(first, last, parts) for k in range(a, b)] == list(range(first, last))
    for size in (0, 1, SUM_BLOCK, SUM_BLOCK + 1):
        assert sum(b - a for a, b in sum_blocks(size)) == size
    assert padded(np.arange(9), True).tolist() == [*range(9), *[8] * 7]
    assert padded(np.arange(8), True).tolist() == list(range(8))
    assert padded(np.arange(5), False).tolist() == list(range(5))


# -- memory ----------------------------------------------------------------------------------------------------------


def neighbours(gap, *arrays):
    """Copies that lie one after another in memory, `gap` numbers apart: a compiled loop runs another way where its
    arrays may overlap."""
    buffer = np.empty(sum(a.size + gap for a in arrays))
    copies, at = [], 0
    for a in arrays:
        copies.append(buffer[at : at + a.size].reshape(a.shape))
        copies[-1][...] = a
        at += a.size + gap
    return copies


def block_of(kind, num_lanes):
    rng = np.random.default_rng(90)
    model = model_of(kind, rng)
    block = lanes_of(
        layout_of(cz.Batch(model, rng.normal(size=(len(model.unary.flat), num_lanes))), budget=UNLIMITED),
        Workers(1),
        budget=UNLIMITED,
    )
    block.set_counting(
        uniform_weights(model.topology, budget=UNLIMITED)[:, None], 1.0 + model.topology.degrees, budget=UNLIMITED
    )
    block.sweep(2, budget=UNLIMITED)
    return block


@pytest.mark.parametrize("num_lanes", [1, 8, 24])
@pytest.mark.parametrize("kind", ["binary", "labels"])
def test_where_arrays_lie_changes_no_bit(kind, num_lanes):
    block = block_of(kind, num_lanes)
    names = ("point", "total", "keep")
    results = set()
    for gap, order in itertools.product([0, 1, 2, 3, 4, 8, 100, 1000], itertools.permutations(names)):
        moved = block.take(np.arange(num_lanes))
        vars(moved).update(zip(order, neighbours(gap, *(getattr(block, name) for name in order)), strict=True))
        moved.sweep(2, budget=UNLIMITED)
        moved.rebase()
        look = moved.evaluate(budget=UNLIMITED)
        results.add(b"".join(np.ascontiguousarray(a).tobytes() for a in (moved.point, moved.total, *look)))
    assert len(results) == 1


def test_where_tables_lie_changes_no_bit():
    block = block_of("labels", 1)
    table, rho = block.layout.table, block.potentials.rho
    results = set()
    for gap, order in itertools.product(range(20), (1, -1)):
        placed, factor = neighbours(gap, *(table, np.empty_like(table))[::order])[::order]
        tables.fill_factors(rho, block.layout.graph, placed, factor, np.empty(len(rho)))
        results.add(factor.tobytes())
    assert len(results) == 1


# -- lanes of different fates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "labels"])
@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
def test_finished_lanes_keep_their_own_numbers(method, kind):
    rng = np.random.default_rng(60)
    model = model_of(kind, rng)
    # strong unary potentials converge at once, weak ones take their time
    batch = cz.Batch(model, np.geomspace(0.1, 100.0, 12) * rng.normal(size=(len(model.unary.flat), 12)))
    changes = {"num_starts": 1} if method == "mean_field" else {"num_starts": 0} if method == "bethe" else {}
    solve = cz.methods()[method]
    many = solve(batch, **changes)
    assert len(set(many.num_iter.tolist())) > 2
    for b in range(12):
        one = solve(lane_model(batch, b), **changes)
        assert many[b].num_iter == one.num_iter
        assert many[b].value == pytest.approx(one.value, abs=1e-7 * max(1.0, abs(one.value)))


@pytest.mark.parametrize("num_lanes", [3, 10, 20])
@pytest.mark.parametrize("method", METHODS)
def test_impossible_lanes_disturb_nobody(method, num_lanes):
    rng = np.random.default_rng(70)
    for kind in ("binary", "labels"):
        model = model_of(kind, rng)
        unary = rng.normal(size=(len(model.unary.flat), num_lanes))
        dead = [1, num_lanes // 2]
        for b in dead:
            unary[model.unary.start[2] : model.unary.start[3], b] = -np.inf
        batch = cz.Batch(model, unary)
        many = run(method, batch, 5)
        for b in range(num_lanes):
            if b in dead:
                assert many[b].log_z == -np.inf and many[b].upper == -np.inf and "Z = 0" in many[b].note
                assert (
                    many[b].converged
                    and np.isnan(many[b].marginals.flat).all()
                    and np.isnan(many[b].pairwise_marginals.flat).all()
                )
            else:
                assert_same_lane(many[b], run(method, lane_model(batch, b), 5))


@pytest.mark.parametrize("kind", ["binary", "labels"])
@pytest.mark.parametrize("start", METHODS)
@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
def test_impossible_lanes_are_a_start_like_any_other(method, start, kind):
    rng = np.random.default_rng(71)
    model = model_of(kind, rng)
    unary = rng.normal(size=(len(model.unary.flat), 3))
    dead = unary.copy()
    dead[: model.unary.start[1], 1] = -np.inf
    parent = cz.methods()[start](cz.Batch(model, dead))
    many = cz.methods()[method](cz.Batch(model, unary), start=parent)
    assert np.isfinite(many.value).all() and many.converged.all() and np.isfinite(many.marginals_flat).all()


@pytest.mark.parametrize("method", METHODS)
def test_all_lanes_impossible(method):
    model = cz.generators.cycle(3, rng=0)
    unary = np.zeros((6, 2))
    unary[:2] = -np.inf
    estimates = cz.methods()[method](cz.Batch(model, unary))
    assert estimates.log_z.tolist() == [-np.inf, -np.inf]
    assert estimates.converged.all()
    assert "2 lanes" in repr(estimates)


# -- starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "general", "labels"])
@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
def test_one_start_for_all_lanes_or_one_each(method, kind):
    rng = np.random.default_rng(80)
    model = model_of(kind, rng)
    batch = cz.Batch(model, rng.normal(size=(len(model.unary.flat), 9)))
    single = cz.methods()[method](lane_model(batch, 0), max_iter=4)
    each = cz.methods()[method](batch, max_iter=4)
    for_all = run(method, batch, 3, start=single)
    for_each = run(method, batch, 3, start=each)
    for b in (0, 3, 8):
        assert_same_lane(for_all[b], run(method, lane_model(batch, b), 3, start=single))
        assert_same_lane(for_each[b], run(method, lane_model(batch, b), 3, start=each[b]))


@pytest.mark.parametrize("method", ["mean_field", "bethe", "trw"])
def test_branches_start_at_their_parent(method):
    rng = np.random.default_rng(81)
    model = model_of("binary", rng)
    solve = cz.methods()[method]
    parent = solve(model)
    sets = [{0: 0}, {0: 1}, {2: 0, 3: 1}]
    warm, cold = solve(model, evidence=sets, start=parent, tol=1e-8), solve(model, evidence=sets, tol=1e-8)
    if method == "trw":
        np.testing.assert_allclose(warm.value, cold.value, atol=1e-6)
    else:
        assert (warm.value >= cold.value - 1e-6).all()
    back = solve(model, start=warm[2], tol=1e-8)  # and from a branch to its parent
    assert np.isfinite(back.value)
    if method == "trw":
        assert back.value == pytest.approx(solve(model, tol=1e-8).value, abs=1e-6)
