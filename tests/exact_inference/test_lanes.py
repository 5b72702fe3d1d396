"""exact: against enumeration, batches against single runs, evidence, Z = 0, and models too wide."""

import os
import signal
import sys
import threading

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import enumerate_model

from clampz import generators
from clampz.errors import OptionError, TooWideError
from clampz.exact_inference.lanes import ExactOptions, _normalised
from clampz.exact_inference.method import exact
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import without_known

EXACT = 1e-10
MODULE = sys.modules["clampz.exact_inference.lanes"]


def random_model(rng, *, max_variables=8, max_states=4, scale=1.0, zeros=0.0, density=0.5):
    n = int(rng.integers(2, max_variables + 1))
    num_states = rng.integers(1, max_states + 1, n)

    def table(*shape):
        values = scale * rng.normal(size=shape)
        return np.where(rng.random(shape) < zeros, -np.inf, values)

    pairs = {
        (i, j): table(num_states[i], num_states[j]) for i in range(n) for j in range(i + 1, n) if rng.random() < density
    }
    return Model([table(k) for k in num_states], pairs, constant=float(rng.normal()))


def assert_exact(estimate, model):
    log_z, unary, pairwise = enumerate_model(model)
    if log_z == -np.inf:
        assert estimate.log_z == estimate.lower == estimate.upper == -np.inf
        assert "Z = 0" in estimate.note
        assert all(np.isnan(m).all() for m in estimate.marginals)
        return
    assert estimate.log_z == pytest.approx(log_z, rel=EXACT, abs=EXACT)
    assert estimate.lower <= log_z <= estimate.upper
    assert estimate.upper - estimate.lower < 1e-9 * max(1.0, abs(log_z))
    for i, marginal in enumerate(unary):
        np.testing.assert_allclose(estimate.marginals[i], marginal, atol=1e-9)
    for pair, marginal in pairwise.items():
        np.testing.assert_allclose(estimate.pairwise_marginals[pair], marginal, atol=1e-9)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("zeros", [0.0, 0.15, 0.5])
def test_equals_enumeration(scale, zeros):
    rng = np.random.default_rng([int(10 * scale), int(100 * zeros)])
    for _ in range(40):
        model = random_model(rng, scale=scale, zeros=zeros, density=rng.choice([0.2, 0.5, 1.0]))
        assert_exact(exact(model), model)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.0, 2000.0), zeros=st.sampled_from([0.0, 0.3]))
def test_any_model(seed, scale, zeros):
    model = random_model(np.random.default_rng(seed), scale=scale, zeros=zeros, max_variables=6)
    assert_exact(exact(model), model)


@pytest.mark.parametrize("num_labels", [2, 3, 7, 20])
def test_labels(num_labels):
    rng = np.random.default_rng(num_labels)
    model = Model.from_arrays(
        rng.normal(size=(4, num_labels)), [(0, 1), (1, 2), (2, 3), (0, 3)], rng.normal(size=(4, num_labels, num_labels))
    )
    assert_exact(exact(model), model)


def test_ten_binary_variables_fully_connected():
    rng = np.random.default_rng(3)
    edges = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    for weight in (1.0, 12.0, 1000.0):
        model = Model.from_binary(rng.uniform(-2, 2, 10), rng.uniform(-weight, weight, 45), edges)
        assert_exact(exact(model), model)


def test_no_edges_and_single_variables():
    for model in (Model([[0.0, 1.0, -np.inf], [3.0], [0.5, 0.5]]), Model([[2.0]]), Model([], constant=1.5)):
        assert_exact(exact(model), model)


def test_fields_of_the_estimate():
    estimate = exact(Model.from_binary([0.5, 0.0], [2.0], [(0, 1)]))
    assert estimate.method == "exact" and estimate.bound == "exact" and estimate.value == estimate.log_z
    assert (estimate.converged, estimate.num_iter, estimate.residual, estimate.stopped_by) == (True, 1, 0.0, "tol")
    assert isinstance(estimate.options, ExactOptions) and estimate.note == ""
    assert repr(estimate).startswith("Estimate(exact: log Z = ")


def test_batch_equals_singles(monkeypatch):
    monkeypatch.setattr(MODULE, "LARGE_LANE", 0)  # as if the lanes were worth a thread each
    rng = np.random.default_rng(8)
    for zeros in (0.0, 0.3):
        model = random_model(rng, max_variables=8, zeros=zeros)
        unary = rng.normal(size=(len(model.unary.flat), 9))
        unary[rng.random(unary.shape) < zeros] = -np.inf
        batch = Batch(model, unary)
        many = exact(batch, threads=2)
        for b in range(batch.num_lanes):
            one = exact(batch.lane(b))
            assert many[b].log_z == pytest.approx(one.log_z, rel=EXACT, abs=EXACT)
            np.testing.assert_allclose(
                np.concatenate(many[b].marginals[:]), np.concatenate(one.marginals[:]), atol=1e-10
            )
            np.testing.assert_allclose(many[b].pairwise_marginals.flat, one.pairwise_marginals.flat, atol=1e-10)


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(MODULE, "LARGE_LANE", 0)
    rng = np.random.default_rng(9)
    model = random_model(rng, max_variables=8, density=0.8)
    batch = Batch(model, rng.normal(size=(len(model.unary.flat), 7)))
    one, two = exact(batch, threads=1), exact(batch, threads=2)
    np.testing.assert_array_equal(one.log_z, two.log_z)
    np.testing.assert_array_equal(one.marginals_flat, two.marginals_flat)


def test_progress_and_stopping_between_lanes():
    rng = np.random.default_rng(16)
    model = random_model(rng)
    batch = Batch(model, rng.normal(size=(len(model.unary.flat), 4)))
    seen = []
    assert exact(batch, progress=seen.append).converged.all()
    assert [p.num_finished for p in seen] == [1, 2, 3, 4]

    def stop(progress):
        raise StopIteration

    stopped = exact(batch, progress=stop)
    assert stopped.converged.tolist() == [True, False, False, False]
    assert stopped[0].log_z == exact(batch)[0].log_z
    assert (stopped[1].lower, stopped[1].upper, stopped[1].stopped_by) == (-np.inf, np.inf, "callback")
    assert np.isnan(stopped[1].log_z) and "stopped" in stopped[1].note
    assert stopped[0].bound == "exact" and stopped[1].bound is None
    assert exact(batch, time=0.0)[3].stopped_by == "time"


@pytest.mark.parametrize("kept_bytes", [2**28, 0])
def test_lanes_that_were_not_reached_have_no_marginals_of_factors(monkeypatch, kept_bytes):
    monkeypatch.setattr(MODULE, "KEPT_BYTES", kept_bytes)
    table = np.arange(8.0).reshape(2, 2, 2)
    batch = Batch.from_evidence(Model.from_factors([2, 2, 2], [((0, 1, 2), table)]), [{}, {0: 0}])

    def stop(progress):
        raise StopIteration

    done, missed = exact(batch, progress=stop)
    np.testing.assert_allclose(done.factor_marginals[0].table, np.exp(table) / np.exp(table).sum(), atol=EXACT)
    assert np.isnan(missed.factor_marginals[0].table).all()


def test_marginals_that_are_not_kept_are_computed_again(monkeypatch):
    rng = np.random.default_rng(10)
    pairs = random_model(rng, density=1.0)
    factors = [((0, 1, 2), rng.normal(size=pairs.num_states[:3]))]
    model = Model(pairs.unary[:], pairs.pairwise, factors=factors)
    batch = Batch(model, rng.normal(size=(len(model.unary.flat), 3)))
    kept = exact(batch)
    monkeypatch.setattr(MODULE, "KEPT_BYTES", 0)
    again = exact(batch)
    assert again.state.tables is None
    np.testing.assert_array_equal(kept[2].pairwise_marginals.flat, again[2].pairwise_marginals.flat)
    assert kept[2].factor_marginals == again[2].factor_marginals


def test_evidence_is_conditioning():
    rng = np.random.default_rng(11)
    edges = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    model = Model.from_binary(rng.normal(size=6), rng.normal(size=15), edges)
    given_two, rest = exact(model, evidence={1: 0, 4: 1}), exact(without_known(model, {1: 0, 4: 1}))
    assert given_two.log_z == pytest.approx(rest.log_z, abs=EXACT)
    np.testing.assert_allclose([given_two.marginals[i] for i in (0, 2, 3, 5)], rest.marginals, atol=EXACT)
    assert given_two.marginals[1].tolist() == [1.0, 0.0]
    np.testing.assert_allclose(given_two.pairwise_marginals[1, 2], [rest.marginals[1], [0.0, 0.0]], atol=EXACT)
    lanes = exact(model, evidence=[{0: 0}, {0: 1}])
    assert np.logaddexp(*lanes.log_z) == pytest.approx(exact(model).log_z, abs=EXACT)


def test_evidence_makes_a_model_narrower():
    n = 40
    rng = np.random.default_rng(12)
    model = Model.from_binary(
        rng.normal(size=n), rng.normal(size=n * (n - 1) // 2), [(i, j) for i in range(n) for j in range(i + 1, n)]
    )
    with pytest.raises(TooWideError):
        exact(model)
    assert np.isfinite(exact(model, evidence={i: 0 for i in range(30)}).log_z)


def test_z_is_zero():
    forbidden = np.full((2, 2), -np.inf)
    for model in (Model([[-np.inf, -np.inf], [0.0, 0.0]]), Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): forbidden})):
        assert_exact(exact(model), model)
    # two of three lanes: an impossible variable, and a contradiction that only the pairs show
    model = Model(np.zeros((2, 2)), {(0, 1): [[0.0, -np.inf], [-np.inf, 0.0]]})
    out = -np.inf
    estimates = exact(Batch(model, [[0, out, 0], [0, out, out], [0, 0, out], [0, 0, 0]]))
    assert estimates.log_z.tolist() == [pytest.approx(np.log(2)), out, out]
    assert [bool(note) for note in estimates.notes] == [False, True, True]


def test_log_z_only():
    rng = np.random.default_rng(13)
    model = random_model(rng)
    estimate = exact(model, marginals=False)
    assert estimate.log_z == exact(model).log_z
    assert all(np.isnan(m).all() for m in estimate.marginals)
    with pytest.raises(OptionError, match="marginals=False"):
        _ = estimate.pairwise_marginals
    with pytest.raises(OptionError, match=r"factor marginals: .*marginals=False"):
        _ = estimate.factor_marginals


def test_too_wide_names_what_it_takes():
    n = 20
    model = Model.from_binary(
        np.zeros(n), np.ones(n * (n - 1) // 2), [(i, j) for i in range(n) for j in range(i + 1, n)]
    )
    with pytest.raises(TooWideError, match=r"width 19.*1,000,000 are allowed: bound.*clamping.*memory=") as caught:
        exact(model, evidence=[{}, {0: 0}], memory=1_000_000)
    assert caught.value.width == 19
    # in thirds, each pair of which is a matrix: three of 2^13 entries at least
    assert caught.value.num_bytes > 8 * 2**16
    with pytest.raises(TooWideError, match=r"width 19.*memory=$"):
        exact(model, memory=100_000)  # less than any slice takes
    with pytest.raises(OptionError, match="memory"):
        exact(model, memory=-1)


def test_wide_models_agree_with_a_sum_over_clamped_parts():
    # 81 variables on a torus and on a random 4-regular graph: log Z = logsumexp over the states of one variable, and
    # both domains agree
    rng = np.random.default_rng(14)
    torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 9, periodic=True))
    for g in (torus, nx.random_regular_graph(4, 40, seed=1)):
        n, edges = g.number_of_nodes(), np.array(g.edges)
        for weight in (1.0, 12.0):
            model = Model.from_binary(rng.uniform(-2, 2, n), rng.uniform(-weight, weight, len(edges)), edges)
            whole = exact(model)
            parts = exact(model, evidence=[{17: 0}, {17: 1}])
            assert np.logaddexp(*parts.log_z) == pytest.approx(whole.log_z, rel=1e-12)
            np.testing.assert_allclose(np.exp(parts.log_z - whole.log_z), whole.marginals[17], rtol=1e-9)
            mixed = parts.marginals_flat @ whole.marginals[17]
            np.testing.assert_allclose(mixed, np.concatenate(whole.marginals[:]), atol=1e-9)


def test_marginals_are_consistent():
    rng = np.random.default_rng(15)
    g = nx.gnp_random_graph(60, 0.07, seed=4)
    model = Model.from_arrays(
        rng.normal(size=(60, 3)), np.array(g.edges), 3 * rng.normal(size=(g.number_of_edges(), 3, 3))
    )
    estimate = exact(model)
    for (i, j), table in estimate.pairwise_marginals.items():
        np.testing.assert_allclose(table.sum(axis=1), estimate.marginals[i], atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), estimate.marginals[j], atol=1e-12)


def test_long_chain_keeps_its_scale():
    # a product of 20000 factors leaves the range of doubles many times over; log Z of an Ising ring is known in closed
    # form
    n, w = 20_000, 4.0
    ring = [(i, (i + 1) % n) for i in range(n)]
    model = Model.from_binary(np.zeros(n), np.full(n, w), ring)
    plus, minus = np.exp(w / 2) + 1, np.exp(w / 2) - 1
    assert exact(model).log_z == pytest.approx(n * np.log(plus) + np.log1p((minus / plus) ** n), rel=1e-12)


def many_labels():
    """A sum that would take many seconds, in little memory: three of four variables of 300 states at once."""
    rng = np.random.default_rng(17)
    edges = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    return Model.from_arrays(rng.normal(size=(4, 300)), edges, rng.normal(size=(6, 300, 300)))


def assert_not_reached(estimate, reason):
    assert (estimate.bound, estimate.lower, estimate.upper) == (None, -np.inf, np.inf)
    assert (estimate.converged, estimate.num_iter, estimate.stopped_by) == (False, 0, reason)
    assert np.isnan(estimate.log_z) and all(np.isnan(m).all() for m in estimate.marginals)
    assert all(np.isnan(table).all() for table in estimate.pairwise_marginals.values())
    assert "stopped" in estimate.note and "no bound" in repr(estimate)


def test_a_sum_that_is_stopped_says_nothing():
    model = many_labels()
    assert_not_reached(exact(model, time=0.0), "time")
    assert_not_reached(exact(model, time=0.05), "time")
    with pytest.raises(OptionError, match="marginals=False"):
        _ = exact(model, time=0.0, marginals=False).pairwise_marginals


def test_ctrl_c_stops_a_sum():
    model = many_labels()
    exact(model, time=0.0)  # all is compiled
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert_not_reached(exact(model), "interrupt")


def test_lanes_on_several_threads_are_stopped():
    model = many_labels()
    stopped = exact(Batch(model, np.repeat(model.unary.flat[:, None], 2, axis=1)), time=0.05, threads=2)
    for estimate in stopped:
        assert_not_reached(estimate, "time")


def test_a_run_that_is_over_before_there_is_an_order():
    large = generators.grid(120, 120, rng=0)
    assert_not_reached(exact(large, time=0.0), "time")
    with pytest.raises(TooWideError):
        exact(large)


def test_small_sums_are_done_whatever_the_time():
    model = random_model(np.random.default_rng(18))
    assert exact(model, time=0.0).bound == "exact"


def test_a_table_that_has_lost_all_of_its_mass_is_unknown():
    start = np.array([0, 2, 4])
    np.testing.assert_array_equal(_normalised(np.array([1.0, 3.0, 0.0, 0.0]), start), [0.25, 0.75, np.nan, np.nan])
