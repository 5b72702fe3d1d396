"""Pictures of the best configuration: its states on the graph where nothing is better, else how the ends closed."""

import math
from dataclasses import replace

import numpy as np
import pytest

import clampz as cz
from clampz.map_inference.results import ModeTrace

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible, shown_texts


def test_what_is_optimal_is_drawn_by_its_states():
    found = cz.mode(drawn.MODEL)
    ax = found.plot()
    assert_legible(ax.figure)
    assert found.states is not None
    circles = next(each for each in ax.collections if each.get_array() is not None)
    assert circles.get_array().tolist() == found.states.tolist()
    title = " ".join(ax.figure.get_suptitle().split())
    assert title.startswith(f"largest score {found.score:.6f}, proven after") and "16 variables" in title


def test_on_axes_that_are_given_the_title_is_theirs():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert cz.mode(drawn.MODEL).plot(ax) is ax
    assert ax.get_title(loc="left").startswith("largest score") and not ax.figure.get_suptitle()


@pytest.fixture
def bracketed() -> cz.results.Mode:
    """As a run leaves it that time has ended."""
    found = cz.mode(drawn.MODEL)
    ends = ((0.1, -math.inf, 60.0), (0.4, 20.0, 60.0), (1.5, 20.0, 31.5), (2.0, 24.0, 30.25))
    trace = tuple(ModeTrace(*end) for end in ends)
    best = (found.best[0]._replace(score=24.0),)
    return replace(found, best=best, upper=30.25, is_optimal=False, trace=trace, stopped_by="time", seconds=2.1)


def test_what_is_not_proven_is_drawn_over_time(bracketed):
    ax = bracketed.plot()
    assert_legible(ax.figure)
    texts = " ".join(shown_texts(ax.figure))
    for said in ("nothing exceeds\n30.25", "best found\n24.00", "certified bracket, gap 6.25 nats after 2.1 s"):
        assert said in texts
    assert "certified: largest score is in here" in texts and ax.get_ylabel() == "largest score"
    upper, lower = (line.get_ydata() for line in ax.lines)
    assert list(upper) == [60.0, 60.0, 31.5, 30.25, 30.25]
    np.testing.assert_array_equal(lower, [math.nan, 20.0, 20.0, 24.0, 24.0])


def test_where_nothing_is_known_that_is_said(bracketed):
    nothing = replace(bracketed, best=(), upper=math.inf, trace=(ModeTrace(0.0, -math.inf, math.inf),))
    assert [text.get_text() for text in nothing.plot().texts] == ["nothing found, no finite bound", "after 2.1 s"]
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    none = cz.mode(cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ}))
    assert [text.get_text() for text in none.plot().texts] == ["Z = 0", "no configuration is possible"]
    moments = (ModeTrace(0.1, -math.inf, 0.0), ModeTrace(0.2, -math.inf, -math.inf))  # a bound fell until none was left
    assert replace(none, trace=moments).plot().texts[0].get_text() == "Z = 0"
