"""Sums by conditioning: they add up, to the safe side, and never fall."""

import math

import pytest

from clampz.bounding.conditioning import DisjointSums, sum_sets
from clampz.runtime.budget import Budget


class Three(DisjointSums):
    """Sets that are summed one at a time, as long as there are any."""

    left = 3

    def expected(self, seconds):
        return math.inf

    def step(self, budget):
        self.left -= 1
        self.is_over = self.left == 0
        self.add(-1.0, -1.0)
        return self.lower


def test_they_add_up_to_the_safe_side():
    sums = Three()
    assert sums.lower == -math.inf and sums.ends == (-math.inf, math.inf)
    sums.complete = True
    assert sums.ends == (-math.inf, -math.inf)
    before = -math.inf
    for number in range(1, 6):
        sums.add(100.0, 100.0)
        truth = 100.0 + math.log(number)
        assert before <= sums.lower <= truth == pytest.approx(sums.lower, abs=1e-11)
        sums.complete = False
        assert sums.ends[1] == math.inf
        sums.complete = True
        assert truth <= sums.ends[1] == pytest.approx(truth, abs=1e-11)
        before = sums.lower
    assert sums.num_sums == 5


def test_sets_are_summed_until_none_is_left_or_time_is_up():
    lower, upper = sum_sets(Three(), 60.0, Budget())
    assert lower == pytest.approx(math.log(3) - 1.0, abs=1e-11) and upper == math.inf
    assert sum_sets(Three(), 0.0, Budget()) == (-math.inf, math.inf)
