"""Making runs: on cores and on a cluster, with workers that die, runs that fail, and Ctrl-C.  What a run finds is made
up here; it takes no time."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import clampz as cz
from clampz.paper import running
from clampz.paper.families import FAMILIES
from clampz.paper.running import (
    ClusterError,
    Lines,
    Outcome,
    Pace,
    Summary,
    connected,
    cost,
    in_order,
    make_runs,
    num_cores,
    on_cluster,
    on_cores,
)
from clampz.paper.runs import Finished, Row, Task
from clampz.paper.store import Store

TASKS = [Task("paper", "errors", "complete10[0,2]", run) for run in range(6)]
# Where the workers of these tests leave traces.
TRACES = "CLAMPZ_TEST_TRACES"


def stand_in(task: Task) -> Finished:
    """A run of made-up numbers."""
    return Finished(
        task,
        seed=task.run,
        num_variables=10,
        num_edges=45,
        exact=1.0,
        seconds=0.01,
        rows=(Row("trw", "none", 0, None, 1.0 + task.run, True, 1),),
    )


def leave_trace(task: Task) -> int:
    """How often this has been called for a task, this time included."""
    traces = list(Path(os.environ[TRACES]).glob(f"{task.run}-*"))
    (Path(os.environ[TRACES]) / f"{task.run}-{len(traces)}").touch()
    return len(traces) + 1


def unlucky(task: Task) -> Finished:
    """Two runs whose worker is killed the first time, one that kills it every time, and one that fails."""
    count = leave_trace(task)
    if task.run in (0, 3) and count == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.run == 2:
        os._exit(7)
    if task.run == 4:
        raise ValueError("no such\nluck")
    return stand_in(task)


def always_fails(task: Task) -> Finished:
    raise ValueError("never")


def takes_long(task: Task) -> Finished:
    leave_trace(task)
    time.sleep(60)
    return stand_in(task)


def says_how_it_runs(task: Task) -> Finished:
    threads, ignored = os.environ["OPENBLAS_NUM_THREADS"], signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    raise RuntimeError(
        f"{threads} thread, ignored {ignored}, main {threading.current_thread() is threading.main_thread()}"
    )


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv(TRACES, str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "results.sqlite") as store:
        store.make()
        yield store


def made(outcomes: Iterator[Outcome | None], store: Store, tasks: list[Task] = TASKS) -> Summary:
    summary = make_runs(outcomes, tasks, store, Lines())
    assert not multiprocessing.active_children()
    return summary


# -- on cores -----------------------------------------------------------------------------------------------------------------


def test_every_run_is_made_once(store, traces):
    summary = made(on_cores(TASKS, 2, stand_in), store)
    assert (summary.num_made, summary.failures, summary.interrupted, summary.gave_up) == (6, [], False, False)
    assert store.done() == set(TASKS)


def test_nothing_to_do_starts_nothing(store):
    assert made(on_cores([], 2, stand_in), store, []).num_made == 0


def test_a_worker_that_dies_costs_only_its_run_and_one_that_fails_is_reported(store, traces):
    failed, died = sorted(made(on_cores(TASKS, 2, unlucky), store).failures, key=lambda failure: -failure.task.run)
    assert (died.task.run, died.error) == (2, "its process died 3 times (exit code 7)")
    assert failed.task.run == 4
    assert failed.error.startswith("ValueError: no such luck (test_paper_running.py, line ")
    assert store.done() == set(TASKS) - {died.task, failed.task}
    assert {task.run: len(list(traces.glob(f"{task.run}-*"))) for task in TASKS} == {
        0: 2,
        1: 1,
        2: 1 + running.MAX_RETRIES,
        3: 2,
        4: 1,
        5: 1,
    }


def test_it_gives_up_when_all_runs_fail(store):
    tasks = [Task("paper", "errors", "complete10[0,2]", run) for run in range(100)]
    summary = made(on_cores(tasks, 1, always_fails), store, tasks)
    assert summary.gave_up
    assert len(summary.failures) == running.MAX_FAILURES


def test_workers_have_one_thread_and_leave_ctrl_c_to_us(store, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    (failure,) = made(on_cores(TASKS[:1], 2, says_how_it_runs), store).failures
    assert failure.error.startswith("RuntimeError: 1 thread, ignored True, main True")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "5"


def test_ctrl_c_stops_between_runs_and_keeps_what_is_made(store):
    before = signal.getsignal(signal.SIGINT)

    def outcomes() -> Iterator[Outcome | None]:
        yield Outcome(TASKS[0], stand_in(TASKS[0]))
        os.kill(os.getpid(), signal.SIGINT)
        yield Outcome(TASKS[1], stand_in(TASKS[1]))
        pytest.fail("went on")

    summary = made(outcomes(), store)
    assert (summary.num_made, summary.interrupted) == (2, True)
    assert store.done() == set(TASKS[:2])
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_workers_in_the_middle_of_a_run(store, traces):
    def press() -> None:
        while not any(traces.iterdir()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    assert made(on_cores(TASKS, 2, takes_long), store).interrupted


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_workers_do_not_outlive_a_main_process_that_is_killed(traces):
    psutil = pytest.importorskip("psutil")
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_paper_running as test
list(test.on_cores(test.TASKS, 2, test.takes_long))
"""
    main = subprocess.Popen([sys.executable, "-c", code])
    try:
        while not any(traces.iterdir()):
            time.sleep(0.05)
        children = psutil.Process(main.pid).children(recursive=True)
        assert len(children) >= 2
    finally:
        main.kill()
        main.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []


# -- on a cluster ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "tcp://no-such-host.invalid:8786", "host:port:8786", "http://127.0.0.1:9", ""]
)
def test_a_scheduler_that_does_not_answer_is_an_error(address):
    pytest.importorskip("distributed")
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers there within 0\.5 s") as raised,
        connected(address, seconds=0.5),
    ):
        pytest.fail("connected")
    assert "\n" not in str(raised.value)


def test_a_listener_that_says_nothing_is_no_scheduler():
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match="no Dask scheduler answers there"), connected(address, seconds=0.5):
            pytest.fail("connected")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'clampz\[cluster\]'"), connected("tcp://127.0.0.1:9"):
        pytest.fail("connected")


class FakeFuture:
    def __init__(self, result: object, status: str = "finished") -> None:
        self.result, self.status = result, status

    def release(self) -> None:
        pass


class FakeClient:
    """A cluster whose workers are of another version, or whose scheduler goes away."""

    status, loop = "running", None

    def __init__(self, version: str = cz.__version__, status: str = "finished") -> None:
        self.version, self.future_status, self.cancelled = version, status, list[FakeFuture]()

    def submit(self, function, perform, task, **options: object) -> FakeFuture:
        return FakeFuture((self.version, perform(task)), self.future_status)

    def cancel(self, futures: list[FakeFuture], force: bool) -> None:
        self.cancelled += futures


class FakeCompleted:
    def __init__(self, futures, loop: None, with_results: bool, raise_errors: bool) -> None:
        self.futures = list(futures)

    def has_ready(self) -> bool:
        return bool(self.futures)

    def next_batch(self, block: bool) -> list[tuple[FakeFuture, object]]:
        return [(future, future.result) for future in (self.futures.pop(0),)]


@pytest.fixture
def fake_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "as_completed", FakeCompleted)


def test_workers_of_another_version_are_refused(fake_dask):
    client = FakeClient(version="0.0.1")
    with pytest.raises(ClusterError, match=r"the workers have clampz 0\.0\.1"):
        list(on_cluster(client, TASKS, stand_in))
    assert len(client.cancelled) == len(TASKS) - 1


def test_a_scheduler_that_forgets_is_an_error(fake_dask):
    with pytest.raises(ClusterError, match="every finished run is kept"):
        list(on_cluster(FakeClient(status="cancelled"), TASKS, stand_in))


def test_stopping_cancels_the_rest(fake_dask):
    client = FakeClient()
    outcomes = on_cluster(client, TASKS, stand_in)
    assert next(outcomes) == Outcome(TASKS[0], stand_in(TASKS[0]))
    outcomes.close()
    assert len(client.cancelled) == len(TASKS) - 1


# -- order and pace ---------------------------------------------------------------------------------------------------------------


def test_a_short_run_is_first_then_rounds_with_the_long_ones_first_and_times_at_the_end():
    tasks = [
        Task("paper", part, family.name, run) for part in ("times", "errors") for family in FAMILIES for run in range(3)
    ]
    ordered = in_order(tasks)
    assert sorted(ordered) == sorted(tasks)
    assert cost(ordered[0]) == min(map(cost, tasks))
    errors = [task for task in ordered[1:] if task.part == "errors"]
    assert ordered[1:] == errors + [task for task in ordered if task.part == "times"]
    assert [task.run for task in errors] == sorted(task.run for task in errors)
    last = [cost(task) for task in errors if task.run == 2]
    assert last == sorted(last, reverse=True)
    assert in_order([]) == []
    assert in_order(reversed(tasks)) == ordered


def test_time_left_is_that_of_the_runs_left():
    clock = [0.0]
    tasks = [Task("paper", "errors", family, run) for family in ("grid25[0,2]", "grid81[-12,12]") for run in range(10)]
    pace = Pace(tasks, lambda: clock[0])
    assert pace.rate() == pace.left() == ""
    for task in tasks[:10]:  # ten seconds each, two at a time, the first one after compilation
        clock[0] += 5
        pace.add(Outcome(task, Finished(task, 0, 25, 50, 1.0, 10.0, ())))
    assert pace.rate() == "12.0 runs/min"
    ratio = cost(tasks[10]) / cost(tasks[0])
    assert pace.left() == f"{running.as_clock(10 * 10 * ratio / 2)} left"
    for task in tasks[10:15]:
        clock[0] += 10
        pace.add(Outcome(task, Finished(task, 0, 81, 162, 1.0, 20.0, ())))
    assert pace.left() == "0:50 left"
    assert pace.elapsed() == 100


def test_lines_come_every_now_and_then(monkeypatch, capsys):
    lines = Lines()
    lines.begin(TASKS)
    lines.show(None)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(Lines, "SECONDS", 0.0)
    for task in TASKS[:4]:
        lines.show(Outcome(task, stand_in(task)))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "1 of 6 runs"
    assert err.splitlines()[-1].startswith("4 of 6 runs, ")
    assert err.splitlines()[-1].endswith(" left")


def test_cores_are_those_this_process_may_use():
    assert 1 <= num_cores() <= (os.cpu_count() or 1)
