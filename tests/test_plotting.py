"""Pictures: every edge and value is there, and no text is clipped or in the way of another."""

import itertools
import sys

import numpy as np
import pytest

import clampz as cz
from clampz import plotting

pytest.importorskip("matplotlib")
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox


@pytest.fixture(scope="module")
def model() -> cz.Model:
    return cz.generators.grid(4, 4, toroidal=False, rng=1)


@pytest.fixture(scope="module")
def estimates(model: cz.Model) -> dict[str, cz.Estimate]:
    return {"mean field": cz.mean_field(model), "Bethe": cz.bethe(model), "TRW": cz.trw(model)}


@pytest.fixture(scope="module")
def exact(model: cz.Model) -> cz.Estimate:
    return cz.exact(model)


def shown_texts(figure: Figure) -> dict[str, Bbox]:
    """Every text that is drawn, with its box in pixels; labels of ticks beyond the limits are not."""
    figure.draw_without_rendering()
    texts = list(figure.texts) + [text for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        texts += ax.texts
        if ax.axison:
            texts += [ax.title, ax.xaxis.label, ax.yaxis.label]
            for axis in (ax.xaxis, ax.yaxis):
                low, high = sorted(axis.get_view_interval())
                texts += [label for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True) if low <= place <= high]
    return {f"{text.get_text()} ({number})": text.get_window_extent() for number, text in enumerate(texts) if text.get_text().strip()}


def assert_legible(figure: Figure) -> None:
    texts = shown_texts(figure)
    assert texts
    for name, box in texts.items():
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, f"{name} is clipped"
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, f"{name} is clipped"
    for (a, box), (b, other) in itertools.combinations(texts.items(), 2):
        assert not box.padded(-0.5).overlaps(other.padded(-0.5)), f"{a} and {b} overlap"


def lines(ax) -> dict[str, LineCollection]:
    drawn = [c for c in ax.collections if isinstance(c, LineCollection)]
    return dict(zip(("unsigned", "attractive", "repulsive"), drawn, strict=True))


def test_attractive_is_solid_and_repulsive_dashed():
    model = cz.Model.from_binary(np.zeros(3), [1.0, -2.0, 4.0], [(0, 1), (1, 2), (0, 2)])
    drawn = lines(plotting.plot_model(model))
    assert {name: len(c.get_segments()) for name, c in drawn.items()} == {"unsigned": 0, "attractive": 2, "repulsive": 1}
    assert drawn["attractive"].get_linestyle()[0][1] is None
    assert drawn["repulsive"].get_linestyle()[0][1] is not None
    # edges are (0, 1), (0, 2), (1, 2): the wider the stronger
    assert drawn["attractive"].get_linewidth()[0] < drawn["repulsive"].get_linewidth()[0] < drawn["attractive"].get_linewidth()[1]


def test_edges_around_a_torus_are_two_stubs():
    torus = cz.generators.grid(3, 4, rng=0)
    drawn = lines(plotting.plot_model(torus))
    segments = [s for c in drawn.values() for s in c.get_segments()]
    assert len(segments) == torus.num_edges + 3 + 4
    assert max(np.hypot(*(end - begin)) for begin, end in segments) <= 1.0


def test_more_labels_have_no_sign():
    drawn = lines(plotting.plot_model(cz.generators.cycle(4, labels=3, rng=0)))
    assert len(drawn["unsigned"].get_segments()) == 4


def test_variables_are_shaded_by_their_marginal(model, exact):
    (circles,) = (c for c in plotting.plot_model(model, marginals=exact).collections if isinstance(c, EllipseCollection))
    np.testing.assert_array_equal(circles.get_array(), np.array(exact.marginals)[:, 1])


def test_names_are_written_where_they_are_few():
    assert [t.get_text() for t in plotting.plot_model(cz.generators.lamp(rng=0)).texts] == [f"X{i}" for i in range(1, 11)]
    assert not plotting.plot_model(cz.generators.lamp(rng=0), names=False).texts
    assert [t.get_text() for t in plotting.plot_model(cz.generators.cycle(3, rng=0), names=True).texts] == ["0", "1", "2"]


@pytest.mark.parametrize("small", [cz.Model([]), cz.Model([[0.0, 1.0]]), cz.Model(np.zeros((3, 2)))])
def test_models_without_edges_can_be_drawn(small):
    plotting.plot_model(small).figure.draw_without_rendering()


def test_positions_can_be_given(model):
    positions = np.array([[100.0 + 3 * i, 100.0 + i % 4] for i in range(16)])
    ax = plotting.plot_model(model, positions=positions)
    assert ax.get_xlim()[0] > 90
    assert ax.get_ylim()[0] > 90
    np.testing.assert_array_equal(ax.collections[-1].get_offsets(), positions)


def test_what_is_infinite_is_written_not_drawn():
    impossible = cz.Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): [[-np.inf, -np.inf], [-np.inf, -np.inf]]})
    exact = cz.exact(impossible)
    ax = plotting.plot_bracket([exact, cz.mean_field(impossible)], exact)
    assert_legible(ax.figure)
    assert [t.get_text() for t in ax.texts].count("-inf") == 2


def test_what_does_not_fit_the_model_is_refused(model, exact):
    with pytest.raises(cz.OptionError, match=r"positions: expected shape \(16, 2\)"):
        plotting.plot_model(model, positions=np.zeros((3, 2)))
    with pytest.raises(cz.OptionError, match="marginals: expected an estimate of this model of 3 variables"):
        plotting.plot_model(cz.generators.cycle(3, rng=0), marginals=exact)


@pytest.mark.parametrize("with_exact", [False, True])
@pytest.mark.parametrize("chosen", [("mean field", "Bethe", "TRW"), ("mean field",), ("TRW", "mean field"), ("Bethe",)])
def test_brackets_are_legible(chosen, with_exact, estimates, exact):
    ax = plotting.plot_bracket({name: estimates[name] for name in chosen}, exact if with_exact else None)
    assert_legible(ax.figure)
    texts = [t.get_text() for t in ax.texts]
    assert ("proven" in texts) == ({"mean field", "TRW"} <= set(chosen))
    assert any(text.startswith("exact") for text in texts) == with_exact


def test_brackets_of_close_values_show_more_digits():
    tree = cz.Model.from_binary(np.ones(3), [1.0, 2.0], [(0, 1), (1, 2)])
    exact = cz.exact(tree)
    ax = plotting.plot_bracket([exact, cz.bethe(tree), cz.trw(tree)], exact.log_z - 0.001)
    assert any(f"{exact.log_z:.5f}" in text.get_text() for text in ax.texts)
    assert_legible(ax.figure)
    assert_legible(plotting.plot_bracket([exact, cz.bethe(tree)], exact).figure)


def test_estimates_without_labels_go_by_their_method(estimates):
    assert list(plotting._labelled([*estimates.values(), estimates["TRW"]])) == ["mean field", "Bethe", "TRW", "TRW #2"]


def test_bounds_are_rounded_outward():
    assert plotting.round_outward(-1.239, "lower", 2) == "-1.24"
    assert plotting.round_outward(-1.239, "upper", 2) == "-1.23"
    assert plotting.round_outward(-np.inf, "lower", 2) == "-inf"
    assert plotting.round_outward(2.5, "exact", 1) == "2.5"


def test_marginals_of_two_states_are_one_point_each(estimates, exact):
    points = plotting.plot_marginals(estimates["Bethe"], exact).lines[-1]
    np.testing.assert_array_equal(points.get_xdata(), np.array(exact.marginals)[:, 1])
    np.testing.assert_array_equal(points.get_ydata(), np.array(estimates["Bethe"].marginals)[:, 1])


def test_the_summary_is_legible(model, estimates, exact):
    assert_legible(plotting.plot_summary(model, exact, estimates))


def test_pyplot_is_left_alone(model, estimates, exact):
    plotting.plot_summary(model, exact, estimates)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
