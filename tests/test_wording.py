"""Words and numbers for people."""

import numpy as np

from clampz.wording import round_outward


def test_bounds_are_rounded_outward():
    assert round_outward(-1.239, "lower", 2) == "-1.24"
    assert round_outward(-1.239, "upper", 2) == "-1.23"
    assert round_outward(-np.inf, "lower", 2) == "-inf"
    assert round_outward(2.5, "exact", 1) == "2.5"
