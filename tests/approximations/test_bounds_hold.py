"""Both bounds hold, without any tolerance, wherever a run is stopped: thousands of random models against exact
inference.

Each topology comes with many unary tables, solved as lanes of one batch.  Weights run from weak to extreme; some models
have hard zeros, isolated variables, pendant trees, or states ruled out in some lanes only.  Bounds are already widened
by the rounding made in computing them, and so are those of `exact`, so that plain comparisons must do.
"""

import itertools

import numpy as np
import pytest
from naive import enumerate_model
from random_models import as_general, random_binary, random_edges, random_tables, tree_edges

import clampz as cz

SCALES = (0.1, 1.0, 5.0, 30.0, 1000.0)
MAX_ITERS = (1, 2, 5, 1000)
NUM_LANES = 20


def random_batch(rng, *, labels, scale, zeros):
    """A random topology with random pairwise potentials, and NUM_LANES unary tables."""
    n = int(rng.integers(2, 13 if labels == 2 else 8))
    edges = random_edges(rng, n, rng.choice([0.15, 0.4, 0.8]))
    num_states = np.full(n, 2) if labels == 2 else rng.integers(1, labels + 1, n)
    pairs = {}
    for i, j in edges:
        table = scale * rng.uniform(-1, 1, (num_states[i], num_states[j]))
        table[rng.random(table.shape) < zeros] = -np.inf
        pairs[i, j] = table
    model = cz.Model([np.zeros(k) for k in num_states], pairs, constant=scale * rng.normal())
    unary = rng.choice([0.1, 1.0, scale], NUM_LANES) * rng.uniform(-1, 1, (num_states.sum(), NUM_LANES))
    ruled_out = rng.random(unary.shape) < 0.1
    ruled_out[:, NUM_LANES // 2 :] = False  # the second half of the lanes keeps every state
    return cz.Batch(model, np.where(ruled_out, -np.inf, unary))


def batches(seed, count, **kinds):
    rng = np.random.default_rng(seed)
    combined = itertools.cycle(itertools.product(*kinds.values()))
    return [random_batch(rng, **dict(zip(kinds, next(combined), strict=True))) for _ in range(count)]


def count_violations(batch, exact, **changes):
    """How many lanes' bounds exact inference contradicts; and how many were compared."""
    wrong = 0
    for max_iter in MAX_ITERS:
        field = cz.mean_field(batch, num_starts=2, max_iter=max_iter)
        trw = cz.trw(batch, max_iter=max_iter, **changes)
        assert not np.isnan(field.lower).any() and not np.isnan(trw.upper).any()
        wrong += np.count_nonzero(~(field.lower <= exact.upper)) + np.count_nonzero(~(trw.upper >= exact.lower))
    return wrong, 2 * len(MAX_ITERS) * batch.num_lanes


def check(some, **changes):
    wrong = compared = 0
    for batch in some:
        found = count_violations(batch, cz.exact(batch), **changes)
        wrong, compared = wrong + found[0], compared + found[1]
    assert wrong == 0
    return compared


def test_binary_models():
    assert check(batches(1, 60, scale=SCALES, labels=[2], zeros=[0.0])) == 60 * 160


def test_models_with_more_labels():
    assert check(batches(2, 25, scale=SCALES, labels=[3, 4], zeros=[0.0])) == 25 * 160


def test_models_with_hard_zeros():
    assert check(batches(3, 25, scale=SCALES, labels=[2, 3], zeros=[0.1, 0.4])) == 25 * 160


def test_sampled_edge_weights():
    assert (
        check(batches(4, 15, scale=SCALES, labels=[2, 3], zeros=[0.0, 0.2]), edge_weights="sampled", num_trees=5)
        == 15 * 160
    )


@pytest.mark.parametrize("labels", [2, 3])
def test_optimized_edge_weights(labels):
    rng = np.random.default_rng(5)
    for scale in SCALES:
        batch = random_batch(rng, labels=labels, scale=scale, zeros=0.0)
        few = cz.Batch(batch.model, batch.unary[:, ::5])
        exact = cz.exact(few)
        for max_iter in (1, 5, 200):
            estimates = cz.trw(few, edge_weights="optimized", num_steps=5, max_iter=max_iter)
            assert (estimates.upper >= exact.lower).all()


@pytest.mark.parametrize("start", ["mean_field", "trw"])
def test_from_any_start(start):
    rng = np.random.default_rng(6)
    for scale, labels in itertools.product(SCALES, (2, 3)):
        batch = random_batch(rng, labels=labels, scale=scale, zeros=0.1 * (labels == 3))
        exact = cz.exact(batch)
        # a start from other unary tables: the lanes in reverse
        other = cz.methods()[start](cz.Batch(batch.model, batch.unary[:, ::-1]), max_iter=3)
        assert (cz.trw(batch, start=other, max_iter=2).upper >= exact.lower).all()
        assert (cz.mean_field(batch, start=other, num_starts=1, max_iter=2).lower <= exact.upper).all()


def test_bethe_on_attractive_and_balanced_models():
    # Bethe is a lower bound there (Ruozzi 2012), wherever it is stopped
    rng = np.random.default_rng(8)
    for scale in SCALES:
        for _ in range(8):
            n = int(rng.integers(2, 12))
            edges = random_edges(rng, n, rng.choice([0.3, 0.8]))
            attractive = cz.Model.from_binary(
                np.zeros(n), scale * rng.random(len(edges)), np.array(edges).reshape(-1, 2)
            )
            model = attractive.flip(rng.random(n) < 0.5)
            unary = rng.choice([0.1, 1.0, scale], NUM_LANES) * rng.uniform(-1, 1, (2 * n, NUM_LANES))
            unary[::2][rng.random((n, NUM_LANES)) < 0.05] = -np.inf
            batch = cz.Batch(model, unary)
            exact = cz.exact(batch)
            for max_iter in (1, 5, 300):
                estimates = cz.bethe(batch, max_iter=max_iter, num_starts=1)
                assert estimates.bound == "lower" and not np.isnan(estimates.lower).any()
                assert (estimates.lower <= exact.upper).all()


def test_where_bounds_are_equalities():
    # on trees TRW and Bethe are exact, without edges mean field is: all that keeps the bounds on their side is the
    # allowance for rounding
    rng = np.random.default_rng(9)
    for _ in range(60):
        n, scale = int(rng.integers(2, 200)), 10 ** rng.uniform(-2, 4)
        edges = tree_edges(rng, n, forest=rng.choice([0.0, 0.2]))
        binary = random_binary(rng, n, edges, scale, theta=rng.choice([0.1, 1.0, scale]))
        for model in (binary, as_general(binary), random_tables(rng, rng.integers(1, 5, n), edges, scale, zeros=0.1)):
            exact, trw = cz.exact(model), cz.trw(model)
            assert exact.lower <= trw.upper <= exact.upper + 1e-7 * max(1.0, abs(exact.log_z))
        exact, bethe = cz.exact(binary), cz.bethe(binary)
        assert exact.lower - 1e-6 * max(1.0, abs(exact.log_z)) <= bethe.lower <= exact.upper
        free = cz.Model([scale * rng.uniform(-1, 1, k) for k in rng.integers(1, 5, n)])
        exact, field = cz.exact(free), cz.mean_field(free, num_starts=1)
        assert exact.lower - 1e-7 * max(1.0, abs(exact.log_z)) <= field.lower <= exact.upper


def test_against_enumeration():
    rng = np.random.default_rng(7)
    for scale, labels, zeros in itertools.product(SCALES, (2, 3), (0.0, 0.3)):
        batch = random_batch(rng, labels=labels, scale=scale, zeros=zeros)
        if batch.model.num_states.prod() > 2000:
            continue
        lower, upper = cz.mean_field(batch, max_iter=3, num_starts=2).lower, cz.trw(batch, max_iter=3).upper
        for b in range(0, NUM_LANES, 3):
            log_z = enumerate_model(batch.lane(b))[0]
            size = 1e-13 * max(1.0, abs(log_z)) if np.isfinite(log_z) else 0.0  # what enumeration itself rounds
            assert lower[b] <= log_z + size and upper[b] >= log_z - size
