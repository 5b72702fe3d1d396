"""Every call on models of 3 to a million variables whose log Z is known: no crash, and bounds that hold.

The large ones are not part of the usual run: `python -m pytest -n0 -m large tests/test_shapes.py`, some minutes."""

import numpy as np
import pytest

import clampz as cz

SIZES = [3, 300, *(pytest.param(size, marks=pytest.mark.large) for size in (30_000, 1_000_000))]
# Of log Z, beyond what a result says of itself: the sums here are taken in plain floats.
ROUNDING = 1e-9


def drawn(n: int, edges: np.ndarray) -> tuple[cz.Model, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    theta, weights = rng.uniform(-1, 1, n), rng.uniform(-2, 2, len(edges))
    return cz.Model.from_binary(theta, weights, edges), theta, weights


def chain(n: int) -> tuple[cz.Model, float]:
    """log Z by products of neighbouring tables, half as many in every round."""
    model, theta, weights = drawn(n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    tables = np.zeros((n - 1, 2, 2))
    tables[:, 0, 0] = tables[:, 1, 1] = weights / 2
    tables[:, :, 1] += theta[1:, None]
    tables[0, 1] += theta[0]
    while len(tables) > 1:
        last = tables[len(tables) // 2 * 2 :]
        left, right = tables[: len(tables) // 2 * 2 : 2], tables[1::2]
        tables = np.concatenate([np.logaddexp.reduce(left[:, :, :, None] + right[:, None], axis=2), last])
    return model, float(np.logaddexp.reduce(tables, axis=None))


def star(n: int) -> tuple[cz.Model, float]:
    model, theta, weights = drawn(n, np.stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)], axis=1))
    off = np.logaddexp(weights / 2, theta[1:]).sum()
    on = theta[0] + np.logaddexp(0.0, theta[1:] + weights / 2).sum()
    return model, float(np.logaddexp(off, on))


def apart(n: int) -> tuple[cz.Model, float]:
    """Components of three in a row, and what is left over alone."""
    first = np.arange(0, n - 2, 3)
    model, theta, weights = drawn(n, (first[:, None, None] + np.array([(0, 1), (1, 2)])).reshape(-1, 2))
    log_z = np.logaddexp(0.0, theta[3 * len(first) :]).sum()
    a, b, c = theta[: 3 * len(first)].reshape(-1, 3).T
    v, w = weights.reshape(-1, 2).T / 2
    off = np.logaddexp(v, a) + np.logaddexp(w, c)
    on = b + np.logaddexp(0.0, a + v) + np.logaddexp(0.0, c + w)
    return model, float(log_z + np.logaddexp(off, on).sum())


CALLS = {
    "mean_field": lambda model: cz.mean_field(model, max_iter=3, num_starts=2),
    "bethe": lambda model: cz.bethe(model, max_iter=3, num_starts=1),
    "trw": lambda model: cz.trw(model, max_iter=3),
    "exact": cz.exact,
    "clamp by mean field": lambda model: cz.clamp(model, "mf", k=1, select="maxW", max_iter=3, num_starts=1),
    "clamp by TRW": lambda model: cz.clamp(model, "trw", k=1, select="maxW", max_iter=3),
    "bound": lambda model: cz.bound(model, time=1),
    "bound without sums": lambda model: cz.bound(model, time=1, exact=False),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", [chain, star, apart])
@pytest.mark.parametrize("size", SIZES)
def test_bounds_hold(size, shape, call):
    model, log_z = shape(size)
    found = CALLS[call](model)
    assert found.lower <= log_z + ROUNDING * abs(log_z)
    assert found.upper >= log_z - ROUNDING * abs(log_z)
    if call in ("exact", "trw"):  # on a tree both are exact
        assert found.log_z == pytest.approx(log_z, rel=1e-6)


@pytest.mark.parametrize("size", [3, 300, pytest.param(30_000, marks=pytest.mark.large)])
def test_a_chain_has_its_intervals(size):
    model, _ = chain(size)
    found = cz.bound_marginals(model, time=1)
    exact = cz.exact(model)
    for i in (0, size // 2, size - 1):
        assert (found.lower[i] <= exact.marginals[i]).all() and (exact.marginals[i] <= found.upper[i]).all()
