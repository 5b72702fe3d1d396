"""log Z under PyTorch: gradients by its own check, batches, layouts, and what is refused."""

import sys

import numpy as np
import pytest
from naive import enumerate_model
from random_models import table_cycle, with_a_factor

import clampz as cz
import clampz.torch

CLOSE = 1e-10


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def leaf(torch, values):
    return torch.tensor(np.array(values), dtype=torch.float64, requires_grad=True)


def test_gradcheck_of_exact(torch):
    model = with_a_factor()
    tables = [leaf(torch, each.flat) for each in (model.unary, model.pairwise, model.factors)]

    def value(unary, pairwise, factors):
        return cz.torch.log_z(unary, pairwise, model, factors=factors)

    assert value(*tables).item() == pytest.approx(cz.exact(model).log_z, abs=CLOSE)
    assert torch.autograd.gradcheck(value, tables)


def test_gradcheck_of_a_batch_with_shared_and_with_own_pairwise_potentials(torch):
    model, rng = table_cycle(), np.random.default_rng(0)
    unary, shared = leaf(torch, rng.normal(size=(3, 4, 2))), leaf(torch, model.pairwise.flat)
    own = leaf(torch, rng.normal(size=(3, 4, 2, 2)))

    def value(unary, pairwise):
        return cz.torch.log_z(unary, pairwise, model)

    assert value(unary, shared).shape == (3,)
    assert torch.autograd.gradcheck(value, (unary, shared))
    assert torch.autograd.gradcheck(value, (unary, own))
    assert torch.autograd.gradcheck(value, (unary[0].detach().requires_grad_(), own))


def test_batches_are_single_models(torch):
    """Values and gradients are those of enumeration, model by model."""
    model, rng = table_cycle(3), np.random.default_rng(2)
    unary, own = leaf(torch, rng.normal(size=(2, 12))), leaf(torch, rng.normal(size=(2, 4, 3, 3)))
    weights = torch.tensor([1.0, -2.0], dtype=torch.float64)
    found = cz.torch.log_z(unary, own, model)
    (weights * found).sum().backward()
    for b in range(2):
        one = cz.Model.from_arrays(
            unary[b].detach().numpy().reshape(4, 3), model.edges, own[b].detach().numpy(), constant=model.constant
        )
        log_z, marginals, pairs = enumerate_model(one)
        assert found[b].item() == pytest.approx(log_z, abs=CLOSE)
        np.testing.assert_allclose(unary.grad[b] / weights[b], np.concatenate(marginals), atol=CLOSE)
        np.testing.assert_allclose(own.grad[b] / weights[b], [pairs[pair] for pair in one.pairwise], atol=CLOSE)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("trw", {"tol": 1e-12}),
        ("mean_field", {"tol": 1e-12}),
        ("bethe", {"tol": 1e-12}),
        ("mini_buckets", {"max_table": 4}),
    ],
)
def test_gradients_of_bounds(torch, method, options):
    model = cz.generators.grid(3, 3, weights=(-1, 1), rng=0)
    found = cz.methods()[method](model, **options)
    unary, pairwise = leaf(torch, model.unary.flat), leaf(torch, model.pairwise.flat)
    value = cz.torch.log_z(unary, pairwise, model, method=method, **options)
    value.backward()
    assert value.item() == found.log_z
    np.testing.assert_array_equal(unary.grad, found.marginals.flat)
    np.testing.assert_array_equal(pairwise.grad, found.pairwise_marginals.flat)
    if method != "mini_buckets":  # (it ends at the root of its rounding)
        check = {"eps": 1e-4, "atol": 1e-5}
        assert torch.autograd.gradcheck(
            lambda u, w: cz.torch.log_z(u, w, model, method=method, **options), (unary, pairwise), **check
        )


def test_hard_zeros_have_no_gradient(torch):
    model = table_cycle()
    unary = leaf(torch, np.where(np.arange(8) == 2, -np.inf, model.unary.flat))
    pairwise = leaf(torch, np.where(np.arange(16) == 5, -np.inf, model.pairwise.flat))
    cz.torch.log_z(unary, pairwise, model).backward()
    assert unary.grad[2] == 0 and pairwise.grad[5] == 0
    assert torch.isfinite(unary.grad).all() and torch.isfinite(pairwise.grad).all()


def test_a_lane_that_does_not_count_spoils_nothing(torch):
    unary = leaf(torch, [[0.0, 1.0], [-np.inf, -np.inf]])
    found = cz.torch.log_z(unary, None, cz.Model([[0.0, 0.0]]))
    assert found[1] == -np.inf
    found[0].backward()
    assert torch.isfinite(unary.grad).all() and unary.grad[1].tolist() == [0.0, 0.0]


def test_types_and_what_is_left_out(torch):
    model = table_cycle()
    single = torch.zeros(4, 2, requires_grad=True)
    found = cz.torch.log_z(single, None, model)
    assert found.dtype == torch.float32 and found.shape == ()
    found.backward()
    assert single.grad.dtype == torch.float32 and single.grad.shape == (4, 2)
    pairwise = leaf(torch, model.pairwise.flat)
    assert cz.torch.log_z(None, pairwise, model).item() == pytest.approx(cz.exact(model).log_z, abs=CLOSE)
    with pytest.raises(cz.errors.OptionError, match="log_z has no second derivative"):
        torch.autograd.grad(cz.torch.log_z(None, pairwise, model), pairwise, create_graph=True)


def test_what_does_not_fit_is_refused(torch):
    model, good = table_cycle(), torch.zeros(4, 2)
    with pytest.raises(
        cz.errors.ModelError, match=r"unary: expected shape \(8,\) or \(4, 2\), or a batch of these, found"
    ):
        cz.torch.log_z(torch.zeros(3, 4), None, model)
    with pytest.raises(cz.errors.ModelError, match=r"pairwise: expected shape \(16,\) or \(4, 2, 2\)"):
        cz.torch.log_z(good, torch.zeros(4, 2), model)
    with pytest.raises(cz.errors.ModelError, match="unary: expected a tensor, found list"):
        cz.torch.log_z([0.0] * 8, None, model)
    with pytest.raises(cz.errors.ModelError, match="expected batches of one size, found 2 and 3"):
        cz.torch.log_z(torch.zeros(2, 8), torch.zeros(3, 16), model)
    with pytest.raises(cz.errors.ModelError, match="found none"):
        cz.torch.log_z(None, None, model)
    with pytest.raises(cz.errors.ModelError, match=r"unary\[1, 0\]: expected finite log potentials"):
        cz.torch.log_z(torch.tensor([[0.0] * 8, [np.nan] * 8]), None, model)
    with pytest.raises(cz.errors.OptionError, match="unknown method 'exat'"):
        cz.torch.log_z(good, None, model, method="exat")
    with pytest.raises(cz.errors.OptionError, match="unknown option 'tool'"):
        cz.torch.log_z(good, None, model, tool=1)


def test_without_pytorch_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(cz.errors.MissingLibraryError, match="torch is not installed: pip install torch"):
        cz.torch.log_z(np.zeros(8), None, table_cycle())
