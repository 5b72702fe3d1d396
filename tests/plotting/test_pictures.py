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


@pytest.fixture(scope="module")
def clampings(model: cz.Model) -> list[cz.Clamped]:
    return [cz.clamp(model, method, k=3) for method in ("trw", "bethe", "mf")]


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
                texts += [
                    label
                    for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
                    if low <= place <= high
                ]
    return {
        f"{text.get_text()} ({number})": text.get_window_extent()
        for number, text in enumerate(texts)
        if text.get_text().strip()
    }


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
    assert {name: len(c.get_segments()) for name, c in drawn.items()} == {
        "unsigned": 0,
        "attractive": 2,
        "repulsive": 1,
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
    assert len(drawn["unsigned"].get_segments()) == 4


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


def test_higher_scores_are_darker_in_greyscale():
    grey = plotting._score_map()(np.linspace(0, 1, 33))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) < -0.01).all()


@pytest.mark.parametrize(
    "drawn",
    [cz.generators.erdos_renyi(81, 4, rng=0), cz.generators.cycle(5, labels=3, rng=0), cz.generators.lamp(rng=0)],
)
def test_scored_models_are_legible(drawn):
    assert_legible(plotting.plot_model(drawn, scores="maxW", clamped=[0]).figure)


def test_scores_and_clamps_that_do_not_fit_are_refused(model, exact):
    with pytest.raises(cz.OptionError, match="scores: expected 16 finite numbers"):
        plotting.plot_model(model, scores=np.zeros(3))
    with pytest.raises(cz.OptionError, match="scores: expected a number for each variable or the name of a selector"):
        plotting.plot_model(model, scores=["a"] * 16)
    with pytest.raises(cz.OptionError, match="unknown selector 'maxV'"):
        plotting.plot_model(model, scores="maxV")
    with pytest.raises(cz.OptionError, match="either marginals= or scores="):
        plotting.plot_model(model, scores="maxW", marginals=exact)
    with pytest.raises(cz.OptionError, match="expected a list of variables, found the string 'X1'"):
        plotting.plot_model(cz.generators.lamp(), clamped="X1")
    with pytest.raises(cz.EvidenceError, match="clamped twice"):
        plotting.plot_model(model, clamped=[1, 1])


@pytest.mark.parametrize("with_exact", [False, True])
@pytest.mark.parametrize("chosen", [[0], [1], [0, 1, 2]])
def test_plots_of_clamping_are_legible(chosen, with_exact, clampings, exact):
    results = [clampings[i] for i in chosen]
    ax = plotting.plot_clamped(results, exact if with_exact else None)
    assert_legible(ax.figure)
    texts = [t.get_text() for t in ax.texts]
    assert any(text.startswith("exact") for text in texts) == with_exact
    assert texts.count("variable, by maxW+TRE") == 1
    assert all(str(variable) in texts for variable in results[0].variables)
    drawn = {line.get_marker(): line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 4}
    for result, marker in zip(results, [{0: "v", 1: "o", 2: "^"}[i] for i in chosen], strict=True):
        np.testing.assert_array_equal(drawn[marker], [step.log_z for step in result.steps])


def test_clampings_that_chose_differently_have_a_row_each(exact):
    barbell = cz.generators.barbell()
    chosen = [
        cz.clamp(barbell, "trw", k=k, select=select)
        for k, select in [(3, "maxW"), (2, "frustCycles"), (3, "pseudo-greedy"), (2, "optimal"), (0, "maxW")]
    ]
    ax = plotting.plot_clamped(chosen, cz.exact(barbell))
    assert_legible(ax.figure)
    texts = [t.get_text() for t in ax.texts]
    assert {"TRW, maxW", "TRW, frustCycles", "TRW, optimal"} <= set(texts)
    assert "X6\nfrustCycles" in texts  # of pseudo-greedy, whose selectors differ
    styles = plotting._line_styles(plotting._labelled_clampings(chosen))
    assert len({(s["marker"], s["fillstyle"], str(s["linestyle"])) for s in styles.values()}) == len(chosen)


def test_long_names_of_clamped_variables_are_legible():
    named = cz.generators.from_graph(
        9, [(i, j) for i in range(9) for j in range(i)], names=[f"the_variable_number_{i}" for i in range(9)], rng=0
    )
    ax = cz.clamp(named, "mf", k=8).plot()
    assert_legible(ax.figure)
    assert ax.texts[-1].get_rotation() == 90
    assert ax.texts[-1].get_text().startswith("the_variable")


def test_a_clamping_draws_on_the_axes_it_is_given(clampings, exact):
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plotting.plot_model(clampings[0].model, left, clamped=clampings[0].variables, scores="maxW")
    assert clampings[0].plot(exact.log_z, right) is right
    assert_legible(figure)


@pytest.mark.parametrize("per_branch", [False, True])
def test_what_clamping_did_not_reach_is_drawn_too(per_branch, model, exact):
    result = cz.clamp(model, "trw", k=3, per_branch=per_branch, max_iter=1)
    ax = result.plot(exact=exact)
    assert_legible(ax.figure)
    assert "upper bound, hollow: not converged" in [t.get_text() for t in ax.texts]
    impossible = cz.Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): [[-np.inf, -np.inf], [-np.inf, -np.inf]]})
    assert_legible(cz.clamp(impossible, "mf", k=2).plot(exact=cz.exact(impossible)).figure)
    assert_legible(cz.clamp(impossible, "exact", k=0).plot(exact=3.0).figure)
    with pytest.raises(cz.OptionError, match="at least one result"):
        plotting.plot_clamped([])
