"""Parts of a problem, each with a scheduler of its own, on the workers and the memory of the whole."""

import pytest

from clampz.portfolio.nested import Nested
from clampz.portfolio.problem import Problem
from clampz.portfolio.scheduler import run_to_end
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class Number(Problem):
    """A number between two ends."""

    worker_bytes = 10.0

    def __init__(self, width, enough=1e-4):
        super().__init__(100.0, enough=enough)
        self.lower, self.upper = 0.0, width

    @property
    def ends(self):
        return self.lower, self.upper

    @property
    def closed(self):
        return self.upper == self.lower

    def result(self, reason, seconds):
        return reason, self.gap


class Halve(Strategy):
    """Halves the gap, in quanta of their own kind."""

    name = "halving"

    def next(self, seconds, budget, num_workers):
        return Quantum(lambda within: 0.5, (), budget.share(), label="mine")

    def take(self, quantum, found):
        assert quantum.label == "mine"
        self.problem.upper *= found

    def bytes_needed(self):
        return 60.0  # of 100: two at once do not fit


class Fail(Halve):
    name = "failing"

    def next(self, seconds, budget, num_workers):
        def fail(within):
            raise ValueError("no luck")

        return Quantum(fail, (), budget.share())


class Total(Number):
    """The sum of numbers."""

    def __init__(self, *parts):
        super().__init__(0.0, enough=1e-3)
        self.parts, self.most = parts, 0.0

    @property
    def ends(self):
        self.most = max(self.most, self.ledger.taken)
        return 0.0, sum(each.upper for each in self.parts)

    @property
    def closed(self):
        return False

    def ways(self, strategies, told):
        return [lambda total, part=part: Nested(total, part, strategies, lambda: 0.5, told) for part in self.parts]


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_close_the_gap_within_the_memory_of_the_whole(threads):
    total, told = Total(Number(1.0), Number(1024.0)), []
    reason, gap = run_to_end(total, total.ways([Halve], told.append), None, threads, Budget(20.0), None)
    assert reason == "gap" and gap <= 1e-3
    assert total.most == 60.0 and total.ledger.taken == 0.0
    assert len(told) >= 20 and min(width for _, width in told) <= 1e-3


def test_a_strategy_of_a_part_that_fails_ends_alone():
    total = Total(Number(1.0))
    with pytest.warns(RuntimeWarning, match="failing ended: ValueError: no luck"):
        reason, _ = run_to_end(total, total.ways([Fail, Halve], lambda _: None), None, 1, Budget(20.0), None)
    assert reason == "gap"


def test_a_part_that_is_not_wanted_has_no_quanta():
    total = Total(Number(1.0))
    way = [lambda total: Nested(total, total.parts[0], [Halve], lambda: 0.0, lambda _: None)]
    assert run_to_end(total, way, None, 1, Budget(20.0), None) == ("error", 1.0)


def test_a_listener_may_stop_the_run():
    def stop(_):
        raise StopIteration

    total = Total(Number(1.0))
    reason, gap = run_to_end(total, total.ways([Halve], lambda _: None), None, 1, Budget(20.0), stop)
    assert reason == "callback" and gap > 1e-3
