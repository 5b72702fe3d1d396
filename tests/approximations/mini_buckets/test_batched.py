"""Lanes side by side come to what each comes to alone, to the last bit."""

import math

import numpy as np
import pytest
from budgets import Asked
from enumerated_lanes import TRUTH, lanes_of, log_z_of, scores_of
from random_factors import random_factors
from slow_structures import slow_structure

import clampz as cz
from clampz.approximations.mini_buckets import batched, descent
from clampz.approximations.mini_buckets.batched import TOGETHER, bytes_together, is_faster_batched, optimise_together
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.structure import Structure
from clampz.model.batch import Batch
from clampz.runtime.budget import UNLIMITED, Budget

GRID = cz.generators.grid(5, 5, weights=(-4, 4), rng=0)


def same(one, other):
    for name in ("x", "theta", "gradient"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("bound", "value", "residual", "num_evaluations", "settled", "matching"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def check(begin, evaluations):
    """States made twice: optimised alone, and together; some evaluations, then as many again."""
    alone, beside = begin(), begin()
    for _ in range(2):
        for state in alone:
            optimise(state, evaluations, budget=UNLIMITED)
        optimise_together(beside, evaluations, budget=UNLIMITED)
        for one, other in zip(alone, beside, strict=True):
            same(one, other)
    return beside


def lanes_of_grid(num_lanes, seed=0):
    """Evidence, clamps, and unary tables of all sizes."""
    rng = np.random.default_rng(seed)
    lanes = [GRID.unary.flat + rng.normal(size=50) * 3.0 ** (b % 4 - 1) for b in range(num_lanes)]
    for b in range(0, num_lanes, 3):
        lanes[b][rng.integers(25) * 2 + rng.integers(2)] = -np.inf
    return lanes


@pytest.mark.parametrize("num_lanes", [1, 2, 3, TOGETHER, 2 * TOGETHER + 3])
def test_any_number_of_lanes(num_lanes):
    tables, lanes = Tables.of(GRID, Structure.of(GRID, 8, budget=UNLIMITED), budget=UNLIMITED), lanes_of_grid(num_lanes)
    assert is_faster_batched(tables.structure, num_lanes) == (num_lanes > 1)
    upper = check(lambda: [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes], 20)
    check(
        lambda: [
            BoundState.lower(tables, lane, state.x, budget=UNLIMITED) for lane, state in zip(lanes, upper, strict=True)
        ],
        20,
    )
    # each from the first one's shifts and weights: with and without zeros, so not all of them begin alike
    check(lambda: [BoundState.upper(tables, lane, upper[0].x, budget=UNLIMITED) for lane in lanes], 5)


@pytest.mark.parametrize("seed", range(60))
def test_models_of_every_kind(seed, monkeypatch):
    """Factors, labels, hard zeros, lanes without configurations: always side by side, whether it pays or not."""
    monkeypatch.setattr(batched, "ENTRIES_PER_LANE", math.inf)
    rng = np.random.default_rng(seed)
    model = random_factors(rng)
    tables = Tables.of(model, slow_structure(model, int(rng.choice([2, 8, 32]))), budget=UNLIMITED)
    lanes = lanes_of(rng, model) + lanes_of(rng, model)
    lanes[1][: model.num_states[0]] = -np.inf
    upper = check(lambda: [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes], 9)
    assert upper[1].bound == -math.inf
    check(lambda: [BoundState.upper(tables, lane, upper[0].x, budget=UNLIMITED) for lane in lanes], 3)
    check(
        lambda: [
            BoundState.lower(tables, lane, state.x, budget=UNLIMITED) for lane, state in zip(lanes, upper, strict=True)
        ],
        9,
    )


@pytest.mark.parametrize(("labels", "max_table"), [(2, 2**11), (3, 3**7)])
def test_tables_of_several_blocks(labels, max_table, monkeypatch):
    """Sums over more entries than a block has are in the same order too."""
    monkeypatch.setattr(batched, "ENTRIES_PER_LANE", math.inf)
    model = cz.generators.grid(6, 6, labels=labels, potentials="table", rng=0)
    tables, rng = (
        Tables.of(model, Structure.of(model, max_table, budget=UNLIMITED), budget=UNLIMITED),
        np.random.default_rng(0),
    )
    lanes = [rng.normal(size=len(model.unary.flat)) for _ in range(3)]
    assert np.diff(tables.structure.table_start).max() > 512 and tables.structure.num_shifted
    upper = check(lambda: [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes], 4)
    check(
        lambda: [
            BoundState.lower(tables, lane, state.x, budget=UNLIMITED) for lane, state in zip(lanes, upper, strict=True)
        ],
        4,
    )


def test_a_lane_out_of_hand_is_nothing_to_the_others():
    """Shifts too large for any bound, in one lane of several."""
    tables, lanes = Tables.of(GRID, Structure.of(GRID, 8, budget=UNLIMITED), budget=UNLIMITED), lanes_of_grid(4)
    numbers = tables.structure.num_shifted + tables.structure.num_cliques
    starts = [np.zeros(numbers), np.full(numbers, 1e200), np.full(numbers, 2.0), np.full(numbers, 1e99)]
    with np.errstate(all="ignore"):
        found = check(
            lambda: [BoundState.upper(tables, *each, budget=UNLIMITED) for each in zip(lanes, starts, strict=True)], 3
        )
    assert found[1].bound == math.inf and all(math.isfinite(found[k].bound) for k in (0, 2))


def test_bounds_hold_side_by_side(monkeypatch):
    monkeypatch.setattr(batched, "ENTRIES_PER_LANE", math.inf)
    checked = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        model = random_factors(rng)
        tables, scores = (
            Tables.of(model, slow_structure(model, int(rng.choice([2, 4, 16]))), budget=UNLIMITED),
            scores_of(model),
        )
        lanes = lanes_of(rng, model)
        truth = [log_z_of(model, scores, lane) for lane in lanes]
        above = [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes]
        optimise_together(above, 5, budget=UNLIMITED)
        below = [
            BoundState.lower(tables, lane, state.x, budget=UNLIMITED) for lane, state in zip(lanes, above, strict=True)
        ]
        optimise_together(below, 5, budget=UNLIMITED)
        for log_z, upper, lower in zip(truth, above, below, strict=True):
            slack = TRUTH * max(1.0, abs(log_z)) if log_z > -math.inf else 0.0
            assert lower.bound - slack <= log_z <= upper.bound + slack, seed
            checked += 1
    assert checked == 450


@pytest.mark.parametrize("most", [1, 5, 30])
def test_a_stop_leaves_every_lane_a_bound(most):
    tables, lanes = Tables.of(GRID, Structure.of(GRID, 8, budget=UNLIMITED), budget=UNLIMITED), lanes_of_grid(5)
    log_z = cz.exact(Batch(GRID, np.stack(lanes, axis=1))).log_z
    states = [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes]
    optimise_together(states, 50, Asked(most))
    assert all(truth <= state.bound < math.inf for truth, state in zip(log_z, states, strict=True))
    before = [state.bound for state in states]
    optimise_together(states, 50, budget=UNLIMITED)
    assert all(state.bound < earlier for state, earlier in zip(states, before, strict=True))


def test_a_pass_that_is_stopped_says_nothing(monkeypatch):
    monkeypatch.setattr(descent, "SECONDS_PER_ENTRY", 1.0)  # so that passes look at the flag
    tables, lanes = Tables.of(GRID, Structure.of(GRID, 8, budget=UNLIMITED), budget=UNLIMITED), lanes_of_grid(3)
    states, budget = [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes], Budget()
    budget.stop("time")
    budget.must_stop()
    optimise_together(states, 3, budget)
    assert all(state.bound == math.inf and not state.num_evaluations for state in states)
    optimise_together(states, 3, budget=UNLIMITED)
    assert all(math.isfinite(state.bound) for state in states)


def test_large_tables_are_better_alone():
    large, small = (
        Structure.of(cz.generators.grid(12, 12, rng=0), max_table, budget=UNLIMITED) for max_table in (2**11, 8)
    )
    assert not is_faster_batched(large, TOGETHER) and is_faster_batched(small, 2)
    assert bytes_together(large, 2, TOGETHER) == large.num_bytes(2, 2)
    assert bytes_together(small, 2, 4) > small.num_bytes(8, 8)


def test_memory_is_what_is_said():
    """Of the arrays of a block, and of the states in it."""
    tables = Tables.of(GRID, Structure.of(GRID, 32, budget=UNLIMITED), budget=UNLIMITED)
    states = [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in lanes_of_grid(8)]
    optimise_together(states, 12, budget=UNLIMITED)
    block = batched._Block.of(states)

    def held(value):
        return value.nbytes if isinstance(value, np.ndarray) else sum(map(held, value))

    lanes = sum(value.nbytes for state in states for value in vars(state).values() if isinstance(value, np.ndarray))
    # where each might go, which way, and its gradient there
    block_bytes = held(tuple(block)[1:]) + 3 * 8 * states[0].x.nbytes
    shared = tables.structure.num_bytes(0, 0)
    said = bytes_together(tables.structure, 1, 8)
    assert 0.7 * said <= shared + lanes + block_bytes <= 1.1 * said + 100_000
