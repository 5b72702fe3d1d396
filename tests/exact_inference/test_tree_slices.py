"""Slices of a tree of contractions: the sums of what is fixed, what they cost, and exact sums in too little memory."""

import tracemalloc

import numpy as np
import pytest
from naive import enumerate_factors

import clampz as cz
from clampz.exact_inference.cuts import TreeCuts
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.scopes import NO_LIMIT
from clampz.exact_inference.slices import sum_in_slices, sum_lane
from clampz.exact_inference.slicing import Slicer, Slicing
from clampz.exact_inference.sums import lay_out_lanes
from clampz.model.batch import Batch
from clampz.runtime.budget import Budget

EXACT = 1e-9


def drawn(seed):
    """Two to eight variables of one to four states, in factors of up to four, with zeros or without."""
    rng = np.random.default_rng(seed)
    num_states = rng.integers(1, 5, rng.integers(2, 9))
    zeros, strength = rng.choice([0.0, 0.1, 0.3]), rng.choice([0.3, 3.0, 50.0])
    factors = []
    for _ in range(int(rng.integers(1, 9))):
        scope = tuple(rng.permutation(len(num_states))[: rng.integers(1, 5)].tolist())
        table = rng.uniform(-strength, strength, num_states[list(scope)])
        factors.append((scope, np.where(rng.random(table.shape) < zeros, -np.inf, table)))
    return cz.Model.from_factors(num_states, factors), factors, rng


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_fixed_in_a_tree_the_sum_is_the_same(seed):
    model, factors, rng = drawn(seed)
    n = model.num_variables
    elimination = lay_out_lanes(Batch.of(model), NO_LIMIT)
    truth = enumerate_factors(model.num_states, factors)[0]
    for size in {0, 1, n // 2, n}:
        fixed = tuple(rng.permutation(n)[:size].tolist())
        num_sums = int(model.num_states[list(fixed)].prod())
        if num_sums > 500:
            continue
        plan = Slicing(fixed, 1.0, num_sums, order=elimination.order, tree=elimination.scopes.tree(elimination.order))
        lower, upper = sum_lane(model, model.unary.flat, plan)
        assert lower <= truth <= upper
        assert upper == lower == -np.inf or upper - lower < EXACT * (1 + abs(truth))
        if fixed and truth > -np.inf:
            found = sum_in_slices(model, plan, ExactOptions(), Budget())[0]
            np.testing.assert_allclose(found.marginals.flat, cz.exact(model).marginals.flat, atol=EXACT)


@pytest.mark.parametrize(
    "model",
    [
        cz.generators.grid(9, 9, rng=0),
        cz.generators.grid(14, 14, toroidal=False, rng=1),
        cz.generators.complete(22, rng=2),
        cz.generators.grid(6, 6, labels=4, rng=3),
    ],
)
def test_cuts_of_a_tree_cost_what_its_slices_take(model):
    how = lay_out_lanes(Batch.of(model), NO_LIMIT, marginals=False)
    contraction = how
    cuts, num_sums, seconds = TreeCuts(contraction.tree, model.num_states), 1, [contraction.seconds]
    assert cuts.seconds == pytest.approx(contraction.seconds)
    for _ in range(6):
        variable = cuts.fix_one()
        assert cuts.fixed[-1] == variable and cuts.num_states[variable] == 1
        num_sums *= int(model.num_states[variable])
        seconds.append(cuts.seconds)
        plan = Slicing(tuple(cuts.fixed), 1.0, num_sums, order=how.order, tree=contraction.tree)
        batch = Batch.of(model.condition({v: 0 for v in cuts.fixed}))
        slices = lay_out_lanes(batch, NO_LIMIT, order=plan.order, tree=plan.tree, fixed=plan.fixed)
        assert slices.seconds <= 1.01 * cuts.seconds  # or less, if a better tree was found
    assert len(set(cuts.fixed)) == 6
    assert (np.diff(seconds) < 0).all()
    assert num_sums * seconds[-1] >= seconds[0]


def test_nothing_is_left_to_fix_in_the_end():
    model = cz.generators.complete(4, rng=0)
    elimination = lay_out_lanes(Batch.of(model), NO_LIMIT)
    cuts = TreeCuts(elimination.scopes.tree(elimination.order), model.num_states)
    while cuts.fix_one() is not None:
        pass
    assert 1 <= len(cuts.fixed) <= 4 == len(cuts.num_states)


@pytest.mark.parametrize("marginals", [False, True])
def test_what_does_not_fit_is_summed_in_slices(marginals):
    model = cz.generators.complete(20, rng=1)
    wanted = cz.exact(model, marginals=marginals)
    found = cz.exact(model, marginals=marginals, memory=2_000_000)
    assert found.bound == "exact" and abs(found.log_z - wanted.log_z) < EXACT
    tracemalloc.start()
    try:
        cz.exact(model, marginals=marginals, memory=2_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_500_000
    if marginals:
        np.testing.assert_allclose(found.marginals.flat, wanted.marginals.flat, atol=EXACT)
        np.testing.assert_allclose(found.pairwise_marginals.flat, wanted.pairwise_marginals.flat, atol=EXACT)


def test_slices_that_would_take_too_long_are_named_and_not_begun(monkeypatch):
    model = cz.generators.complete(20, rng=1)
    with monkeypatch.context() as patch:
        patch.setattr("clampz.exact_inference.method.TO_SPARE", 1e-9)
        for options in ({}, {"time": 5.0}):
            with pytest.raises(
                cz.errors.TooWideError, match=r"it fits in \d+ slices, which may take 1 seconds.*time=$"
            ):
                cz.exact(model, memory=1_000_000, **options)
    assert cz.exact(model, memory=1_000_000, time=30.0).bound == "exact"


def test_long_sums_are_planned_in_slices_by_their_tree():
    model = cz.generators.complete(26, rng=1)
    how = lay_out_lanes(Batch.of(model), NO_LIMIT, marginals=False)
    for memory in (how.num_bytes(False) / 3, how.num_bytes(False) / 8):
        plan = Slicer(model).plan(model.unary.flat, 1e3, memory, how=how, num_workers=2)
        assert plan.fixed and plan.tree is not None
        assert plan.num_workers * plan.num_bytes <= memory
        lower, upper = sum_lane(model, model.unary.flat, plan)
        assert lower <= cz.exact(model).log_z <= upper < lower + EXACT
