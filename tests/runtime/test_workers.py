"""Crews: results do not depend on which worker has a job, and what an executor loses is done here."""

import math
import os
import subprocess
import sys
import threading
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import suppress

import pytest
from random_models import frustrated

import clampz as cz
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.workers import Crew, finished, run_jobs


def dead_pool():
    """Processes that end before they have begun."""
    return ProcessPoolExecutor(2, initializer=os._exit, initargs=(1,))


class Breaking(Executor):
    """Does some jobs, keeps the next one waiting, and breaks with it at the one after, or in a while."""

    def __init__(self, num_done):
        self.num_done = num_done
        self.waiting = None

    def submit(self, function, /, *args, **options):
        if self.waiting is not None:
            if not self.waiting.done():
                self.waiting.set_exception(BrokenExecutor("gone"))
            raise BrokenExecutor("gone")
        future = Future()
        if self.num_done:
            self.num_done -= 1
            future.set_result(function(*args, **options))
        else:
            self.waiting = future
            threading.Timer(0.5, self.give_up).start()
        return future

    def give_up(self):
        with suppress(InvalidStateError):
            self.waiting.set_exception(BrokenExecutor("gone"))


@pytest.fixture
def pools(monkeypatch):
    """All pools of threads that are made."""
    made = []
    init = ThreadPoolExecutor.__init__

    def recorded(self, *args, **options):
        made.append(self)
        init(self, *args, **options)

    monkeypatch.setattr(ThreadPoolExecutor, "__init__", recorded)
    return made


def end_or_add(a, b):
    """Ends its process, if that is not the one of the tests."""
    if os.getpid() != TESTS:
        os._exit(1)
    return a + b


TESTS = os.getpid()


def test_work_that_a_pool_loses_is_done_here():
    with ProcessPoolExecutor(2) as pool, Crew(pool, 2) as crew:
        jobs = [crew.submit(end_or_add, k, 1) for k in range(20)]
        assert [job.result() for job in jobs] == list(range(1, 21))
        assert crew.executor is None  # left for good
        assert crew.submit(end_or_add, 5, 1).result() == 6


def shut_down():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def map_on(executor, num_threads, function, items):
    """The function of each item's arguments, in order: by an executor, or by threads here should it break."""
    with Crew(executor, num_threads) as crew:
        return [job.result() for job in [crew.submit(function, *item) for item in items]]


@pytest.mark.parametrize(
    "make", [dead_pool, shut_down, lambda: Breaking(3), lambda: ThreadPoolExecutor(1), lambda: None]
)
def test_results_come_in_order_whoever_does_the_work(make):
    executor = make()
    assert map_on(executor, 2, math.pow, [(k, 2) for k in range(10)]) == [k * k for k in range(10)]
    if executor is not None:
        executor.shutdown()


def test_what_was_cancelled_elsewhere_is_done_here():
    class Cancelling(Executor):
        def submit(self, function, /, *args, **options):
            future = Future()
            future.cancel()
            return future

    assert map_on(Cancelling(), 1, math.sqrt, [(4.0,)]) == [2.0]


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_errors_of_the_work_itself_are_raised(pool):
    with pool(1) as executor, pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input"):
        map_on(executor, 1, math.sqrt, [(-1.0,)])


def test_more_arguments_in_this_process():
    with Crew(None, 1) as crew:
        assert crew.submit(max, 1, 2, local_args=(3,)).result() == 3
    with ProcessPoolExecutor(1) as pool, Crew(pool, 1) as crew:
        assert crew.submit(max, 1, 2, local_args=(3,)).result() == 2
    with dead_pool() as pool, Crew(pool, 1) as crew:
        assert crew.submit(max, 1, 2, local_args=(3,)).result() == 3


def test_finished_jobs():
    executor = Breaking(1)
    with Crew(executor, 1) as crew:
        done, waiting = crew.submit(max, 1, 2), crew.submit(max, 3, 4)
        assert finished([done, waiting], 0.0) == [done]
        executor.waiting.set_exception(BrokenExecutor("gone"))
        assert finished([done, waiting], 10.0)
        assert waiting.result() == 4


def test_jobs_are_submitted_as_workers_get_free_and_come_with_their_labels():
    submitted = []

    def jobs(crew):
        for k in range(20):
            submitted.append(k)
            yield k, crew.submit(max, k, 5)

    with Crew(None, 2) as crew:
        found = {}
        for label, result in run_jobs(jobs(crew), UNLIMITED, 3):
            found[label] = result
            assert len(submitted) <= len(found) + 5
        assert found == {k: max(k, 5) for k in range(20)}


@pytest.mark.parametrize("ended", ["before", "during", "by the caller"])
def test_no_job_is_submitted_after_the_end(ended):
    budget, release, jobs = Budget(0.0 if ended == "before" else math.inf, grace=0.0), threading.Event(), []

    def submitted(crew):
        for k in range(100):
            jobs.append(crew.submit(max, 0, k) if k < 2 else crew.submit(release.wait))
            yield k, jobs[-1]

    with Crew(None, 1) as crew:
        for label, _ in run_jobs(submitted(crew), budget, 4):
            if ended == "during":
                budget.stop("interrupt")
            elif label == 1:
                break
        release.set()
    assert len(jobs) == 0 if ended == "before" else len(jobs) <= 7 and jobs[-1].future.cancelled()


def test_a_job_is_waited_for_until_the_budget_ends():
    release = threading.Event()
    with Crew(None, 1) as crew:
        job = crew.submit(release.wait)
        assert not job.is_done_within(Budget(0.01))
        release.set()
        assert job.is_done_within(Budget(10.0))


def test_own_threads_are_dismissed(pools):
    with Crew(None, 1) as crew:
        crew.submit(max, 1, 2).result()
    assert pools and all(pool._shutdown for pool in pools)


# -- where executors are taken -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dead_pool, lambda: Breaking(2), lambda: Breaking(5)])
def test_a_bracket_survives_its_executor(make, pools):
    model = frustrated(8, 9)
    executor = make()
    bracket = cz.bound(model, gap=1e-4, exact=False, executor=executor, threads=1, time=60)
    assert bracket.gap <= 1e-4 and bracket.lower <= cz.exact(model).log_z <= bracket.upper
    executor.shutdown()
    assert pools and all(pool._shutdown for pool in pools)


def test_a_sum_over_the_whole_survives_its_executor():
    model = cz.generators.grid(5, 5, rng=0)
    with dead_pool() as pool:
        bracket = cz.bound(model, executor=pool)
    assert bracket.stopped_by == "exact" and bracket.gap < 1e-9


def test_intervals_survive_their_executor():
    model = frustrated(8, 6)
    with dead_pool() as pool:
        found = cz.bound_marginals(model, gap=0.2, exact=False, executor=pool, time=30)
    truth = cz.exact(model)
    for i in range(model.num_variables):
        assert (found.lower[i] <= truth.marginals[i]).all() and (truth.marginals[i] <= found.upper[i]).all()


@pytest.mark.parametrize("make", [dead_pool, lambda: Breaking(5)])
def test_clamping_survives_its_executor(make):
    model = cz.generators.complete(8, weights=(-4, 4), rng=0)
    here = cz.clamp(model, "trw", k=5, select="maxW", executor=ThreadPoolExecutor(1))
    with make() as executor:
        elsewhere = cz.clamp(model, "trw", k=5, select="maxW", executor=executor)
    assert elsewhere.variables == here.variables
    assert (elsewhere.branches.upper == here.branches.upper).all()
    assert [step.log_z for step in elsewhere.steps] == [step.log_z for step in here.steps]


# -- Dask --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dask_client():
    """A client of a cluster of two threads of this process."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_dask_client_does_the_work(dask_client):
    with Crew(dask_client, 2) as crew:
        assert crew.submit(threading.current_thread).result() is not threading.current_thread()
        first, second = (crew.submit(os.urandom, 8) for _ in range(2))
        assert first.result() != second.result()  # the same call again is made again


def test_a_bracket_by_a_dask_client_is_the_one_by_threads(dask_client):
    model, plan = frustrated(8, 9), {"exact": False, "leaves": 12, "max_table": 8, "gap": 0.0, "threads": 2}
    here = cz.bound(model, **plan)
    there = cz.bound(model, executor=dask_client, **plan)
    assert (there.lower, there.upper, there.num_leaves) == (here.lower, here.upper, here.num_leaves)
    assert there.lower <= cz.exact(model).log_z <= there.upper


def test_clamping_and_intervals_take_a_dask_client(dask_client):
    model = frustrated(8, 6)
    here, there = (cz.clamp(model, "trw", k=3, select="maxW", executor=each) for each in (None, dask_client))
    assert there.variables == here.variables and there.log_z == pytest.approx(here.log_z, abs=1e-9)
    found = cz.bound_marginals(model, gap=0.2, exact=False, executor=dask_client, time=30)
    truth = cz.exact(model)
    for i in range(model.num_variables):
        assert (found.lower[i] <= truth.marginals[i]).all() and (truth.marginals[i] <= found.upper[i]).all()


def test_dask_is_not_imported_for_those_who_do_not_use_it():
    code = "import sys, clampz as cz; cz.bound(cz.generators.cycle(3, rng=0)); sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("executor", ["tcp://127.0.0.1:8786", 2, object()])
def test_what_is_no_executor_is_refused(executor):
    model, expected = frustrated(8, 6), r"executor: expected a concurrent\.futures\.Executor or a Dask Client, found"
    for call in (cz.bound, cz.bound_marginals):
        with pytest.raises(cz.errors.OptionError, match=expected):
            call(model, executor=executor, exact=False)
    with pytest.raises(cz.errors.OptionError, match=expected):
        cz.clamp(model, "trw", k=2, executor=executor)
