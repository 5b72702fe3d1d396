"""maxW and Mpower: no digits lost, and large graphs."""

import naive
import numpy as np
import pytest
from selector_models import random_model

from clampz import generators
from clampz.clamping.selectors import scores
from clampz.clamping.selectors.edge_strength import Remaining, _all_walks, _short_walks, m_power
from clampz.runtime.budget import UNLIMITED


@pytest.mark.nojit
def test_m_power_loses_nothing_to_cancellation():
    """Away from saturation its digits are all right, also where the definition's two terms agree to most of theirs."""
    rng = np.random.default_rng(3)
    for weights in ("moderate", "weak", "very weak", "attractive"):
        for _ in range(30):
            model, clamped = random_model(rng, weights)
            np.testing.assert_allclose(
                scores(model, "Mpower", clamped=clamped), naive.naive_m_power(model, clamped), rtol=1e-11, atol=0
            )


@pytest.mark.parametrize(
    "model",
    [generators.grid(13, 11, rng=0), generators.erdos_renyi(150, 5.0, rng=1), generators.regular(200, 3, rng=2)],
    ids=repr,
)
def test_short_walks_are_the_first_powers(model):
    graph = Remaining.of(model, np.ones(model.num_variables, dtype=bool), core=True, budget=UNLIMITED)
    n = graph.num_variables
    weight = np.tanh(graph.strength / 4) / (n - 1)
    M = np.zeros((n, n))
    M[graph.edges[:, 0], graph.edges[:, 1]] = weight
    M += M.T
    s = np.diagonal(M @ M)
    powers = [np.diagonal(np.linalg.matrix_power(M, k)) for k in range(7)]
    short = _short_walks(n, graph.edges, weight, budget=UNLIMITED)
    # walks of 3 to 6 edges, and whatever of 7 and more comes with them
    first = powers[3] + powers[4] + powers[5] + powers[6] - s**2 - s**3
    np.testing.assert_allclose(short, first, rtol=1e-4)
    every = _all_walks(n, graph.edges, weight, budget=UNLIMITED)
    assert (short <= every * (1 + 1e-9)).all()
    np.testing.assert_allclose(short, every, rtol=2e-3)


def test_long_walks_are_left_out_where_they_take_too_long(monkeypatch):
    model = generators.grid(25, 25, rng=0)
    before = scores(model, "Mpower")
    monkeypatch.setattr("clampz.clamping.selectors.edge_strength.MAX_STEPS", 1.0)
    after = scores(model, "Mpower")
    assert (after < before).all()
    np.testing.assert_allclose(after, before, rtol=1e-3)


def test_dense_graphs_beyond_the_dense_limit_are_summed_to_the_end():
    model = generators.complete(510, weights=(0, 4), rng=0)
    graph = Remaining.of(model, np.ones(510, dtype=bool), core=True, budget=UNLIMITED)
    every = _all_walks(510, graph.edges, np.tanh(graph.strength / 4) / 509, budget=UNLIMITED)
    np.testing.assert_allclose(m_power(graph), every, rtol=1e-12)
