"""Structures of mini-buckets: all that their layout promises, against the same rules in plain Python, on models of
every kind and size."""

import itertools

import numpy as np
import pytest
from structure_checks import (
    buckets_of,
    check,
    cliques_of,
    entries,
    naive_bound,
    naive_log_z,
    naive_structure,
    scopes_of,
)

import clampz as cz
from clampz.approximations.mini_buckets import structure as structure_module
from clampz.approximations.mini_buckets.structure import Structure
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled


def random_model(seed, most=10):
    """A few variables of one to five states, edges, factors of up to five variables, isolated ones, components."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, most + 1))
    num_states = rng.choice([1, 2, 2, 2, 3, 5], size=n) if seed % 3 else np.full(n, 2)
    factors = []
    for size in (2, 3, 4, 5):
        for _ in range(int(rng.integers(0, 2 * n + 1)) if size == 2 else int(rng.integers(0, 4))):
            if size <= n:
                scope = rng.choice(n, size, replace=False)
                table = rng.normal(size=num_states[scope])
                table[rng.random(table.shape) < 0.1 * (seed % 2)] = -np.inf
                factors.append((scope.tolist(), table))
    return cz.Model([rng.normal(size=k) for k in num_states], factors=factors)


def random_limit(seed):
    return (2, 4, 8, 16, 30, 64, 2**14)[seed % 7]


@pytest.mark.nojit
def test_a_structure_is_what_the_layout_says():
    for seed in range(300):
        model, max_table = random_model(seed), random_limit(seed)
        for grow in (False, True):
            check(Structure.of(model, max_table, grow=grow, seed=seed, budget=UNLIMITED), model, max_table)


def test_thousands_of_structures_are_what_the_layout_says():
    for seed in range(300, 1300):
        model, max_table = random_model(seed), random_limit(seed)
        check(
            Structure.of(model, max_table, grow=seed % 2 == 0, seed=seed, budget=UNLIMITED),
            model,
            max_table,
        )


@pytest.mark.nojit
def test_it_is_built_by_the_rules():
    for seed in range(150):
        model, max_table = random_model(seed), random_limit(seed)
        structure = Structure.of(model, max_table, grow=False, budget=UNLIMITED)
        buckets, homes, order = naive_structure(model, max_table, follow=structure.order.tolist())
        assert structure.order.tolist() == order
        cliques = cliques_of(structure)
        assert [[set(cliques[c]) for c in bucket] for bucket in buckets_of(structure)] == buckets
        num_own = len(scopes_of(model))
        found = [*structure.edge_clique.tolist(), *structure.factor_clique.tolist()]
        assert found == [homes[k] for k in range(num_own)]
        assert structure.parent.tolist() == [homes.get(num_own + c, -1) for c in range(len(cliques))]


@pytest.mark.nojit
def test_an_order_is_followed():
    for seed in range(40):
        model, max_table = random_model(seed), random_limit(seed)
        order = np.random.default_rng(seed).permutation(model.num_variables)
        structure = Structure.of(model, max_table, order=order, grow=False, budget=UNLIMITED)
        check(structure, model, max_table)
        assert structure.order.tolist() == order.tolist()
        cliques = cliques_of(structure)
        wanted = naive_structure(model, max_table, order.tolist())[0]
        assert [[set(cliques[c]) for c in bucket] for bucket in buckets_of(structure)] == wanted


@pytest.mark.nojit
def test_some_variables_go_last():
    for seed in range(40):
        model, max_table = random_model(seed), random_limit(seed)
        last = np.flatnonzero(np.random.default_rng(seed).random(model.num_variables) < 0.4).tolist()
        structure = Structure.of(model, max_table, last=last, budget=UNLIMITED)
        check(structure, model, max_table)
        assert sorted(structure.order[model.num_variables - len(last) :].tolist()) == last


def test_what_it_stands_for_is_a_bound_exact_where_nothing_is_split():
    exact = 0
    for seed in range(200):
        model, max_table = random_model(seed, most=6), random_limit(seed)
        log_z = naive_log_z(model)
        for grow in (False, True):
            structure = Structure.of(model, max_table, grow=grow, seed=seed, budget=UNLIMITED)
            bound = naive_bound(structure, model)
            assert bound >= log_z - 1e-9
            split = [v for v, b in zip(structure.order, buckets_of(structure), strict=True) if len(b) > 1]
            if (model.num_states[split] == 1).all():
                exact += 1
                assert bound == pytest.approx(log_z, abs=1e-9)
    assert exact > 50


@pytest.mark.nojit
def test_growing_adds_no_cliques_and_larger_shifts():
    model = cz.generators.grid(6, 6, rng=0)
    plain, grown = (Structure.of(model, 2**4, grow=grow, budget=UNLIMITED) for grow in (False, True))
    assert plain.order.tolist() == grown.order.tolist() and plain.parent.tolist() == grown.parent.tolist()
    for before, after in zip(cliques_of(plain), cliques_of(grown), strict=True):
        assert set(before) <= set(after) and entries(model, after) <= 2**4
    assert grown.num_shifted > plain.num_shifted
    alone = [b[0] for b in buckets_of(plain) if len(b) == 1]
    assert all(cliques_of(plain)[c] == cliques_of(grown)[c] for c in alone)


def test_seeds_make_other_structures_and_repeat_them():
    model = cz.generators.grid(8, 8, rng=0)
    orders = [Structure.of(model, 2**5, seed=seed, budget=UNLIMITED).order.tolist() for seed in (0, 1, 2, 0)]
    assert orders[0] == orders[3] and len({tuple(order) for order in orders}) == 3


@pytest.mark.nojit
def test_a_factor_larger_than_the_limit_is_a_clique_of_its_own():
    rng = np.random.default_rng(0)
    model = cz.Model(
        np.zeros((7, 2)),
        {(0, 5): rng.normal(size=(2, 2)), (5, 6): rng.normal(size=(2, 2))},
        factors=[((0, 1, 2, 3, 4), rng.normal(size=[2] * 5))],
    )
    structure = Structure.of(model, 4, budget=UNLIMITED)
    check(structure, model, 4)
    assert set(cliques_of(structure)[structure.factor_clique[0]]) >= {0, 1, 2, 3, 4}
    assert naive_bound(structure, model) >= naive_log_z(model) - 1e-9


def star(n, hub_states=2, leaf_states=2):
    num_states = np.full(n, leaf_states)
    num_states[0] = hub_states
    edges = np.stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)], axis=1)
    flat = np.random.default_rng(0).normal(size=(n - 1) * hub_states * leaf_states)
    return cz.Model.from_flat(num_states, np.zeros(num_states.sum()), edges, flat)


@pytest.mark.parametrize("shape", [(2, 2), (1, 2), (3, 1)])
def test_hubs_are_no_trouble(shape):
    """Eliminated last or first: work is counted by what is returned."""
    n = 20_000
    model = star(n, *shape)
    structure = Structure.of(model, 2**6, budget=UNLIMITED)
    assert structure.num_cliques < 2 * n
    structure = Structure.of(model, 2**6, order=np.arange(n), grow=False, budget=UNLIMITED)
    assert len(structure.scope) < 8 * n and sorted(structure.order.tolist()) == list(range(n))


@pytest.mark.parametrize("hub_states", [2, 1])
def test_buckets_of_many_cliques(hub_states):
    """More than functions look for room in, and than a tree is looked for among."""
    n = 1000
    model = star(n, hub_states)
    structure = Structure.of(model, 2**5, order=np.arange(n), budget=UNLIMITED)
    check(structure, model, 2**5)
    assert len(buckets_of(structure)[0]) > 200
    log_z = np.logaddexp.reduce(np.logaddexp.reduce([*model.pairwise.values()], axis=2).sum(axis=0))
    assert naive_bound(structure, model) >= log_z - 1e-9


@pytest.mark.parametrize(("work", "most"), [(0, 2_000), (50, 2_000), (400, 2_000), (2**21, 0), (2**21, 48)])
def test_fill_is_counted_as_far_as_it_is_worth(work, most, monkeypatch):
    monkeypatch.setattr(structure_module, "COUNTING_WORK", work)
    monkeypatch.setattr(structure_module, "MOST_COUNTED", most)
    for seed in range(60):
        model, max_table = random_model(seed), random_limit(seed)
        check(Structure.of(model, max_table, budget=UNLIMITED), model, max_table)
    grid = cz.generators.grid(7, 7, rng=0)
    check(Structure.of(grid, 2**6, budget=UNLIMITED), grid, 2**6)


def test_complete_graphs_are_no_trouble():
    for n in (40, 80):
        model = cz.generators.complete(n, rng=0)
        structure = Structure.of(model, 2**8, budget=UNLIMITED)
        check(structure, model, 2**8)


def test_larger_grids_are_linear():
    sizes = [len(Structure.of(cz.generators.grid(k, k, rng=0), 2**8, budget=UNLIMITED).scope) / k**2 for k in (40, 120)]
    assert sizes[1] < 1.2 * sizes[0]


@pytest.mark.nojit
@pytest.mark.parametrize("max_table", [1, 0, -4, 2.0, "8", True, None])
def test_a_limit_is_a_whole_number_of_at_least_two(max_table):
    with pytest.raises(cz.errors.OptionError, match="max_table: expected a whole number >= 2"):
        Structure.of(cz.generators.grid(2, 2, rng=0), max_table, budget=UNLIMITED)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": [0, 1, 2]}, "order: expected each of the 4 variables once"),
        ({"order": [0, 1, 2, 2]}, "order"),
        ({"last": [4]}, "last: expected variables from 0 to 3"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        Structure.of(cz.generators.grid(2, 2, rng=0), 4, budget=UNLIMITED, **options)


def test_memory_is_planned_before_it_is_taken():
    model = cz.generators.grid(30, 30, rng=0)
    with pytest.raises(
        cz.errors.TooWideError, match=r"16,384 entries need .*at least .* and 10 MB are allowed: lower max_table="
    ):
        Structure.of(model, most_bytes="10MB", budget=UNLIMITED)
    found = Structure.of(model, 2**6, most_bytes="10MB", budget=UNLIMITED)
    assert found.num_bytes() <= 10**7 < found.num_bytes(20)
    with pytest.raises(cz.errors.TooWideError) as error:
        Structure.of(model, 2**6, most_bytes=found.num_bytes() - 1, budget=UNLIMITED)
    assert error.value.num_bytes >= found.num_bytes() - 1


def test_limits_beyond_all_machines_are_refused_in_words():
    model = cz.generators.complete(60, rng=0)
    with pytest.raises(cz.errors.TooWideError, match="bytes, and"):
        Structure.of(model, 2**70, budget=UNLIMITED)


def test_a_watch_that_is_over_ends_it():
    model = cz.generators.grid(150, 150, rng=0)
    budget = Budget(0.0)
    with pytest.raises(Cancelled):
        Structure.of(model, 2**6, budget=budget)
    assert Structure.of(model, 2**6, budget=Budget()).num_cliques > model.num_variables


@pytest.mark.large
@pytest.mark.parametrize("max_table", [2, 2**8])
def test_a_million_variables(max_table):
    model = cz.generators.grid(1000, 1000, rng=0)
    structure = Structure.of(model, max_table, budget=UNLIMITED)
    assert all(np.diff(structure.bucket_start) > 0) and structure.num_entries < 3 * max_table * model.num_variables


@pytest.mark.nojit
def test_nothing_and_next_to_nothing():
    for model in (cz.Model([]), cz.Model([[0.5]]), cz.Model([[0.0, 1.0]] * 3)):
        structure = Structure.of(model, budget=UNLIMITED)
        check(structure, model, 2**14)
        assert structure.num_entries == int(model.num_states.sum())
    pairs = itertools.combinations(range(4), 2)
    single = cz.Model([[0.0]] * 4, {pair: [[1.0]] for pair in pairs})
    check(Structure.of(single, 2, budget=UNLIMITED), single, 2)


def test_a_model_too_large_for_the_memory_is_refused_before_its_scopes_are_laid_out(monkeypatch):
    monkeypatch.setattr(structure_module, "_scopes", lambda _: pytest.fail("work"))
    with pytest.raises(cz.errors.TooWideError, match=r"need at least 0\.036 MB, and 0\.03 MB are allowed"):
        Structure.of(cz.generators.grid(10, 10, rng=0), most_bytes=30_000, budget=UNLIMITED)
