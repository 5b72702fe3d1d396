"""Pictures of sweeps: the bracket over beta, the heat capacity under it, and every text legible."""

from dataclasses import replace

import numpy as np
import pytest

import clampz as cz
from clampz import plotting

pytest.importorskip("matplotlib")
from drawn import assert_legible


@pytest.fixture(scope="module")
def found() -> cz.results.Sweep:
    return cz.sweep(cz.generators.grid(3, 3, rng=0), [1.0, 0.0, 0.5])


def test_the_bracket_and_the_heat_capacity_are_there_in_order_of_beta(found):
    above = found.plot()
    assert_legible(above.figure)
    below = above.figure.axes[1]
    upper, lower, log_z = (line.get_ydata() for line in above.lines)
    order = [1, 2, 0]
    assert list(upper) == (found.upper[order] / 9).tolist()
    assert list(lower) == (found.lower[order] / 9).tolist()
    assert list(log_z) == (found.log_z[order] / 9).tolist()
    assert list(below.lines[0].get_ydata()) == (found.heat_capacity[order] / 9).tolist()
    assert above.get_title(loc="left") == "9 variables, by exact"


def test_what_is_not_known_is_not_drawn(found):
    none = np.full(3, np.nan)
    bare = replace(found, lower=np.full(3, -np.inf), heat_capacity=none, by=("trw", "trw", ""))
    above = plotting.plot_sweep(bare)
    assert_legible(above.figure)
    below = above.figure.axes[1]
    assert np.isnan(above.lines[1].get_ydata()).all()
    assert [text.get_text() for text in below.texts] == ["not known"]
    assert "by trw, no time" in above.get_title(loc="left")


def test_on_axes_of_the_caller_log_z_alone(found):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plotting.plot_sweep(found, ax) is ax
    assert ax.figure.axes == [ax]
    assert ax.get_xlabel() == "inverse temperature beta"
