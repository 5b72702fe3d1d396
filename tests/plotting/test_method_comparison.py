"""Pictures of what methods say of log Z: every value is there, and every text legible."""

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting.method_comparison import labelled

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible

estimates = pytest.fixture(scope="module")(drawn.estimates)
exact = pytest.fixture(scope="module")(drawn.exact)


def test_what_is_infinite_is_written_not_drawn():
    impossible = cz.Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): [[-np.inf, -np.inf], [-np.inf, -np.inf]]})
    exact = cz.exact(impossible)
    ax = plotting.plot_estimates([exact, cz.mean_field(impossible)], exact)
    assert_legible(ax.figure)
    assert [t.get_text() for t in ax.texts].count("-inf") == 2


@pytest.mark.parametrize("with_exact", [False, True])
@pytest.mark.parametrize("chosen", [("mean field", "Bethe", "TRW"), ("mean field",), ("TRW", "mean field"), ("Bethe",)])
def test_brackets_are_legible(chosen, with_exact, estimates, exact):
    ax = plotting.plot_estimates({name: estimates[name] for name in chosen}, exact if with_exact else None)
    assert_legible(ax.figure)
    texts = [t.get_text() for t in ax.texts]
    assert ("proven" in texts) == ({"mean field", "TRW"} <= set(chosen))
    assert any(text.startswith("exact") for text in texts) == with_exact


def test_brackets_of_close_values_show_more_digits():
    tree = cz.Model.from_binary(np.ones(3), [1.0, 2.0], [(0, 1), (1, 2)])
    exact = cz.exact(tree)
    ax = plotting.plot_estimates([exact, cz.bethe(tree), cz.trw(tree)], exact.log_z - 0.001)
    assert any(f"{exact.log_z:.5f}" in text.get_text() for text in ax.texts)
    assert_legible(ax.figure)
    assert_legible(plotting.plot_estimates([exact, cz.bethe(tree)], exact).figure)


def test_estimates_without_labels_go_by_their_method(estimates):
    assert list(labelled([*estimates.values(), estimates["TRW"]])) == ["mean field", "Bethe", "TRW", "TRW #2"]
