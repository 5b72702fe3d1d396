"""Making runs on cores, with workers that die, runs that fail, and Ctrl-C.  What a run finds is made up here; it takes
no time."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import made_up_runs
import pytest
from made_up_runs import ROOT, TASKS, TRACES, always_fails, says_how_it_runs, stand_in, takes_long, unlucky

from reproduction.runs.cores import MAX_RETRIES, num_cores, on_cores
from reproduction.runs.experiments import Outcome, Task
from reproduction.runs.making import MAX_FAILURES, Summary, make_runs
from reproduction.runs.store import Store


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
    summary = make_runs(outcomes, tasks, store)
    assert not multiprocessing.active_children()
    return summary


def test_every_run_is_made_once(store, traces):
    summary = made(on_cores(TASKS, 2, stand_in), store)
    assert (summary.num_made, summary.failures, summary.interrupted, summary.gave_up) == (6, [], False, False)
    assert store.done() == set(TASKS)


def test_nothing_to_do_starts_nothing(store):
    assert made(on_cores([], 2, stand_in), store, []).num_made == 0


@pytest.mark.large
def test_a_worker_that_dies_costs_only_its_run_and_one_that_fails_is_reported(store, traces):
    failed, died = sorted(made(on_cores(TASKS, 2, unlucky), store).failures, key=lambda failure: -failure.task.run)
    assert (died.task.run, died.error) == (2, "its process died 3 times (exit code 7)")
    assert failed.task.run == 4
    assert failed.error.startswith("ValueError: no such luck (made_up_runs.py, line ")
    assert store.done() == set(TASKS) - {died.task, failed.task}
    assert {task.run: len(list(traces.glob(f"{task.run}-*"))) for task in TASKS} == {
        0: 2,
        1: 1,
        2: 1 + MAX_RETRIES,
        3: 2,
        4: 1,
        5: 1,
    }


def test_it_gives_up_when_all_runs_fail(store):
    tasks = [Task("paper", "errors", "complete10[0,2]", run) for run in range(100)]
    summary = made(on_cores(tasks, 1, always_fails), store, tasks)
    assert summary.gave_up
    assert len(summary.failures) == MAX_FAILURES


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


@pytest.mark.large
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_workers_do_not_outlive_a_main_process_that_is_killed(traces):
    psutil = pytest.importorskip("psutil")
    code = f"""
import sys
sys.path.insert(0, {str(Path(made_up_runs.__file__).parent)!r})
from made_up_runs import TASKS, takes_long
from reproduction.runs.cores import on_cores
list(on_cores(TASKS, 2, takes_long))
"""
    main = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        while not any(traces.iterdir()):
            time.sleep(0.05)
        children = psutil.Process(main.pid).children(recursive=True)
        assert len(children) >= 2
    finally:
        main.kill()
        main.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_cores_are_those_this_process_may_use():
    assert 1 <= num_cores() <= (os.cpu_count() or 1)
