"""What stops a run: time, sweeps, the progress callback and Ctrl-C."""

import itertools
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import clampz as cz
from clampz._kernels.jit import compiling
from clampz.approximations.trw import ROUGH
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled, end_at_once, on_ctrl_c

ITERATIVE = ["mean_field", "bethe", "trw"]
HARD = cz.generators.complete(12, weights=(-12, 12), rng=0)


def test_a_watch_stops_on_time_and_on_the_callback():
    budget = Budget(0.0)
    assert budget.must_stop()
    assert budget.stopped_by == "time"

    def stop(progress):
        raise StopIteration

    budget = Budget(progress=stop)
    assert not budget.must_stop()
    budget.report("m", 1, residual=1.0, log_z=0.0, num_lanes=1, num_finished=0)
    assert budget.must_stop()
    assert budget.stopped_by == "callback"


def test_the_first_interrupt_stops_a_run_and_the_second_is_as_usual():
    budget = Budget()
    with pytest.raises(KeyboardInterrupt), budget.interruptible():
        signal.raise_signal(signal.SIGINT)
        assert budget.must_stop()
        assert budget.stopped_by == "interrupt"
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def until_raised(cancel_flag):
    """Work that ends when it is told to."""
    while not cancel_flag[0]:
        time.sleep(0.001)
    return "ended"


def test_work_that_takes_long_is_told_when_time_is_up_and_when_the_whole_is():
    budget = Budget(0.05)
    assert budget.run(until_raised) == "ended" and budget.stopped_by == "time"
    whole = Budget(stop=lambda: True)
    share = whole.share()
    assert share.run(until_raised) == "ended" and share.stopped_by == "interrupt"
    with pytest.raises(ZeroDivisionError):
        Budget().run(lambda cancel_flag: 1 / 0)


def test_work_that_takes_long_hears_ctrl_c():
    budget = Budget()
    with budget.interruptible():
        assert (
            budget.run(lambda cancel_flag: (signal.raise_signal(signal.SIGINT), until_raised(cancel_flag))[1])
            == "ended"
        )
    assert budget.stopped_by == "interrupt"


def test_a_ctrl_c_that_interrupts_as_usual_ends_that_work_too():
    ended = []

    def work(cancel_flag):
        signal.raise_signal(signal.SIGINT)
        ended.append(until_raised(cancel_flag))

    with pytest.raises(KeyboardInterrupt), on_ctrl_c(end_at_once):
        Budget().run(work)
    assert ended == ["ended"]


def test_a_watch_can_be_used_again_after_an_interrupt():
    """One that many share, as `UNLIMITED` is, does not stay stopped."""
    with pytest.raises(KeyboardInterrupt), on_ctrl_c(end_at_once):
        UNLIMITED.run(lambda cancel_flag: (signal.raise_signal(signal.SIGINT), until_raised(cancel_flag)))
    assert not UNLIMITED.cancel_flag[0] and not UNLIMITED.must_stop()


def test_only_a_run_that_ended_a_while_ago_is_overdue():
    budget = Budget(0.0, grace=0.05)
    assert budget.must_stop() and not budget.is_cancelled()
    time.sleep(0.06)
    assert budget.is_cancelled()
    assert not Budget().is_cancelled()


def test_work_that_takes_longer_than_there_is_time_is_overdue_before_it_begins():
    whole = Budget(100.0)
    for budget in (whole, whole.share(0.0)):
        assert not budget.is_cancelled() and not budget.is_cancelled(after=90.0)
        assert budget.is_cancelled(after=101.0)
        with pytest.raises(Cancelled):
            budget.check_cancelled(after=101.0)
    assert not Budget().is_cancelled(after=1e9)
    whole.stop("interrupt")
    assert whole.is_cancelled(after=1.0)


def test_a_share_is_overdue_with_the_whole_of_it():
    over = []
    whole = Budget(stop=lambda: bool(over), grace=0.0)
    share = Budget(0.0, within=whole, grace=0.0)
    time.sleep(0.001)
    assert share.must_stop() and not share.is_cancelled()  # the whole has time for the least answer
    over.append(True)
    assert whole.must_stop()
    time.sleep(0.001)
    assert share.is_cancelled() and whole.share().is_cancelled()
    assert not Budget(within=whole, grace=math.inf).is_cancelled()


def test_compiling_takes_no_time_on_the_clock():
    budget = Budget(0.05)
    compiling.on_start(None)
    time.sleep(0.1)
    assert not budget.must_stop()  # still compiling
    compiling.on_end(None)
    assert budget.left() > 0.0
    time.sleep(0.06)
    assert budget.must_stop()


@pytest.mark.parametrize("method", ITERATIVE)
def test_no_time_at_all_still_gives_an_answer(method):
    estimate = cz.methods()[method](HARD, time=0.0, tol=0.0)
    assert estimate.stopped_by == "time" and not estimate.converged
    assert estimate.num_iter == 1  # a first look, and no more
    assert np.isfinite(estimate.value) and "stopped by time" in repr(estimate)
    exact = cz.exact(HARD)
    assert estimate.lower <= exact.upper and estimate.upper >= exact.lower


def test_no_time_for_optimized_weights():
    estimate = cz.trw(HARD, time=0.0, edge_weights="optimized")
    assert estimate.stopped_by == "time" and estimate.upper >= cz.exact(HARD).lower


def test_weights_that_were_stopped_have_not_converged():
    """Also where the messages had, under the weights so far."""
    for tol in (1e-3, 1e-2):
        reports = []

        def stop(progress, tol=tol, reports=reports):
            reports.append(progress)
            if progress.residual <= max(tol, ROUGH):
                raise StopIteration

        estimate = cz.trw(HARD, edge_weights="optimized", tol=tol, progress=stop)
        assert reports[-1].residual <= ROUGH
        assert estimate.stopped_by == "callback" and not estimate.converged


@pytest.mark.parametrize("method", ITERATIVE)
def test_running_out_of_sweeps_is_data(method):
    estimate = cz.methods()[method](HARD, tol=0.0, max_iter=7)
    assert (estimate.stopped_by, estimate.num_iter, estimate.converged) == ("max_iter", 7, False)
    assert "stopped by max_iter" in repr(estimate)


@pytest.mark.parametrize("method", ITERATIVE)
def test_progress_grows(method):
    seen = []
    estimate = cz.methods()[method](HARD, tol=0.0, max_iter=60, threads=1, progress=seen.append)
    assert all(isinstance(p, cz.results.Progress) and p.method == method for p in seen)
    counts = [p.num_iter for p in seen]
    assert counts[0] == 1 and estimate.num_iter <= max(counts) <= 60
    assert max(counts) == 60 or method == "mean_field"  # which may stop gaining, to the last digit
    if method != "bethe":  # whose starts come to the next loop when each of them is ready for it
        assert all(a < b for a, b in itertools.pairwise(counts))
    assert all(0 <= p.num_finished <= p.num_lanes and p.residual >= 0 and np.isfinite(p.log_z) for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    assert seen[-1].num_finished == seen[-1].num_lanes


@pytest.mark.parametrize("method", ITERATIVE)
def test_the_callback_can_stop_a_run(method):
    seen = []

    def stop_after_three(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise StopIteration

    estimate = cz.methods()[method](HARD, tol=0.0, max_iter=100_000, threads=1, progress=stop_after_three)
    assert estimate.stopped_by == "callback" and not estimate.converged
    assert estimate.num_iter < 100 and np.isfinite(estimate.value)


@pytest.mark.parametrize("method", ITERATIVE)
def test_other_exceptions_of_the_callback_are_not_swallowed(method):
    def fail(progress):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        cz.methods()[method](HARD, progress=fail)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_stopping_a_batch_stops_all_its_lanes():
    def stop(progress):
        raise StopIteration

    estimates = cz.trw(HARD, evidence=[{0: 0}, {0: 1}, {1: 0}] * 10, tol=0.0, threads=2, progress=stop)
    assert set(estimates.stopped_by) == {"callback"}
    assert np.isfinite(estimates.upper).all()


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

SCRIPT = """
import signal, sys
import clampz as cz

def tell(progress):
    if progress.num_iter > 1:
        print("iterating", flush=True)

model = cz.generators.grid(60, 60, rng=0)
estimate = cz.methods()[sys.argv[1]](model, tol=0.0, max_iter=10**9, progress=tell)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("stopped by", estimate.stopped_by, estimate.converged, estimate.num_iter > 1, flush=True)
print(estimate)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are not sent on Windows")
@pytest.mark.parametrize("method", ["trw", "bethe"])
def test_ctrl_c_returns_what_there_is(method):
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, method], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline().strip() == "iterating", process.stderr.read()
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, error
    lines = [line for line in out.splitlines() if line != "iterating"]
    assert lines[0] == "stopped by interrupt False True"
    assert lines[1].startswith(f"Estimate({method}: log Z = ") and "stopped by interrupt" in lines[1]


def test_a_handler_of_the_programs_own_is_left_alone():
    seen = []
    previous = signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
    try:
        estimate = cz.trw(
            HARD, max_iter=5, tol=0.0, progress=lambda _: signal.raise_signal(signal.SIGINT) if not seen else None
        )
        assert seen == ["mine"] and estimate.stopped_by == "max_iter"
    finally:
        signal.signal(signal.SIGINT, previous)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_share_lasts_no_longer_than_the_whole():
    whole = Budget(100.0)
    half = whole.share(0.5)
    assert 0.0 < half.left() <= 50.0 < whole.left() <= 100.0
    assert half.left(0.5) <= 25.0
    assert Budget().left() == math.inf


def test_a_share_stops_when_the_whole_does_and_not_the_other_way():
    whole = Budget(100.0)
    share = whole.share()
    share.stopped_by = "callback"
    assert share.must_stop() and share.left() == 0.0 and not whole.must_stop()
    other = whole.share().share()
    whole.stopped_by = "interrupt"
    assert other.must_stop() and other.stopped_by == "interrupt" and other.left() == 0.0


def test_no_time():
    budget = Budget(0.0)
    assert budget.must_stop() and budget.stopped_by == "time"


def test_the_caller_is_asked():
    over = False
    budget = Budget(stop=lambda: over)
    share = budget.share()
    assert not share.must_stop()
    over = True
    assert share.must_stop() and share.stopped_by == "interrupt" and budget.stopped_by == "interrupt"
