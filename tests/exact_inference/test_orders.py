"""Elimination orders: against networkx's min-fill and the elimination game, and the quick estimate of their cost."""

import math
import threading
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.approximation import treewidth_min_fill_in

import clampz as cz
from clampz._kernels import graph
from clampz._kernels.bits import bit_rows
from clampz._kernels.elimination import dissection, greedy_order, low_degrees
from clampz.exact_inference import orders
from clampz.exact_inference.orders import NO_STAGES, SHAPES, find_order, quick_order
from clampz.runtime.budget import NEVER, Budget


def order_of(g, num_states=None):
    n = g.number_of_nodes()
    edges = np.array(sorted(tuple(sorted(e)) for e in g.edges), dtype=np.int64).reshape(-1, 2)
    start, neighbour, _ = graph.neighbour_lists(n, edges)
    order = find_order(np.full(n, 2) if num_states is None else num_states, start, neighbour)
    begin, scope, _, _ = greedy_order.bucket_scopes(order.variables, start, neighbour)
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


def test_the_cost_of_an_order_is_all_tables_of_the_elimination_game():
    for g in random_graphs():
        states = np.random.default_rng(0).integers(1, 5, g.number_of_nodes())
        for num_states in (np.full(g.number_of_nodes(), 2), states):
            order, begin, scope = order_of(g, num_states)
            ordered = num_states[order.variables]
            steps = [ordered[k] * ordered[scope[begin[k] : begin[k + 1]]].prod() for k in range(len(ordered))]
            assert order.total == pytest.approx(sum(steps))
            assert 2**order.log2_largest == pytest.approx(max(steps))


def test_order_weighs_states():
    # two hubs see all of five others: whichever kind has 40 states is eliminated first, once for each, and tables with
    # two of them never arise
    g = nx.complete_bipartite_graph(2, 5)
    order, _, _ = order_of(g, np.array([40, 40, 2, 2, 2, 2, 2]))
    assert order.total < 2 * (40 * 2**5) + 2**6
    order, _, _ = order_of(g, np.array([2, 2, 40, 40, 40, 40, 40]))
    assert order.total < 5 * 40 * 4 + 7


def edges_of(g):
    return np.array(sorted(tuple(sorted(e)) for e in g.edges), dtype=np.int64).reshape(-1, 2)


def entries_of(g, log_states, limit=math.inf):
    return quick_order(edges_of(g), log_states, np.ones(g.number_of_nodes(), dtype=np.bool_), limit).total


def test_the_quick_estimate_counts_the_tables_of_an_order():
    assert entries_of(nx.complete_graph(5), np.ones(5)) == 2**6 - 2  # 2^5 + ... + 2
    assert entries_of(nx.path_graph(4), np.log2([3, 3, 3, 3])) == pytest.approx(3 * 9 + 3)
    for n in (3, 10, 70, 200):  # over several words of bits, too
        assert entries_of(nx.cycle_graph(n), np.ones(n)) == 8 * (n - 2) + 4 + 2
        assert entries_of(nx.random_labeled_tree(n, seed=n), np.ones(n)) == 4 * (n - 1) + 2
    for g in random_graphs():
        n = g.number_of_nodes()
        assert 2 * n <= entries_of(g, np.ones(n)) <= n * 2.0 ** (treewidth_min_fill_in(g)[0] + 3)


def test_the_quick_estimate_is_given_up_at_its_limit():
    g = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6))
    found = entries_of(g, np.ones(36))
    assert entries_of(g, np.ones(36), found + 1) == found
    assert entries_of(g, np.ones(36), found) == math.inf


def test_the_quick_estimate_is_of_some_of_the_variables():
    log_states = np.array([1.0, 9.0, 1.0, 9.0, 1.0])
    some = np.array([True, False, True, False, True])
    assert quick_order(np.array([[0, 2], [2, 4]]), log_states, some, math.inf).total == 4 + 4 + 2


def test_no_order_is_completed_where_none_fits_a_machine():
    order, _, _ = order_of_complete(80)
    assert math.isinf(order.total) and order.log2_largest > greedy_order.HOPELESS


def order_of_complete(n):
    start, neighbour, _ = graph.neighbour_lists(n, edges_of(nx.complete_graph(n)))
    return find_order(np.full(n, 2), start, neighbour), start, neighbour


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_is_the_graph_that_elimination_leaves(seed):
    """Beyond the dense limit variables of any degree go first, on lists; against elimination on a matrix."""
    rng = np.random.default_rng(seed)
    n = 60
    joined = np.triu(rng.random((n, n)) < rng.choice([0.05, 0.1, 0.3]), 1)
    edges = np.argwhere(joined).astype(np.int32)
    start, neighbour, _ = graph.neighbour_lists(n, edges)
    early, begin, count, pool, *_ = low_degrees.low_degrees_first(
        start, neighbour, np.ones(n), NO_STAGES, 2, 20, math.inf, NEVER
    )
    joined = joined | joined.T
    for v in early:
        near = np.flatnonzero(joined[v])
        joined[np.ix_(near, near)] = True
        joined[v] = joined[:, v] = False
        np.fill_diagonal(joined, False)
    for v in sorted(set(range(n)) - set(early.tolist())):
        assert sorted(pool[begin[v] : begin[v] + count[v]].tolist()) == np.flatnonzero(joined[v]).tolist()


def lists_of(n, edges):
    return graph.neighbour_lists(n, np.asarray(edges, dtype=np.int32))[:2]


def grid_edges(side):
    number = np.arange(side * side).reshape(side, side)
    across, down = [number[:, :-1], number[:, 1:]], [number[:-1], number[1:]]
    return np.concatenate([np.stack([part.ravel() for part in pair], axis=1) for pair in (across, down)])


@pytest.mark.parametrize("hubs", [1, 2, 5])
def test_long_lists_are_gone_through_now_and_then(hubs):
    """A million variables around a few others: linear time, or this does not end."""
    n = 10**6
    around = np.arange(hubs, n)
    edges = np.concatenate([np.stack([np.full(n - hubs, hub), around], axis=1) for hub in range(hubs)])
    start, neighbour = lists_of(n, edges)
    order = find_order(np.full(n, 2), start, neighbour)
    assert order.total == (n - hubs) * 2 ** (hubs + 1) + 2 ** (hubs + 1) - 2
    rim = np.stack([around, np.roll(around, 1)], axis=1)
    order = find_order(np.full(n, 2), *lists_of(n, np.concatenate([edges, rim])))
    assert order.log2_largest == hubs + 3


GRID_ENTRIES = {12: 18.2, 16: 22.8, 20: 27.2, 24: 31.5}


@pytest.mark.parametrize("side", GRID_ENTRIES)
def test_open_grids_are_summed_in_tables_as_wide_as_they_are(side):
    order = find_order(np.full(side**2, 2), *lists_of(side**2, grid_edges(side)))
    assert order.log2_largest - 1 <= side + 1
    assert math.log2(order.total) <= GRID_ENTRIES[side]


def test_a_long_strip_is_swept_beyond_the_matrix_of_bits(monkeypatch):
    g = nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 450))
    lists = lists_of(4500, edges_of(g))
    swept = find_order(np.full(4500, 2), *lists)
    assert sorted(swept.variables) == list(range(4500)) and swept.log2_largest <= 12
    monkeypatch.setattr(orders, "_swept_on_lists", lambda *args: args[-2])
    assert swept.total < 0.5 * find_order(np.full(4500, 2), *lists).total


def test_shapes_never_make_an_order_dearer(monkeypatch):
    graphs = [*random_graphs(), nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14))]
    shaped = [order_of(g)[0].total for g in graphs]
    monkeypatch.setattr(orders, "SHAPES", [])
    plain = [order_of(g)[0].total for g in graphs]
    assert all(a <= b for a, b in zip(shaped, plain, strict=True)) and shaped[-1] < plain[-1]


def test_a_sweep_goes_level_by_level_from_an_end():
    for g in random_graphs():
        n = g.number_of_nodes()
        stage = dissection.sweep(*lists_of(n, edges_of(g)), n // 2)
        for nodes in nx.connected_components(g):
            (first,) = (v for v in nodes if stage[v] == 0)
            assert nx.single_source_shortest_path_length(g, first) == {v: stage[v] for v in nodes}
    stage = dissection.sweep(*lists_of(100, edges_of(nx.path_graph(100))), 50)
    assert sorted(stage) == list(range(100))  # from an end, not from the middle


def test_a_dissection_separates_what_is_below_its_separators():
    leaf = 6
    for g in random_graphs():
        n = g.number_of_nodes()
        stage, work = dissection.dissection(*lists_of(n, edges_of(g)), n, leaf, 0.3, 3 % n, NEVER)
        parts = list(nx.connected_components(g.subgraph(np.flatnonzero(stage == 0).tolist())))
        assert max((len(part) for part in parts), default=0) <= leaf
        assert work >= n or n <= leaf
    # separators are the smallest there are, and parts whose separators have too many variables stay whole
    clubs = nx.barbell_graph(10, 1)
    stage, _ = dissection.dissection(*lists_of(21, edges_of(clubs)), 3, 10, 0.25, 0, NEVER)
    assert np.bincount(stage)[1:].max() == 1
    ladder = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 40))
    stage, _ = dissection.dissection(*lists_of(120, edges_of(ladder)), 10, 60, 0.25, 0, NEVER)
    assert np.bincount(stage)[1:].max() == 3
    stage, _ = dissection.dissection(*lists_of(120, edges_of(ladder)), 2, 60, 0.25, 0, NEVER)
    assert not stage.any()
    assert not dissection.dissection(*lists_of(120, edges_of(ladder)), 10, 60, 0.25, 0, np.ones(1, np.uint8))[0].any()


@pytest.mark.parametrize("shape", SHAPES)
def test_orders_follow_the_stages(shape):
    for g in random_graphs():
        n = g.number_of_nodes()
        start, neighbour = lists_of(n, edges_of(g))
        stage, _ = shape(start, neighbour, 0, NEVER)
        rows = bit_rows(np.arange(n), start[:-1], np.diff(start), neighbour)
        order, total, *_ = greedy_order.greedy_order(rows, np.ones(n), stage, 1.0, 1e-3, 0.0, 0, math.inf, NEVER)
        assert sorted(order) == list(range(n)) and (np.diff(stage[order]) >= 0).all()
        on_lists, *_, entries, _ = low_degrees.low_degrees_first(
            start, neighbour, np.ones(n), stage, 0, 0, math.inf, NEVER
        )
        assert sorted(on_lists) == list(range(n))
        for variables, counted in ((order, total), (on_lists, entries)):
            begin, *_ = greedy_order.bucket_scopes(variables, start, neighbour)
            assert counted == (2.0 ** (1 + np.diff(begin))).sum()
        assert (np.diff(stage[on_lists][np.diff(begin) > 0]) >= 0).all()  # those without neighbours go at once


@pytest.mark.parametrize("seed", range(5))
def test_long_lists_leave_the_same_graph(seed, monkeypatch):
    """Hubs of several hundred neighbours, old and new ones, against elimination on a matrix."""
    rng = np.random.default_rng(seed)
    n, hubs = 900, 4
    joined = np.zeros((n, n), dtype=bool)
    for v in range(hubs, n):
        joined[rng.choice(hubs, 2, replace=False), v] = True
        joined[v, rng.integers(hubs, n, 1)] |= rng.random() < 0.3
    np.fill_diagonal(joined, False)
    joined |= joined.T
    start, neighbour = lists_of(n, np.argwhere(np.triu(joined)))
    early, begin, count, pool, total, largest = low_degrees.low_degrees_first(
        start, neighbour, np.ones(n), NO_STAGES, 2, 100, math.inf, NEVER
    )
    sizes = []
    for v in early:
        near = np.flatnonzero(joined[v])
        sizes.append(len(near) + 1)
        joined[np.ix_(near, near)] = True
        joined[v] = joined[:, v] = False
        np.fill_diagonal(joined, False)
    assert (total, largest) == (sum(2.0**size for size in sizes), max(sizes))
    for v in sorted(set(range(n)) - set(early.tolist())):
        assert sorted(pool[begin[v] : begin[v] + count[v]].tolist()) == np.flatnonzero(joined[v]).tolist()


def test_a_part_that_is_too_wide_speaks_for_the_whole():
    start, neighbour = lists_of(10**6, grid_edges(1000))
    order = find_order(np.full(10**6, 2), start, neighbour)
    assert math.isinf(order.total) and order.log2_largest > greedy_order.HOPELESS
    assert len(order.variables) < 2**14


def test_compiled_kernels_hear_the_flag():
    start, neighbour = lists_of(10**6, grid_edges(1000))
    cancel_flag = np.zeros(1, dtype=np.uint8)
    threading.Timer(0.3, cancel_flag.fill, (1,)).start()
    *_, total, largest = low_degrees.low_degrees_first(
        start, neighbour, np.ones(10**6), NO_STAGES, 2, 4096, math.inf, cancel_flag
    )
    assert math.isinf(total) and largest < greedy_order.HOPELESS

    start, neighbour = lists_of(3600, grid_edges(60))
    rows = bit_rows(np.arange(3600), start[:-1], np.diff(start), neighbour)
    *_, work = greedy_order.greedy_order(rows, np.ones(3600), NO_STAGES, 1.0, 1e-3, 0.0, 0, math.inf, NEVER)
    cancel_flag[0] = 0
    threading.Timer(0.001, cancel_flag.fill, (1,)).start()
    _, total, _, _, less = greedy_order.greedy_order(
        rows, np.ones(3600), NO_STAGES, 1.0, 1e-3, 0.0, 0, math.inf, cancel_flag
    )
    assert math.isinf(total) and less < work


def test_no_fill_is_counted_for_tables_that_fit_no_machine():
    n = 1000
    rows = np.full((n, 16), 2**64 - 1, dtype=np.uint64)
    rows[:, -1] >>= np.uint64(24)
    rows[np.arange(n), np.arange(n) // 64] &= ~(np.uint64(1) << (np.arange(n) % 64).astype(np.uint64))
    _, total, largest, _, work = greedy_order.greedy_order(
        rows, np.ones(n), NO_STAGES, 1.0, 0.0, 0.0, 0, math.inf, NEVER
    )
    assert math.isinf(total) and largest == n
    assert work < n * n  # and not n * n * 16


def test_a_hub_is_counted_once_its_table_fits():
    """A clique of nine whose first variable has seventy leaves: hopeless at first, and then like the others."""
    g = nx.complete_graph(9)
    g.add_edges_from((0, leaf) for leaf in range(9, 79))
    start, neighbour = lists_of(79, edges_of(g))
    rows = bit_rows(np.arange(79), start[:-1], np.diff(start), neighbour)
    order, total, *_ = greedy_order.greedy_order(rows, np.ones(79), NO_STAGES, 1.0, 0.0, 0.0, 0, math.inf, NEVER)
    assert sorted(order) == list(range(79))
    assert total == 70 * 4 + 2**10 - 2


def test_the_quick_estimate_takes_little_memory_for_many_variables():
    n = 10**5
    edges, everything = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.ones(n, dtype=np.bool_)
    tracemalloc.start()
    try:
        assert quick_order(edges, np.ones(n), everything, math.inf).total == 4 * (n - 1) + 2
        assert tracemalloc.get_traced_memory()[1] < 1000 * n  # a matrix of bits has n^2 / 8 bytes
    finally:
        tracemalloc.stop()
    assert math.isinf(quick_order(edges, np.ones(n), everything, 4 * (n - 1) + 2).total)
    assert math.isinf(quick_order(grid_edges(300), np.ones(90_000), np.ones(90_000, dtype=np.bool_), 2.0**20).total)


def test_an_order_on_a_watch():
    over = Budget(stop=lambda: True)
    assert over.must_stop()
    n = 10**5
    path = lists_of(n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    assert math.isinf(find_order(np.full(n, 2), *path, over).total)  # there was no time for it
    assert find_order(np.full(n, 2), *path).total == 4 * (n - 1) + 2
    small = lists_of(81, grid_edges(9))
    attempts = []
    looks = Budget(stop=lambda: bool(attempts.append(1)))
    thorough = find_order(np.full(81, 2), *small, looks)
    hasty = find_order(np.full(81, 2), *small, over)
    assert len(attempts) > 1 and thorough.total <= hasty.total < math.inf


def test_a_large_grid_is_bounded_and_not_a_crash():
    model = cz.generators.grid(70, 70, weights=(-4, 4), rng=0)
    bracket = cz.bound(model, time=3.0, leaves=1)
    assert bracket.lower < bracket.upper
