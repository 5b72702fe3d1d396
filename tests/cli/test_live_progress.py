"""Work that is watched: Ctrl-C, errors, and progress in words."""

import threading
import time
from dataclasses import replace

import pytest
from running import a_bracket, press_ctrl_c

import clampz as cz
from clampz._kernels import jit
from clampz.cli import live_progress
from clampz.cli.exit_codes import AbandonedError
from clampz.cli.live_progress import ProgressListener, run_interruptibly
from clampz.runtime.progress import in_lines


def test_ctrl_c_ends_work_with_what_it_has():
    listener = ProgressListener()

    def work(_: ProgressListener) -> int:
        progress = cz.results.Progress(
            method="trw", num_iter=1, residual=1.0, log_z=0.0, num_lanes=2, num_finished=0, seconds=0.0
        )
        for step in range(1000):
            try:
                listener(progress)
            except StopIteration:
                return step
            time.sleep(0.01)
        return -1

    press_ctrl_c(0.3)
    steps, interrupted = run_interruptibly(work, "working", listener)
    assert interrupted
    assert 0 < steps < 1000


def test_work_that_does_not_stop_is_given_up(monkeypatch):
    monkeypatch.setattr(live_progress, "GRACE", 0.2)
    press_ctrl_c(0.2)
    release, ended = threading.Event(), threading.Event()

    def endless(_: ProgressListener) -> None:
        release.wait()
        ended.set()

    with pytest.raises(AbandonedError):
        run_interruptibly(endless, "waiting")
    assert not ended.is_set()
    release.set()


def test_errors_of_work_are_raised():
    def broken(_: ProgressListener) -> None:
        raise cz.errors.ModelError("no good")

    with pytest.raises(cz.errors.ModelError, match="no good"):
        run_interruptibly(broken, "working")


def test_progress_is_a_line_of_words():
    listener = ProgressListener()
    assert listener.text("solving", 3.2) == "solving · 3 s, Ctrl-C stops"
    listener(
        cz.results.Progress(
            method="mean_field", num_iter=1200, residual=0.25, log_z=1.0, num_lanes=8, num_finished=3, seconds=1.0
        )
    )
    assert (
        listener.text("solving", 3.2)
        == "solving · mean field, 1,200 sweeps · 3 of 8 lanes done · 0.25 nats left to settle · 3 s, Ctrl-C stops"
    )


def test_kernels_that_are_compiled_for_long_are_mentioned_and_those_on_disk_are_not(monkeypatch):
    from numba.core import event

    now = [0.0]
    monkeypatch.setattr(jit, "perf_counter", lambda: now[0])
    for name in ("compiling", "compiling_anew"):
        monkeypatch.setattr(getattr(jit, name), "_total", 0.0)
    said = []
    for kind in ("numba:compiler_lock", "numba:compile"):
        with event.trigger_event(kind):
            now[0] += 0.5
            said.append(ProgressListener().text("solving", 1.2))
            now[0] += 2.0
            said.append(ProgressListener().text("solving", 3.2))
        said.append(ProgressListener().text("solving", 3.3))
    assert ["compiling kernels, once after installation" in text for text in said] == [False] * 4 + [True, False]


def test_progress_of_a_bracket_is_a_line_of_words():
    listener = ProgressListener()
    listener(replace(a_bracket(1.0001, 3.5), num_leaves=1200))
    assert (
        listener.text("solving", 3.2)
        == "solving · log Z in [1.000, 3.500] · gap 2.5 nats · 1,200 leaves · 3 s, Ctrl-C stops"
    )


def test_progress_is_broken_between_two_things_that_are_said():
    text = "solving · log Z in [1000.954, 1004.590] · gap 3.64 nats · 1 leaf · 4 s, Ctrl-C stops"
    assert in_lines(text, 120) == text
    lines = in_lines(text, 37).split("\n")
    assert max(map(len, lines)) <= 37
    assert lines == ["solving", "log Z in [1000.954, 1004.590]", "gap 3.64 nats · 1 leaf", "4 s, Ctrl-C stops"]
    assert in_lines("what does not fit is on a line of its own · all the same", 10).count("\n") == 1
