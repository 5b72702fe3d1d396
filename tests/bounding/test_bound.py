"""`bound` and `iter_bounds`: options, callbacks, Ctrl-C, loops that are left, and searches in files, resumed later."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from random_models import frustrated

import clampz as cz


def test_the_trace_is_monotone():
    trace = cz.bound(frustrated(1, 9), gap=1e-6, exact=False, leaves=60, time=30).trace
    assert (
        len(trace) > 3
        and (np.diff([p.lower for p in trace]) >= 0).all()
        and (np.diff([p.upper for p in trace]) <= 0).all()
    )
    assert (np.diff([p.seconds for p in trace]) >= 0).all()


def test_progress_may_stop_it():
    seen = []

    def enough(bracket):
        seen.append(bracket)
        if len(seen) == 2:
            raise StopIteration

    assert (
        cz.bound(frustrated(6, 10), gap=0.0, exact=False, progress=enough, time=20).stopped_by == "callback"
        and len(seen) == 2
    )


def test_ctrl_c_returns_what_there_is():
    model = cz.generators.complete(20, weights=(-6, 6), rng=0)
    truth = cz.exact(model)

    def interrupt(bracket):
        if len(bracket.trace) == 3:
            signal.raise_signal(signal.SIGINT)

    bracket = cz.bound(model, gap=0.0, exact=False, time=600, progress=interrupt)
    assert bracket.stopped_by == "interrupt" and len(bracket.trace) == 4
    assert bracket.lower < bracket.upper and bracket.lower <= truth.upper and truth.lower <= bracket.upper


def test_ctrl_c_is_heard_while_workers_are_busy():
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    bracket = cz.bound(cz.generators.complete(40, weights=(-6, 6), rng=0), gap=0.0, time=600)
    assert bracket.stopped_by == "interrupt" and bracket.lower < bracket.upper


def test_the_caller_is_asked_whether_to_stop():
    asked = []
    bracket = cz.bound(
        frustrated(6, 10), gap=0.0, exact=False, time=600, stop=lambda: len(asked) > 50 or asked.append(1)
    )
    assert bracket.stopped_by == "interrupt" and bracket.lower < bracket.upper


def test_a_loop_may_be_left():
    for bracket in cz.iter_bounds(frustrated(7, 10), exact=False, time=20):
        if bracket.gap < 20:
            break
    assert bracket.stopped_by == "left"


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors(pool):
    model = frustrated(8, 9)
    with pool(2) as executor:
        bracket = cz.bound(model, gap=0.5, exact=False, executor=executor, time=60)
    assert bracket.gap <= 0.5 and bracket.lower <= cz.exact(model).log_z <= bracket.upper


def test_a_lost_worker_loses_only_work():
    """A process of the pool is killed on the way: the pool is broken, and the rest is done here."""
    model = frustrated(8, 10)
    with ProcessPoolExecutor(2) as executor:
        killed = []

        def kill(bracket):
            if not killed and executor._processes:
                killed.append(next(iter(executor._processes)))
                os.kill(killed[0], signal.SIGKILL)

        bracket = cz.bound(model, gap=0.5, exact=False, executor=executor, progress=kill, time=60)
    assert killed and bracket.gap <= 0.5 and bracket.lower <= cz.exact(model).log_z <= bracket.upper


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": -1}, "gap: expected a number of nats >= 0"),
        ({"time": -1}, "time: expected seconds >= 0"),
        ({"memory": "many"}, "memory: expected bytes, or text such as"),
        ({"memory": 10}, "memory: expected at least [0-9,]+ bytes"),
        ({"leaves": 0}, "leaves: expected None or a whole number >= 1"),
        ({"max_table": 1}, "max_table: expected None or a whole number from 2 to 16,777,216"),
        ({"max_table": 2**25}, "max_table: expected None or a whole number from 2 to 16,777,216"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
        ({"seed": 2**63}, "seed: expected a whole number >= 0"),
        ({"gaps": 1}, "unknown option 'gaps'; did you mean 'gap'"),
        ({"select": "maxw"}, "unknown selector 'maxw'; did you mean 'maxW'"),
        ({"criterion": "height"}, "criterion: expected one of gap, upper, lower"),
    ],
)
def test_refused_options(changes, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.bound(frustrated(), **changes)


def test_a_checkpoint_goes_on(tmp_path):
    model, path = frustrated(9, 10), tmp_path / "tree"
    first = cz.bound(model, gap=0.0, exact=False, leaves=10, time=30, max_table=4, checkpoint=path)
    again = cz.bound(model, gap=0.0, exact=False, leaves=30, time=30, max_table=4, checkpoint=path)
    assert again.lower >= first.lower and again.upper <= first.upper and again.gap < first.gap
    assert again.trace[: len(first.trace)] == first.trace and again.lower <= cz.exact(model).log_z <= again.upper


def test_refused_checkpoints(tmp_path):
    path = tmp_path / "tree"
    cz.bound(frustrated(9), exact=False, leaves=3, checkpoint=path)
    with pytest.raises(cz.errors.OptionError, match=r"checkpoint .*tree: expected one of this model"):
        cz.bound(frustrated(8), checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(cz.errors.OptionError, match=r"expected a file that bound\(\) left"):
        cz.bound(frustrated(8), checkpoint=path)
    with pytest.raises(cz.errors.OptionError, match=r"expected a folder that exists"):
        cz.bound(frustrated(8), checkpoint=tmp_path / "no" / "tree")


def test_a_fixed_plan_has_one_tree():
    """The same ends by one worker and by several, also where jobs come back out of order."""
    model = cz.generators.complete(16, weights=(-6, 6), rng=0)
    plan = {"max_table": 8, "leaves": 24, "exact": False, "gap": 0.0, "time": 120.0, "threads": 2}
    here = cz.bound(model, **plan)
    with ProcessPoolExecutor(2) as executor:
        there = cz.bound(model, executor=executor, **plan)
    assert here.stopped_by == there.stopped_by == "leaves"
    assert (here.lower, here.upper, here.num_leaves) == (there.lower, there.upper, there.num_leaves)
