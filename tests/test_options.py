"""What stops a run: options out of range, time, the progress callback and Ctrl-C."""

import itertools
import signal
import subprocess
import sys

import numpy as np
import pytest

import clampz as cz

ITERATIVE = ["mean_field", "bethe", "trw"]
HARD = cz.generators.complete(12, weights=(-12, 12), rng=0)


@pytest.mark.parametrize("method", cz.methods())
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": -1e-3}, r"tol: expected a number of nats >= 0, found -0.001"),
        ({"tol": float("nan")}, r"tol: expected a number of nats >= 0, found nan"),
        ({"max_iter": 0}, r"max_iter: expected a whole number >= 1, found 0"),
        ({"max_iter": 2.5}, r"max_iter: expected a whole number >= 1, found 2.5"),
        ({"time": -1}, r"time: expected seconds >= 0, found -1"),
        ({"threads": 0}, r"threads: expected None or a whole number >= 1, found 0"),
        (
            {"tolerance": 1},
            r"unknown option 'tolerance'; did you mean 'tol'\?|unknown option 'tolerance'\. The options are tol",
        ),
        ({"thread": 1}, r"unknown option 'thread'; did you mean 'threads'\?"),
    ],
)
def test_options_out_of_range(method, changes, message):
    with pytest.raises(cz.OptionError, match=message):
        cz.methods()[method](HARD, **changes)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("trw", {"edge_weight": "uniform"}, "did you mean 'edge_weights'"),
        (
            "trw",
            {"edge_weights": "unifrom"},
            "edge_weights: expected one of uniform, sampled, optimized or an array, found 'unifrom'",
        ),
        ("trw", {"num_trees": 0}, "num_trees: expected a whole number >= 1, found 0"),
        ("trw", {"num_steps": 0}, "num_steps: expected a whole number >= 1, found 0"),
        ("bethe", {"num_start": 3}, "did you mean 'num_starts'"),
        ("bethe", {"num_starts": -1}, "num_starts: expected a whole number >= 0, found -1"),
        ("mean_field", {"num_starts": -1}, "num_starts: expected a whole number >= 0, found -1"),
        ("exact", {"memory": -1}, "memory"),
    ],
)
def test_options_of_each_method(method, changes, message):
    with pytest.raises(cz.OptionError, match=message):
        cz.methods()[method](HARD, **changes)


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


@pytest.mark.parametrize("method", ITERATIVE)
def test_running_out_of_sweeps_is_data(method):
    estimate = cz.methods()[method](HARD, tol=0.0, max_iter=7)
    assert (estimate.stopped_by, estimate.num_iter, estimate.converged) == ("max_iter", 7, False)
    assert "stopped by max_iter" in repr(estimate)


@pytest.mark.parametrize("method", ITERATIVE)
def test_progress_grows(method):
    seen = []
    estimate = cz.methods()[method](HARD, tol=0.0, max_iter=60, threads=1, progress=seen.append)
    assert all(isinstance(p, cz.Progress) and p.method == method for p in seen)
    counts = [p.num_iter for p in seen]
    assert counts[0] == 1 and estimate.num_iter <= counts[-1] <= 60
    assert counts[-1] == 60 or method == "mean_field"  # which may stop gaining, to the last digit
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


# -- Ctrl-C --------------------------------------------------------------------------------------------------------------------------

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
