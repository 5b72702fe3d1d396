"""The result: a bracket and its picture."""

import math
from dataclasses import replace

import pytest

import clampz as cz
from clampz.bounding.bracket import gain_rows
from clampz.portfolio.problem import End, Gain, Gains


def test_the_picture():
    bracket = cz.bound(cz.generators.complete(20, weights=(-8, 8), rng=0), exact=False, leaves=2, max_table=16, time=20)
    assert bracket.gap > 0.1
    ax = bracket.plot()
    texts = [text.get_text() for text in ax.texts]
    assert (
        any(t.startswith("upper") for t in texts)
        and any(t.startswith("lower") for t in texts)
        and "seconds" in [each.get_xlabel() for each in ax.figure.axes]
    )


# -- who closed the gap ------------------------------------------------------------------------------------------------

WIDE = cz.generators.complete(12, weights=(-8, 8), rng=0)


def moves(*found: tuple[str, End, float, float]) -> Gains:
    return Gains(Gain(float(k), *move) for k, move in enumerate(found))


def test_first_ends_count_for_no_nats_and_are_listed():
    gains = moves(
        ("trivial bounds", "lower", -math.inf, 1.0),
        ("trivial bounds", "upper", math.inf, 9.0),
        ("TRW", "upper", 9.0, 5.5),
        ("TRW", "upper", 5.5, 5.0),
        ("counting", "upper", 5.0, -math.inf),
    )
    assert gains.by_strategy() == {
        "trivial bounds": {"lower": 0.0, "upper": 0.0},
        "TRW": {"lower": 0.0, "upper": 4.0},
        "counting": {"lower": 0.0, "upper": 0.0},
    }
    assert [gain.nats for gain in gains[::2]] == [math.inf, 3.5, math.inf]
    assert (gains.holder("lower"), gains.holder("upper"), Gains().holder("upper")) == (
        "trivial bounds",
        "counting",
        None,
    )
    assert gain_rows(gains) == [
        ("trivial bounds", "first", "first"),
        ("TRW", "", "4"),
        ("counting", "", "first"),
    ]


def test_gains_add_up_to_the_way_that_the_bracket_closed():
    bracket = cz.bound(WIDE, exact=False, leaves=10, max_table=16)
    for end, sign in (("lower", 1.0), ("upper", -1.0)):
        own = [gain for gain in bracket.gains if gain.end == end]
        assert all(sign * gain.after > sign * gain.before for gain in own)
        assert own[-1].after == getattr(bracket, end)
        nats = sum(each[end] for each in bracket.gains.by_strategy().values())
        assert nats == pytest.approx(sign * (own[-1].after - own[0].after))
    frame = bracket.gains.to_frame()
    assert list(frame.columns) == ["seconds", "strategy", "end", "before", "after"]
    assert len(frame) == len(bracket.gains) and set(frame["strategy"]) == set(bracket.gains.by_strategy())


def test_the_repr_says_who_proved_the_ends():
    found = cz.bound(WIDE, exact=False, leaves=10, max_table=16)
    gains = moves(("TRW", "upper", 9.0, 5.0), ("mean field", "lower", 0.0, 1.0))
    one = replace(found, gains=gains)
    assert "; upper by TRW, lower by mean field; " in repr(one) and one.proven_by == "upper by TRW, lower by mean field"
    assert replace(found, gains=Gains(gains[:1])).proven_by == "upper by TRW"
    assert "; both ends by exact sum; " in repr(cz.bound(cz.generators.grid(4, 4, rng=0)))
    assert " by " not in repr(replace(found, gains=Gains())).replace("stopped by", "")


def test_an_end_that_rounding_took_back_is_no_gain():
    """Presolve begins a tree whose ends are wider by what it may be off by."""
    bracket = cz.bound(cz.generators.grid(7, 7, weights=(-6, 6), rng=0))
    assert all((gain.after > gain.before) == (gain.end == "lower") for gain in bracket.gains)
