"""Limits at every size: methods that are told to stop end with what they have, wherever they are, and ask often."""

import signal
import threading
import time

import numpy as np
import pytest
from budgets import Asked

import clampz as cz
from clampz.approximations import edge_weights, iteration, lanes, layouts, restarts
from clampz.approximations import message_passing as messages
from clampz.approximations.edge_weights import forest_excess, sampled_weights, uniform_weights
from clampz.approximations.layouts import TableLayout
from clampz.approximations.message_passing import BinaryLanes
from clampz.model.results import NO_RESULT
from clampz.model.topology import Topology
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled
from clampz.runtime.workers import Workers

ITERATIVE = ["mean_field", "bethe", "trw"]
GRID = cz.generators.grid(12, 12, weights=(-3, 3), rng=0)
LABELS = cz.generators.grid(6, 6, labels=4, potentials="table", rng=0)
FACTORS = cz.Model.from_factors(
    [2] * 24, [((i, i + 1, i + 2), np.random.default_rng(i).normal(size=(2, 2, 2))) for i in range(22)]
)


@pytest.fixture
def small_parts(monkeypatch):
    """Every model is a large one."""
    for module in ("lanes", "restarts", "mean_field"):
        monkeypatch.setattr(f"clampz.approximations.{module}.PART", 32)
    monkeypatch.setattr("clampz.approximations.restarts.STARTS_AT_ONCE", 1)


@pytest.mark.parametrize("model", [GRID, LABELS, FACTORS], ids=["grid", "labels", "factors"])
@pytest.mark.parametrize("method", ITERATIVE)
def test_large_models_give_what_small_ones_do(method, model, small_parts, monkeypatch):
    """Cut into parts, and starts one after another."""
    found = cz.methods()[method](model, max_iter=40, threads=1)
    monkeypatch.undo()
    expected = cz.methods()[method](model, max_iter=40, threads=1)
    assert found.num_iter == expected.num_iter
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-7)
    np.testing.assert_allclose(found.marginals.flat, expected.marginals.flat, atol=1e-6)


@pytest.mark.parametrize("model", [GRID, LABELS, FACTORS], ids=["grid", "labels", "factors"])
@pytest.mark.parametrize("method", ITERATIVE)
def test_a_sweep_over_a_large_model_is_stopped_in_the_midst(method, model, small_parts):
    exact = cz.exact(model)
    for most in (1, 3, 10):
        budget = Asked(most)
        approximation = cz.methods()[method]
        [found] = approximation.solve(
            cz.Batch.from_evidence(model, [{}]), approximation.options(None, {"threads": 1, "tol": 0.0}), within=budget
        )
        assert found.stopped_by == "interrupt" and not found.converged
        assert found.lower <= exact.upper and found.upper >= exact.lower
        assert budget.asked < most + 60  # each part of a sweep that is left would ask


@pytest.mark.parametrize("larger", [False, True], ids=["pairs", "factors"])
@pytest.mark.parametrize("max_search", [0, 1000])
def test_a_bound_holds_where_hard_zeros_were_not_yet_swept(max_search, larger, small_parts, monkeypatch):
    """A start has states that are ruled out, or even odds where no configuration was found: it must be a distribution
    all the same."""
    monkeypatch.setattr("clampz.approximations.mean_field.MAX_SEARCH", max_search)
    rng = np.random.default_rng(0)

    def table(*shape, zeros):
        return np.where(rng.random(shape) < zeros, -np.inf, rng.normal(size=shape))

    proven = 0
    for _ in range(25):
        num_states = rng.integers(2, 6, size=6).tolist()
        factors = [((i,), table(k, zeros=0.3)) for i, k in enumerate(num_states)]
        pairs = [(i, j) for i in range(6) for j in range(i + 1, 6) if rng.random() < 0.6]
        scopes = pairs + ([(0, 2, 4), (1, 3, 5)] if larger else [])
        factors += [(scope, table(*(num_states[i] for i in scope), zeros=0.3)) for scope in scopes]
        model = cz.Model.from_factors(num_states, factors)
        log_z = cz.exact(model).upper
        for most in (0, 1, 2, 5):
            [found] = cz.mean_field.solve(
                cz.Batch.of(model), cz.options.MeanFieldOptions(threads=1), within=Asked(most)
            )
            assert found.lower <= log_z
            proven += found.lower > -np.inf
    assert proven


@pytest.mark.parametrize("method", ITERATIVE)
def test_fewer_starts_where_time_is_short(method, small_parts, monkeypatch):
    points = []
    solve = restarts.best_of_starts

    def counted(starts, *rest, **groups):
        return solve([lambda start=start: points.append(1) or start() for start in starts], *rest, **groups)

    monkeypatch.setattr(f"clampz.approximations.{method}.best_of_starts", counted, raising=False)
    found = cz.methods()[method](GRID, time=0.0)
    assert found.stopped_by == "time" and len(points) == (0 if method == "trw" else 1)


@pytest.mark.parametrize("model", [GRID, LABELS, FACTORS], ids=["grid", "labels", "factors"])
@pytest.mark.parametrize("method", ITERATIVE)
def test_a_run_that_ended_long_ago_has_nothing_to_say(method, model, monkeypatch):
    monkeypatch.setattr("clampz.method.GRACE", -1.0)
    monkeypatch.setattr("clampz.model.lane_memory.SMALL_MODEL", 0)
    found = cz.methods()[method](model, time=0.0)
    assert np.isnan(found.log_z) and np.isnan(found.value) and found.bound is None
    assert (found.lower, found.upper) == (-np.inf, np.inf)
    assert np.isnan(found.marginals.flat).all() and np.isnan(found.pairwise_marginals.flat).all()
    assert (found.converged, found.stopped_by, found.note) == (False, "time", NO_RESULT)
    assert "stopped before there was anything to say" in repr(found)
    again = cz.methods()[method](model, start=found)  # and it can be resumed
    assert again.converged


def test_nothing_is_said_of_lanes_that_there_was_no_time_for(monkeypatch):
    monkeypatch.setattr(lanes.Lanes, "_terms", lambda *_, **__: (_ for _ in ()).throw(Cancelled))
    for method in ITERATIVE:
        found = cz.methods()[method](GRID, evidence=[{0: 0}, {0: 1}], time=0.0)
        assert np.isnan(found.log_z).all() and (found.lower == -np.inf).all() and (found.upper == np.inf).all()
        assert np.isnan(found.marginals_flat).all() and not found.converged.any()
        assert set(found.notes) == {NO_RESULT} and set(found.stopped_by) == {"time"}
        assert found[0].bound is None


def test_a_slow_look_is_not_taken_again_when_a_run_is_stopped(monkeypatch):
    """What the last look showed holds, whatever the messages are now."""
    monkeypatch.setattr(iteration, "SLOW_LOOK", -1.0)
    budget, looks, sweeps = Budget(), [], []
    sweep, evaluate = BinaryLanes.sweep, BinaryLanes.evaluate

    def stop_in_the_third(self, *args):
        sweep(self, *args)
        sweeps.append(len(looks))
        if len(sweeps) == 3:
            budget.stop("interrupt")

    monkeypatch.setattr(BinaryLanes, "sweep", stop_in_the_third)
    monkeypatch.setattr(BinaryLanes, "evaluate", lambda *args: looks.append(1) or evaluate(*args))
    [found] = cz.trw.solve(cz.Batch.from_evidence(GRID, [{}]), cz.options.TRWOptions(tol=0.0, threads=1), within=budget)
    assert found.stopped_by == "interrupt" and len(looks) == sweeps[-1] > 0
    assert np.isfinite(found.residual) and found.upper >= cz.exact(GRID).lower


def test_hard_zeros_are_followed_whichever_way_they_run(monkeypatch):
    """Along a chain: a pass over the slots for every variable of it would not end in time on a long one."""
    from clampz._kernels.approximations import arc_consistency

    n, passes = 300, []
    step = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    chain = cz.Model([np.zeros(2)] * n, {(i, i + 1): step for i in range(n - 1)})
    remove = arc_consistency.remove_unsupported
    monkeypatch.setattr(
        "clampz.approximations.layouts.remove_unsupported", lambda *args: passes.append(1) or remove(*args)
    )
    for at in (0, n // 2, n - 1):
        passes.clear()
        layout = TableLayout.from_batch(cz.Batch.from_evidence(chain, [{at: 1}]), budget=UNLIMITED)
        assert np.isneginf(layout.theta).sum() == n and len(passes) <= 4


# -- edge weights ------------------------------------------------------------------------------------------------------


def over():
    budget = Budget(0.0)
    assert budget.must_stop()
    return budget


@pytest.mark.parametrize("seed", range(4))
def test_weights_for_which_there_is_no_time_are_a_mixture_of_forests(seed):
    rng = np.random.default_rng(seed)
    n = 14
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    topology = Topology.from_edges(n, pairs[rng.random(len(pairs)) < 0.2 + 0.2 * seed])
    rho = sampled_weights(topology, 1000, np.random.default_rng(0), budget=over())
    assert (rho > 0).all() and forest_excess(topology, rho, budget=UNLIMITED) == 0.0


def test_weights_of_a_large_graph_stop_in_the_midst_of_a_tree(monkeypatch):
    monkeypatch.setattr(edge_weights, "MAX_DENSE", 10)
    monkeypatch.setattr(edge_weights, "LARGE_GRAPH", 10)
    topology = cz.generators.grid(12, 12, rng=0).topology
    for most in (2, 4, 8, 12):
        budget = Asked(most)
        rho = uniform_weights(topology, budget=budget)
        assert (rho > 0).all() and forest_excess(topology, rho, budget=UNLIMITED) <= 1e-12 and budget.must_stop()
    assert topology not in edge_weights._WHOLE_GRAPHS  # what was cut short is not kept


def test_a_spanning_forest_hears_the_flag():
    from clampz._kernels import graph

    topology = cz.generators.grid(200, 200, rng=0).topology
    cancel_flag = np.ones(1, dtype=np.uint8)
    assert not graph.spanning_forest(40_000, topology.edges, np.arange(len(topology.edges)), cancel_flag).any()


def test_weights_of_the_users_that_there_is_no_time_to_check_are_lowered(monkeypatch):
    monkeypatch.setattr(edge_weights, "QUICKLY_CHECKED", 3)
    topology = cz.generators.grid(5, 5, toroidal=False, rng=0).topology
    uniform = uniform_weights(topology, budget=UNLIMITED)
    given = uniform.copy()
    given[0] += 0.01
    given[1:] -= 0.005
    found = edge_weights.checked_weights(topology, given, 1, over())[:, 0]
    assert (found <= uniform).all() and forest_excess(topology, found, budget=UNLIMITED) == 0.0


def test_optimized_weights_that_were_interrupted_say_so():
    model = cz.generators.complete(8, weights=(-6, 6), rng=0)
    for most in range(1, 200, 20):
        budget = Asked(most)
        [found] = cz.trw.solve(
            cz.Batch.from_evidence(model, [{}]),
            cz.options.TRWOptions(edge_weights="optimized", threads=1),
            within=budget,
        )
        assert found.stopped_by == "interrupt" and not found.converged
        assert found.upper >= cz.exact(model).lower


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ITERATIVE)
def test_ctrl_c_at_any_moment_returns_what_there_is(method):
    # of mean field's many starts some would soon have converged, but where weights are critical none does
    own = {"theta": 0.0, "weights": 1.0} if method == "mean_field" else {}
    model = cz.generators.grid(60, 60, rng=0, **own)
    cz.methods()[method](model, max_iter=3)  # compiled
    build = cz.Batch.from_evidence
    for wait in np.random.default_rng(0).random(6) * 0.05:
        fresh = cz.Model.from_contents(model.contents)  # with everything to be worked out
        begun = threading.Event()

        def interrupt(wait=wait, begun=begun):
            begun.wait()
            time.sleep(wait)
            signal.raise_signal(signal.SIGINT)

        def from_evidence(*args, begun=begun, **others):
            begun.set()
            return build(*args, **others)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cz.Batch, "from_evidence", from_evidence)
            found = cz.methods()[method](fresh, tol=0.0, max_iter=10**9)
        thread.join()
        assert found.stopped_by == "interrupt" and not found.converged


def test_tables_are_laid_out_in_pieces_that_end_with_the_run(monkeypatch):
    model = cz.generators.grid(4, 4, labels=3, potentials="table", rng=0)
    batch, whole = cz.Batch.of(model), TableLayout.from_batch(cz.Batch.of(model), budget=UNLIMITED).table
    monkeypatch.setattr(layouts, "PIECE", 40)
    assert np.array_equal(TableLayout.from_batch(batch, budget=UNLIMITED).table, whole)
    real, pieces, budget = layouts.fill_tables, [], Budget()

    def fill(*args):
        pieces.append(real(*args))
        if len(pieces) == 2:
            budget.stop("interrupt")
            budget._over = -1.0  # long ago

    monkeypatch.setattr(layouts, "fill_tables", fill)
    with pytest.raises(Cancelled):
        TableLayout.from_batch(batch, budget)
    assert len(pieces) == 2


def test_potentials_are_laid_out_in_pieces_that_end_with_the_run(monkeypatch):
    model = cz.generators.grid(4, 4, labels=3, potentials="table", rng=0)
    layout, whole = TableLayout.from_batch(cz.Batch.of(model), budget=UNLIMITED), cz.trw(model)
    with Workers(1) as pool:
        together = messages.lanes_of(layout, pool, budget=UNLIMITED).potentials
        monkeypatch.setattr(messages, "PIECE", 40)
        lanes = messages.lanes_of(layout, pool, budget=Budget())
        assert all(np.array_equal(a, b) for a, b in zip(lanes.potentials, together, strict=True))
        over = Budget(0.0)
        over._over = -1.0  # long ago
        with pytest.raises(Cancelled):
            messages.lanes_of(layout, pool, budget=over)
    assert cz.trw(model).upper == whole.upper
