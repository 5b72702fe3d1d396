"""Work on leaves: what is asked for and what comes back."""

import pickle

import numpy as np
import pytest

import clampz as cz
from clampz.bracketing.leaves import LeafWork, solve_leaves
from clampz.bracketing.narrow import Narrow
from clampz.watch import Watch
from random_models import frustrated, random_of_any_kind


def lanes_of(model):
    """(S, B) the model itself, and with each state of its first variable ruled out."""
    lanes = [model.unary.flat]
    for state in range(int(model.num_states[0])):
        lanes.append(model.unary.flat.copy())
        lanes[-1][state] = -np.inf
    return np.stack(lanes, axis=1)


def work_on(model, exact=True, **asked):
    options = cz.BoundOptions(exact=exact)
    return LeafWork(model=model, unary=lanes_of(model), options=options, seconds=60.0, **asked)


@pytest.mark.parametrize("limit", [0.0, 40.0])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_on_every_lane_hold(seed, exact, limit):
    model = random_of_any_kind(seed, 7)
    work = work_on(model, exact=exact, limit=limit, evaluations=5)
    solved = solve_leaves(work)
    for lane, unary in enumerate(work.unary.T):
        truth = cz.exact(cz.Model.from_flat(model.num_states, unary, model.edges, model.pairwise.flat))
        assert solved.lower[lane] <= truth.upper and truth.lower <= solved.upper[lane]
        assert solved.exact[lane] == exact


def test_narrow_parts_are_used_again():
    model = frustrated(1)
    narrow = Narrow.of(model, 16.0)
    asked = {"narrow": narrow, "limit": 16.0, "evaluations": 3, "exact": False}
    assert solve_leaves(work_on(model, **asked)).narrow is narrow
    wider = solve_leaves(work_on(model, **asked | {"limit": 32.0})).narrow
    assert wider is not narrow and wider.limit == 32.0


def test_work_travels():
    """Sent elsewhere and back, results are the same."""
    work = work_on(frustrated(2), exact=False, limit=16.0, evaluations=5)
    here, there = solve_leaves(work), solve_leaves(pickle.loads(pickle.dumps(work)))
    assert (here.lower == there.lower).all() and (here.upper == there.upper).all()


def test_a_run_that_is_over_asks_for_little():
    """Bounds of the first sweep hold, and no narrow parts are looked for."""
    model = frustrated(3)
    watch = Watch(60.0)
    work = work_on(model, limit=16.0, evaluations=5)
    watch.stopped_by = "interrupt"
    solved = solve_leaves(work, watch)
    assert solved.narrow is None and not any(solved.exact)
    assert solved.lower[0] <= cz.exact(model).log_z <= solved.upper[0]
