"""The scheduler: who works when and how long, what failures and limits do, and memory, on strategies that sleep."""

import math
import warnings
from itertools import pairwise
from time import perf_counter, sleep

import pytest
import toy_portfolio as toy
from toy_portfolio import EXECUTORS, Step, Toy, run, seconds_of, step

from clampz.portfolio import scheduler as rules
from clampz.portfolio.scheduler import Account

CLOSES = step("closes", nats=100.0)


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "words"), [(toy.fail, "ValueError: no such"), (toy.lack_memory, "MemoryError")])
def test_a_strategy_that_fails_ends_and_the_others_go_on(executor, function, words):
    """It is told of once, and nothing of that quantum counts."""
    problem, fails = Toy(), step("fails", nats=1e6, function=function)
    with EXECUTORS[executor]() as pool, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        scheduler, results = run(problem, (fails, CLOSES), executor=pool)
    assert [str(each.message).startswith(f"fails ended: {words}") for each in told] == [True]
    failed, closes = scheduler.strategies
    assert failed.is_done and failed.asked == 1 and failed.taken == 0
    assert results[-1].reason == "exact" and closes.taken == 20
    assert results[-1].gains.by_strategy() == {"closes": {"lower": 2000.0, "upper": 0.0}}
    assert problem.ledger.taken == 0.0


def test_bounds_of_earlier_quanta_stay():
    def fail_at_last(seconds, nats, budget):
        return nats if len(problem.log) < 3 else toy.fail(seconds, nats)

    problem = Toy()
    with pytest.warns(RuntimeWarning, match=r"^fails ended: ValueError"):
        scheduler, results = run(problem, (step("fails", nats=10.0, function=fail_at_last),))
    assert results[-1].ends == (-970.0, 1000.0) and results[-1].reason == "error"
    assert scheduler.strategies[0].taken == 3


def test_where_all_have_failed_the_run_ends_and_says_so():
    with pytest.warns(RuntimeWarning):
        _, results = run(Toy(), (step("one", function=toy.fail), step("two", function=toy.lack_memory)))
    assert [each.reason for each in results] == ["error"]


def test_what_a_dead_process_was_at_is_done_here():
    """Once, and by all whom the pool had work of; the pool is not asked again."""
    problem, dies = Toy(), step("dies", nats=1.0, number=3, function=toy.die_elsewhere)
    with EXECUTORS["processes"]() as pool:
        scheduler, results = run(problem, (dies, CLOSES), executor=pool)
    assert scheduler._crew.executor is None
    assert results[-1].reason == "exact"
    assert results[-1].gains.by_strategy()["dies"]["lower"] == scheduler.strategies[0].taken > 0


def test_a_strategy_whose_process_dies_and_that_fails_here_too_ends():
    problem, dies = Toy(), step("dies", nats=1e6, function=toy.die_elsewhere_and_fail)
    with EXECUTORS["processes"]() as pool, pytest.warns(RuntimeWarning, match=r"^dies ended: ValueError") as told:
        scheduler, results = run(problem, (dies, CLOSES), executor=pool)
    assert len(told) == 1 and scheduler.strategies[0].taken == 0
    assert results[-1].reason == "exact" and "dies" not in results[-1].gains.by_strategy()


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "limits", "reason"),
    [
        ({}, {"time": 0.3}, "time"),
        ({"most": 7}, {}, "leaves"),
        ({"enough": 1990.0}, {}, "gap"),
        ({}, {"stop": iter([False] * 500 + [True] * 10**6).__next__}, "interrupt"),
    ],
)
def test_a_limit_stops_it_and_all_that_it_has_begun(problem, limits, reason):
    budgets = []

    class Watched(Step):
        name, nats, is_parallel = "watched", 1.0, True

        def next(self, seconds, budget, num_workers):
            quantum = super().next(seconds, budget, num_workers)
            budgets.append(quantum.budget)
            return quantum

    began = perf_counter()
    scheduler, results = run(Toy(**problem), (Watched, step("long", seconds=60.0, nats=1.0)), **limits)
    assert results[-1].reason == reason and perf_counter() - began < 3.0
    assert all(each.must_stop() for each in budgets) and scheduler.budget.must_stop()


def test_without_time_there_is_what_takes_a_moment():
    class Moment(Step):
        name = "moment"

        def begin(self, budget, num_workers):
            self.problem.tighten(7.0)

    scheduler, results = run(Toy(), (Moment, CLOSES), time=0.0)
    assert [(each.reason, each.ends[0]) for each in results] == [("time", -993.0)]
    assert [each.asked for each in scheduler.strategies] == [0, 0]
    assert [gain.strategy for gain in results[0].gains] == ["moment"]


def test_every_change_is_a_result_and_has_its_gains():
    _, results = run(Toy(), (CLOSES,), threads=1)
    assert [each.ends[0] for each in results] == [*range(-900, 1001, 100), 1000]
    assert [each.reason for each in results] == ["left"] * 20 + ["exact"]
    gains = results[-1].gains
    assert [gain.after for gain in gains] == [float(k) for k in range(-900, 1001, 100)]
    assert {gain.end for gain in gains} == {"lower"} and all(gain.nats == 100.0 for gain in gains)
    seconds = [gain.seconds for gain in gains]
    assert seconds == sorted(seconds) and seconds[0] > 0.0


def test_a_run_goes_on_for_what_is_wanted_beside_narrow_ends():
    """Only by those that are for more than the ends."""

    class Answers(Step):
        name, closes_gap, number = "answers", False, 30

        def take(self, quantum, found):
            super().take(quantum, found)
            self.problem.answered = self.taken == 30

    scheduler, results = run(Toy(answered=False), (CLOSES, Answers))
    closes, answers = scheduler.strategies
    assert results[-1].reason == "exact" and answers.taken == 30 and closes.taken == 20


def test_who_keeps_going_decides_when_a_run_is_over():
    class Over(Step):
        name, number = "over", 3

        def take(self, quantum, found):
            super().take(quantum, found)
            self.problem.over = "memory" if self.is_done else None

    hangs_on = step("hangs on", keeps_going=False)
    scheduler, results = run(Toy(), (Over, hangs_on))
    assert results[-1].reason == "memory" and scheduler.strategies[0].taken == 3
    scheduler, _ = run(Toy(), (Over, step("goes on", number=12, seconds=0.02)))
    assert scheduler.strategies[1].taken == 12


def test_the_last_is_done_where_a_run_ends_before_its_time():
    class Last(Step):
        name, number = "last", 0

        def last(self, budget):
            self.number = 1
            return self.next(0.0, budget, 1)

    for limits, reason, number in (({"most": 3}, "leaves", 1), ({}, "exact", 0)):
        scheduler, results = run(Toy(**limits), (Last, CLOSES))
        assert results[-1].reason == reason and scheduler.strategies[0].taken == number


# -- who is next -------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_time_passes(monkeypatch):
    """Quanta have taken the seconds that they say, however busy the machine is."""
    monkeypatch.setattr(rules, "timed", toy.pretended)
    monkeypatch.setattr(Step, "function", staticmethod(toy.pretend))


@pytest.mark.usefixtures("no_time_passes")
def test_work_goes_where_most_is_gained_and_a_little_everywhere():
    fast, slow, long = step("fast", nats=1.0), step("slow", nats=0.001), step("long", nats=10.0, seconds=0.5)
    scheduler, _ = run(Toy(most=1000), (slow, fast, long), threads=1)
    share, seconds = rules.FLOOR / 3, seconds_of(scheduler)
    total = sum(seconds.values())
    assert (
        share * total <= seconds["slow"] < share * total + 0.01
        and share * total < seconds["long"] < 0.55 + share * total
    )


@pytest.mark.usefixtures("no_time_passes")
def test_what_counts_is_its_last_third():
    """One that was fast at first is left for one that is steady."""

    class Tires(Step):
        name = "tires"

        @property
        def nats(self):
            return 5.0 if self.asked < 10 else 1e-4

    problem = Toy(most=500)
    scheduler, _ = run(problem, (Tires, step("steady", nats=0.1)), threads=1)
    at_first = [name for name, _ in problem.log[:20]]
    assert at_first.count("tires") >= 10  # until a third of it was without
    assert scheduler.strategies[0].taken < 40


@pytest.mark.usefixtures("no_time_passes")
def test_a_share_is_had_in_any_case():
    """Also by what never gains a nat."""
    shares = step("shares", share=0.3), step("none")
    scheduler, _ = run(Toy(most=500), (step("works", nats=0.1), *shares), threads=1)
    seconds = seconds_of(scheduler)
    total = sum(seconds.values())
    assert seconds["shares"] == pytest.approx(0.3 * total, abs=0.01)
    assert seconds["none"] < 0.05 * total


def test_what_gains_nothing_waits_twice_as_long_each_time():
    account = Account(Step(Toy()))
    waits = []
    for number in range(1, 8):
        account.take(2.0, 0.0, 100.0)
        waits.append(account.until - 100.0 if account.until else 0.0)
        assert account.seconds == 2.0 * number
    assert waits == [0.0, 0.0, 6.0, 2 * 8.0, 4 * 10.0, 8 * 12.0, 16 * 14.0]
    account.take(2.0, 1.0, 400.0)
    assert account.num_idle == 0 and account.until < 400.0
    midway = Account(Step(Toy()))
    midway.strategy.is_midway = True
    for _ in range(10):
        midway.take(2.0, 0.0, 100.0)
    assert midway.until == 0.0


@pytest.mark.usefixtures("no_time_passes")
def test_those_that_wait_are_asked_less_and_less():
    problem = Toy(most=2000)
    run(problem, (step("idle"), step("works", nats=0.1)), threads=1)
    at = [place for place, (name, _) in enumerate(problem.log) if name == "idle"]
    waits = [after - before for before, after in pairwise(at)]
    beyond = [wait for wait in waits if wait > 40]  # whose turn has come by its share more often
    assert len(beyond) >= 4 and all(after > 2 * before for before, after in pairwise(beyond))


@pytest.mark.usefixtures("no_time_passes")
def test_where_all_wait_somebody_works():
    scheduler, results = run(Toy(), (step("one", number=10), step("two", number=10)), threads=1)
    assert [each.taken for each in scheduler.strategies] == [10, 10] and results[-1].reason == "error"


def test_rates_are_expectations_then_measurements_and_the_prior_midway():
    strategy = Step(Toy())
    account = Account(strategy)
    account.take(2.0, 6.0, 2.0)
    assert account.rate(1.0, 99.0) == 3.0
    strategy.expected = lambda seconds: 10.0 * seconds
    assert account.rate(4.0, 99.0) == 10.0
    begun = Account(Step(Toy()))
    begun.take(2.0, 0.0, 2.0)
    assert begun.rate(1.0, 99.0) == 0.0
    begun.strategy.is_midway = True
    assert begun.rate(1.0, 99.0) == 99.0


@pytest.mark.usefixtures("no_time_passes")
def test_all_are_tried_in_their_order_and_a_first_answer_comes_before_all():
    problem = Toy(most=4)
    names = "a", "b", "c"
    run(problem, (*(step(name) for name in names), step("first", is_first=True)), threads=1)
    assert [name for name, _ in problem.log] == ["first", *names]


@pytest.mark.usefixtures("no_time_passes")
def test_what_was_begun_is_continued_before_others():
    class Midway(Step):
        name, number = "midway", 6

        def take(self, quantum, found):
            super().take(quantum, found)
            self.is_midway = not self.is_done

    problem = Toy(most=8)
    run(problem, (step("works", nats=1e-6), Midway), threads=1)
    assert [name for name, _ in problem.log] == ["works", *["midway"] * 6, "works"]


class Known(Step):
    """Closes the gap after ten quanta of a known length."""

    name, number, seconds = "known", 10, 0.02

    def seconds_left(self, num_workers):
        return (self.number - self.taken) * self.seconds if self.asked else math.inf

    def take(self, quantum, found):
        super().take(quantum, found)
        if self.is_done:
            self.problem.tighten(math.inf)


def test_a_known_end_that_fits_comes_first():
    """Others are cut short for it as soon as it is known."""

    class Long(Step):
        name, seconds, nats = "long", 60.0, 1.0

        def take(self, quantum, found):
            self.was_cut_short = quantum.is_cut_short
            super().take(quantum, found)

    problem, began = Toy(), perf_counter()
    scheduler, results = run(problem, (Long, Known), time=10.0)
    long, known = scheduler.strategies
    assert results[-1].reason == "exact" and perf_counter() - began < 3.0
    assert known.taken == 10 and long.taken <= 2
    rich = step("rich", nats=50.0)
    problem = Toy()
    run(problem, (rich, Known), threads=1)
    assert [name for name, _ in problem.log] == ["rich", *["known"] * 10]


def test_a_known_end_that_does_not_fit_has_no_such_right():
    problem = Toy(most=30)
    run(problem, (step("rich", nats=1.0), step("known", base=Known, number=10**6)), threads=1)
    assert sum(name == "rich" for name, _ in problem.log) > 20


# -- workers and memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_are_busy_than_there_are_workers(threads):

    def most_busy(*several):
        busy, most = [], []

        def counted(seconds, nats, budget):
            busy.append(1)
            most.append(len(busy))
            sleep(seconds)
            busy.pop()
            return nats

        run(
            Toy(most=40),
            [step(f"{k}", nats=1.0, is_parallel=each, function=counted) for k, each in enumerate(several)],
            threads=threads,
        )
        return max(most)

    assert most_busy(True, False) == threads
    assert most_busy(False) == 1  # whose quanta come one after another


def test_what_is_done_beside_keeps_no_worker_busy():
    problem = Toy()
    run(problem, (step("beside", where="beside", seconds=0.3), CLOSES), threads=1)
    assert "beside" not in dict(problem.log)  # all is closed before


@pytest.mark.parametrize(
    ("sizes", "together"), [((60.0, 60.0), 1), ((60.0, 40.0), 2), ((30.0, 30.0), 3), ((400.0, 10.0), 1)]
)
def test_no_more_memory_is_reserved_than_there_is_beyond_the_first(sizes, together):
    problem = Toy(num_bytes=100.0, most=40)
    kinds = [step(f"{k}", num_bytes=size, is_parallel=True, nats=1.0) for k, size in enumerate(sizes)]
    run(problem, kinds, threads=4)
    assert all(taken <= 100.0 or number == 1 for taken, number in problem.ledger.seen)
    assert max(number for _, number in problem.ledger.seen) >= together
    assert problem.ledger.taken == 0.0 or problem.ledger.taken <= 4 * max(sizes)
    assert {name for name, _ in problem.log} == {"0", "1"}


# -- fixed plans -------------------------------------------------------------------------------------------------------


class Ordered(Step):
    """Quanta of which later ones are done first."""

    name, number, is_parallel = "ordered", 12, True

    def next(self, seconds, budget, num_workers):
        assert seconds == math.inf
        self.seconds = 0.03 if self.asked % 3 == 0 else 0.0
        return super().next(seconds, budget, num_workers)

    @property
    def nats(self):  # depends on what was taken before
        return 1.0 + 0.01 * self.problem.lower

    def last(self, budget):
        return None


def test_quanta_of_a_fixed_plan_are_taken_in_their_order_wherever_they_are_done():
    found = {}
    for name, threads in (("here", 2), ("threads", 2), ("processes", 2)):
        problem = Toy(in_order=True)
        kinds = step("first", number=2, nats=3.0), Ordered, step("out", is_in_order=False), step("after", number=2)
        with EXECUTORS[name]() as pool:
            _, results = run(problem, kinds, threads=threads, executor=pool)
        assert results[-1].reason == "error"  # all are done, and it is open
        found[name] = [each.ends for each in results], problem.log
    here = found["here"]
    assert here[1] == [("first", 1), ("first", 2), *(("ordered", k) for k in range(1, 13)), ("after", 1), ("after", 2)]
    assert found["threads"] == found["processes"] == here
