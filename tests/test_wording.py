"""Words and numbers for people."""

import numpy as np

from clampz.wording import round_outward, rounded_up


def test_bounds_are_rounded_outward():
    assert round_outward(-1.239, "lower", 2) == "-1.24"
    assert round_outward(-1.239, "upper", 2) == "-1.23"
    assert round_outward(-np.inf, "lower", 2) == "-inf"
    assert round_outward(2.5, "exact", 1) == "2.5"


def test_nothing_of_a_gap_is_left_out():
    gaps = (0.0, np.inf, 1.0, 0.0123401, 99.91, 1234.5, 2.5e12)
    assert [rounded_up(gap) for gap in gaps] == ["0", "inf", "1", "0.0124", "100", "1,240", "2.5e+12"]
