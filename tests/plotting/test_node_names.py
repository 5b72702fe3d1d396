"""Names: on the variables where they fit, beside them where not, and none on another."""

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting.style import shortened

pytest.importorskip("matplotlib")
from drawn import assert_legible


def ring(*names: str) -> cz.Model:
    n = len(names)
    return cz.Model.from_binary(np.zeros(n), np.ones(n), [(i, (i + 1) % n) for i in range(n)], names=names)


def test_short_names_are_on_the_variables():
    ax = plotting.plot_model(ring(*"abcdef"))
    middles = np.array([text.get_position() for text in ax.texts])
    np.testing.assert_array_equal(middles, ax.collections[-1].get_offsets())


@pytest.mark.parametrize("n", [3, 12, 30])
def test_long_names_are_beside_them_and_do_not_cover_each_other(n):
    ax = plotting.plot_model(ring(*(f"a_rather_long_name_{i}" for i in range(n))))
    assert_legible(ax.figure)
    middles = np.array([text.get_position() for text in ax.texts])
    circles = ax.collections[-1]
    away = np.hypot(*(middles - circles.get_offsets()).T)
    assert (away > circles.get_widths() / 2).all()
    assert len({text.get_text() for text in ax.texts}) == n  # ends tell them apart


def test_names_of_many_are_written_if_asked_for():
    drawn = plotting.plot_model(cz.generators.grid(10, 10, rng=0), names=True)
    assert [text.get_text() for text in drawn.texts] == [str(i) for i in range(100)]
    assert_legible(drawn.figure)


def test_white_on_what_is_dark():
    model = cz.Model.from_binary([-20.0, 20.0], [0.1], [(0, 1)], names=["a", "b"])
    ax = plotting.plot_model(model, marginals=cz.exact(model))
    assert [text.get_color() for text in ax.texts] == ["#1f2a37", "white"]


def test_shortened_keeps_both_ends():
    assert [shortened("abcdefgh", most) for most in (8, 7, 4)] == ["abcdefgh", "abc…fgh", "ab…h"]
