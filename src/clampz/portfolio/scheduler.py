"""Scheduler: a free worker goes to the strategy that closes most nats per second of a worker, as measured.

Every strategy is tried once, for a moment.  From then on what counts is its last third: gains per second fall with
time, and what was easy at first says nothing.  Work that closes the gap within the time left comes before all else.
Whoever is not chosen has a small share in any case, and what gains nothing waits twice as long each time.
"""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic

from clampz.portfolio.problem import Problem, ResultT, Stop, nats_gained
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget
from clampz.runtime.progress import ToldT, says_stop
from clampz.runtime.workers import AnyExecutor, Crew, Job, finished

# The share of the time left that a strategy's first quantum has, and its seconds at least and at most; later ones are
# as long as all before, up to this share.
FIRST_SHARE, SHORTEST, LONGEST, LATER_SHARE = 0.01, 0.01, 0.25, 0.1
# The share of all workers' time for those that are not chosen.
FLOOR = 0.05
# Quanta without any gain after which a strategy waits.
MOST_IDLE = 3
# Seconds in which quanta that are stopped may hand in what they have.
LAST_CALL = 0.1
# Nats: a bracket as narrow needs nothing more at its end; and what finding any end is worth.
NARROW, FAR = 1e-2, 1e6
# Seconds below which the clock sees nothing.
TICK = 1e-6


class Account:
    """What a strategy took and gained, in seconds of a worker and in nats."""

    def __init__(self, strategy: Strategy[Any]) -> None:
        self.strategy = strategy
        self.seconds = self.nats = 0.0
        self.num_quanta = self.num_idle = 0
        self.until = 0.0  # seconds of all workers up to which it waits
        self._recent: deque[tuple[float, float]] = deque()
        self._recent_seconds = self._recent_nats = 0.0

    def take(self, seconds: float, nats: float, spent: float) -> None:
        """Take in a quantum, when all workers have `spent` this much in all."""
        self.seconds += seconds
        self.nats += nats
        self._recent.append((seconds, nats))
        self._recent_seconds += seconds
        self._recent_nats += nats
        while len(self._recent) > 1 and self._recent_seconds - self._recent[0][0] >= self.seconds / 3:
            old_seconds, old_nats = self._recent.popleft()
            self._recent_seconds -= old_seconds
            self._recent_nats -= old_nats
        self.num_idle = 0 if nats > 0 else self.num_idle + 1
        if self.num_idle >= MOST_IDLE and not self.strategy.is_midway:
            self.until = spent + 2.0 ** min(self.num_idle - MOST_IDLE, 30) * self.seconds

    def rate(self, seconds: float, prior: float) -> float:
        """Return nats per second: what is expected of it, or what it gained of late; midway the prior at least."""
        nats = self.strategy.expected(seconds)
        if nats is not None:
            return nats / seconds
        rate = self._recent_nats / max(self._recent_seconds, TICK)
        return max(rate, prior) if self.strategy.is_midway else rate


class Scheduler(Generic[ResultT]):
    """Has strategies close the gap of a problem, as long as a budget lasts."""

    def __init__(self, problem: Problem[ResultT], strategies: Sequence[Callable[[Any], Strategy[Any]]]) -> None:
        self.problem = problem
        built = [each(problem) for each in strategies]
        self.strategies = [each for each in built if each.is_in_order or not problem.in_order]
        self._accounts = {each: Account(each) for each in self.strategies}
        self._pending: dict[Quantum, tuple[Strategy[Any], float]] = {}  # and the bytes that are reserved
        self._jobs: dict[Job[Any], Quantum] = {}
        self._spent = 0.0  # seconds of all workers

    def run(self, crew: Crew, budget: Budget) -> Generator[ResultT]:
        """Work until a limit is reached; yields what is known whenever it has changed."""
        problem, self._crew = self.problem, crew
        last = problem.news
        for _ in self.begin(budget.share(), crew.num_threads):
            if problem.news != last:
                last = problem.news
                yield self._result("left")
        while (reason := self.reason()) is None:
            self._give_work()
            problem.look()
            if self.is_idle:
                reason = problem.narrow() or problem.over or "error"
                break
            for job in self._done():
                self._take(job)
            if problem.news != last:
                last = problem.news
                yield self._result("left")
        self._end(reason)
        yield self._result(reason)

    def begin(self, budget: Budget, num_workers: int) -> Iterator[None]:
        """Have strategies do what takes a moment, one at a time, as long as there is no reason to stop."""
        self.budget, self.num_workers = budget, num_workers
        for strategy in self.strategies:
            before = self.problem.ends
            strategy.begin(budget, num_workers)
            self.problem.note_gains(strategy.name, before, budget.seconds)
            if self.reason() is not None:
                return
            yield

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, or nothing that a run goes on for alone."""
        keeps_going = any(strategy.keeps_going for strategy, _ in self._pending.values())
        return not self._pending or bool(self.problem.over and not keeps_going)

    def _give_work(self) -> None:
        """Give every free worker the quantum that is worth most."""
        crew = self._crew
        most = 2 * crew.num_threads if self.problem.in_order else crew.num_at_once
        while not self.budget.must_stop() and self._num_busy < most and (quantum := self.next()) is not None:
            self._jobs[self._submit(quantum)] = quantum

    @property
    def _num_busy(self) -> int:
        return sum(quantum.num_workers for quantum in self._pending if quantum.where != "beside")

    def next(self) -> Quantum | None:
        """Begin the quantum that is worth most, its memory reserved; None where nobody has one that fits."""
        problem, in_order = self.problem, self.problem.in_order
        is_open, at_work = problem.narrow() is None, {strategy for strategy, _ in self._pending.values()}
        left = [each for each in self.strategies if not each.is_done and (is_open or not each.closes_gap)]
        for strategy in left if in_order else sorted(left, key=self._rank):
            quantum, num_bytes = None, strategy.bytes_needed()
            if (strategy.is_parallel or strategy not in at_work) and problem.ledger.fits(num_bytes):
                quantum = strategy.next(self._length(strategy), self.budget, self.num_workers)
            if quantum is not None:
                self._accounts[strategy].num_quanta += 1
                return self._reserve(strategy, quantum, num_bytes)
            if in_order and not strategy.is_done:
                return None  # what comes next waits for it
        return None

    def _reserve(self, strategy: Strategy[Any], quantum: Quantum, num_bytes: float) -> Quantum:
        self.problem.ledger.taken += num_bytes
        self._pending[quantum] = strategy, num_bytes
        return quantum

    def _rank(self, strategy: Strategy[Any]) -> tuple[int, float]:
        """Return what strategies are put in order by, the least first.

        Those with a first answer, and those that close the gap in the time left; those never tried, in the order of
        the registry; those below their share; the others by what they gain, and last those that wait.
        """
        account = self._accounts[strategy]
        if self._closes(strategy) or (strategy.is_first and not account.num_quanta):
            return 0, 0.0
        if not account.num_quanta:
            return 1, 0.0
        waits = account.until > self._spent
        share = strategy.share or (0.0 if waits else FLOOR / len(self.strategies))
        if account.seconds < share * self._spent:
            return 2, account.seconds
        if waits:
            return 4, account.until
        # what gains nothing until it is done is thought to close the gap when time is over
        prior = min(self.problem.gap, FAR) / max(self.budget.left(), TICK)
        return 3, -account.rate(self._length(strategy), prior)

    def _closes(self, strategy: Strategy[Any]) -> bool:
        """Whether a strategy is known to close the gap in the time left."""
        seconds = strategy.seconds_left(self.num_workers)
        return math.isfinite(seconds) and seconds <= self.budget.left()

    def _length(self, strategy: Strategy[Any]) -> float:
        """Return the seconds of a strategy's next quantum: as many as it has had, for to begin anew has a cost."""
        if self.problem.in_order:
            return math.inf
        first = min(max(self.budget.left(FIRST_SHARE), SHORTEST), LONGEST)
        return max(first, min(self._accounts[strategy].seconds, self.budget.left(LATER_SHARE)))

    def _submit(self, quantum: Quantum) -> Job[Any]:
        crew, args = self._crew, (quantum.function, *quantum.args)
        if quantum.where == "anywhere":
            return crew.submit(timed, *args, local_args=(quantum.budget,))
        return (crew.beside if quantum.where == "beside" else crew.at_home)(timed, *args, quantum.budget)

    def _done(self) -> list[Job[Any]]:
        """Wait for jobs, and return those that are done; with a fixed plan, of those in order only the first."""
        done = finished(self._jobs)
        return [job for job in done if job is next(iter(self._jobs))] if self.problem.in_order else done

    def _take(self, job: Job[Any]) -> None:
        quantum = self._jobs.pop(job)
        try:
            seconds, found = job.result()
        except Exception as error:
            self.fail(quantum, error)
        else:
            self.take(quantum, seconds, found)

    def fail(self, quantum: Quantum, error: Exception) -> None:
        """End a strategy whose quantum failed; nothing of that quantum counts."""
        self._release(quantum).fail(quantum, error)

    def _release(self, quantum: Quantum) -> Strategy[Any]:
        strategy, num_bytes = self._pending.pop(quantum)
        self.problem.ledger.taken -= num_bytes
        return strategy

    def take(self, quantum: Quantum, seconds: float, found: Any) -> None:
        """Take what came of a quantum."""
        strategy = self._release(quantum)
        seconds = strategy.counted(found, seconds)
        problem, account, before = self.problem, self._accounts[strategy], self.problem.ends
        was_closing = self._closes(strategy)
        if not (problem.closed and strategy.closes_gap):  # which is not needed once all is known
            strategy.take(quantum, found)
        if quantum.where != "beside":
            self._spent += seconds
        account.take(seconds, nats_gained(before, problem.ends, FAR), self._spent)
        problem.note_gains(strategy.name, before, self.budget.seconds)
        if self._closes(strategy) and not was_closing:
            for pending, (other, _) in self._pending.items():
                if other is not strategy and pending.where != "beside":
                    pending.budget.end()  # it hands in what it has, and makes room

    def withdraw(self, quantum: Quantum) -> bool:
        """Take a quantum back, as the run is over; return whether what comes of it in time is still wanted."""
        return self._pending[quantum][0].withdraw(quantum)

    def _end(self, reason: Stop) -> None:
        """Do what is still worth doing where the run ends before its time, and take what is nearly done."""
        if reason in ("gap", "leaves", "memory") and self.problem.gap > NARROW:
            for strategy in self.strategies:
                is_at_work = any(each is strategy for each, _ in self._pending.values())
                quantum = None if is_at_work else strategy.last(self.budget)
                if quantum is not None:
                    job = self._submit(self._reserve(strategy, quantum, 0.0))
                    self._jobs[job] = quantum
                    if job.is_done_within(self.budget):
                        self._take(job)
        self.budget.end()
        for job, quantum in list(self._jobs.items()):
            if not self.withdraw(quantum) or job.future.cancel():
                del self._jobs[job]
        last_call = Budget(LAST_CALL if reason in ("time", "interrupt") else 0.0)
        while self._jobs and not last_call.must_stop():
            for job in finished(self._jobs, LAST_CALL / 4):
                self._take(job)

    def reason(self) -> Stop | None:
        """Return why to stop; None while there is no reason to."""
        problem = self.problem
        narrow = problem.narrow()
        if narrow and problem.is_answered:
            return narrow
        if self.budget.must_stop():
            return narrow or ("interrupt" if self.budget.stopped_by == "interrupt" else "time")
        return problem.limit_reached()

    def _result(self, reason: Stop) -> ResultT:
        return self.problem.result(reason, self.budget.seconds)


def timed(function: Callable[..., Any], *args: object) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    began = perf_counter()
    found = function(*args)
    return perf_counter() - began, found


def run_to_end(
    problem: Problem[ToldT],
    strategies: Sequence[Callable[[Any], Strategy[Any]]],
    executor: AnyExecutor | None,
    num_threads: int,
    budget: Budget,
    listener: Callable[[ToldT], object] | None,
) -> ToldT:
    """Return the last result of a run, or that at which the listener said to stop."""
    with Crew(executor, num_threads) as crew:
        try:
            for found in Scheduler(problem, strategies).run(crew, budget):
                if says_stop(listener, found):
                    return problem.result("callback", budget.seconds)
            return found
        finally:
            budget.end()
