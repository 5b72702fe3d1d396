"""Many variables: a point of an image each, or a density."""

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting import graphs

pytest.importorskip("matplotlib")
from drawn import assert_legible


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(graphs, "DENSE", 30)


def key_of(ax) -> str:
    return ax.figure.axes[1].get_xlabel()


def test_a_grid_is_an_image_with_a_point_for_each_variable():
    grid = cz.generators.grid(5, 8, rng=0)
    ax = plotting.plot_model(grid)
    assert_legible(ax.figure)
    (image,) = ax.images
    mean = [np.mean([grid.binary.W[e] for e in np.flatnonzero((grid.edges == i).any(axis=1))]) for i in range(40)]
    np.testing.assert_allclose(image.get_array(), np.reshape(mean, (5, 8)))
    assert key_of(ax).replace("\n", " ") == "mean W of a variable's edges: attractive above 0, repulsive below"
    assert not ax.collections


def test_it_is_shaded_as_asked_for():
    grid = cz.generators.grid(6, 6, toroidal=False, rng=0)
    exact = cz.exact(grid)
    ax = plotting.plot_model(grid, marginals=exact)
    np.testing.assert_array_equal(ax.images[0].get_array(), np.array(exact.marginals)[:, 1].reshape(6, 6))
    assert key_of(ax) == "P(x = 1)"


def test_more_labels_have_strengths_without_a_sign():
    ax = plotting.plot_model(cz.generators.grid(6, 6, labels=3, rng=0))
    assert key_of(ax) == "mean strength of a variable's edges"
    assert ax.images[0].get_array().min() >= 0


def test_any_other_graph_is_a_density_of_its_edges():
    ring = cz.generators.cycle(40, rng=0)
    ax = plotting.plot_model(ring)
    assert_legible(ax.figure)
    assert key_of(ax) == "edges through a point"
    image = ax.images[0].get_array()
    covered = np.isfinite(image.filled(np.nan))
    assert 0 < covered.mean() < 0.05
    middle = np.array(image.shape) // 2
    assert not covered[middle[0], middle[1]]  # a ring is empty there


def test_or_of_the_shades_of_its_variables():
    ring = cz.generators.cycle(40, rng=0)
    scores = np.arange(40.0)
    ax = plotting.plot_model(ring, scores=scores)
    image = ax.images[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(np.sort(image[np.isfinite(image)]), scores)
    assert key_of(ax) == "score, mean of the variables at a point"


def test_lines_of_factors_count():
    rng = np.random.default_rng(0)
    model = cz.Model.from_factors([2] * 31, [((i, i + 1, i + 2), rng.normal(size=(2, 2, 2))) for i in range(0, 28, 2)])
    assert model.num_edges == 0
    image = plotting.plot_model(model).images[0].get_array()
    assert np.isfinite(image.filled(np.nan)).sum() > 100


def test_points_and_nothing_else():
    ax = plotting.plot_model(cz.Model(np.zeros((40, 2))))
    assert np.nansum(ax.images[0].get_array().filled(np.nan)) == 40


def test_clamps_are_marked_and_no_names_written():
    ax = plotting.plot_model(cz.generators.cycle(40, rng=0), clamped=[7], names=True)
    assert [text.get_text() for text in ax.texts] == ["1"]
