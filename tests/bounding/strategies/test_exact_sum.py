"""The sum of a whole model beside a search: in slices, a bracket while it runs, and never where none is wanted."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.options import BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import counting, exact_sum
from clampz.bounding.strategies.exact_sum import ExactSum
from clampz.exact_inference import cost, slices, slicing
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.slicing import Slicing
from clampz.model.batch import Batch
from clampz.runtime.budget import Budget


@pytest.fixture
def in_slices(monkeypatch):
    """Small sums are cut into slices as long ones are; the list has how many were summed at a time."""
    monkeypatch.setattr(cost, "CACHED_ENTRIES", 2.0**6)
    monkeypatch.setattr(slicing, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(slicing, "SLICE_SECONDS", 1.5 * cost.SECONDS_PER_SUM)
    monkeypatch.setattr(exact_sum, "FINISH_SECONDS", 0.0)
    summed = []

    def counted(*work):
        summed.append(work[1].shape[1])
        return slices.sum_slices(*work)

    monkeypatch.setattr(exact_sum, "sum_slices", counted)
    return summed


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_sums_the_whole_in_slices(in_slices, threads):
    model = cz.generators.grid(5, 5, weights=(-3, 3), rng=0)
    truth = cz.exact(model)
    found = list(cz.iter_bounds(model, gap=0.0, time=60.0, threads=threads, max_iter=5))
    assert sum(in_slices) >= threads and found[-1].stopped_by == "exact"
    for bracket in found:
        assert bracket.lower <= truth.upper and truth.lower <= bracket.upper
    assert found[-1].gap < 1e-9


@pytest.mark.parametrize("kind", ["pairwise", "factors", "zeros"])
def test_slices_of_a_search_are_of_the_users_model(in_slices, kind):
    rng = np.random.default_rng(0)
    factors = [((i, (i + 1) % 9, (i + 4) % 9), rng.normal(size=(2, 2, 2))) for i in range(9)]
    if kind == "pairwise":
        factors = [(scope[:2], table[0]) for scope, table in factors] + [((0, 4), rng.normal(size=(2, 2)))]
    elif kind == "zeros":
        factors = [(scope, np.where(rng.random((2, 2, 2)) < 0.3, -np.inf, table)) for scope, table in factors]
    model = cz.Model.from_factors([2] * 9, factors)
    truth, found = cz.exact(model), cz.bound(model, gap=0.0, time=60.0, threads=1)
    assert found.lower <= truth.upper and truth.lower <= found.upper and found.gap < 1e-9


def test_without_exact_sums_there_are_no_slices(in_slices, monkeypatch):
    monkeypatch.setattr(exact_sum, "Slices", lambda *args: pytest.fail("a sum was begun"))
    for home, name in (
        (exact_sum, "plan_in_a_moment"),
        (exact_sum, "plan_whole"),
        (counting, "count"),
        (Problem, "presolve"),
    ):
        monkeypatch.setattr(home, name, lambda *args, **options: pytest.fail("the whole was looked at"))
    monkeypatch.setattr(slicing.Slicer, "plan", lambda *args, **options: pytest.fail("a sum was planned"))
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    found = cz.bound(model, exact=False, gap=0.5, leaves=4, time=10.0)
    assert not in_slices and found.lower < found.upper


def planned(model, plan, budget, num_workers, monkeypatch):
    """The strategy once it knows how to sum a model."""
    whole = ExactPlan(Batch.of(model), None, False, slices=plan)
    monkeypatch.setattr(exact_sum, "plan_whole", lambda *args: whole)
    strategy = ExactSum(Problem(model, BoundOptions()))
    done(strategy, strategy.next(1.0, budget, num_workers))
    assert strategy.problem.facts.plan is whole and strategy.problem.facts.is_summing
    return strategy


def done(strategy, quantum):
    """Have a quantum done, and the strategy take what came of it."""
    local = () if quantum.where == "anywhere" else (quantum.budget,)  # as another process has it
    strategy.take(quantum, quantum.function(*quantum.args, *local))


def under_way(strategy, budget, num_workers):
    """All quanta that may be under way at once."""
    return list(iter(lambda: strategy.next(1.0, budget, num_workers), None))


def test_slices_that_are_done_and_bounds_on_the_others_are_ends_of_the_whole(monkeypatch):
    model, budget = cz.generators.grid(4, 4, weights=(-3, 3), rng=0), Budget()
    truth = cz.exact(model)
    plan = Slicing((5, 6, 9, 10), 1e9, 16, num_workers=2)  # one slice at a time
    strategy = planned(model, plan, budget, 2, monkeypatch)
    problem, before, labels = strategy.problem, strategy.problem.ends, []
    assert strategy.seconds_left(2) == pytest.approx(plan.duration)
    while quanta := under_way(strategy, budget, 2):
        assert sum(quantum.label is exact_sum.sum_slices for quantum in quanta) == 2
        assert strategy.bytes_needed() == plan.num_bytes
        for quantum in quanta:
            done(strategy, quantum)
            labels.append(quantum.label)
            lower, upper = problem.ends
            assert before[0] <= lower <= truth.upper and truth.lower <= upper <= before[1]
            before = lower, upper
            num_done = labels.count(exact_sum.sum_slices)
            assert strategy.seconds_left(2) == pytest.approx(plan.duration * (1 - num_done / 16))
    assert labels.count(exact_sum.bound_slices) == 1 and labels.count(exact_sum.sum_slices) == 16
    assert problem.closed and problem.gap < 1e-9


@pytest.mark.parametrize(("num_workers", "time", "most"), [(1, 1e9, 1), (4, 1e9, 4), (4, 1.0, 3)])
def test_a_sum_that_is_done_soon_has_all_workers(num_workers, time, most, monkeypatch):
    """One that may not be leaves somebody for bounds."""
    plan = Slicing(tuple(range(9)), 1e7, 512, num_workers=num_workers)
    strategy = planned(cz.generators.grid(3, 3, rng=0), plan, Budget(time), num_workers, monkeypatch)
    assert len(under_way(strategy, Budget(time), num_workers)) == most


def test_where_there_is_no_plan_workers_have_its_memory(monkeypatch):
    """Also where time is over before the sum is; where a plan is fixed nothing depends on when that is known."""
    monkeypatch.setattr(exact_sum, "plan_whole", lambda *args: None)
    for options, share in ({}, 0.8), ({"max_table": 8, "leaves": 4}, 0.3):
        strategy = ExactSum(Problem(cz.generators.grid(3, 3, rng=0), BoundOptions(memory="60MB", threads=2, **options)))
        assert strategy.problem.worker_bytes == pytest.approx(0.3 * 60e6 / 2)
        done(strategy, strategy.next(1.0, Budget(60.0), 2))
        assert strategy.is_done and strategy.problem.facts.is_planned
        assert strategy.problem.worker_bytes == pytest.approx(share * 60e6 / 2)
        assert strategy.problem.frontier.options.worker_bytes == strategy.problem.worker_bytes


def test_a_sum_whose_time_is_over_makes_room(monkeypatch):
    """As soon as what is under way is in."""
    plan, budget = Slicing(tuple(range(9)), 1e7, 512), Budget()
    strategy = planned(cz.generators.grid(3, 3, rng=0), plan, budget, 1, monkeypatch)
    (last,) = under_way(strategy, budget, 1)
    last.budget.end()
    assert strategy.next(1.0, budget, 1) is None and not strategy.is_done
    done(strategy, last)
    assert strategy.is_done and not strategy.problem.facts.is_summing and strategy.seconds_left(1) == math.inf
    idle = planned(cz.generators.grid(3, 3, rng=0), plan, budget, 1, monkeypatch)
    idle._until.end()
    assert idle.next(1.0, budget, 1) is None and idle.is_done
