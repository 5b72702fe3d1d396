"""What Bethe and TRW share, as one kernel with two kinds of counting numbers: both are exact on trees, see no names and
no signs, and a clamped lane is the conditioned model."""

import numpy as np
import pytest
from naive import enumerate_model
from random_models import as_general, random_binary, random_edges, random_tables, relabelled, tree_edges

import clampz as cz
from clampz.model.conditioning import without_known

EXACT = 1e-10
CONVERGED = 1e-6
# Runs that are at their limit to CONVERGED, on models weak enough for Bethe to have one optimum only; and how far
# marginals may then differ.
TIGHT = {"bethe": {"tol": 1e-8, "max_iter": 50_000}, "trw": {"tol": 1e-9, "max_iter": 50_000}}
SCALE = {"bethe": 1.5, "trw": 3.0}
CLOSE = {"bethe": 1e-5, "trw": 1e-4}

both = pytest.mark.parametrize("method", [cz.bethe, cz.trw], ids=["bethe", "trw"])


def assert_exact(model, estimate):
    log_z, unary, pairwise = enumerate_model(model)
    assert estimate.converged
    assert estimate.value == pytest.approx(log_z, rel=EXACT, abs=EXACT)
    if estimate.method == "trw":
        assert log_z <= estimate.upper <= log_z + 1e-9 * max(1.0, abs(log_z))
    else:
        assert estimate.log_z == pytest.approx(log_z, rel=EXACT, abs=EXACT)
    for i, marginal in enumerate(unary):
        np.testing.assert_allclose(estimate.marginals[i], marginal, atol=1e-9)
    for pair, marginal in pairwise.items():
        np.testing.assert_allclose(estimate.pairwise_marginals[pair], marginal, atol=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("forest", [0.0, 0.3])
@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
@both
def test_exact_on_trees_and_forests(method, forest, scale):
    rng = np.random.default_rng(30)
    for _ in range(8):
        n = int(rng.integers(1, 9))
        edges = tree_edges(rng, n, forest=forest)
        binary = random_binary(rng, n, edges, scale)
        for model in (binary, as_general(binary), random_tables(rng, rng.integers(1, 4, n), edges, scale, zeros=0.2)):
            assert_exact(model, method(model))


@pytest.mark.nojit
@both
def test_exact_on_stars_chains_and_single_variables(method):
    rng = np.random.default_rng(31)
    star, chain = [(0, i) for i in range(1, 8)], [(i, i + 1) for i in range(7)]
    for edges in (star, chain, []):
        assert_exact(model := random_binary(rng, 8, edges, 6.0), method(model))
        assert_exact(model := random_tables(rng, [3, 2] * 4, edges, 3.0), method(model))
    for unary in ([[0.0, 1.0]], [[0.5]], [[1.0, -np.inf, 2.0]], [[0.0, -np.inf], [0.0, 0.0]]):
        assert_exact(model := cz.Model(unary), method(model))


@pytest.mark.parametrize("general", [False, True])
@both
def test_exact_on_a_long_chain(method, general):
    rng = np.random.default_rng(32)
    model = random_binary(rng, 2000, [(i, i + 1) for i in range(1999)], 6.0)
    model = as_general(model) if general else model
    estimate, exact = method(model), cz.exact(model)
    assert estimate.converged
    assert estimate.num_iter == 1 or method is cz.bethe
    assert estimate.value == pytest.approx(exact.log_z, rel=EXACT)
    assert estimate.log_z == pytest.approx(exact.log_z, rel=EXACT) or method is cz.trw
    np.testing.assert_allclose(estimate.marginals.flat, exact.marginals.flat, atol=1e-9)
    np.testing.assert_allclose(estimate.pairwise_marginals.flat, exact.pairwise_marginals.flat, atol=1e-9)


@both
def test_relabelling_and_flipping_change_nothing(method):
    rng = np.random.default_rng(43)
    tight, close = TIGHT[method.name], CLOSE[method.name]
    for _ in range(4):
        model = random_binary(rng, 8, random_edges(rng, 8, 0.5), SCALE[method.name])
        one = method(model, **tight)
        order, flipped = rng.permutation(8), rng.random(8) < 0.5
        other = method(relabelled(model, order), **tight)
        assert other.value == pytest.approx(one.value, abs=CONVERGED)
        np.testing.assert_allclose(other.marginals, np.asarray(one.marginals)[order], atol=close)
        other = method(model.flip(flipped), **tight)
        assert other.value == pytest.approx(one.value, abs=CONVERGED)
        expected = np.where(flipped[:, None], np.asarray(one.marginals)[:, ::-1], one.marginals)
        np.testing.assert_allclose(other.marginals, expected, atol=close)


@pytest.mark.nojit
@pytest.mark.parametrize("general", [False, True])
@both
def test_a_clamped_lane_is_the_conditioned_model(method, general):
    rng = np.random.default_rng(44)
    tight, close = TIGHT[method.name], CLOSE[method.name]
    model = random_binary(rng, 8, random_edges(rng, 8, 0.6), SCALE[method.name])
    model = as_general(model) if general else model
    sets = [{0: 1}, {3: 0, 5: 1}, {7: 0}, {i: 0 for i in range(7)}, {i: i % 2 for i in range(8)}]
    for evidence, lane in zip(sets, method(model, evidence=sets, **tight), strict=True):
        rest = method(without_known(model, evidence), **tight)
        assert lane.value == pytest.approx(rest.value, abs=CONVERGED)
        assert lane.upper == pytest.approx(rest.upper, abs=CONVERGED)
        others = [i for i in range(8) if i not in evidence]
        np.testing.assert_allclose(
            np.asarray(lane.marginals)[others], np.asarray(rest.marginals).reshape(-1, 2), atol=close
        )
        assert all(lane.marginals[i][a] == 1.0 for i, a in evidence.items())
        for (i, _), table in lane.pairwise_marginals.items():
            np.testing.assert_allclose(table.sum(axis=1), lane.marginals[i], atol=close)
