"""TRW: the kernels against their slow twin, warm starts, evidence, hard zeros and extreme
weights."""

import dataclasses

import numpy as np
import pytest
from naive import naive_objective, naive_trw
from random_models import as_general, random_binary, random_edges, random_tables

import clampz as cz
from clampz.approximations.edge_weights import uniform_weights
from clampz.approximations.iteration import next_look
from clampz.runtime.budget import UNLIMITED

EXACT = 1e-10
CONVERGED = 1e-6
# A run that must be at its limit to CONVERGED.
TIGHT = {"tol": 1e-9, "max_iter": 50_000}


def looked_at(num_sweeps):
    """The sweeps after which a run of this many looks at its lanes."""
    looks = [1]
    while looks[-1] < num_sweeps:
        looks.append(min(next_look(looks[-1]), num_sweeps))
    return looks


def assert_equals_twin(model, num_sweeps):
    free = np.array([np.isfinite(table).sum() > 1 for table in model.unary])
    looks = naive_trw(model, uniform_weights(model.topology, free, budget=UNLIMITED), num_sweeps)
    value, upper, _ = looks[-1]
    size = EXACT * max(1.0, abs(value))
    found = cz.trw(model, tol=0.0, max_iter=num_sweeps)
    if found.stopped_by == "tol":  # trees, and models whose slack is an exact zero
        value, upper, _ = looks[found.num_iter - 1]
        num_sweeps = found.num_iter
    assert found.num_iter == num_sweeps
    assert found.value == pytest.approx(value, abs=size)
    assert found.residual == pytest.approx(upper - value, abs=size)
    assert found.upper == pytest.approx(min(looks[k - 1][1] for k in looked_at(num_sweeps)), abs=10 * size)


@pytest.mark.nojit
@pytest.mark.parametrize("num_sweeps", [1, 2, 5, 9])
def test_binary_kernels_equal_the_twin(num_sweeps):
    rng = np.random.default_rng(num_sweeps)
    for scale in (0.5, 3.0, 12.0):
        for density in (0.3, 0.6):
            n = int(rng.integers(4, 8))
            model = random_binary(rng, n, random_edges(rng, n, density), scale)
            assert_equals_twin(model, num_sweeps)
            assert_equals_twin(as_general(model), num_sweeps)


@pytest.mark.nojit
@pytest.mark.parametrize("num_sweeps", [1, 2, 5])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_general_kernels_equal_the_twin(num_sweeps, zeros):
    rng = np.random.default_rng(10 + num_sweeps)
    for scale in (0.5, 3.0, 12.0):
        n = int(rng.integers(4, 7))
        model = random_tables(rng, rng.integers(1, 5, n), random_edges(rng, n, 0.6), scale, zeros)
        assert_equals_twin(model, num_sweeps)


@pytest.mark.nojit
@pytest.mark.parametrize("num_sweeps", [1, 3, 8])
def test_binary_and_general_kernels_agree(num_sweeps):
    rng = np.random.default_rng(20)
    for scale in (0.5, 5.0, 30.0):
        model = random_binary(rng, 9, random_edges(rng, 9, 0.4), scale)
        binary, general = (cz.trw(m, tol=0.0, max_iter=num_sweeps) for m in (model, as_general(model)))
        for name in ("value", "upper", "residual"):
            assert getattr(binary, name) == pytest.approx(
                getattr(general, name), abs=EXACT * max(1.0, abs(binary.value))
            )
        np.testing.assert_allclose(binary.marginals.flat, general.marginals.flat, atol=EXACT)
        np.testing.assert_allclose(binary.pairwise_marginals.flat, general.pairwise_marginals.flat, atol=EXACT)


# -- at convergence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("general", [False, True])
def test_the_value_is_the_objective_at_consistent_marginals(general):
    rng = np.random.default_rng(40)
    for scale in (1.0, 4.0):
        n = 7
        edges = random_edges(rng, n, 0.6)
        model = (
            random_tables(rng, rng.integers(2, 4, n), edges, scale) if general else random_binary(rng, n, edges, scale)
        )
        estimate = cz.trw(model, **TIGHT)
        assert estimate.converged
        for (i, j), table in estimate.pairwise_marginals.items():
            np.testing.assert_allclose(table.sum(axis=1), estimate.marginals[i], atol=1e-4)
            np.testing.assert_allclose(table.sum(axis=0), estimate.marginals[j], atol=1e-4)
        found = naive_objective(
            model, estimate.marginals, estimate.pairwise_marginals, uniform_weights(model.topology, budget=UNLIMITED)
        )
        assert found == pytest.approx(estimate.value, abs=1e-3)
        assert 0 <= estimate.upper - estimate.value <= 1e-8


def test_differs_from_bethe_on_a_frustrated_cycle():
    model = cz.generators.cycle(3, theta=0, weights=-4.0)
    trw, bethe, exact = cz.trw(model), cz.bethe(model), cz.exact(model)
    assert trw.value > bethe.value + 0.01
    assert trw.upper > exact.log_z + 0.01


def test_clamping_all_but_one_makes_it_exact():
    rng = np.random.default_rng(43)
    model = random_binary(rng, 6, random_edges(rng, 6, 1.0), 8.0)
    evidence = {i: i % 2 for i in range(5)}
    assert cz.trw(model, evidence=evidence).value == pytest.approx(cz.exact(model, evidence=evidence).log_z, abs=1e-9)


# -- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1000.0, -1000.0])
@pytest.mark.parametrize("general", [False, True])
def test_extreme_weights_stay_finite_and_hold(weight, general):
    rng = np.random.default_rng(50)
    edges = random_edges(rng, 7, 0.7)
    model = cz.Model.from_binary(rng.uniform(-2, 2, 7), np.full(len(edges), weight), edges)
    model = as_general(model) if general else model
    exact = cz.exact(model)
    for max_iter in (1, 2, 10, 500):
        estimate = cz.trw(model, max_iter=max_iter)
        assert np.isfinite(estimate.upper) and estimate.upper >= exact.lower
        assert np.isfinite(estimate.marginals.flat).all()
        assert np.isfinite(estimate.pairwise_marginals.flat).all()
    if weight > 0:  # attractive: the uniform configurations carry everything
        assert estimate.upper <= exact.upper + 1.0


def test_hard_zeros():
    rng = np.random.default_rng(51)
    for _ in range(20):
        n = int(rng.integers(3, 7))
        model = random_tables(rng, rng.integers(2, 4, n), random_edges(rng, n, 0.7), 2.0, zeros=0.35)
        exact, estimate = cz.exact(model), cz.trw(model)
        assert estimate.upper >= exact.lower
        impossible = exact.marginals.flat == 0
        assert np.isfinite(estimate.marginals.flat).all()
        assert estimate.residual <= 1e-3  # where a state's probability goes to zero, so does the speed
        for (i, j), table in estimate.pairwise_marginals.items():
            assert (table[model.pairwise[i, j] == -np.inf] == 0).all()
        if model.topology.num_core == 0:
            assert (estimate.marginals.flat[impossible] == 0).all()


def test_z_is_zero():
    forbidden = np.full((2, 2), -np.inf)
    estimate = cz.trw(cz.Model(np.zeros((3, 2)), {(0, 1): forbidden, (1, 2): np.zeros((2, 2))}))
    assert estimate.log_z == estimate.upper == estimate.value == -np.inf
    assert estimate.converged and "Z = 0" in estimate.note
    assert np.isnan(estimate.marginals.flat).all()


@pytest.mark.nojit
def test_disconnected_parts_add_up():
    rng = np.random.default_rng(52)
    left, right = (
        random_binary(rng, 5, random_edges(rng, 5, 0.9), 3.0),
        random_binary(rng, 4, random_edges(rng, 4, 0.9), 3.0),
    )
    shifted = {(i + 5, j + 5): table for (i, j), table in right.pairwise.items()}
    both = cz.Model(
        [*left.unary, *right.unary, [0.0, 1.0]], {**left.pairwise, **shifted}, constant=left.constant + right.constant
    )
    parts = [cz.trw(m, **TIGHT).value for m in (left, right)]
    assert cz.trw(both, **TIGHT).value == pytest.approx(sum(parts) + np.logaddexp(0, 1), abs=CONVERGED)


# -- starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("general", [False, True])
def test_a_warm_start_is_quick(general):
    rng = np.random.default_rng(60)
    model = random_binary(rng, 12, random_edges(rng, 12, 0.4), 4.0)
    model = as_general(model) if general else model
    cold = cz.trw(model, tol=1e-6)
    warm = cz.trw(model, tol=1e-6, start=cold)
    assert cold.num_iter > 10 and warm.num_iter <= 2
    assert warm.value == pytest.approx(cold.value, abs=CONVERGED)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("method", ["exact", "mean_field", "bethe"])
def test_starts_from_another_method(method, general):
    rng = np.random.default_rng(61)
    model = random_binary(rng, 8, random_edges(rng, 8, 0.5), 3.0)
    model = as_general(model) if general else model
    start = cz.methods()[method](model)
    assert cz.trw(model, start=start, **TIGHT).value == pytest.approx(cz.trw(model, **TIGHT).value, abs=CONVERGED)
    assert cz.trw(model, start=start, max_iter=1).upper >= cz.exact(model).lower


@pytest.mark.nojit
def test_a_start_of_the_same_graph_with_other_potentials():
    # the start passed messages as log-odds, the new model has a hard zero and passes tables
    edges = [(0, 1), (1, 2), (0, 2)]
    finite = cz.Model.from_binary([0.3, -0.2, 0.1], [1.0, -2.0, 1.5], edges)
    hard = cz.Model(finite.unary[:], {**finite.pairwise, (0, 1): [[0.5, -np.inf], [0.0, 0.5]]})
    for model, start in ((hard, cz.trw(finite)), (finite, cz.trw(hard))):
        assert cz.trw(model, start=start, **TIGHT).value == pytest.approx(cz.trw(model, **TIGHT).value, abs=CONVERGED)


@pytest.mark.nojit
@pytest.mark.parametrize("general", [False, True])
def test_starts_from_given_marginals(general):
    rng = np.random.default_rng(62)
    model = random_binary(rng, 8, random_edges(rng, 8, 0.5), 3.0)
    model = as_general(model) if general else model
    q = rng.dirichlet([1, 1], size=8)
    for start in (q, q.ravel(), np.repeat(q[:, :, None], 1, axis=2)):
        assert cz.trw(model, start=start, **TIGHT).value == pytest.approx(cz.trw(model, **TIGHT).value, abs=CONVERGED)


def test_wrong_starts_are_refused():
    model, other = cz.generators.cycle(4, rng=0), cz.generators.cycle(5, rng=0)
    with pytest.raises(
        cz.errors.OptionError, match=r"start: expected an estimate of a model with the same variables and edges"
    ):
        cz.trw(model, start=cz.trw(other))
    many = cz.trw(model, evidence=[{0: 0}, {0: 1}])
    with pytest.raises(cz.errors.OptionError, match=r"start: expected one for all lanes or one for each of 3, found 2"):
        cz.trw(model, evidence=[{}] * 3, start=many)


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_are_kept_and_checked():
    model = cz.generators.cycle(4, rng=0)
    estimate = cz.trw(model, tol=1e-3, edge_weights="sampled", num_trees=10, seed=3)
    assert (estimate.options.tol, estimate.options.edge_weights, estimate.options.num_trees, estimate.options.seed) == (
        1e-3,
        "sampled",
        10,
        3,
    )
    for changes in (
        {"edge_weights": "best"},
        {"num_trees": 0},
        {"num_trees": 2.5},
        {"num_steps": 0},
        {"num_steps": "2"},
    ):
        with pytest.raises(cz.errors.OptionError, match=next(iter(changes))):
            cz.trw(model, **changes)
    whole = dataclasses.replace(estimate.options, tol=1e-6)
    assert cz.trw(model, options=whole).residual <= 1e-6
    assert cz.trw(model, options=whole, tol=1e-2).options.tol == 1e-2


def test_tolerance_is_the_slack():
    model = cz.generators.grid(4, 4, rng=0)
    for tol in (1e-1, 1e-4, 1e-7):
        estimate = cz.trw(model, tol=tol)
        assert estimate.converged and estimate.residual <= tol
        assert estimate.log_z - estimate.value <= tol + 1e-10
        assert estimate.log_z == estimate.upper and estimate.bound == "upper" and estimate.lower == -np.inf
