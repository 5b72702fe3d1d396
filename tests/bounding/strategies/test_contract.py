"""What every strategy of the registry keeps to, by itself: a new one is tested by being registered."""

import threading
import tracemalloc
import warnings
from dataclasses import replace
from itertools import chain
from time import process_time

import numpy as np
import pytest
from lone_strategies import alone, prepare, quanta, satisfiability
from random_models import frustrated, random_edges, random_of_any_kind, random_tables
from simplifiable import Enumerated, random_model
from toy_portfolio import EXECUTORS, fail

import clampz as cz
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import STRATEGIES, cutset, diving, exact_sum
from clampz.bounding.strategies.branch_and_bound import BranchAndBound
from clampz.bounding.strategies.counting import Counting
from clampz.bounding.strategies.mini_buckets import MiniBuckets
from clampz.bounding.strategies.trivial_bounds import TrivialBounds
from clampz.model_counting.count import is_available
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew

every_strategy = pytest.mark.parametrize("kind", STRATEGIES, ids=[kind.name for kind in STRATEGIES])

# Seconds of the processor in which a cancel is heard, and beyond which a quantum has no time.
HEARD = 0.1
# Beyond the memory announced, as in tests/test_memory.py.
MORE, SPARE = 1.2, 2_000_000
HARD = {
    "grid": lambda: cz.generators.grid(40, 40, weights=(-6, 6), rng=0),
    "labels": lambda: cz.generators.grid(25, 25, labels=8, rng=0),
    "dense": lambda: cz.generators.complete(100, weights=(-6, 6), rng=0),
    "zeros": lambda: satisfiability(60),
}


@pytest.fixture
def small_is_enough(monkeypatch):
    """Small models are worth what large ones are."""
    monkeypatch.setattr(exact_sum, "FINISH_SECONDS", 0.0)
    monkeypatch.setattr(cutset, "LEAST_ENTRIES", 4.0)
    monkeypatch.setattr(cutset, "LEAST_RUN", 0.0)
    monkeypatch.setattr(diving, "LARGEST_PER_VARIABLE", 0.0)


def small_models():
    """Pairwise and with factors, with hard zeros, with many labels, planar and dense."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        yield random_of_any_kind(seed)
        yield random_model(seed)
        yield satisfiability(10, seed, clauses=2.0)
    yield random_tables(rng, [12, 9, 10, 11], random_edges(rng, 4, 1.0), 3.0, zeros=0.2)
    yield from (cz.generators.grid(3, 4, weights=weights, rng=0) for weights in ((-4, 4), (0, 2)))
    yield from (frustrated(seed, 10) for seed in range(3))


@every_strategy
@pytest.mark.usefixtures("small_is_enough")
def test_bounds_hold_at_every_quantum(kind):
    """By visiting all configurations; and it finds something."""
    num_news = 0
    for model in small_models():
        truth = Enumerated(model).log_z
        slack = 1e-9 * max(1.0, abs(truth)) if truth > -np.inf else 0.0
        strategy, budget = alone(kind, model), Budget(2.0)
        problem, before = strategy.problem, (-np.inf, np.inf)
        for seen in chain([problem], quanta(strategy, 0.01, budget, 100)):
            (lower, upper), has_time = seen.ends, not budget.must_stop()
            assert before[0] <= lower <= truth + slack and truth - slack <= upper <= before[1]
            before = lower, upper
            if budget.used > 0.05 or not has_time:
                break
        num_news += before != (-np.inf, np.inf) or problem.estimate.value is not None or bool(problem.sampled)
    assert num_news >= 3 or (kind is Counting and not is_available())


def under_way(kind, name, seconds, budget, **options):
    """A quantum on a model that is hard, if there is one; the kernels have been loaded by one like it."""
    for within in (Budget(0.3), budget):
        strategy = alone(kind, HARD[name](), **options)
        quantum = None if strategy.is_done else strategy.next(seconds, within, 1)
        if quantum is not None and within is not budget:
            strategy.take(quantum, quantum.function(*quantum.args, quantum.budget))
    return strategy, quantum


def do(quantum, found):
    found.append(quantum.function(*quantum.args, quantum.budget))


def processor_seconds(work, *args):
    began = process_time()
    work(*args)
    return process_time() - began


@every_strategy
@pytest.mark.parametrize("name", HARD)
def test_a_quantum_ends_with_its_time(kind, name):
    """With the seconds that it was asked for, if it can be cut there, and with its budget in any case."""
    _, quantum = under_way(kind, name, 0.1, Budget(0.3))
    if quantum is None:
        pytest.skip("nothing to do")
    most = 0.1 if 0.1 in quantum.args else 0.3
    assert processor_seconds(quantum.function, *quantum.args, quantum.budget) <= most + HEARD


@every_strategy
@pytest.mark.parametrize("name", HARD)
def test_a_cancel_is_heard(kind, name):
    """Whenever it comes; on the processor's clock, whoever else is at work."""
    strategy, quantum = under_way(kind, name, 60.0, Budget(100.0))
    for wait in (0.02, 0.1, 0.3):
        if quantum is None:
            break
        found = list[object]()
        thread = threading.Thread(target=do, args=(quantum, found))
        thread.start()
        thread.join(wait)
        quantum.budget.end()
        assert processor_seconds(thread.join) <= HEARD
        strategy.take(quantum, found[0])  # whatever there is of it
        lower, upper = strategy.problem.ends
        assert lower <= upper
        quantum = None if strategy.is_done else strategy.next(60.0, Budget(100.0), 1)


@every_strategy
@pytest.mark.parametrize("name", HARD)
def test_memory_is_as_announced(kind, name):
    """Of a quantum, beside what the strategy keeps."""
    strategy, quantum = under_way(kind, name, 0.2, Budget(1.0), memory="40MB")
    if quantum is None:
        pytest.skip("nothing to do")
    announced = strategy.bytes_needed()
    tracemalloc.start()
    try:
        quantum.function(*quantum.args, quantum.budget)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= MORE * announced + SPARE


@pytest.mark.parametrize("kind", [kind for kind in STRATEGIES if kind.is_in_order], ids=lambda kind: kind.name)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.usefixtures("small_is_enough")
def test_a_fixed_plan_has_one_result_on_all_executors(kind, exact):
    kinds = (TrivialBounds, MiniBuckets, kind) if kind is BranchAndBound else (TrivialBounds, kind)
    options = BoundOptions(max_table=8, leaves=6, gap=0.0, exact=exact, threads=2, time=60.0, memory="1GB")
    for model in (frustrated(3, 12), cz.generators.grid(4, 5, labels=3, rng=0), satisfiability(14, clauses=3.0)):
        found = []
        for executor in EXECUTORS.values():
            problem = Problem(model, options)
            prepare(kinds[1], problem)
            with executor() as pool, Crew(pool, 2) as crew:
                *_, bracket = Scheduler(problem, kinds).run(crew, Budget(60.0))
            found.append((bracket.lower, bracket.upper, bracket.num_leaves, [each[1:] for each in bracket.gains]))
        assert found[0] == found[1] == found[2]


@every_strategy
@pytest.mark.usefixtures("small_is_enough")
def test_where_one_fails_the_others_go_on(kind, monkeypatch):
    """To the end, but where that needs a tree: those that wait for what it would have found wait no longer."""
    begin = kind.next

    def failing(self, *args):
        quantum = begin(self, *args)
        return quantum and replace(quantum, function=lambda *_: fail(0.0, 0.0))

    monkeypatch.setattr(kind, "next", failing)
    for exact in (False, True):
        model = frustrated(2, 10)
        truth = cz.exact(model)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            bracket = cz.bound(model, gap=1e-3, exact=exact, time=1.0 if kind is BranchAndBound else 30.0, threads=2)
        assert bracket.lower <= truth.upper and truth.lower <= bracket.upper
        assert bracket.gap <= 1e-3 or (kind is BranchAndBound and bracket.stopped_by == "time")
        words = [str(each.message) for each in told]
        assert words in ([], [f"{kind.name} ended: ValueError: no such luck"])
        assert kind.name not in bracket.gains.by_strategy() or kind in (TrivialBounds, exact_sum.ExactSum)


def test_a_limit_of_leaves_comes_into_force_though_bethe_fails(monkeypatch):
    from clampz.bounding.strategies.bethe import Bethe

    monkeypatch.setattr(Bethe, "_estimate", lambda *_: fail(0.0, 0.0))
    with pytest.warns(RuntimeWarning, match=r"^Bethe ended"):
        bracket = cz.bound(frustrated(2, 12), gap=0.0, exact=False, leaves=3, max_table=8, time=60.0)
    assert bracket.stopped_by == "leaves"
