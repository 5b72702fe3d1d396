"""Pictures of brackets that close: both bounds over time, or the value; and every text legible."""

import math
from dataclasses import replace

import numpy as np
import pytest

import clampz as cz
from clampz import plotting
from clampz.bounding.bracket import Point
from clampz.plotting.bracket_trace import BracketTrace, movers_at
from clampz.plotting.style import COLOURS, MARKERS
from clampz.portfolio.problem import Gain, Gains

pytest.importorskip("matplotlib")
from drawn import assert_legible, shown_texts


@pytest.fixture(scope="module")
def bracket() -> cz.results.Bracket:
    found = cz.bound(cz.generators.cycle(3, rng=0))
    return over(found, (0.1, 3.0, 60.0), (0.4, 7.5, 30.0), (1.0, 7.5, 9.0), (2.0, 8.0, 8.5), estimate_by="Bethe")


def over(bracket: cz.results.Bracket, *points: tuple[float, float, float], **changes) -> cz.results.Bracket:
    """The same with another course: (seconds, lower, upper) each."""
    seconds, lower, upper = points[-1]
    trace = tuple(Point(*point, 1) for point in points)
    estimate = lower + (upper - lower) / 3 if math.isfinite(lower) else None
    known = {"lower": lower, "upper": upper, "estimate": estimate, "seconds": seconds}
    found = replace(bracket, trace=trace, gains=Gains(), **known)
    return replace(found, **changes)


def words(ax) -> str:
    return " ".join(text.get_text() for text in ax.texts if text.get_text())


def test_both_bounds_and_the_estimate_are_there(bracket):
    ax = bracket.plot()
    assert_legible(ax.figure)
    assert sorted(word for word in words(ax).split() if word in ("estimate", "lower", "upper")) == [
        "estimate",
        "lower",
        "upper",
    ]
    assert "(Bethe, not proven)" in words(ax)
    upper, lower, estimate = (line.get_ydata() for line in ax.lines)
    finite = [point for point in bracket.trace if math.isfinite(point.upper - point.lower)]
    assert list(upper) == [*(point.upper for point in finite), bracket.upper]
    assert list(lower) == [*(point.lower for point in finite), bracket.lower]
    assert list(estimate) == [bracket.estimate]
    (gaps,) = (line.get_ydata() for line in ax.figure.axes[1].lines)
    assert list(gaps) == [*(point.upper - point.lower for point in finite), bracket.gap]


def test_an_interval_is_said_to_be_statistical(bracket):
    found = replace(bracket, standard_error=0.012, estimate_by="sampling")
    ax = found.plot()
    assert_legible(ax.figure)
    assert "(statistical)" in words(ax)
    assert "95% interval (statistical)" in [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ((bar,),) = (c.get_segments() for c in ax.collections if c.get_label() == "95% interval (statistical)")
    assert bar[:, 1].tolist() == list(found.interval())


@pytest.mark.parametrize("seconds", [0.0004, 0.16, 70.0])
def test_what_was_solved_at_once_is_a_number_and_said_to_be_exact(bracket, seconds):
    ax = over(bracket, (seconds, 110.35573612345, 110.35573612346)).plot()
    assert_legible(ax.figure)
    assert not ax.axison
    value, what = (text.get_text() for text in ax.texts)
    assert value == "log Z = 110.355736123"
    assert what.startswith("exact, but for rounding, after ")


def test_what_closed_after_a_while_is_exact_in_the_end(bracket):
    ax = over(bracket, (0.1, -5.0, 30.0), (0.4, 1.0, 9.0), (2.0, 3.25, 3.25)).plot()
    assert_legible(ax.figure)
    assert words(ax) == "log Z = 3.250000000\nexact"
    assert ax.get_title(loc="left").startswith("exact after 2 s")
    assert ax.get_ylim()[0] < -5 and ax.get_ylim()[1] > 30


def test_without_an_estimate_only_the_bounds_are_drawn(bracket):
    ax = replace(bracket, estimate=None, why_no_estimate="There was no time for Bethe.").plot()
    assert_legible(ax.figure)
    assert sorted(word for word in words(ax).split() if word in ("estimate", "lower", "upper")) == ["lower", "upper"]
    assert len(ax.lines) == 2


def test_an_end_that_is_not_there_yet_is_hatched(bracket):
    later = over(bracket, (0.1, -math.inf, 30.0), (0.5, -math.inf, 12.0), (1.0, 2.0, 5.0))
    ax = later.plot()
    assert_legible(ax.figure)
    upper, lower, _ = (line.get_ydata() for line in ax.lines)
    assert list(upper) == [30.0, 12.0, 5.0, 5.0]
    assert np.isnan(lower[:2]).all() and list(lower[2:]) == [2.0, 2.0]
    assert "no lower bound yet" in [text.get_text() for text in ax.figure.legends[0].get_texts()]
    never = over(bracket, (0.1, -math.inf, 30.0), (0.5, -math.inf, 12.0)).plot()
    assert_legible(never.figure)
    assert words(never) == "upper 12.00"
    assert "one end alone" in never.get_title(loc="left")


def test_a_bracket_without_a_finite_point_says_so(bracket):
    nothing = replace(bracket, trace=(), lower=-math.inf, upper=math.inf, estimate=None, seconds=0.002)
    assert words(plotting.plot_bracket_trace(nothing)) == "no finite bound after 2 ms"
    impossible = over(bracket, (0.002, -math.inf, -math.inf))
    assert words(plotting.plot_bracket_trace(impossible)) == "Z = 0 no configuration is possible"


@pytest.mark.parametrize(
    ("first", "last", "unit"),
    [
        (0.002, 0.011, "milliseconds"),
        (0.5, 0.9, "seconds"),
        (0.01, 60.0, "seconds"),
        (2.0, 5000.0, "minutes"),
        (0.1, 90_000.0, "hours"),
        (6.0, 6.0, "seconds"),
    ],
)
def test_time_has_several_ticks_with_plain_numbers(bracket, first, last, unit):
    ax = over(bracket, (first, 0.0, 9.0), (last, 1.0, 2.0)).plot()
    assert_legible(ax.figure)
    lowest = ax.figure.axes[1]
    assert lowest.get_xlabel() == unit
    low, high = lowest.get_xlim()
    ticks = [
        label.get_text()
        for place, label in zip(lowest.get_xticks(), lowest.get_xticklabels(), strict=True)
        if low <= place <= high
    ]
    assert len(ticks) >= 3
    for tick in ticks:
        float(tick.replace("\N{MINUS SIGN}", "-"))  # no powers, no offsets


def test_a_single_moment_has_some_width(bracket):
    ax = over(bracket, (6.0, 1.0, 4.0)).plot()
    assert_legible(ax.figure)
    moments = ax.lines[0].get_xdata()
    assert moments[-1] > 1.2 * moments[0]


def test_what_begins_too_far_out_to_be_shown_is_said(bracket):
    far = over(bracket, (0.001, -2e4, 1e6), (1.0, 990.0, 1010.0), (2.0, 999.0, 1003.0), (3.0, 1000.0, 1002.0))
    ax = far.plot()
    assert_legible(ax.figure)
    assert "from 1,000,000 at first" in words(ax) and "from -20,000 at first" in words(ax)
    assert ax.get_ylim()[1] - ax.get_ylim()[0] < 500


def test_on_axes_of_the_caller_the_bounds_alone(bracket):
    from matplotlib.figure import Figure

    ax = Figure(layout="constrained").subplots()
    assert bracket.plot(ax=ax) is ax
    assert ax.figure.axes == [ax]
    assert any(text.startswith("seconds") or text.startswith("milliseconds") for text in shown_texts(ax.figure))


# -- who closed the gap -----------------------------------------------------------------------------------------------


def moved(bracket: cz.results.Bracket, *moves: tuple[float, str, str, float]) -> cz.results.Bracket:
    """A bracket that strategies have moved so: (seconds, strategy, end, to) each."""
    ends, gains, points = {"lower": -math.inf, "upper": math.inf}, [], []
    for seconds, strategy, end, to in moves:
        gains.append(Gain(seconds, strategy, end, ends[end], to))
        ends[end] = to
        points.append((seconds + 1e-4, ends["lower"], ends["upper"]))
    return replace(over(bracket, *points), gains=Gains(gains))


@pytest.fixture(scope="module")
def contested(bracket) -> cz.results.Bracket:
    return moved(
        bracket,
        (0.1, "trivial bounds", "lower", 3.0),
        (0.1, "trivial bounds", "upper", 60.0),
        (0.5, "mean field", "lower", 7.0),
        (1.0, "TRW", "upper", 30.0),
        (2.0, "mini-buckets", "upper", 12.0),
        (3.0, "TRW", "upper", 11.0),
        (4.0, "mini-buckets", "lower", 8.0),
        (4.001, "TRW", "upper", 10.0),
        (9.0, "mini-buckets", "upper", 9.0),
    )


def curves(ax, name: str) -> list[tuple[list[float], list[float]]]:
    """Each line of the colour that the legend has for a strategy, as (times, values)."""
    legend = ax.figure.legends[0] if ax.figure.legends else ax.get_legend()
    (key,) = (handle for handle in legend.legend_handles if handle.get_label() == name)
    found = [line for line in ax.lines if line.get_color() == key.get_color() and line.get_marker() == key.get_marker()]
    return [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in found]


def test_each_line_has_the_colour_of_who_moved_it(contested):
    ax = contested.plot()
    assert_legible(ax.figure)
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert [name for name in names if name in contested.gains.by_strategy()] == list(contested.gains.by_strategy())
    ((times, values),) = curves(ax, "mean field")  # the lower end from 0.5 s on, with the step from 3 to 7
    assert values[0] == 3.0 and set(values[1:]) == {7.0} and times[0] == times[1] == pytest.approx(0.5, abs=1e-3)
    ((_, values),) = curves(ax, "TRW")  # in pieces, for others were between
    breaks = [k for k, value in enumerate(values) if math.isnan(value)]
    assert values[:2] == [60.0, 30.0] and [values[k + 1 : k + 3] for k in breaks] == [[12.0, 11.0]]
    assert values[-1] == 10.0
    assert [len(curves(ax, name)) for name in ("trivial bounds", "mini-buckets")] == [2, 2]  # both ends


def test_the_gap_has_the_colour_of_who_moved_either_end(contested):
    ax = contested.plot()
    colours = {line.get_color() for line in ax.figure.axes[1].lines}
    assert colours == {line.get_color() for line in ax.lines if line.get_linestyle() != "None"}


def test_a_mark_is_where_somebody_takes_over_for_a_while(contested):
    ax = contested.plot()
    marked = [
        (line.get_xdata()[k], line.get_ydata()[k], line.get_marker())
        for line in ax.lines
        if line.get_linestyle() != "None"
        for k in line.get_markevery()
    ]
    assert len({mark for *_, mark in marked}) == 4
    assert any(time == pytest.approx(2.0, abs=1e-3) and value == 12.0 for time, value, _ in marked)
    for time, value, _ in marked:
        assert any(
            point.seconds == pytest.approx(time) and value in (point.lower, point.upper) for point in contested.trace
        )


def test_on_axes_of_the_caller_strategies_are_named_too(contested):
    from matplotlib.figure import Figure

    ax = contested.plot(ax=Figure(layout="constrained").subplots())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(contested.gains.by_strategy())


def test_strategies_look_the_same_in_all_pictures(contested, bracket):
    alone = moved(bracket, (0.1, "TRW", "upper", 9.0), (0.2, "mean field", "lower", 3.0), (1.0, "TRW", "upper", 8.0))
    pictures = [each.plot() for each in (contested, alone)]
    looks = [
        {
            handle.get_label(): (handle.get_color(), handle.get_marker())
            for handle in ax.figure.legends[0].legend_handles[-k:]
        }
        for ax, k in zip(pictures, (4, 2), strict=True)
    ]
    assert looks[1].keys() == {"TRW", "mean field"} and all(looks[0][name] == look for name, look in looks[1].items())


def test_every_strategy_looks_different_in_grey_too():
    from clampz.solving.strategies import STRATEGIES

    assert len(MARKERS) == len(set(MARKERS)) >= len(STRATEGIES)
    lightness = sorted(sum(w * int(c[k : k + 2], 16) for w, k in ((0.3, 1), (0.59, 3), (0.11, 5))) for c in COLOURS)
    assert lightness[-1] < 200  # of 255: to be seen on white


def test_what_nobody_is_known_to_have_moved_has_the_colour_of_ink(bracket):
    assert movers_at(np.array([0.1, 2.0]), Gains(), ("lower",)) == ["", ""]
    trace = BracketTrace.of(over(bracket, (0.1, 0.0, 2.0), (0.4, 1.0, 2.0)))
    assert {*trace.lower_by, *trace.upper_by, *trace.gap_by} == {""}


def test_of_several_gains_between_two_moments_the_last_counts():
    gains = Gains(Gain(seconds, name, "upper", 9.0, 8.0) for seconds, name in ((0.1, "a"), (0.2, "b"), (0.5, "c")))
    assert movers_at(np.array([0.05, 0.1, 0.3, 0.5, 0.6]), gains, ("upper",)) == ["a", "a", "b", "c", "c"]


def test_many_turns_take_few_lines(bracket):
    turns = [(0.1 + 0.01 * k, ("cutset", "diving")[k % 2], "lower", 1.0 + k) for k in range(1000)]
    ax = moved(bracket, (0.01, "TRW", "upper", 2000.0), *turns).plot()
    assert len(ax.lines) <= 5
