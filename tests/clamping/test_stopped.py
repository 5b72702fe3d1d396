"""Clampings that are stopped: at once, with the last whole step, wherever they are."""

import math
import multiprocessing
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from budgets import Asked

import clampz as cz
from clampz._kernels.clamping import cycles
from clampz.clamping import clamp, clamping
from clampz.clamping.selectors import scores_of_all
from clampz.model.lane_memory import PER_MESSAGE, PER_STATE, bytes_of_lanes
from clampz.model.pairwise_equivalent import Equivalent
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled

MODEL = cz.generators.grid(4, 4, weights=(-4, 4), rng=0)


@pytest.mark.parametrize("select", ["maxW+TRE", "Mpower", "greedy", "pseudo-greedy", "optimal"])
@pytest.mark.parametrize("method", ["trw", "mf", "bethe"])
def test_a_clamping_that_is_stopped_has_the_last_whole_step(method, select, monkeypatch):
    whole = cz.clamp(MODEL, method, k=2, select=select, threads=1)
    assert whole.stopped_by == "tol" and "stopped" not in repr(whole)
    counter = Asked(10**9)
    monkeypatch.setattr(clamp, "Budget", lambda *_, **__: counter)
    cz.clamp(MODEL, method, k=2, select=select, threads=1)
    reached = set()
    for most in np.linspace(1, 0.9 * counter.asked, 12).astype(int):
        budget = Asked(most)
        monkeypatch.setattr(clamp, "Budget", lambda *_, budget=budget, **__: budget)
        found = cz.clamp(MODEL, method, k=2, select=select, threads=1)
        assert found.stopped_by == ("interrupt" if len(found.steps) < 3 else "tol")
        assert ("stopped by interrupt" in repr(found)) == (len(found.steps) < 3)
        reached.add(len(found.steps))
        assert len(found.variables) == len(found.steps) - 1 <= 2
        assert found.batch.num_lanes == len(found.branches) == found.steps[-1].num_branches
        if len(found.steps) > 1:  # then what there is is what it would have been
            for step, expected in zip(found.steps, whole.steps, strict=False):
                assert (step.variables, step.log_z) == (expected.variables, pytest.approx(expected.log_z, abs=1e-9))
    assert len(reached) > 1


@pytest.mark.parametrize("options", [{"method": "trw", "edge_weights": "optimized"}, {"method": "mf"}])
def test_ctrl_c_at_any_moment(options):
    model = cz.generators.complete(16, weights=(-6, 6), rng=0)
    cz.clamp(model, k=1, select="greedy", **options)  # compiled
    for wait in np.random.default_rng(0).random(5) * 0.3:
        begun = threading.Event()

        def interrupt(wait=wait, begun=begun):
            begun.wait()
            time.sleep(wait)
            signal.raise_signal(signal.SIGINT)

        def begin(*_, begun=begun):
            begun.set()
            return [], 16

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clamp, "_checked_choice", begin)
            found = cz.clamp(model, k=16, select="greedy", **options)
        thread.join()
        assert found.stopped_by == "interrupt" and len(found.variables) < 16


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_ctrl_c_with_an_executor_returns_the_last_whole_step(kind, monkeypatch):
    """Also where the workers hear nothing of it."""
    context = {"mp_context": multiprocessing.get_context("spawn")} if kind is ProcessPoolExecutor else {}
    model = cz.generators.complete(10, weights=(-6, 6), rng=0)
    with kind(1, **context) as pool:
        steps = []
        record = clamping.Clamping._record

        def interrupt_after_one_step(self, *choices, **others):
            record(self, *choices, **others)
            steps.append(1)
            if len(steps) == 2:
                threading.Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()

        monkeypatch.setattr(clamping.Clamping, "_record", interrupt_after_one_step)
        found = cz.clamp(model, "trw", k=10, select="greedy", edge_weights="optimized", executor=pool, tol=1e-9)
    assert found.stopped_by == "interrupt" and 1 <= len(found.variables) < 10
    assert math.isfinite(found.upper) and found.upper >= cz.exact(model).lower


def test_memory_is_checked_before_any_work(monkeypatch):
    """Not even the strength of the edges is worked out."""
    monkeypatch.setattr("clampz.model.model.strengths", lambda *_: pytest.fail("work"))
    monkeypatch.setattr(Equivalent, "_build", lambda *_: pytest.fail("work"))
    labels = cz.generators.grid(8, 8, labels=40, potentials="table", rng=0)
    factors = cz.Model.from_factors([8] * 24, [((i, i + 1, i + 2), np.zeros((8, 8, 8)) + np.eye(8)) for i in range(22)])
    for model in (labels, factors):
        with pytest.raises(cz.errors.OptionError, match="branches, which need about"):
            cz.clamp(model, k=8, select="Mpower")


def test_a_lane_of_factors_is_charged_as_its_equivalent_but_for_starts():
    model = cz.Model.from_factors(
        [2, 3, 2, 2], [((0, 1, 2), np.random.default_rng(0).normal(size=(2, 3, 2))), ((2, 3), np.ones((2, 2)))]
    )
    states = Equivalent.of(model, budget=UNLIMITED).model.num_states[model.num_variables :].sum()
    starts = 8 * (PER_STATE - PER_MESSAGE) * states
    assert bytes_of_lanes(model) == bytes_of_lanes(Equivalent.of(model, budget=UNLIMITED).model) - starts
    assert cz.mean_field.fits(model, bytes_of_lanes(model) / 3)  # which takes factors as they are


def test_scores_hear_the_watch():
    over = Budget(0.0)
    over._over, over._time = -1.0, -1.0
    for model in (MODEL, cz.generators.grid(40, 40, rng=0)):
        for name in ("maxW", "Mpower", "frustCycles"):
            with pytest.raises(Cancelled):
                scores_of_all(model, [name], budget=over)


def test_closed_walks_hear_the_flag():
    start, neighbour = np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1], dtype=np.int32)
    cancel_flag = np.zeros(1, dtype=np.uint8)
    assert cycles.closed_walks(start, neighbour, np.full(6, 0.1), True, cancel_flag).all()
    cancel_flag[0] = 1
    assert not cycles.closed_walks(start, neighbour, np.full(6, 0.1), True, cancel_flag).any()
