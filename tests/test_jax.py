"""log Z under JAX: gradients against differences, under jit and vmap, batches, and what is refused."""

import sys

import numpy as np
import pytest
from naive import enumerate_model
from random_models import table_cycle, with_a_factor

import clampz as cz

CLOSE = 1e-10


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


def test_gradients_of_exact_are_differences(jax):
    from jax.test_util import check_grads

    model = with_a_factor()
    tables = [each.flat for each in (model.unary, model.pairwise, model.factors)]

    def value(unary, pairwise, factors):
        return cz.jax.log_z(unary, pairwise, model, factors=factors)

    assert float(value(*tables)) == pytest.approx(cz.exact(model).log_z, abs=CLOSE)
    check_grads(value, tables, order=1, modes=["rev"])
    check_grads(jax.jit(value), tables, order=1, modes=["rev"])


@pytest.mark.parametrize("wrapped", ["as it is", "jit"])
def test_batches_are_single_models(jax, wrapped):
    """Values and gradients are those of enumeration, model by model, with shared and with own pairwise potentials."""
    model, rng = table_cycle(3), np.random.default_rng(2)
    unary, own = rng.normal(size=(2, 12)), rng.normal(size=(2, 4, 3, 3))
    weights = np.array([1.0, -2.0])
    for pairwise in (own, own[0]):

        def value(unary, pairwise):
            found = cz.jax.log_z(unary, pairwise, model)
            assert found.shape == (2,)
            return (weights * found).sum()

        of = jax.value_and_grad(value, argnums=(0, 1))
        total, (by_unary, by_pairwise) = (jax.jit(of) if wrapped == "jit" else of)(unary, pairwise)
        each = [
            enumerate_model(
                cz.Model.from_arrays(
                    unary[b].reshape(4, 3),
                    model.edges,
                    np.broadcast_to(pairwise, own.shape)[b],
                    constant=model.constant,
                )
            )
            for b in range(2)
        ]
        assert float(total) == pytest.approx(each[0][0] - 2 * each[1][0], abs=CLOSE)
        expected = [w * np.concatenate(marginals) for w, (_, marginals, _) in zip(weights, each, strict=True)]
        np.testing.assert_allclose(by_unary, expected, atol=CLOSE)
        edges = list(model.pairwise)
        tables = np.array([[w * pairs[e] for e in edges] for w, (_, _, pairs) in zip(weights, each, strict=True)])
        np.testing.assert_allclose(by_pairwise, tables if pairwise is own else tables.sum(axis=0), atol=CLOSE)


def test_mapped_it_is_single_calls(jax):
    model, rng = table_cycle(), np.random.default_rng(0)
    unary, pairwise = rng.normal(size=(3, 2, 8)), rng.normal(size=(3, 16))

    def one(unary, pairwise):
        return cz.jax.log_z(unary, pairwise, model)

    alone = np.array([[one(u, w) for u in us] for us, w in zip(unary, pairwise, strict=True)])
    np.testing.assert_allclose(jax.vmap(one)(unary, pairwise), alone, atol=CLOSE)
    np.testing.assert_allclose(jax.vmap(jax.vmap(one, (0, None)))(unary, pairwise), alone, atol=CLOSE)
    shared = jax.vmap(one, (0, None))(unary[0], pairwise[0])
    np.testing.assert_allclose(shared, alone[0], atol=CLOSE)
    gradients = jax.vmap(jax.grad(one), (0, None))(unary[0], pairwise[0])
    np.testing.assert_allclose(gradients[1], jax.grad(one)(unary[0, 1], pairwise[0]), atol=CLOSE)


@pytest.mark.parametrize("method", ["trw", "mean_field", "bethe", "mini_buckets"])
def test_gradients_of_bounds_are_marginals(jax, method):
    model = cz.generators.grid(3, 3, weights=(-1, 1), rng=0)
    found = cz.methods()[method](model)
    value, gradients = jax.value_and_grad(
        lambda unary, pairwise: cz.jax.log_z(unary, pairwise, model, method=method), argnums=(0, 1)
    )(model.unary.flat, model.pairwise.flat)
    assert float(value) == found.log_z
    np.testing.assert_array_equal(gradients[0], found.marginals.flat)
    np.testing.assert_array_equal(gradients[1], found.pairwise_marginals.flat)


def test_a_lane_that_does_not_count_spoils_nothing(jax):
    unary = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    model = cz.Model([[0.0, 0.0]])
    gradient = jax.grad(lambda u: cz.jax.log_z(u, None, model)[0])(unary)
    assert np.isfinite(gradient).all() and gradient[1].tolist() == [0.0, 0.0]


def test_types(jax):
    model = table_cycle()
    single = jax.numpy.zeros((4, 2), dtype=jax.numpy.float32)
    assert cz.jax.log_z(single, None, model).dtype == np.float32
    assert jax.grad(lambda u: cz.jax.log_z(u, None, model))(single).dtype == np.float32
    whole = cz.jax.log_z(np.zeros((4, 2), dtype=int), None, model)
    assert whole.dtype == np.float64 and whole.shape == ()


def test_what_does_not_fit_is_refused(jax):
    model, good = table_cycle(), np.zeros((4, 2))
    with pytest.raises(
        cz.errors.ModelError, match=r"unary: expected shape \(8,\) or \(4, 2\), or a batch of these, found"
    ):
        cz.jax.log_z(np.zeros((3, 4)), None, model)
    with pytest.raises(cz.errors.ModelError, match="expected batches of one size, found 2 and 3"):
        jax.jit(lambda u, w: cz.jax.log_z(u, w, model))(np.zeros((2, 8)), np.zeros((3, 16)))
    with pytest.raises(cz.errors.ModelError, match="found none"):
        cz.jax.log_z(None, None, model)
    with pytest.raises(cz.errors.OptionError, match="unknown method 'exat'"):
        cz.jax.log_z(good, None, model, method="exat")
    with pytest.raises(Exception, match=r"unary\[0, 0\]: expected finite log potentials"):
        cz.jax.log_z(np.full((4, 2), np.nan), None, model).block_until_ready()


def test_without_jax_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(cz.errors.MissingLibraryError, match="jax is not installed: pip install jax"):
        cz.jax.log_z(np.zeros(8), None, table_cycle())
