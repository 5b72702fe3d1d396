"""Where variables go: grids as grids, everything else spread out."""

import numpy as np
import pytest

from clampz import Model, generators
from clampz.plotting.graph_layout import layout

GENERAL = {
    "lamp": generators.lamp(rng=0),
    "barbell": generators.barbell(),
    "complete": generators.complete(8, rng=0),
    "cycle": generators.cycle(9, rng=0),
    "sparse": generators.erdos_renyi(40, 1.5, rng=0),
    "large": generators.cycle(700, rng=0),
    "no edges": Model(np.zeros((5, 2))),
    "two": Model(np.zeros((2, 2)), {(0, 1): np.eye(2)}),
    "one": Model([[0.0, 1.0]]),
    "none": Model([]),
}


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (2, 5), (3, 4), (4, 3), (5, 5), (6, 4)])
@pytest.mark.parametrize("toroidal", [False, True])
def test_a_grid_is_a_grid(rows, cols, toroidal):
    place = layout(generators.grid(rows, cols, toroidal=toroidal, rng=0))
    positions, period = place.positions, place.period
    assert place.shape == (rows, cols)
    assert positions.tolist() == [[float(c), float(-r)] for r in range(rows) for c in range(cols)]
    assert period == ((cols, rows) if toroidal and (rows, cols) != (2, 2) else None)


@pytest.mark.parametrize("name", GENERAL)
def test_variables_are_apart(name):
    model = GENERAL[name]
    place = layout(model)
    positions, period = place.positions, place.period
    assert positions.shape == (model.num_variables, 2)
    assert period is None
    assert np.isfinite(positions).all()
    apart = np.hypot(*(positions[:, None] - positions).transpose(2, 0, 1)) + 10 * np.eye(model.num_variables)
    assert apart.min(initial=10.0) > 0.1


def test_a_missing_edge_is_no_grid():
    grid = generators.grid(3, 3, toroidal=False, rng=0)
    edges = grid.edges[1:]
    assert not np.array_equal(
        layout(Model.from_binary(np.zeros(9), np.ones(len(edges)), edges)).positions, layout(grid).positions
    )


def test_a_path_is_straight():
    path = Model.from_binary(np.zeros(7), np.ones(6), [(i, i + 1) for i in range(6)])
    positions = layout(path).positions
    assert np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)[1] < 1e-6
    np.testing.assert_allclose(np.hypot(*np.diff(positions, axis=0).T), 1.0, atol=1e-6)


def test_factors_are_among_their_variables():
    rng = np.random.default_rng(0)
    scopes = [(0, 1, 2), (2, 3, 4), (4, 5, 6, 7)]
    model = Model.from_factors([2] * 9, [(scope, rng.normal(size=(2,) * len(scope))) for scope in scopes])
    place = layout(model)
    assert place.factors.shape == (3, 2)
    away = np.hypot(*(place.factors[:, None] - place.positions).transpose(2, 0, 1))
    for f, scope in enumerate(scopes):
        nearest = np.argsort(away[f])[: len(scope)].tolist()
        assert sorted(nearest) == list(scope)


def test_many_components_are_all_placed():
    """Beyond those that are untangled, also of three and more variables."""
    edges = [(3 * k + a, 3 * k + b) for k in range(200) for a, b in ((0, 1), (1, 2))]
    positions = layout(Model.from_binary(np.zeros(600), np.ones(400), edges)).positions
    lengths = np.hypot(*(positions[[i for i, _ in edges]] - positions[[j for _, j in edges]]).T)
    assert 0.5 < lengths.min() <= lengths.max() < 1.5
    assert np.unique(positions.round(3), axis=0).shape == (600, 2)
