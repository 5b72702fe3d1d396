"""Stress: it falls, and is near what distances are."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from clampz import generators
from clampz.plotting.stress_layout import on_a_circle, place_by_pivots, place_connected

pytest.importorskip("matplotlib")

GRAPHS = {
    "regular": generators.regular(60, 3, rng=1),
    "grid": generators.grid(8, 9, toroidal=False, rng=0),
    "cycle": generators.cycle(50, rng=0),
    "complete": generators.complete(12, rng=0),
}


def graph(name):
    model = GRAPHS[name]
    n, (i, j) = model.num_variables, model.edges.T
    return coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()


def stress(positions, distance) -> float:
    """Per pair, in a loop: (|x_i - x_j| / d_ij - 1)^2."""
    n = len(positions)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    return float(np.mean([(np.hypot(*(positions[i] - positions[j])) / distance[i, j] - 1) ** 2 for i, j in pairs]))


@pytest.mark.parametrize("name", GRAPHS)
def test_both_ways_are_better_than_a_circle(name):
    found, distance = graph(name), shortest_path(graph(name), directed=False)
    circle = on_a_circle(len(distance))
    by_pairs, by_pivots = (stress(place(found), distance) for place in (place_connected, place_by_pivots))
    assert by_pairs < 1.01 * min(stress(scale * circle, distance) for scale in np.linspace(0.2, 1.2, 6))
    assert name == "complete" or by_pairs < 1.01 * by_pivots < 3.0 * max(by_pairs, 0.02)


def test_a_grid_is_nearly_one():
    positions = place_connected(graph("grid"))
    lengths = np.hypot(*(positions[GRAPHS["grid"].edges[:, 0]] - positions[GRAPHS["grid"].edges[:, 1]]).T)
    assert np.ptp(lengths) < 0.5 * lengths.mean()
