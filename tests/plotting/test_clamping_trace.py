"""Pictures of clampings: a line for each, the variables under it, and every text legible."""

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting.clamping_trace import _labelled_clampings, _line_styles

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible
from matplotlib.figure import Figure

model = pytest.fixture(scope="module")(lambda: drawn.MODEL)
clampings = pytest.fixture(scope="module")(drawn.clampings)
exact = pytest.fixture(scope="module")(drawn.exact)


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
    styles = _line_styles(_labelled_clampings(chosen))
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


def test_axes_that_make_room_for_labels_leave_these_legible():
    model = cz.generators.grid(4, 4, weights=(-6, 6), rng=0)
    lower = cz.clamp(model, "mf", k=5, select="pseudo-greedy")
    assert len({step.selector for step in lower.steps[1:]}) > 1  # so each is named under its step
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    cz.plot_clamped({"TRW": cz.clamp(model, "trw", k=5), "mean field": lower}, cz.exact(model), ax=figure.subplots())
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
    with pytest.raises(cz.errors.OptionError, match="at least one result"):
        plotting.plot_clamped([])
