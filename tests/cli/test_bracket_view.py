"""Brackets for people: printed bounds hold, and the display follows the work."""

from dataclasses import replace
from typing import get_args

import numpy as np
from numba.core import event
from running import a_bracket

import clampz as cz
from clampz._kernels import jit
from clampz.bounding.bracket import BracketStop
from clampz.cli import bracket_view
from clampz.cli.bracket_view import REASONS, LiveBracket


def test_printed_bounds_hold():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower = float(rng.normal() * 10.0 ** rng.integers(0, 6))
        bracket = a_bracket(lower, lower + float(10.0 ** rng.uniform(-11, 3)))
        rows = dict(bracket.facts)
        assert float(rows["lower"]) <= bracket.lower <= bracket.upper <= float(rows["upper"])
        assert float(rows["gap"].removesuffix(" nats").replace(",", "")) >= bracket.gap * (1 - 1e-9)


def test_without_an_estimate_it_says_why():
    bracket = replace(a_bracket(1.0, 3.0), estimate=None, why_no_estimate="There was no time for Bethe.")
    assert dict(bracket.facts)["estimate"] == "none. There was no time for Bethe."


def test_every_reason_to_stop_has_words():
    assert set(get_args(BracketStop)) - {"left", "callback"} == set(REASONS)


def shown(closing: LiveBracket, width: int = 60) -> str:
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    Console(file=text, width=width).print(closing)
    return "\n".join(line.strip() for line in text.getvalue().splitlines())


def test_compiling_is_mentioned_and_takes_no_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(bracket_view.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(jit, "perf_counter", lambda: now[0])
    closing = LiveBracket(cz.options.BoundOptions(time=60))
    with event.trigger_event("numba:compiler_lock"), event.trigger_event("numba:compile"):
        now[0] += 100.0
        assert shown(closing) == "compiling kernels, once after installation\nseconds  0 of 60, Ctrl-C stops"
    assert shown(closing) == ""
    now[0] += 3.0
    assert shown(closing) == "seconds  3 of 60, Ctrl-C stops"


def test_the_live_display():
    some = cz.bound(cz.generators.complete(8, weights=(-8, 8), rng=0), exact=False, leaves=2, max_table=4)
    closing = LiveBracket(cz.options.BoundOptions(gap=0.01, time=60))
    closing._began -= 3
    texts = []
    for bracket in (None, some):
        closing.latest = bracket
        texts.append(shown(closing))
    assert "3 of 60, Ctrl-C stops" in texts[0]
    for name in ("lower", "upper", "gap", "estimate", "closed", "leaves", "seconds"):
        assert name in texts[1]
    first, last = replace(bracket, trace=bracket.trace[:1]), replace(bracket, lower=bracket.upper)
    assert 0 <= closing.share_closed(first) <= closing.share_closed(bracket) < closing.share_closed(last) == 1
    closing.ask_to_stop()
    assert closing.stop


def test_the_live_display_fits_narrow_and_wide_terminals():
    why = "Bethe's value 603.646 is far outside the bracket [305.645, 426.164]."
    closing = LiveBracket(cz.options.BoundOptions(gap=5.0, time=60))  # the bar is full in the end
    closing._began -= 3
    for found in (
        replace(a_bracket(305.64458, 1426.16412), estimate=None, why_no_estimate=why),
        replace(a_bracket(1001.119701, 1004.429644), estimate=1002.712, standard_error=0.0069),
    ):
        closing.latest = found
        told = {width: shown(closing, width) for width in (40, 80, 120)}
        for width, text in told.items():
            assert "…" not in text  # nothing is cut
            assert max(map(len, text.splitlines())) <= width
            assert " ".join(text.replace("\u2501", "").split()) == " ".join(told[120].replace("\u2501", "").split())
    assert told[40].count("\u2501") == 26 and told[80].count("\u2501") == told[120].count("\u2501") == 40
