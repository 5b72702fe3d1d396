"""Sums by conditioning: they add up, to the safe side, and never fall."""

import math

import pytest

from clampz.bounding.strategies.conditioning import ConditionedSums, sum_sets
from clampz.runtime.budget import Budget


def test_they_add_up_to_the_safe_side():
    sums = ConditionedSums()
    assert sums.lower == -math.inf and sums.ends(complete=True) == (-math.inf, -math.inf)
    before = -math.inf
    for number in range(1, 6):
        sums.add(100.0, 100.0)
        truth = 100.0 + math.log(number)
        assert before <= sums.lower <= truth == pytest.approx(sums.lower, abs=1e-11)
        assert sums.ends(complete=False)[1] == math.inf
        assert truth <= sums.ends(complete=True)[1] == pytest.approx(truth, abs=1e-11)
        before = sums.lower
    assert len(sums) == 5


def test_sets_are_summed_until_none_is_left_or_time_is_up():
    class Three:
        left, complete = 3, False

        @property
        def is_over(self):
            return self.left == 0

        @property
        def ends(self):
            return -float(self.left), math.inf

        def go_on(self, budget):
            self.left -= 1

    assert sum_sets(Three(), 60.0, Budget()) == (0.0, math.inf)
    assert sum_sets(Three(), 0.0, Budget()) == (-3.0, math.inf)
