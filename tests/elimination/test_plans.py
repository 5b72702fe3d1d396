"""Elimination of factors of any arity: against enumeration, and the orders against networkx's min-fill."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.algorithms.approximation import treewidth_min_fill_in

from clampz import elimination
from clampz._kernels import elimination_order, graph
from clampz.elimination.orders import find_order
from clampz.elimination.plans import Elimination, Restriction, Scopes, eliminate
from clampz.errors import ModelError, TooWideError
from naive import enumerate_factors

EXACT = 1e-10


def random_factors(rng, *, max_variables=7, max_states=4, max_arity=4, scale=1.0, zeros=0.0):
    n = int(rng.integers(1, max_variables + 1))
    num_states = rng.integers(1, max_states + 1, n)
    factors = []
    for _ in range(int(rng.integers(0, 2 * n + 2))):
        scope = rng.permutation(n)[: int(rng.integers(0, min(n, max_arity) + 1))].tolist()
        table = scale * rng.normal(size=tuple(num_states[scope]))
        factors.append((scope, np.where(rng.random(table.shape) < zeros, -np.inf, table)))
    return num_states, factors


def assert_same(found, num_states, factors):
    log_z, marginals, factor_marginals = enumerate_factors(num_states, factors)
    if log_z == -np.inf:
        assert found.log_z == found.lower == found.upper == -np.inf
        assert all(np.isnan(table).all() for table in found.marginals + found.factor_marginals)
        return
    assert found.log_z == pytest.approx(log_z, rel=EXACT, abs=EXACT)
    assert found.lower <= log_z <= found.upper
    for a, b in zip(found.marginals + found.factor_marginals, marginals + factor_marginals, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("log_domain", [False, True])
@pytest.mark.parametrize(("scale", "zeros"), [(1.0, 0.0), (1.0, 0.3), (30.0, 0.1), (1000.0, 0.0), (1000.0, 0.3)])
def test_factor_lists_equal_enumeration(scale, zeros, log_domain):
    rng = np.random.default_rng(int(scale) + int(10 * zeros))
    for _ in range(60):
        num_states, factors = random_factors(rng, scale=scale, zeros=zeros)
        assert_same(eliminate(num_states, factors, log_domain=log_domain), num_states, factors)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.1, 3.0, 100.0, 5000.0]), zeros=st.sampled_from([0.0, 0.5])
)
def test_any_factor_list(seed, scale, zeros):
    num_states, factors = random_factors(np.random.default_rng(seed), scale=scale, zeros=zeros)
    found = eliminate(num_states, factors)
    assert_same(found, num_states, factors)
    again = eliminate(num_states, factors, log_domain=True)
    assert again.log_z == pytest.approx(found.log_z, rel=EXACT, abs=EXACT)


def test_wide_steps_have_both_parts():
    # larger than a block, with operands that miss axes on both sides of the split, in both domains
    rng = np.random.default_rng(5)
    num_states = rng.integers(2, 4, 14)
    factors = [
        (scope, rng.normal(size=tuple(num_states[scope])))
        for scope in (rng.permutation(14)[:3].tolist() for _ in range(24))
    ]
    factors += [([i, j], rng.normal(size=(num_states[i], num_states[j]))) for i in range(14) for j in range(i)]
    for log_domain in (False, True):
        assert_same(eliminate(num_states, factors, log_domain=log_domain), num_states, factors)


def test_falls_back_to_logarithms_where_scaled_tables_would_underflow():
    # each factor alone is harmless; only their product spans more than doubles do
    n = 12
    chain = [((i, i + 1), [[0.0, -150.0], [-150.0, -1.0]]) for i in range(n - 1)]
    fields = [((i,), [0.0, -100.0 * (-1) ** i]) for i in range(n)]
    clique = [((i, j), [[0.0, -90.0], [-90.0, 0.0]]) for i in range(n) for j in range(i)]
    assert_same(eliminate([2] * n, chain + fields + clique), [2] * n, chain + fields + clique)


def test_nothing_to_sum():
    assert eliminate([], []).log_z == 0.0
    assert eliminate([3, 1], []).log_z == pytest.approx(np.log(3))
    assert eliminate([], [((), 2.5)]).log_z == 2.5


@pytest.mark.parametrize(
    "factor",
    [((0, 0), np.zeros((2, 2))), ((0, 5), np.zeros((2, 2))), ((0, 1), np.zeros((2, 3))), ((0,), [0.0, np.nan])],
)
def test_refuses_factors_that_do_not_fit(factor):
    with pytest.raises(ModelError, match="factor over"):
        eliminate([2, 2], [factor])


def test_restriction_narrows():
    scopes = Scopes.of_pairwise(np.full(6, 2), np.array([(i, j) for i in range(6) for j in range(i + 1, 6)]))
    possible = np.ones(12, dtype=bool)
    possible[[0, 3, 4]] = False  # variables 0, 1 and 2 are left with one state
    assert Elimination.of(scopes).width == 5
    assert Elimination.of(Restriction.of(scopes, possible).scopes).width == 2


def test_too_wide_says_so_before_allocating():
    n = 200
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    with pytest.raises(TooWideError, match="at least") as caught:
        Elimination.of(Scopes.of_pairwise(np.full(n, 2), edges))
    assert caught.value.width >= elimination_order.HOPELESS - 1
    n = 45
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    with pytest.raises(TooWideError, match="width 44") as caught:
        Elimination.of(Scopes.of_pairwise(np.full(n, 2), edges))
    assert caught.value.num_bytes > 8 * 2**44


def order_of(g, num_states=None):
    n = g.number_of_nodes()
    edges = np.array(sorted(tuple(sorted(e)) for e in g.edges), dtype=np.int64).reshape(-1, 2)
    start, neighbour, _ = graph.neighbour_lists(n, edges)
    order = find_order(np.full(n, 2) if num_states is None else num_states, start, neighbour)
    begin, scope, _, _ = elimination_order.bucket_scopes(order.variables, start, neighbour)
    return order, begin, scope


def random_graphs():
    for seed in range(8):
        for n in (10, 25, 60):
            yield nx.gnp_random_graph(n, 3.0 / n, seed=seed)
            yield nx.random_regular_graph(4, n, seed=seed)
        yield nx.random_labeled_tree(40, seed=seed)
        yield nx.barabasi_albert_graph(40, 2, seed=seed)
    for size in (3, 5, 7, 9):
        yield nx.convert_node_labels_to_integers(nx.grid_2d_graph(size, size, periodic=True))
        yield nx.convert_node_labels_to_integers(nx.grid_2d_graph(size, 2 * size))
        yield nx.cycle_graph(size)
        yield nx.complete_graph(size)


def test_width_is_at_most_that_of_min_fill():
    for g in random_graphs():
        order, begin, _ = order_of(g)
        assert sorted(order.variables) == list(range(g.number_of_nodes()))
        assert np.diff(begin).max() <= treewidth_min_fill_in(g)[0]


def test_scopes_are_those_of_the_elimination_game():
    for seed in range(10):
        g = nx.gnp_random_graph(20, 0.2, seed=seed)
        order, begin, scope = order_of(g)
        step_of = {int(v): k for k, v in enumerate(order.variables)}
        for k, v in enumerate(order.variables.tolist()):
            around = list(g.neighbors(v))
            assert scope[begin[k] : begin[k + 1]].tolist() == sorted(step_of[u] for u in around)
            g.add_edges_from((a, b) for a in around for b in around if a < b)
            g.remove_node(v)


def test_order_weighs_states():
    # two hubs see all of five others: whichever kind has 40 states is eliminated first, once for each, and tables with
    # two of them never arise
    g = nx.complete_bipartite_graph(2, 5)
    order, _, _ = order_of(g, np.array([40, 40, 2, 2, 2, 2, 2]))
    assert order.total < 2 * (40 * 2**5) + 2**6
    order, _, _ = order_of(g, np.array([2, 2, 40, 40, 40, 40, 40]))
    assert order.total < 5 * 40 * 4 + 7


def test_large_sparse_graphs():
    rng = np.random.default_rng(0)
    n = 100_000
    parents = np.array([rng.integers(0, i) for i in range(1, n)])
    edges = np.stack([parents, np.arange(1, n)], axis=1)
    found = Elimination.of(Scopes.of_pairwise(np.full(n, 3), edges))
    assert found.width == 1
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    ladder = np.concatenate([np.sort(ring, axis=1), np.stack([np.arange(n - 7), np.arange(7, n)], axis=1)])
    assert Elimination.of(Scopes.of_pairwise(np.full(n, 2), ladder)).width < 16


def test_memory_allowed_is_what_was_asked_for():
    assert elimination.memory_allowed(123) == 123
    assert elimination.memory_allowed(None) > 0
