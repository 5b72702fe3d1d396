"""Sums: both compiled passes end soon after their flag is raised."""

import math
import threading

import numpy as np
import pytest
from engines import laid_out

from clampz._kernels.elimination import steps
from clampz._kernels.elimination.backward_pass import backwards
from clampz._kernels.elimination.forward_pass import forwards
from clampz._kernels.statuses import DONE, STOPPED
from clampz.exact_inference import sums
from clampz.exact_inference.scopes import NO_LIMIT, Scopes
from clampz.exact_inference.sums import sum_out
from clampz.exact_inference.trees import Workspace
from clampz.runtime.budget import NEVER, Budget

CLIQUE = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])


def four_variables(num_states):
    """A clique: with 300 states a pass takes many seconds, in little memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "CONTRACTED_ENTRIES", math.inf)
        elimination = laid_out(Scopes.of_pairwise(np.full(4, num_states), CLIQUE), NO_LIMIT)
    values = np.random.default_rng(0).normal(size=elimination.scopes.table_start[-1])
    return elimination, values, Workspace.of(elimination)


def raised_soon():
    cancel_flag = np.zeros(1, dtype=np.uint8)
    threading.Timer(0.1, cancel_flag.fill, (1,)).start()
    return cancel_flag


@pytest.mark.parametrize("logs", [steps.SCALED, steps.LOGARITHMS])
def test_compiled_passes_hear_the_flag(logs):
    for num_states, cancel_flag, status in ((3, NEVER, DONE), (300, raised_soon, STOPPED)):
        elimination, values, (store, _, spread, scale, scratch, *_) = four_variables(num_states)
        cancel_flag = cancel_flag() if callable(cancel_flag) else cancel_flag
        found = forwards(elimination.plan, values, store, spread, scale, scratch, logs, cancel_flag)
        assert found[0] == status
    for num_states, cancel_flag, status in ((3, NEVER, DONE), (300, raised_soon, STOPPED)):
        elimination, _, (store, beliefs, _, scale, scratch, *_) = four_variables(num_states)
        store.fill(1.0)
        scale.fill(1.0)
        marginals = np.empty(4 * num_states)
        cancel_flag = cancel_flag() if callable(cancel_flag) else cancel_flag
        start = elimination.state_start
        assert (
            backwards(elimination.plan, store, beliefs, scale, scratch, logs, start, marginals, cancel_flag) == status
        )


def test_a_flag_that_is_raised_stops_before_the_first_table():
    elimination, values, (store, _, spread, scale, scratch, *_) = four_variables(5)
    store.fill(7.0)
    cancel_flag = np.ones(1, dtype=np.uint8)
    assert forwards(elimination.plan, values, store, spread, scale, scratch, steps.SCALED, cancel_flag)[0] == STOPPED
    assert (store == 7.0).all()


def test_long_sums_are_on_the_clock_and_short_ones_are_not():
    elimination, values, workspace = four_variables(300)
    assert math.isnan(sum_out(elimination, values, workspace, np.empty(0), budget=Budget(0.0)).log_z)
    elimination, values, workspace = four_variables(5)
    found = sum_out(elimination, values, workspace, np.empty(0), budget=Budget(0.0))
    assert found == sum_out(elimination, values, workspace, np.empty(0))
