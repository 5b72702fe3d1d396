"""Words and numbers for people."""

import math

import numpy as np

from clampz.display.formatting import digits_between, proven, round_outward, rounded_up


def test_bounds_are_rounded_outward():
    assert round_outward(-1.239, "lower", 2) == "-1.24"
    assert round_outward(-1.239, "upper", 2) == "-1.23"
    assert round_outward(-np.inf, "lower", 2) == "-inf"
    assert round_outward(2.5, "exact", 1) == "2.5"


def test_nothing_of_a_gap_is_left_out():
    gaps = (0.0, np.inf, 1.0, 0.0123401, 99.91, 1234.5, 2.5e12)
    assert [rounded_up(gap) for gap in gaps] == ["0", "inf", "1", "0.0124", "100", "1,240", "2.5e+12"]


def test_decimals_grow_as_the_gap_closes():
    assert [digits_between(500.0, 500.0 + gap) for gap in (0.0, 10.0, 2e-6, 2e-9, 2e-12)] == [6, 6, 7, 10, 11]
    assert digits_between(-math.inf, 0.0) == 6


def test_what_ends_prove():
    assert proven(1.2345678, 1.2345679) == "1.234567 <= log Z <= 1.234568"
    assert proven(-math.inf, 2.0, "P") == "P <= 2.000000" and proven(1.0, math.inf) == "1.000000 <= log Z"
    assert proven(-math.inf, -math.inf) == "log Z = -inf" and proven(-math.inf, math.inf).startswith("nothing")


def test_nothing_has_no_sign():
    assert (
        round_outward(-1e-16, None, 6)
        == round_outward(-1e-16, "exact", 6)
        == round_outward(-0.0, "upper", 6)
        == "0.000000"
    )
    assert round_outward(-1e-16, "lower", 6) == "-0.000001"
