"""Pictures of brackets that close: both bounds over time, and every text legible."""

import math
from dataclasses import replace

import pytest

import clampz as cz
from clampz import plotting

pytest.importorskip("matplotlib")
from drawn import assert_legible


@pytest.fixture(scope="module")
def bracket() -> cz.Bracket:
    return cz.bound(cz.generators.complete(8, weights=(-8, 8), rng=0), exact=False, leaves=6, gap=1e-9)


def test_both_bounds_and_the_estimate_are_there(bracket):
    ax = bracket.plot()
    assert_legible(ax.figure)
    assert [text.get_text().split()[0] for text in ax.texts] == ["upper", "estimate", "lower"]
    upper, lower, estimate = (line.get_ydata() for line in ax.lines)
    finite = [point for point in bracket.trace if math.isfinite(point.upper - point.lower)]
    assert list(upper) == [*(point.upper for point in finite), bracket.upper]
    assert list(lower) == [*(point.lower for point in finite), bracket.lower]
    assert list(estimate) == [bracket.estimate]


def test_without_an_estimate_only_the_bounds_are_drawn(bracket):
    ax = replace(bracket, estimate=None, why_no_estimate="There was no time for Bethe.").plot()
    assert_legible(ax.figure)
    assert [text.get_text().split()[0] for text in ax.texts] == ["upper", "lower"]
    assert len(ax.lines) == 2


def test_a_bracket_without_a_finite_point_says_so(bracket):
    ax = plotting.plot_closing(replace(bracket, trace=()))
    assert [text.get_text() for text in ax.texts] == ["no finite bracket yet"]


def test_less_than_a_decade_has_ticks(bracket):
    first = bracket.trace[-1]._replace(seconds=0.5)
    ax = plotting.plot_closing(replace(bracket, trace=(first,), seconds=0.9))
    assert len(ax.get_xticks()) == 3
