"""Pictures of models: every edge, shade and clamp is there, and every text legible."""

import sys

import numpy as np
import pytest

import clampz as cz
from clampz import plotting

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible, lines
from matplotlib.collections import EllipseCollection

model = pytest.fixture(scope="module")(lambda: drawn.MODEL)
exact = pytest.fixture(scope="module")(drawn.exact)


def test_attractive_is_solid_and_repulsive_dashed():
    model = cz.Model.from_binary(np.zeros(3), [1.0, -2.0, 4.0], [(0, 1), (1, 2), (0, 2)])
    drawn = lines(plotting.plot_model(model))
    assert {name: len(c.get_segments()) for name, c in drawn.items()} == {
        "edge": 0,
        "attractive": 2,
        "repulsive": 1,
        "rules states out": 0,
    }
    assert drawn["attractive"].get_linestyle()[0][1] is None
    assert drawn["repulsive"].get_linestyle()[0][1] is not None
    # edges are (0, 1), (0, 2), (1, 2): the wider the stronger
    assert (
        drawn["attractive"].get_linewidth()[0]
        < drawn["repulsive"].get_linewidth()[0]
        < drawn["attractive"].get_linewidth()[1]
    )


def test_edges_around_a_torus_are_two_stubs():
    torus = cz.generators.grid(3, 4, rng=0)
    drawn = lines(plotting.plot_model(torus))
    segments = [s for c in drawn.values() for s in c.get_segments()]
    assert len(segments) == torus.num_edges + 3 + 4
    assert max(np.hypot(*(end - begin)) for begin, end in segments) <= 1.0


def test_more_labels_have_no_sign():
    drawn = lines(plotting.plot_model(cz.generators.cycle(4, labels=3, rng=0)))
    assert len(drawn["edge"].get_segments()) == 4


def test_variables_are_shaded_by_their_marginal(model, exact):
    (circles,) = (
        c for c in plotting.plot_model(model, marginals=exact).collections if isinstance(c, EllipseCollection)
    )
    np.testing.assert_array_equal(circles.get_array(), np.array(exact.marginals)[:, 1])


def test_names_are_written_where_they_are_few():
    assert [t.get_text() for t in plotting.plot_model(cz.generators.lamp(rng=0)).texts] == [
        f"X{i}" for i in range(1, 11)
    ]
    assert not plotting.plot_model(cz.generators.lamp(rng=0), names=False).texts
    assert not plotting.plot_model(cz.generators.grid(7, 7, rng=0)).texts
    assert [t.get_text() for t in plotting.plot_model(cz.generators.cycle(3, rng=0), names=True).texts] == [
        "0",
        "1",
        "2",
    ]


@pytest.mark.parametrize("small", [cz.Model([]), cz.Model([[0.0, 1.0]]), cz.Model(np.zeros((3, 2)))])
def test_models_without_edges_can_be_drawn(small):
    plotting.plot_model(small).figure.draw_without_rendering()


def test_positions_can_be_given(model):
    positions = np.array([[100.0 + 3 * i, 100.0 + i % 4] for i in range(16)])
    ax = plotting.plot_model(model, positions=positions)
    assert ax.get_xlim()[0] > 90
    assert ax.get_ylim()[0] > 90
    np.testing.assert_array_equal(ax.collections[-1].get_offsets(), positions)


def legend_of(ax) -> list[str]:
    return [text.get_text() for legend in ax.figure.legends for text in legend.get_texts()]


def test_the_picture_says_what_it_shows(model, exact):
    ax = plotting.plot_model(model, marginals=exact, clamped=[0])
    assert_legible(ax.figure)
    assert ax.figure.get_suptitle() == "16 variables of 2 states, 24 edges, mixed"
    assert legend_of(ax) == [
        "attractive",
        "repulsive",
        "wider: stronger",
        "pale: outside the core",
        "clamped, in this order",
    ]
    assert [bar.get_xlabel() for bar in ax.figure.axes] == ["", "P(x = 1)"]


def test_axes_of_the_caller_are_explained_where_asked_for(model, exact):
    from matplotlib.figure import Figure

    plain, explained = Figure(figsize=(9, 4), layout="constrained").subplots(1, 2)
    assert plotting.plot_model(model, plain, marginals=exact) is plain
    assert plain.get_legend() is None
    assert plain.get_title(loc="left") == ""
    plotting.plot_model(model, explained, marginals=exact, legend=True)
    assert explained.get_title(loc="left") == model.size_in_words
    assert explained.get_legend() is not None
    assert len(plain.figure.axes) == 3


def test_solutions_and_clampings_have_marginals_too(model):
    for found in (cz.solve(model), cz.clamp(model, "bethe", k=1)):
        ax = plotting.plot_model(model, marginals=found)
        (circles,) = (c for c in ax.collections if isinstance(c, EllipseCollection))
        np.testing.assert_array_equal(circles.get_array(), np.array(found.marginals)[:, 1])


def test_edges_with_hard_zeros_are_told_from_others():
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    some = cz.Model(np.zeros((3, 3)), {(0, 1): differ, (1, 2): np.eye(3)})
    ax = plotting.plot_model(some)
    assert {name: len(c.get_segments()) for name, c in lines(ax).items() if len(c.get_segments())} == {
        "edge": 1,
        "rules states out": 1,
    }
    assert all(np.isfinite(c.get_linewidth()).all() for c in lines(ax).values())
    assert_legible(ax.figure)


def test_of_too_many_edges_the_strongest_are_drawn():
    dense = cz.generators.complete(60, rng=0)
    ax = plotting.plot_model(dense)
    assert sum(len(c.get_segments()) for c in lines(ax).values()) == 800
    assert "the 800 strongest of 1,770 edges" in legend_of(ax)
    widths = np.concatenate([c.get_linewidth() for c in lines(ax).values() if len(c.get_segments())])
    drawn = np.interp(np.sort(dense.strength)[-800:], [0, dense.strength.max()], (0.5, 3.4))
    np.testing.assert_allclose(np.sort(widths) / widths.max(), drawn / drawn.max())


def test_nothing_is_drawn_where_there_is_nothing():
    ax = plotting.plot_model(cz.Model([]))
    assert ax.figure.get_suptitle() == "0 variables of 0 states, 0 edges"


def test_what_does_not_fit_the_model_is_refused(model, exact):
    with pytest.raises(cz.errors.OptionError, match=r"positions: expected shape \(16, 2\)"):
        plotting.plot_model(model, positions=np.zeros((3, 2)))
    with pytest.raises(cz.errors.OptionError, match="marginals: expected an estimate of this model of 3 variables"):
        plotting.plot_model(cz.generators.cycle(3, rng=0), marginals=exact)


def test_clamped_variables_are_framed_and_numbered():
    ax = plotting.plot_model(cz.generators.barbell(), clamped=["X6", 0])
    assert_legible(ax.figure)
    (circles,) = (c for c in ax.collections if isinstance(c, EllipseCollection))
    np.testing.assert_allclose([p.get_center() for p in ax.patches], circles.get_offsets()[[5, 0]])
    assert [t.get_text() for t in ax.texts][-2:] == ["1", "2"]


def opacities(ax) -> dict[str, list[float]]:
    return {name: c.get_colors()[:, 3].tolist() for name, c in lines(ax).items()}


def test_what_is_outside_the_core_is_faded():
    lamp = cz.generators.lamp(weights=1.0)
    faded = plotting.FADED
    assert opacities(plotting.plot_model(lamp))["attractive"] == [1.0] * 6 + [faded] * 6
    assert opacities(plotting.plot_model(lamp, core=False))["attractive"] == [1.0] * 12
    # of X1 to X4 a clamp of X1 leaves a triangle, a second one nothing
    assert opacities(plotting.plot_model(lamp, clamped=["X1"]))["attractive"] == [faded] * 3 + [1.0] * 3 + [faded] * 6
    assert opacities(plotting.plot_model(lamp, clamped=["X1", "X2"]))["attractive"] == [faded] * 12
    tree = cz.Model.from_binary(np.zeros(3), [1.0, 1.0], [(0, 1), (1, 2)])
    assert opacities(plotting.plot_model(tree))["attractive"] == [1.0, 1.0]


@pytest.mark.parametrize("scores", ["maxW", "maxW+TRE", np.linspace(-1, 1, 16), np.zeros(16)])
def test_variables_are_shaded_by_their_score(scores, model):
    ax = plotting.plot_model(model, scores=scores, clamped=[5, 0, 15])
    assert_legible(ax.figure)
    (circles,) = (c for c in ax.collections if isinstance(c, EllipseCollection))
    assert circles.get_array().max() <= circles.get_clim()[1]
    if isinstance(scores, str):
        assert circles.get_array()[5] == 0 < circles.get_array().max()
        assert scores in [bar.get_xlabel() for bar in ax.figure.axes]


@pytest.mark.parametrize(
    "drawn",
    [cz.generators.erdos_renyi(81, 4, rng=0), cz.generators.cycle(5, labels=3, rng=0), cz.generators.lamp(rng=0)],
)
def test_scored_models_are_legible(drawn):
    assert_legible(plotting.plot_model(drawn, scores="maxW", clamped=[0]).figure)


def test_scores_and_clamps_that_do_not_fit_are_refused(model, exact):
    with pytest.raises(cz.errors.OptionError, match="scores: expected 16 finite numbers"):
        plotting.plot_model(model, scores=np.zeros(3))
    with pytest.raises(
        cz.errors.OptionError, match="scores: expected a number for each variable or the name of a selector"
    ):
        plotting.plot_model(model, scores=["a"] * 16)
    with pytest.raises(cz.errors.OptionError, match="unknown selector 'maxV'"):
        plotting.plot_model(model, scores="maxV")
    with pytest.raises(cz.errors.OptionError, match="one of marginals=, scores= and configuration="):
        plotting.plot_model(model, scores="maxW", marginals=exact)
    with pytest.raises(cz.errors.OptionError, match="expected a list of variables, found the string 'X1'"):
        plotting.plot_model(cz.generators.lamp(), clamped="X1")
    with pytest.raises(cz.errors.EvidenceError, match="clamped twice"):
        plotting.plot_model(model, clamped=[1, 1])


def test_without_matplotlib_it_says_what_to_install(model, exact, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for shaded in ({}, {"marginals": exact}, {"scores": "maxW"}, {"configuration": [0] * 16}):
        with pytest.raises(cz.errors.MissingLibraryError, match="matplotlib is not installed: pip install matplotlib"):
            plotting.plot_model(model, **shaded)


def test_models_with_larger_factors_can_be_drawn():
    """Their factors tie variables that have no edge to draw."""
    table = np.random.default_rng(0).normal(size=(2, 2, 2))
    triangle = [(pair, table[0]) for pair in ((1, 2), (2, 3), (1, 3))]
    model = cz.Model.from_factors([2] * 7, [((0, 1, 3), table), ((0, 4, 5), table), *triangle, ((5, 6), table[1])])
    assert model.num_edges < len(model.couplings[0])
    ax = plotting.plot_model(model, names=True)
    assert_legible(ax.figure)
    assert opacities(ax)["edge"] == [1.0, 1.0, 1.0, plotting.FADED]
    (squares,) = (c for c in ax.collections if c.get_label() == "factor")
    assert len(squares.get_paths()) == 2
    assert len(lines(ax)["of factors"].get_segments()) == 6
    assert "factor of three or more" in legend_of(ax)
