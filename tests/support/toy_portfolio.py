"""A number between two ends, and strategies that do next to nothing: what tests of the scheduler run."""

import math
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

from clampz.portfolio.problem import Gains, Ledger, Problem
from clampz.portfolio.scheduler import Scheduler
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew

EXECUTORS = {"here": lambda: nullcontext(None), "threads": lambda: ThreadPoolExecutor(2)}
EXECUTORS["processes"] = lambda: ProcessPoolExecutor(2)


class Result(NamedTuple):
    reason: str
    ends: tuple[float, float]
    gains: Gains


class WatchedLedger(Ledger):
    """Remembers the most that was reserved at a time, and by how many."""

    def __init__(self, total):
        self.seen = [(0.0, 0)]
        super().__init__(total)

    @property
    def taken(self):
        return self._taken

    @taken.setter
    def taken(self, value):
        number = self.seen[-1][1] + (value > self.seen[-1][0]) - (value < self.seen[-1][0])
        self._taken = value
        self.seen.append((value, number))


class Toy(Problem[Result]):
    """A number between -1000 and 1000; `log` has who handed in what, in order."""

    worker_bytes = 1.0

    def __init__(self, *, enough=0.0, in_order=False, num_bytes=math.inf, most=math.inf, answered=True):
        super().__init__(num_bytes, enough=enough, in_order=in_order)
        self.ledger = WatchedLedger(num_bytes)
        self.lower, self.upper = -1000.0, 1000.0
        self.log: list[tuple[str, Any]] = []
        self.most, self.answered = most, answered

    @property
    def ends(self):
        return self.lower, self.upper

    @property
    def closed(self):
        return self.lower >= self.upper

    @property
    def is_answered(self):
        return self.answered

    def limit_reached(self):
        return "leaves" if len(self.log) >= self.most else None

    def result(self, reason, seconds):
        return Result(reason, self.ends, Gains(self.gains))

    def tighten(self, nats):
        """Raise the lower end."""
        self.lower = min(self.lower + nats, self.upper)


class Step(Strategy[Toy]):
    """Raises the lower end by some nats in each of its quanta, which sleep for some seconds."""

    name = "step"
    nats, seconds, number, num_bytes = 0.0, 0.005, math.inf, 0.0
    function = None
    where = "anywhere"

    def __init__(self, problem):
        super().__init__(problem)
        self.asked, self.taken = 0, 0

    def next(self, seconds, budget, num_workers):
        if self.asked >= self.number:
            return None
        self.asked += 1
        function = type(self).function or sleep
        return Quantum(function, (self.seconds, self.nats), budget.share(), self.where, self.asked)

    def take(self, quantum, found):
        self.taken += 1
        self.problem.log.append((self.name, quantum.label))
        self.problem.tighten(found)
        self.is_done = self.taken >= self.number

    def bytes_needed(self):
        return self.num_bytes


def step(name, base=Step, **attributes):
    """A kind of `Step` with these attributes."""
    functions = {key: staticmethod(value) if key == "function" else value for key, value in attributes.items()}
    return type(name, (base,), {"name": name, **functions})


def sleep(seconds, nats, budget=None):
    """Sleep, no longer than the budget allows."""
    until = time.perf_counter() + seconds
    while (left := until - time.perf_counter()) > 0 and not (budget and budget.must_stop()):
        time.sleep(min(left, 0.005))
    return nats


def pretend(seconds, nats, budget=None):
    """Take no time; with `pretended` as the scheduler's clock it has taken these seconds."""
    return nats


def pretended(function, *args):
    """Return the seconds that a quantum says it takes, and its result: in place of the scheduler's `timed`."""
    return args[0], function(*args)


def fail(seconds, nats, budget=None):
    sleep(seconds, nats)
    raise ValueError("no such luck")


def lack_memory(seconds, nats, budget=None):
    sleep(seconds, nats)
    raise MemoryError("none left")


# Of the process of the tests: what must not die.
HOME = os.getpid()


def die_elsewhere(seconds, nats, budget=None):
    """Take the process of a pool along; here, do the work."""
    if os.getpid() != HOME:
        os._exit(1)
    return nats


def die_elsewhere_and_fail(seconds, nats, budget=None):
    """Take the process of a pool along; here, fail too."""
    return fail(seconds, die_elsewhere(seconds, nats))


def run(problem, strategies, *, time=30.0, threads=2, executor=None, stop=None):
    """Run strategies to the end: the scheduler, and all results."""
    scheduler = Scheduler(problem, strategies)
    with Crew(executor, threads) as crew:
        return scheduler, list(scheduler.run(crew, Budget(time, stop=stop)))


def seconds_of(scheduler):
    """The seconds of a worker that each strategy has had, by name."""
    return {strategy.name: account.seconds for strategy, account in scheduler._accounts.items()}
