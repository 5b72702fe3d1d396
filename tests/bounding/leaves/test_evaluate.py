"""Work on leaves: what is asked for and what comes back."""

import math
import pickle

import numpy as np
import pytest
from random_models import frustrated, random_of_any_kind

import clampz as cz
from clampz.bounding.leaves.evaluate import LeafWork, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.runtime.budget import Budget, Cancelled


def lanes_of(model):
    """(S, B) the model itself, and with each state of its first variable ruled out."""
    lanes = [model.unary.flat]
    for state in range(int(model.num_states[0])):
        lanes.append(model.unary.flat.copy())
        lanes[-1][state] = -np.inf
    return np.stack(lanes, axis=1)


def mini_buckets_of(model, max_table):
    return MiniBucketBounds(model, Shape(max_table), Shape(max_table), 1e9) if max_table else None


def work_on(model, exact=True, **asked):
    options = cz.options.BoundOptions(exact=exact)
    return LeafWork(model=model, unary=lanes_of(model), options=options, seconds=60.0, **asked)


@pytest.mark.parametrize("max_table", [0, 40])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_on_every_lane_hold(seed, exact, max_table):
    model = random_of_any_kind(seed, 7)
    work = work_on(model, exact=exact, mini_buckets=mini_buckets_of(model, max_table), num_evaluations=5)
    solved = solve_leaves(work)
    for lane, unary in enumerate(work.unary.T):
        truth = cz.exact(cz.Model.from_flat(model.num_states, unary, model.edges, model.pairwise.flat))
        assert solved.lower[lane] <= truth.upper and truth.lower <= solved.upper[lane]
        assert solved.exact[lane] == exact


def test_work_travels():
    """Sent elsewhere and back, results are the same."""
    model = frustrated(2)
    work = work_on(model, exact=False, mini_buckets=mini_buckets_of(model, 16), num_evaluations=5)
    here, there = solve_leaves(work), solve_leaves(pickle.loads(pickle.dumps(work)))
    assert (here.lower == there.lower).all() and (here.upper == there.upper).all()


def test_a_run_that_is_over_asks_for_little():
    model = frustrated(3)
    budget = Budget(60.0)
    work = work_on(model, mini_buckets=mini_buckets_of(model, 16), num_evaluations=5)
    budget.stopped_by = "interrupt"
    solved = solve_leaves(work, budget)
    assert not any(solved.exact) and not any(solved.states)
    assert solved.lower[0] <= cz.exact(model).log_z <= solved.upper[0]


def test_an_upper_bound_is_kept_where_time_is_over_before_the_lower_one(monkeypatch):
    model = frustrated(6, 12)

    def is_cancelled(*_):
        raise Cancelled

    monkeypatch.setattr(MiniBucketBounds, "_lower", is_cancelled)
    mini_buckets = mini_buckets_of(model, 16)
    found = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5)
    assert found.lower == -math.inf and cz.exact(model).log_z <= found.upper < math.inf
    with pytest.raises(Cancelled):
        mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5, "lower")
