"""Mini-buckets as a method: both bounds hold at every limit and wherever a run is stopped, beliefs follow from where it
ended, threads change no bit, and clamping never loosens."""

import itertools
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from budgets import Asked
from random_models import random_of_any_kind
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.approximations.mini_buckets import clique_tables as tables
from clampz.approximations.mini_buckets.descent import BoundState
from clampz.approximations.mini_buckets.end_state import MiniBucketsLayout
from clampz.approximations.mini_buckets.structure import Structure
from clampz.model.batch import Batch
from clampz.model.results import NO_RESULT
from clampz.runtime.budget import Budget, Cancelled

EXACT = 1e-9
# What the enumeration itself may be wrong by.
TRUTH = 4e-16
MAX_ITERS = (1, 2, 5, 40)
# Torus of 25 spins, which limits of 2^8 and below split.
TORUS = cz.generators.grid(5, 5, weights=(-3, 3), rng=0)


def batch_of(seed):
    """A model with factors, labels and hard zeros, or a pairwise one; its own lane, another, and evidence."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, most=7) if seed % 2 else random_of_any_kind(seed, most=7)
    own, start = model.unary.flat, model.unary.start
    i = int(rng.integers(model.num_variables))
    clamped = own.copy()
    clamped[start[i] : start[i + 1]][np.arange(model.num_states[i]) != rng.integers(model.num_states[i])] = -np.inf
    return Batch(model, np.stack([own, own + rng.normal(size=own.shape), clamped], axis=1))


def held(found, log_z):
    """Whether both bounds hold, without tolerance but for that of the enumeration."""
    slack = [TRUTH * max(1.0, abs(z)) if np.isfinite(z) else 0.0 for z in log_z]
    assert not np.isnan(found.lower).any() and not np.isnan(found.upper).any()
    return (found.lower <= log_z + np.array(slack)).all() and (log_z - np.array(slack) <= found.upper).all()


def test_both_bounds_hold_at_every_limit_and_iteration():
    below, split, zero = 0, 0, 0
    for seed in range(150):
        batch = batch_of(seed)
        log_z = np.array([Enumerated(batch.lane(b)).log_z for b in range(3)])
        start = None
        for max_iter, max_table in zip(MAX_ITERS, (2, 4, 8, 8), strict=True):
            found = cz.mini_buckets(batch, max_table=max_table, max_iter=max_iter, start=start, threads=1)
            assert held(found, log_z), (seed, max_iter, found.lower, log_z, found.upper)
            assert (found.num_iter <= max_iter).all()
            start = found
        below += np.count_nonzero(found.lower > -np.inf)
        split += not found.state.lanes[0].layout.is_exact
        zero += np.count_nonzero(found.upper == -np.inf)
        for b in np.flatnonzero(found.upper == -np.inf):
            assert found[b].converged and "Z = 0" in found[b].note and np.isnan(found[b].marginals.flat).all()
            assert np.isnan(found[b].pairwise_marginals.flat).all() and found.state.cliques(b) == []
    assert below > 200 and split > 30 and zero > 5


def test_bounds_hold_where_a_run_is_stopped():
    for seed in range(30):
        batch = batch_of(seed)
        log_z = np.array([Enumerated(batch.lane(b)).log_z for b in range(3)])
        for most in (1, 4, 9):
            assert held(
                cz.mini_buckets.solve(batch, cz.options.MiniBucketsOptions(max_table=4, threads=1), within=Asked(most)),
                log_z,
            )


def test_exact_where_the_limit_allows_it():
    for seed in range(25):
        model = random_model(seed, most=6)
        found, truth = cz.mini_buckets(model, threads=1), Enumerated(model)
        if truth.log_z == -np.inf:
            assert found.upper == found.lower == -np.inf
            continue
        assert found.converged and found.upper - found.lower < EXACT and found.log_z == found.upper
        np.testing.assert_allclose(found.marginals.flat, np.concatenate(truth.unary), atol=EXACT)
        tables = np.concatenate([found.marginals.flat, found.pairwise_marginals.flat, found.factor_marginals.flat])
        np.testing.assert_allclose(tables, truth.beliefs, atol=EXACT)
        for scope, table in found.state.cliques():
            np.testing.assert_allclose(table, truth.joint(scope), atol=EXACT)
        assert not found.state.losses().any()


def test_a_larger_limit_more_evaluations_and_more_structures_are_tighter():
    log_z = cz.exact(TORUS).log_z
    by_limit = [cz.mini_buckets(TORUS, max_table=max_table) for max_table in (2**3, 2**5, 2**8)]
    assert all(a.upper > b.upper + 0.05 and a.lower < b.lower for a, b in itertools.pairwise(by_limit))
    by_iteration = [cz.mini_buckets(TORUS, max_table=2**4, max_iter=max_iter).upper for max_iter in (1, 10, 40)]
    assert sorted(by_iteration, reverse=True) == by_iteration and by_iteration[-1] < by_iteration[0] - 0.5
    one, many = (cz.mini_buckets(TORUS, max_table=2**4, num_structures=number).upper for number in (1, 5))
    assert log_z < many < one
    assert cz.mini_buckets(TORUS, max_table=2**4, seed=3).upper != one
    assert by_limit[1].upper < cz.trw(TORUS, edge_weights="optimized").upper
    assert by_limit[1].lower > cz.mean_field(TORUS).lower


def test_beliefs_and_losses_are_those_of_the_bound():
    found = cz.mini_buckets(TORUS, max_table=2**5, max_iter=300)
    cliques = found.state.cliques()
    assert max(table.size for _, table in cliques) <= 2**5 and len(cliques) > TORUS.num_variables
    assert all(table.sum() == pytest.approx(1.0) and (table >= 0).all() for _, table in cliques)
    losses = found.state.losses()
    assert losses.shape == (TORUS.num_variables,) and (losses >= 0).all() and losses.max() > 0.01
    first = [scope[0] for scope, _ in cliques]
    assert all(losses[i] == 0 for i in range(TORUS.num_variables) if first.count(i) == 1)
    np.testing.assert_allclose(found.marginals.flat, cz.exact(TORUS).marginals.flat, atol=0.1)
    for (i, _), table in found.pairwise_marginals.items():
        np.testing.assert_allclose(table.sum(axis=1), found.marginals[i], atol=0.02)


def test_beliefs_that_are_computed_again_are_those_of_the_run():
    """With hard zeros too, which cliques pass on to each other."""
    compared = 0
    for seed in range(120):
        model = batch_of(seed).model
        found = cz.mini_buckets(model, max_table=4, max_iter=20, threads=1)
        if found.state.lanes[0].layout.is_exact or found.upper == -np.inf:
            continue
        compared += 1
        again = found.state._beliefs(0)
        np.testing.assert_allclose(again.marginals, found.marginals.flat, atol=EXACT)
        assert (found.marginals.flat[model.unary.flat == -np.inf] == 0).all()
    assert compared > 20


@pytest.mark.parametrize("options", [{}, {"num_structures": 3}, {"max_iter": 7}], ids=str)
def test_threads_change_no_bit(options):
    rng = np.random.default_rng(0)
    batch = Batch(TORUS, rng.normal(size=(50, 5)))
    one, two = (cz.mini_buckets(batch, max_table=2**4, threads=threads, **options) for threads in (1, 2))
    for name in ("log_z", "lower", "upper", "value", "residual", "num_iter", "converged", "marginals_flat"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_lanes_are_what_they_are_alone():
    rng = np.random.default_rng(1)
    batch = Batch(TORUS, rng.normal(size=(50, 3)))
    many = cz.mini_buckets(batch, max_table=2**4, max_iter=20)
    for b in range(3):
        alone = cz.mini_buckets(batch.take(np.array([b])), max_table=2**4, max_iter=20)
        assert (alone.upper[0], alone.num_iter[0]) == (many.upper[b], many.num_iter[b])
        assert alone.lower[0] == pytest.approx(many.lower[b], abs=EXACT)


# -- starts ------------------------------------------------------------------------------------------------------------


def test_an_earlier_run_is_gone_on_from(monkeypatch):
    early = cz.mini_buckets(TORUS, max_table=2**4, max_iter=20)
    cold = cz.mini_buckets(TORUS, max_table=2**4, max_iter=5, evidence=[{0: 0}, {0: 1}])
    monkeypatch.setattr(Structure, "of", None)  # not built again
    late = cz.mini_buckets(TORUS, max_table=2**4, max_iter=20, start=early)
    assert late.upper < early.upper and late.lower >= early.lower - EXACT
    warm = cz.mini_buckets(
        TORUS, max_table=2**4, max_iter=5, evidence=[{0: 0}, {0: 1}], start=pickle.loads(pickle.dumps(early))
    )
    assert (warm.upper < cold.upper).all() and (warm.lower > cold.lower).all()


def test_other_starts_are_as_good_as_any():
    for start in (cz.mini_buckets(TORUS, max_table=2**5), cz.bethe(TORUS), np.full(50, 0.5)):
        found = cz.mini_buckets(TORUS, max_table=2**4, max_iter=9, start=start)
        assert found.upper == cz.mini_buckets(TORUS, max_table=2**4, max_iter=9).upper
    with pytest.raises(cz.errors.OptionError, match="same variables and edges"):
        cz.mini_buckets(TORUS, start=cz.mini_buckets(cz.generators.cycle(3, rng=0)))
    # tables over other variables, though edges are the same
    factors = [
        cz.Model.from_factors([2] * 4, [(scope, np.eye(8).ravel()[:8].reshape(2, 2, 2))])
        for scope in ((0, 1, 2), (1, 2, 3))
    ]
    assert cz.mini_buckets(factors[1], start=cz.mini_buckets(factors[0])).log_z == cz.mini_buckets(factors[1]).log_z


def test_lanes_of_other_processes_have_one_layout_again():
    found = cz.mini_buckets(TORUS, max_table=2**4, max_iter=3, evidence=[{0: 0}, {0: 1}])
    other = pickle.loads(pickle.dumps(found))
    assert other.state.lanes[0].layout is not found.state.lanes[0].layout
    joined = found.join([other])
    assert len({id(lane.layout) for lane in joined.state.lanes}) == 1
    assert isinstance(joined.state.lanes[3].layout, MiniBucketsLayout) and not joined.state.lanes[3].layout.is_exact


# -- clamping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["maxW+TRE", "pseudo-greedy"])
def test_clamping_only_tightens(select):
    log_z = cz.exact(TORUS).log_z
    found = cz.clamp(TORUS, "mini_buckets", k=3, select=select, max_table=2**4, max_iter=20)
    assert found.bound == "upper" and found.log_z == found.upper and len(found.branches) == 8
    for before, step in itertools.pairwise(found.steps):
        assert step.lower >= before.lower and step.upper <= before.upper and step.lower <= log_z <= step.upper
        assert step.upper == pytest.approx(min(before.upper, step.raw_log_z), abs=EXACT)
    assert found.upper < found.steps[0].upper - 0.3 and found.lower > found.steps[0].lower


def test_clamping_never_loosens_on_random_models():
    for seed in range(25):
        model = batch_of(seed).model
        log_z = Enumerated(model).log_z
        found = cz.clamp(
            model, "mini_buckets", variables=range(min(2, model.num_variables)), max_table=4, max_iter=8, threads=1
        )
        for before, step in itertools.pairwise(found.steps):
            assert step.lower >= before.lower and step.upper <= before.upper
            assert step.lower <= log_z + EXACT and log_z - EXACT <= step.upper


def test_a_sum_over_branches_that_is_looser_is_not_taken():
    """Theorem 2 of [WD16] does not hold for mini-buckets: of parities and equalities, one variable is fixed, and what
    others know of it is paid for by their weights only."""
    rng, (a, b, c) = np.random.default_rng(39), np.indices((2, 2, 2))
    tables = [np.where(a == b, 0.0, -6.0), np.where((a + b + c) % 2 == 0, 0.0, -6.0)] * 4
    model = cz.Model.from_factors([2] * 8, [(rng.choice(8, 3, replace=False).tolist(), table) for table in tables])
    found = cz.clamp(model, "mini_buckets", variables=[4], max_table=8, max_iter=60)
    before, step = found.steps
    assert step.raw_log_z > before.upper + 0.6
    assert found.upper == step.upper == before.upper >= cz.exact(model).log_z


def test_greedy_makes_its_own_bound_best():
    model = cz.generators.grid(3, 3, weights=(-4, 4), rng=1)
    options = {"max_table": 4, "max_iter": 15}
    greedy = cz.clamp(model, "mini_buckets", k=1, select="greedy", **options).steps[1].raw_log_z
    each = [cz.clamp(model, "mini_buckets", variables=[i], **options).steps[1].raw_log_z for i in range(9)]
    assert greedy == pytest.approx(min(each), abs=EXACT)


def test_an_executor_changes_nothing():
    plain = cz.clamp(TORUS, "mini_buckets", k=2, select="maxW", max_table=2**4, max_iter=6)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = cz.clamp(TORUS, "mini_buckets", k=2, select="maxW", max_table=2**4, max_iter=6, executor=pool)
    np.testing.assert_array_equal(plain.branches.upper, elsewhere.branches.upper)
    np.testing.assert_array_equal(plain.branches.marginals_flat, elsewhere.branches.marginals_flat)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_limit_below_the_largest_factor():
    model = cz.Model.from_factors(
        [3] * 5, [((0, 1, 2), np.random.default_rng(0).normal(size=(3, 3, 3))), ((2, 3), np.eye(3))]
    )
    found = cz.mini_buckets(model, max_table=4)
    assert found.note == "a factor of 27 entries is more than max_table=4, and a clique of its own"
    assert found.lower - EXACT <= cz.exact(model).log_z <= found.upper + EXACT
    assert cz.mini_buckets(model, max_table=27).note == ""


def test_a_limit_that_memory_cannot_hold():
    wide = cz.generators.complete(60, rng=0)
    with pytest.raises(
        cz.errors.TooWideError, match=r"tables of up to 1,048,576 entries need .*MB.*lower max_table="
    ) as refused:
        cz.mini_buckets(wide, max_table=2**20, memory="1MB")
    assert refused.value.num_bytes > 10**6
    batch = Batch.from_evidence(TORUS, [{}] * 300)
    with pytest.raises(cz.errors.TooWideError, match=r"for 300 lanes, and 1 MB are allowed"):
        cz.mini_buckets(batch, max_table=2**5, memory="1MB")
    assert cz.mini_buckets(TORUS, max_table=2**5, memory="1MB", max_iter=2).num_iter == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_table": 1}, "max_table: expected a whole number >= 2, found 1"),
        ({"max_table": 2.5}, "max_table: expected a whole number >= 2, found 2.5"),
        ({"num_structures": 0}, "num_structures: expected a whole number >= 1, found 0"),
        ({"seed": -1}, "seed: expected a whole number >= 0, found -1"),
        ({"memory": "much"}, "memory: expected bytes"),
    ],
)
def test_options_out_of_range(changes, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.mini_buckets(TORUS, **changes)


def test_without_marginals_there_are_bounds_alone():
    found, both = (cz.mini_buckets(TORUS, max_table=2**4, max_iter=5, marginals=wanted) for wanted in (False, True))
    assert found.upper == both.upper and np.isnan(found.marginals.flat).all()
    solution = cz.solve(TORUS, method="mini_buckets", marginals=False)
    assert solution.marginals_are == "none: log Z alone was asked for"
    assert cz.solve(TORUS, method="mini_buckets").marginals_are == "mini-buckets', converged"


def test_no_time_at_all_still_gives_an_answer():
    found = cz.mini_buckets(TORUS, max_table=2**4, time=0.0)
    assert (found.stopped_by, found.num_iter, found.converged) == ("time", 1, False)
    assert found.lower <= cz.exact(TORUS).log_z <= found.upper and not np.isnan(found.marginals.flat).any()


def test_a_run_that_ended_long_ago_has_nothing_to_say(monkeypatch):
    monkeypatch.setattr("clampz.method.GRACE", -1.0)
    monkeypatch.setattr("clampz.model.lane_memory.SMALL_MODEL", 0)
    found = cz.mini_buckets(TORUS, time=0.0)
    assert np.isnan(found.log_z) and found.note == NO_RESULT and found.upper == np.inf
    monkeypatch.undo()
    assert cz.mini_buckets(TORUS, start=found).converged


def test_progress_is_told_and_can_stop():
    seen = []
    found = cz.mini_buckets(TORUS, max_table=2**4, tol=0.0, max_iter=30, threads=1, progress=seen.append)
    counts = [report.num_iter for report in seen]
    assert counts[0] == 1 and counts == sorted(counts) and counts[-1] == found.num_iter == 30
    assert found.stopped_by == "max_iter" and not found.converged and found.residual > 0
    assert seen[-1].num_finished == seen[-1].num_lanes == 1 and seen[-1].log_z == found.log_z

    def stop(report):
        if report.num_iter > 3:
            raise StopIteration

    found = cz.mini_buckets(TORUS, max_table=2**4, progress=stop)
    assert found.stopped_by == "callback" and found.num_iter < 10 and found.upper >= cz.exact(TORUS).log_z


def test_converged_within_the_tolerance():
    rough, fine = (cz.mini_buckets(TORUS, max_table=2**4, tol=tol, max_iter=2000) for tol in (0.1, 1e-4))
    assert rough.converged and fine.converged and rough.num_iter < fine.num_iter
    assert rough.residual <= 0.1 and fine.residual <= 1e-4 and fine.upper < rough.upper


@pytest.mark.parametrize("size", [1e15, 1e-15])
def test_potentials_of_any_size(size):
    rng = np.random.default_rng(0)
    model = cz.Model(
        size * rng.normal(size=(4, 3)),
        {pair: size * rng.normal(size=(3, 3)) for pair in itertools.combinations(range(4), 2)},
    )
    for max_table in (9, 27, 81):
        found = cz.mini_buckets(model, max_table=max_table)
        assert found.lower <= cz.exact(model).upper and cz.exact(model).lower <= found.upper < np.inf


def test_laying_out_ends_with_the_time(monkeypatch):
    """Tables that take long are not laid out to the end of them after the run's."""
    model = cz.generators.complete(12, weights=(-3, 3), rng=0)
    layout = cz.mini_buckets(model, max_table=2**6).state.lanes[0].layout
    begin = np.zeros(layout.below.num_shifted + layout.below.num_cliques)
    over = Budget(0.0)
    assert over.must_stop()
    for side in (BoundState.upper, BoundState.lower):
        assert len(side(layout.tables_below, model.unary.flat, begin, budget=over).theta)  # which takes no time
    monkeypatch.setattr(tables, "SECONDS_PER_ENTRY", 1.0)  # as if it did
    for side in (BoundState.upper, BoundState.lower):
        with pytest.raises(Cancelled):
            side(layout.tables_below, model.unary.flat, begin, budget=over)
    monkeypatch.setattr("clampz.approximations.mini_buckets.end_state.KEPT_ENTRIES", 0)
    with pytest.raises(Cancelled):
        MiniBucketsLayout(model, layout.max_table, layout.above, layout.below).lay_out(over)
    assert cz.mini_buckets(model, max_table=2**6, time=0.0).stopped_by == "time"
