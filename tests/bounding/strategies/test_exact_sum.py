"""The sum of a whole model beside a search: in slices, a bracket while it runs, and never where none is wanted."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies import exact_sum
from clampz.bounding.strategies.exact_sum import WholeWork
from clampz.bounding.tree import branch_and_bound
from clampz.exact_inference import cost, slices, slicing
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.slicing import Slicing
from clampz.model.batch import Batch
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew, finished


@pytest.fixture
def in_slices(monkeypatch):
    """Small sums are cut into slices as long ones are; the list has how many were summed at a time."""
    monkeypatch.setattr(cost, "CACHED_ENTRIES", 2.0**6)
    monkeypatch.setattr(slicing, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(slicing, "SLICE_SECONDS", 1.5 * cost.SECONDS_PER_SUM)
    monkeypatch.setattr(branch_and_bound, "FINISH_SECONDS", 0.0)
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
    for name in ("plan_in_a_moment", "start_plan", "start_count", "simplify_once"):
        monkeypatch.setattr(branch_and_bound, name, lambda *args, **options: pytest.fail("the whole was looked at"))
    monkeypatch.setattr(slicing.Slicer, "plan", lambda *args, **options: pytest.fail("a sum was planned"))
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    found = cz.bound(model, exact=False, gap=0.5, leaves=4, time=10.0)
    assert not in_slices and found.lower < found.upper


def test_slices_that_are_done_and_bounds_on_the_others_are_ends_of_the_whole():
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    truth, work = cz.exact(model), WholeWork()
    plan = Slicing((5, 6, 9, 10), 1e9, 16, num_workers=2)  # one slice at a time
    ends = []
    with Crew(None, 2) as crew:
        work.add_sum(ExactPlan(Batch.of(model), None, False, slices=plan), BoundOptions(), crew, Budget())
        pending = {}
        while not work.summed or pending:  # the slices may be done before the bounds on them
            while (begun := work.next(crew, len(pending))) is not None:
                pending[begun[0]] = begun[1]
            assert sum(asked.by == "slices" for asked in pending.values()) <= 2
            for job in finished(pending, 1.0):
                asked = pending.pop(job)
                ends.append((asked.by, *work.take(asked, job.result())))
    assert [by for by, *_ in ends].count("bounds") == 1 and [by for by, *_ in ends].count("slices") == 16
    lower, upper = -math.inf, math.inf
    for _, low, high in ends:
        assert lower <= low <= truth.upper and truth.lower <= high <= upper
        lower, upper = low, high
    assert upper - lower < 1e-9


@pytest.mark.parametrize(("threads", "time", "most"), [(1, 1e9, 1), (4, 1e9, 4), (4, 1.0, 3)])
def test_a_sum_that_is_done_soon_has_all_workers(threads, time, most):
    """One that may not be leaves somebody for bounds."""
    model, work, num_begun = cz.generators.grid(3, 3, rng=0), WholeWork(), 0
    with Crew(None, threads) as crew:
        plan = Slicing(tuple(range(9)), 1e7, 512, num_workers=threads)
        work.add_sum(ExactPlan(Batch.of(model), None, False, slices=plan), BoundOptions(), crew, Budget(time))
        while (begun := work.next(crew, 99)) is not None:
            num_begun += begun[1].by == "slices"
            begun[0].result()
    assert num_begun == most


def test_methods_wait_until_a_worker_has_time():
    work, begun = WholeWork(), []
    with Crew(None, 2) as crew:
        for k in range(3):
            work.add(lambda k=k: begun.append(k) or crew.submit(lambda: (float(k), math.inf)))
        jobs = []
        while (one := work.next(crew, len(jobs))) is not None:
            jobs.append(one)
        assert begun == [0, 1]
        assert [work.take(asked, job.result()) for job, asked in jobs] == [(0.0, math.inf), (1.0, math.inf)]
        assert work.next(crew, 0) is not None and begun == [0, 1, 2] and not work.summed
