"""Shades: what they mean, also in greyscale."""

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting.colors import ColorScale, score_map, shade_map

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("colours", [score_map, shade_map])
def test_higher_is_darker_in_greyscale(colours):
    grey = colours()(np.linspace(0, 1, 33))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) < -0.01).all()


def test_a_state_is_called_as_all_variables_call_it():
    tables = {(0, 1): np.eye(2)}
    spins = cz.Model(np.zeros((2, 2)), tables, state_names=[["down", "up"]] * 2)
    other = cz.Model(np.zeros((2, 2)), tables, state_names=[["down", "up"], ["no", "yes"]])
    labels = [ColorScale.of(model, cz.exact(model), 1, None, None, []).label for model in (spins, other)]
    assert labels == ["P(x = up)", "P(x = 1)"]


def test_states_have_as_many_shades_as_there_are():
    tables = {(0, 1): np.zeros((3, 2))}
    model = cz.Model([[0.0] * 3, [0.0] * 2], tables, names="ab", state_names=[["red", "green", "blue"], ["no", "yes"]])
    ax = plotting.plot_model(model, configuration={"a": "blue", "b": "yes"})
    circles = next(each for each in ax.collections if each.get_array() is not None)
    assert circles.get_array().tolist() == [2.0, 1.0] and circles.get_cmap().N == 3
    bar = ax.figure.axes[-1]
    assert bar.get_xlabel() == "state (0 red, 1 green, 2 blue)"
    assert [tick for tick in bar.get_xticks() if 0 <= tick <= 2] == [0.0, 1.0, 2.0]
    with pytest.raises(cz.errors.EvidenceError, match="configuration: expected a state for each of 2 variables"):
        plotting.plot_model(model, configuration=[0])


def test_what_is_not_known_has_a_shade_of_its_own():
    model = cz.Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])
    unknown = cz.exact(model, marginals=False)
    ax = plotting.plot_model(model, marginals=unknown)
    ax.figure.draw_without_rendering()
    assert np.ma.getmaskarray(ax.collections[-1].get_array()).all()
    assert ax.collections[-1].get_facecolor()[0].tolist() == list(shade_map().get_bad())
