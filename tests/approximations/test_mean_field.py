"""Mean field: coordinate ascent against its slow twin, starts, feasible starts under hard zeros, evidence and extreme
weights."""

import numpy as np
import pytest
from naive import naive_mean_field, naive_mean_field_objective
from random_models import as_general, random_binary, random_edges, random_tables, relabelled, tree_edges

import clampz as cz
from clampz.model.conditioning import without_known

EXACT = 1e-10
CONVERGED = 1e-6


def random_q(rng, model):
    return [rng.dirichlet(np.ones(k)) for k in model.num_states]


def started_at(model, q, **changes):
    """Mean field from q alone."""
    return cz.mean_field(model, num_starts=0, start=np.concatenate(q), **changes)


@pytest.mark.nojit
@pytest.mark.parametrize("num_sweeps", [1, 2, 5])
@pytest.mark.parametrize("kind", ["binary", "general", "labels"])
def test_kernels_equal_the_twin(kind, num_sweeps):
    rng = np.random.default_rng(num_sweeps)
    for scale in (0.5, 3.0, 12.0):
        for edges in (random_edges(rng, 7, 0.5), tree_edges(rng, 7), []):
            model = (
                random_tables(rng, rng.integers(1, 5, 7), edges, scale)
                if kind == "labels"
                else random_binary(rng, 7, edges, scale)
            )
            model = as_general(model) if kind == "general" else model
            q = random_q(rng, model)
            wanted, objectives = naive_mean_field(model, q, num_sweeps)
            found = started_at(model, q, tol=0.0, max_iter=num_sweeps)
            assert found.num_iter == num_sweeps or found.stopped_by == "tol"  # nothing gained, to the last digit
            assert found.value == pytest.approx(objectives[-1], abs=EXACT * max(1.0, abs(found.value)))
            np.testing.assert_allclose(found.marginals.flat, np.concatenate(wanted), atol=1e-9)
            assert found.value - 1e-9 * max(1.0, abs(found.value)) <= found.lower <= found.value
            for (i, j), table in found.pairwise_marginals.items():
                np.testing.assert_allclose(table, np.outer(found.marginals[i], found.marginals[j]), atol=1e-12)


def test_binary_and_general_kernels_agree():
    rng = np.random.default_rng(20)
    for scale in (0.5, 5.0, 30.0):
        model = random_binary(rng, 9, random_edges(rng, 9, 0.4), scale)
        binary, general = (cz.mean_field(m, tol=1e-10) for m in (model, as_general(model)))
        assert binary.value == pytest.approx(general.value, abs=CONVERGED)
        np.testing.assert_allclose(binary.marginals.flat, general.marginals.flat, atol=1e-4)


@pytest.mark.nojit
@pytest.mark.parametrize("labels", [2, 3])
def test_never_ends_below_where_it_started(labels):
    rng = np.random.default_rng(30)
    for scale in (0.5, 5.0, 50.0):
        for _ in range(10):
            edges = random_edges(rng, 8, 0.6)
            model = random_binary(rng, 8, edges, scale) if labels == 2 else random_tables(rng, [3] * 8, edges, scale)
            q = random_q(rng, model)
            before = naive_mean_field_objective(model, q)
            for max_iter in (1, 3, 100):
                assert started_at(model, q, max_iter=max_iter).value >= before - EXACT * max(1.0, abs(before))


@pytest.mark.nojit
def test_each_sweep_can_only_raise_the_bound():
    rng = np.random.default_rng(31)
    model = random_binary(rng, 12, random_edges(rng, 12, 0.5), 6.0)
    q = random_q(rng, model)
    values = [started_at(model, q, tol=0.0, max_iter=k).value for k in range(1, 30)]
    assert (np.diff(values) >= -EXACT).all()


def test_more_starts_improve_or_equal():
    rng = np.random.default_rng(32)
    gained = 0
    for _ in range(10):
        model = random_binary(rng, 10, random_edges(rng, 10, 0.7), 8.0)
        values = [cz.mean_field(model, num_starts=k, seed=5, tol=1e-10).value for k in (1, 16)]
        gained += values[1] > values[0] + CONVERGED
        # the starts of the first run are not among those of the second, so that only the best of many is compared
        assert max(values) <= cz.exact(model).upper
    assert gained >= 3
    model = cz.generators.complete(4, theta=0, weights=6)
    symmetric = naive_mean_field_objective(model, [[0.5, 0.5]] * 4)
    assert cz.mean_field(model, num_starts=1).value > symmetric + 0.1


def test_a_given_start_comes_on_top_of_the_random_ones():
    rng = np.random.default_rng(33)
    for _ in range(5):
        model = random_binary(rng, 10, random_edges(rng, 10, 0.7), 8.0)
        best = max((cz.mean_field(model, seed=s) for s in range(5)), key=lambda e: e.value)
        assert cz.mean_field(model, num_starts=1, start=best).value >= best.value - EXACT
        assert cz.mean_field(model, start=cz.trw(model)).value >= cz.mean_field(model).value - CONVERGED


def test_a_warm_start_is_quick():
    model = random_binary(np.random.default_rng(34), 12, random_edges(np.random.default_rng(35), 12, 0.5), 6.0)
    cold = cz.mean_field(model, tol=1e-9)
    warm = cz.mean_field(model, num_starts=0, start=cold, tol=1e-9)
    assert warm.num_iter <= 3 and warm.value == pytest.approx(cold.value, abs=CONVERGED)


@pytest.mark.nojit
def test_a_parents_solution_starts_its_branches():
    # clamping can only raise the sum: each branch starts at the parent's solution (Theorem 4)
    rng = np.random.default_rng(36)
    for _ in range(20):
        model = random_binary(rng, 8, random_edges(rng, 8, 1.0), 6.0)
        parent = cz.mean_field(model, num_starts=1, tol=1e-9)
        lanes = cz.mean_field(model, evidence=[{2: 0}, {2: 1}], num_starts=0, start=parent, tol=1e-9)
        assert np.logaddexp(*lanes.value) >= parent.value - CONVERGED


def test_exact_without_edges():
    rng = np.random.default_rng(40)
    for model in (
        random_tables(rng, [2, 3, 1, 4], []),
        random_binary(rng, 5, []),
        cz.Model([[0.5]]),
        cz.Model([[1.0, -np.inf, 2.0]]),
    ):
        estimate, exact = cz.mean_field(model), cz.exact(model)
        assert estimate.value == pytest.approx(exact.log_z, abs=EXACT)
        np.testing.assert_allclose(estimate.marginals.flat, exact.marginals.flat, atol=EXACT)


@pytest.mark.nojit
def test_relabelling_and_flipping_change_nothing():
    rng = np.random.default_rng(41)
    for _ in range(4):
        model = random_binary(rng, 8, random_edges(rng, 8, 0.5), 1.0)  # weak: one optimum only
        one = cz.mean_field(model, tol=1e-12)
        order, flipped = rng.permutation(8), rng.random(8) < 0.5
        other = cz.mean_field(relabelled(model, order), tol=1e-12)
        assert other.value == pytest.approx(one.value, abs=CONVERGED)
        np.testing.assert_allclose(other.marginals, np.asarray(one.marginals)[order], atol=1e-4)
        other = cz.mean_field(model.flip(flipped), tol=1e-12)
        assert other.value == pytest.approx(one.value, abs=CONVERGED)
        np.testing.assert_allclose(
            other.marginals, np.where(flipped[:, None], np.asarray(one.marginals)[:, ::-1], one.marginals), atol=1e-4
        )


@pytest.mark.nojit
@pytest.mark.parametrize("general", [False, True])
def test_a_clamped_lane_is_the_conditioned_model(general):
    rng = np.random.default_rng(42)
    model = random_binary(rng, 8, random_edges(rng, 8, 0.6), 1.0)
    model = as_general(model) if general else model
    sets = [{0: 1}, {3: 0, 5: 1}, {7: 0}, {i: 0 for i in range(7)}, {i: i % 2 for i in range(8)}]
    for evidence, lane in zip(sets, cz.mean_field(model, evidence=sets, tol=1e-12), strict=True):
        rest = cz.mean_field(without_known(model, evidence), tol=1e-12) if len(evidence) < 8 else None
        wanted = rest.value if rest else model.score(evidence)
        assert lane.value == pytest.approx(wanted, abs=CONVERGED)
        others = [i for i in range(8) if i not in evidence]
        if rest:
            np.testing.assert_allclose(np.asarray(lane.marginals)[others], rest.marginals, atol=1e-4)
        assert all(lane.marginals[i][a] == 1.0 for i, a in evidence.items())


def test_no_variables():
    assert cz.mean_field(cz.Model([], constant=1.5)).value == pytest.approx(1.5, abs=EXACT)


# -- hard zeros ------------------------------------------------------------------------------------------------------


def test_finds_a_feasible_start():
    rng = np.random.default_rng(50)
    for _ in range(40):
        n = int(rng.integers(3, 8))
        model = random_tables(rng, rng.integers(2, 4, n), random_edges(rng, n, 0.6), 2.0, zeros=0.4)
        estimate, exact = cz.mean_field(model), cz.exact(model)
        assert np.isfinite(estimate.lower) and estimate.lower <= exact.upper
        assert estimate.value == pytest.approx(naive_mean_field_objective(model, estimate.marginals), abs=1e-8)
        for i, j in model.pairwise:  # no mass on a forbidden pair
            assert (estimate.pairwise_marginals[i, j][model.pairwise[i, j] == -np.inf] <= 1e-30).all()


def test_one_feasible_configuration_among_many():
    # a permutation of the states along a ring: only two colourings of an even ring of two states are left
    forbid_equal = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    n = 12
    model = cz.Model(np.zeros((n, 2)), {(i, (i + 1) % n): forbid_equal for i in range(n)})
    estimate = cz.mean_field(model)
    assert estimate.value == pytest.approx(0.0, abs=CONVERGED)
    assert cz.exact(model).log_z == pytest.approx(np.log(2))


def test_says_so_where_no_configuration_is_possible():
    forbid_equal = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    ring = cz.Model(
        np.zeros((5, 2)), {(i, (i + 1) % 5): forbid_equal for i in range(5)}
    )  # odd: arc-consistent, and yet impossible
    estimate = cz.mean_field(ring)
    assert cz.exact(ring).log_z == -np.inf
    assert estimate.lower == estimate.log_z == -np.inf and not estimate.converged
    assert "hard zero" in estimate.note and np.isnan(estimate.marginals.flat).all()
    assert cz.trw(ring).upper >= -np.inf
    pair = cz.mean_field(cz.Model(np.zeros((2, 2)), {(0, 1): np.full((2, 2), -np.inf)}))
    assert pair.lower == pair.upper == -np.inf and "Z = 0" in pair.note


# -- extremes and options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("weight", [1000.0, -1000.0])
def test_extreme_weights_stay_finite_and_hold(weight, general):
    rng = np.random.default_rng(51)
    edges = random_edges(rng, 7, 0.7)
    model = cz.Model.from_binary(rng.uniform(-2, 2, 7), np.full(len(edges), weight), edges)
    model = as_general(model) if general else model
    exact = cz.exact(model)
    for max_iter in (1, 2, 100):
        estimate = cz.mean_field(model, max_iter=max_iter)
        assert np.isfinite(estimate.lower) and estimate.lower <= exact.upper
        assert np.isfinite(estimate.marginals.flat).all()
    assert estimate.lower >= exact.lower - 10.0


def test_wrong_starts_and_options_are_refused():
    model, other = cz.generators.cycle(4, rng=0), cz.generators.cycle(5, rng=0)
    with pytest.raises(
        cz.errors.OptionError, match=r"start: expected an estimate of a model with the same variables and edges"
    ):
        cz.mean_field(model, start=cz.mean_field(other))
    for start in (np.ones(3), np.ones((8, 2)), -np.ones(8), np.full(8, np.nan)):
        with pytest.raises(cz.errors.OptionError, match="start"):
            cz.mean_field(model, start=start)
    with pytest.raises(cz.errors.OptionError, match=r"num_starts: expected at least 1 where no `start` is given"):
        cz.mean_field(model, num_starts=0)
    for changes in ({"num_starts": -1}, {"num_starts": 1.5}):
        with pytest.raises(cz.errors.OptionError, match="num_starts"):
            cz.mean_field(model, **changes)


def test_factors_without_hard_zeros_need_no_equivalent(monkeypatch):
    """It is many times as large as the model, and says nothing more."""
    rng = np.random.default_rng(0)
    model = cz.Model.from_factors(
        [2] * 6, [((0, 1, 2), rng.normal(size=(2,) * 3)), ((2, 3, 4, 5), np.eye(4).reshape((2,) * 4))]
    )
    lanes = cz.Batch.from_evidence(model, [{}, {0: 1}, {3: 0, 5: 1}])
    monkeypatch.setattr("clampz.model.pairwise_equivalent.Equivalent.of", lambda *_: pytest.fail("work"))
    found = cz.mean_field(lanes)
    monkeypatch.undo()
    truth = cz.exact(lanes).log_z
    assert (found.lower <= truth).all() and (truth - found.lower < 0.5).all()
    impossible = cz.mean_field(cz.Batch(model, np.where(np.arange(12)[:, None] < 2, -np.inf, 0.0)))
    assert impossible.upper[0] == -np.inf
