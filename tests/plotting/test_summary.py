"""Pictures of marginals, and the summary of a model."""

import numpy as np
import pytest

from clampz import plotting

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible

model = pytest.fixture(scope="module")(lambda: drawn.MODEL)
estimates = pytest.fixture(scope="module")(drawn.estimates)
exact = pytest.fixture(scope="module")(drawn.exact)


def test_marginals_of_two_states_are_one_point_each(estimates, exact):
    points = plotting.plot_marginals(estimates["Bethe"], exact).lines[-1]
    np.testing.assert_array_equal(points.get_xdata(), np.array(exact.marginals)[:, 1])
    np.testing.assert_array_equal(points.get_ydata(), np.array(estimates["Bethe"].marginals)[:, 1])


def test_the_summary_is_legible(model, estimates, exact):
    assert_legible(plotting.plot_summary(model, exact, estimates))
