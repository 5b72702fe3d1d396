"""Bethe: the double loop against its slow twin, several starts, evidence, hard zeros and extreme
weights."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from naive import NaiveMessages, naive_bethe, naive_objective
from random_models import as_general, random_binary, random_edges, random_tables

import clampz as cz
from clampz.approximations import bethe_bound
from clampz.approximations.edge_weights import uniform_weights
from clampz.approximations.layouts import layout_of
from clampz.approximations.message_passing import lanes_of
from clampz.runtime.budget import UNLIMITED, Cancelled
from clampz.runtime.workers import Workers

bethe_module = importlib.import_module("clampz.approximations.bethe")
EXACT = 1e-10
CONVERGED = 1e-6
TIGHT = {"tol": 1e-8, "max_iter": 50_000}


def inertias(topology):
    """c_i of the two inner loops: 1 + sum (1 - rho_ij), and 1 + degree on the core."""
    rho = uniform_weights(topology, budget=UNLIMITED)
    gentle = 1.0 + np.bincount(topology.edges.ravel(), np.repeat(1.0 - rho, 2), topology.num_variables)
    return gentle, 1.0 + topology.core * topology.degrees.astype(float)


@pytest.mark.nojit
@pytest.mark.parametrize("inner", [1, 2, 5])
@pytest.mark.parametrize("kind", ["binary", "general", "labels", "zeros"])
def test_the_double_loop_equals_the_twin(kind, inner):
    rng = np.random.default_rng(inner)
    for scale in (1.0, 6.0):
        n = int(rng.integers(4, 7))
        edges = random_edges(rng, n, 0.6)
        if kind in ("binary", "general"):
            model = random_binary(rng, n, edges, scale)
            model = as_general(model) if kind == "general" else model
        else:
            model = random_tables(rng, rng.integers(1, 4, n), edges, scale, zeros=0.3 * (kind == "zeros"))
        for inertia in inertias(model.topology):
            lanes = lanes_of(
                layout_of(cz.Batch.from_evidence(model, [{}]), budget=UNLIMITED), Workers(1), budget=UNLIMITED
            )
            lanes.set_counting(np.ones((model.num_edges, 1)), inertia, budget=UNLIMITED)
            for value, upper, drift in naive_bethe(model, inertia, 4, inner):
                lanes.sweep(inner, budget=UNLIMITED)
                lanes.rebase()
                look = lanes.evaluate(budget=UNLIMITED)
                size = 10 * EXACT * max(1.0, abs(value))
                assert look.value[0] == pytest.approx(value, abs=size)
                assert look.value[0] + look.slack[0] == pytest.approx(upper, abs=size)
                assert look.drift[0] == pytest.approx(drift, abs=1e-9)


@pytest.mark.parametrize("labels", [2, 3])
def test_converges_to_a_stationary_value(labels):
    rng = np.random.default_rng(labels)
    for scale in (1.0, 6.0, 12.0):
        n = 8
        edges = random_edges(rng, n, 0.6)
        model = random_binary(rng, n, edges, scale) if labels == 2 else random_tables(rng, [3] * n, edges, scale / 2)
        estimate = cz.bethe(model, **TIGHT)
        assert estimate.converged and estimate.residual <= TIGHT["tol"]
        for (i, j), table in estimate.pairwise_marginals.items():
            np.testing.assert_allclose(table.sum(axis=1), estimate.marginals[i], atol=1e-7)
            np.testing.assert_allclose(table.sum(axis=0), estimate.marginals[j], atol=1e-7)
        assert naive_objective(model, estimate.marginals, estimate.pairwise_marginals) == pytest.approx(
            estimate.value, abs=1e-4
        )
        assert estimate.log_z == estimate.value and estimate.bound is None
        assert (estimate.lower, estimate.upper) == (-np.inf, np.inf)


def test_binary_and_general_kernels_agree():
    rng = np.random.default_rng(20)
    for scale in (0.5, 3.0, 12.0):
        model = random_binary(rng, 8, random_edges(rng, 8, 0.5), scale)
        binary, general = (cz.bethe(m, **TIGHT) for m in (model, as_general(model)))
        assert binary.value == pytest.approx(general.value, abs=CONVERGED)
        np.testing.assert_allclose(binary.marginals.flat, general.marginals.flat, atol=1e-5)
        np.testing.assert_allclose(binary.pairwise_marginals.flat, general.pairwise_marginals.flat, atol=1e-5)


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_a_single_cycle_is_nearly_exact_and_attractive_models_are_below():
    # on an attractive model the Bethe approximation is a lower bound (Ruozzi 2012)
    rng = np.random.default_rng(33)
    for _ in range(10):
        edges = random_edges(rng, 8, 0.5)
        model = cz.Model.from_binary(
            rng.uniform(-1, 1, 8), rng.uniform(0, 3, len(edges)), np.array(edges).reshape(-1, 2)
        )
        assert cz.bethe(model).log_z <= cz.exact(model).upper + CONVERGED


# -- several starts --------------------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_several_starts_leave_the_symmetric_point():
    model = cz.generators.complete(4, theta=0, weights=6)
    symmetric, _, drift = NaiveMessages(model, dict.fromkeys(model.pairwise, 1.0)).evaluate()
    assert drift < EXACT  # uniform messages are a fixed point: that is where a uniform start stays
    assert cz.bethe(model).log_z > symmetric + 0.1
    assert cz.bethe(model, num_starts=0).log_z > symmetric + 0.1  # the mean-field start alone breaks the symmetry


def test_more_starts_never_lower_the_value():
    rng = np.random.default_rng(41)
    for _ in range(6):
        model = random_binary(rng, 9, random_edges(rng, 9, 0.6), 8.0)
        few, many = (cz.bethe(model, num_starts=k, **TIGHT) for k in (0, 6))
        assert few.converged and many.log_z >= few.log_z - CONVERGED


def sweeps(monkeypatch, model, **options):
    """How many sweeps each start takes."""
    found, solve = [], bethe_module.solve_in_blocks

    def counted(*arguments):
        ending = solve(*arguments)
        found.append(int(ending.num_iter[0]))
        return ending

    monkeypatch.setattr(bethe_module, "solve_in_blocks", counted)
    estimate = cz.bethe(model, from_mean_field=False, **options)
    monkeypatch.undo()
    return estimate, found


@pytest.mark.parametrize("labels", [2, 3])
def test_a_start_that_comes_to_what_is_known_ends_there(monkeypatch, labels):
    model = cz.generators.grid(12, 12, weights=(-1, 1), labels=labels, rng=0)
    alone, (first,) = sweeps(monkeypatch, model, num_starts=0, **TIGHT)
    together, (again, *others) = sweeps(monkeypatch, model, num_starts=2, **TIGHT)
    assert again == first and len(others) == 2 and max(others) < first
    assert together.log_z == alone.log_z


@pytest.mark.parametrize(("offs", "ends"), [((0.001, 0.002, 0.004), False), ((0.02, 0.01), True), ((0.2, 0.1), False)])
def test_only_what_comes_closer_to_what_is_known_ends_there(offs, ends):
    """Uniform messages may be a fixed point and no optimum, and starts beside it leave it."""
    leaving = bethe_module.LeavingPolicy(1, [np.full((2, 1), 0.5)], 1)
    for sweeps_made, off in enumerate(offs, start=1):
        lanes = SimpleNamespace(marginals=lambda off=off: np.array([[0.5 - off], [0.5 + off]]))
        left = leaving(lanes, np.array([0]), np.array([0.1]), sweeps_made)
    assert leaving.to_known.tolist() == left.tolist() == [ends]


@pytest.mark.parametrize("side", [3, 14])  # starts together, and one after another
def test_a_lane_is_solved_alike_in_any_batch(side):
    model = cz.generators.grid(side, side, weights=(0, 4), rng=3)
    sets = [{}, {0: 1}, {4: 0}]
    for lane, alone in zip(cz.bethe(model, evidence=sets), (cz.bethe(model, evidence=e) for e in sets), strict=True):
        assert lane.num_iter == alone.num_iter and lane.log_z == pytest.approx(alone.log_z, abs=EXACT)


def test_a_forest_has_one_start(monkeypatch):
    assert len(sweeps(monkeypatch, cz.generators.grid(1, 5, toroidal=False, rng=0))[1]) == 1


def test_lies_between_mean_field_and_trw():
    rng = np.random.default_rng(42)
    for scale in (1.0, 4.0, 10.0):
        for labels in (2, 3):
            n = 8
            edges = random_edges(rng, n, 0.5)
            model = (
                random_binary(rng, n, edges, scale) if labels == 2 else random_tables(rng, [3] * n, edges, scale / 2)
            )
            field, bethe, trw = cz.mean_field(model), cz.bethe(model, **TIGHT), cz.trw(model, tol=1e-7, max_iter=50_000)
            assert bethe.converged and trw.converged
            assert field.value <= bethe.value + CONVERGED
            assert bethe.value <= trw.value + CONVERGED


# -- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("weight", [1000.0, -1000.0])
def test_extreme_weights_stay_finite(weight, general):
    rng = np.random.default_rng(50)
    edges = random_edges(rng, 7, 0.7)
    model = cz.Model.from_binary(rng.uniform(-2, 2, 7), np.full(len(edges), weight), edges)
    model = as_general(model) if general else model
    estimate = cz.bethe(model, max_iter=500)
    assert np.isfinite(estimate.log_z)
    assert np.isfinite(estimate.marginals.flat).all() and np.isfinite(estimate.pairwise_marginals.flat).all()
    if weight > 0:
        assert estimate.log_z == pytest.approx(cz.exact(model).log_z, abs=1.0)


def test_hard_zeros():
    rng = np.random.default_rng(51)
    for _ in range(15):
        n = int(rng.integers(3, 7))
        model = random_tables(rng, rng.integers(2, 4, n), random_edges(rng, n, 0.6), 1.0, zeros=0.3)
        estimate = cz.bethe(model)
        assert np.isfinite(estimate.log_z) and np.isfinite(estimate.marginals.flat).all()
        for (i, j), table in estimate.pairwise_marginals.items():
            assert (table[model.pairwise[i, j] == -np.inf] == 0).all()


def test_z_is_zero():
    estimate = cz.bethe(cz.Model(np.zeros((2, 2)), {(0, 1): np.full((2, 2), -np.inf)}))
    assert estimate.log_z == -np.inf and "Z = 0" in estimate.note
    assert np.isnan(estimate.marginals.flat).all()


# -- starts ----------------------------------------------------------------------------------------------------------


def test_a_given_start_counts():
    # one ring-shaped optimum per sign: a start in the higher one is not lost, whatever the others find
    rng = np.random.default_rng(60)
    for _ in range(5):
        model = random_binary(rng, 9, random_edges(rng, 9, 0.7), 8.0)
        best = max((cz.bethe(model, num_starts=3, seed=s, **TIGHT) for s in range(4)), key=lambda e: e.log_z)
        assert cz.bethe(model, num_starts=0, start=best, **TIGHT).log_z >= best.log_z - CONVERGED


@pytest.mark.parametrize("method", ["exact", "mean_field", "trw"])
def test_starts_from_another_method(method):
    rng = np.random.default_rng(61)
    model = random_binary(rng, 8, random_edges(rng, 8, 0.5), 1.5)
    start = cz.methods()[method](model)
    assert cz.bethe(model, start=start, **TIGHT).value == pytest.approx(cz.bethe(model, **TIGHT).value, abs=CONVERGED)


def test_wrong_starts_and_options_are_refused():
    model, other = cz.generators.cycle(4, rng=0), cz.generators.cycle(5, rng=0)
    with pytest.raises(
        cz.errors.OptionError, match=r"start: expected an estimate of a model with the same variables and edges"
    ):
        cz.bethe(model, start=cz.bethe(other))
    for changes in ({"num_starts": -1}, {"num_starts": 1.5}):
        with pytest.raises(cz.errors.OptionError, match="num_starts"):
            cz.bethe(model, **changes)


def test_running_out_of_sweeps_is_data():
    estimate = cz.bethe(cz.generators.complete(10, weights=(-12, 12), rng=1), max_iter=3)
    assert not estimate.converged and estimate.stopped_by == "max_iter"
    assert estimate.num_iter == 3 and estimate.residual > 0


def test_the_lower_bound_is_given_up_where_there_is_no_time_for_it(monkeypatch):
    model = cz.generators.grid(5, 5, weights=(0, 3), rng=0)
    assert cz.bethe(model).bound == "lower"
    lower = bethe_bound.bethe_lower_bound
    monkeypatch.setattr(bethe_bound, "sum_blocks", lambda size: [(k, k + 1) for k in range(size)])
    layout = layout_of(cz.Batch.from_evidence(model, [{}]), budget=UNLIMITED)
    cut = bethe_bound.bethe_lower_bound(layout, layout.theta, budget=UNLIMITED)  # edge by edge
    monkeypatch.undo()
    assert cut == pytest.approx(lower(layout, layout.theta, budget=UNLIMITED), abs=1e-9)

    def no_time(*_):
        raise Cancelled

    monkeypatch.setattr("clampz.approximations.bethe.bethe_lower_bound", no_time)
    found = cz.bethe(model)
    assert found.bound is None and found.lower == -np.inf and np.isfinite(found.log_z)
