"""Edge weights: effective resistances, sampled trees, the forest polytope, and what optimizing them gains."""

import networkx as nx
import numpy as np
import pytest
from naive import naive_forest_excess, spanning_trees
from random_models import as_general, random_binary, random_edges, random_tables, tree_edges

import clampz as cz
from clampz.approximations import edge_weights
from clampz.approximations.edge_weights import (
    checked_weights,
    forest_excess,
    heaviest_forests,
    sampled_weights,
    uniform_weights,
)
from clampz.model.topology import Topology
from clampz.runtime.budget import UNLIMITED, Budget

# Weights are shrunk by 1e-12 and more against rounding.
EXACT = 1e-10
# Of the integer capacities with which `forest_excess` computes cuts.
RESOLUTION = 1e-6


def topology_of(graph_or_edges, n=None):
    if isinstance(graph_or_edges, nx.Graph):
        n, graph_or_edges = graph_or_edges.number_of_nodes(), graph_or_edges.edges
    edges = np.array(sorted(tuple(sorted(pair)) for pair in graph_or_edges), dtype=np.int32).reshape(-1, 2)
    return Topology.from_edges(n, edges)


def grid_graph(rows, cols):
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, cols))


@pytest.mark.nojit
def test_uniform_weights_of_known_graphs():
    np.testing.assert_allclose(uniform_weights(topology_of(nx.complete_graph(4)), budget=UNLIMITED), 0.5, rtol=EXACT)
    np.testing.assert_allclose(uniform_weights(topology_of(nx.complete_graph(9)), budget=UNLIMITED), 2 / 9, rtol=EXACT)
    for n in (3, 4, 10, 51):
        np.testing.assert_allclose(
            uniform_weights(topology_of(nx.cycle_graph(n)), budget=UNLIMITED), (n - 1) / n, rtol=EXACT
        )
    rng = np.random.default_rng(0)
    assert (uniform_weights(topology_of(tree_edges(rng, 30), 30), budget=UNLIMITED) == 1).all()
    assert uniform_weights(topology_of([], 4), budget=UNLIMITED).size == 0


@pytest.mark.nojit
@pytest.mark.parametrize(
    "graph", [grid_graph(2, 3), grid_graph(3, 3), nx.complete_graph(5), nx.barbell_graph(3, 1), nx.wheel_graph(5)]
)
def test_uniform_weights_count_spanning_trees(graph):
    topology = topology_of(graph)
    trees = spanning_trees(topology.num_variables, topology.edges.tolist())
    wanted = [sum(k in tree for tree in trees) / len(trees) for k in range(topology.num_edges)]
    found = uniform_weights(topology, budget=UNLIMITED)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert (found <= wanted).all() or forest_excess(topology, found, budget=UNLIMITED) <= EXACT


@pytest.mark.nojit
def test_uniform_weights_of_parts_and_pendants():
    # two triangles apart, a pendant chain on one of them, and an isolated variable
    topology = topology_of([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (5, 6), (6, 7)], 9)
    rho = dict(zip(map(tuple, topology.edges.tolist()), uniform_weights(topology, budget=UNLIMITED), strict=True))
    for pair in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]:
        assert rho[pair] == pytest.approx(2 / 3, rel=EXACT)
    assert rho[5, 6] == rho[6, 7] == 1.0


@pytest.mark.nojit
def test_uniform_weights_of_many_components_are_those_of_each(monkeypatch):
    """Exact however many there are: what they cost is what counts."""
    monkeypatch.setattr(edge_weights, "MAX_DENSE", 25)
    monkeypatch.setattr(edge_weights, "MAX_BLOCK", 100)
    parts = [
        nx.complete_graph(5),
        nx.cycle_graph(4),
        nx.complete_graph(5),
        nx.lollipop_graph(4, 2),
        nx.cycle_graph(4),
    ] * 4
    whole = nx.disjoint_union_all(parts)
    rho = dict(
        zip(
            map(tuple, topology_of(whole).edges.tolist()),
            uniform_weights(topology_of(whole), budget=UNLIMITED),
            strict=True,
        )
    )
    first = 0
    for part in parts:
        for (i, j), expected in zip(
            sorted(part.edges), uniform_weights(topology_of(part), budget=UNLIMITED), strict=True
        ):
            assert rho[first + i, first + j] == pytest.approx(expected, rel=EXACT)
        first += len(part)


def test_uniform_weights_of_the_free_variables():
    topology = topology_of(nx.complete_graph(5))
    free = np.array([True, True, True, False, False])
    rho = uniform_weights(topology, free, budget=UNLIMITED)
    inside = free[topology.edges].all(axis=1)
    np.testing.assert_allclose(rho[inside], 2 / 3, rtol=EXACT)
    assert (rho[~inside] == 1).all()


@pytest.mark.nojit
@pytest.mark.parametrize("num_trees", [1, 5, 200])
def test_sampled_weights_cover_every_edge_and_lie_inside(num_trees):
    for graph in (grid_graph(3, 4), nx.complete_graph(7), nx.gnp_random_graph(12, 0.4, seed=2), nx.barbell_graph(4, 2)):
        topology = topology_of(graph)
        rho = sampled_weights(topology, num_trees, np.random.default_rng(1), budget=UNLIMITED)
        assert (rho > 0).all() and (rho <= 1).all()
        assert naive_forest_excess(topology.num_variables, topology.edges.tolist(), rho) <= 1e-12
        bridges = {tuple(sorted(pair)) for pair in nx.bridges(graph)}
        assert all(
            r == 1.0 for pair, r in zip(map(tuple, topology.edges.tolist()), rho, strict=True) if pair in bridges
        )


@pytest.mark.nojit
def test_sampled_weights_of_the_free_variables():
    topology = topology_of(nx.complete_graph(6))
    free = np.array([True, True, True, True, False, False])
    rho = sampled_weights(topology, 100, np.random.default_rng(1), free, budget=UNLIMITED)
    inside = free[topology.edges].all(axis=1)
    assert rho[inside].sum() == pytest.approx(3.0, rel=EXACT)
    assert (rho[~inside] == 1).all()


def test_large_graphs_are_sampled(monkeypatch):
    monkeypatch.setattr(edge_weights, "MAX_DENSE", 10)
    topology = topology_of(grid_graph(6, 6))
    rho = uniform_weights(topology, budget=UNLIMITED)
    assert (rho > 0).all() and forest_excess(topology, rho, budget=UNLIMITED) <= 1e-9
    model = cz.generators.grid(6, 6, toroidal=False, rng=0)
    assert cz.trw(model).upper >= cz.exact(model).lower


@pytest.mark.nojit
def test_forest_excess_equals_brute_force():
    rng = np.random.default_rng(2)
    outside = 0
    for _ in range(60):
        n = int(rng.integers(3, 8))
        edges = random_edges(rng, n, rng.uniform(0.3, 1.0))
        if not edges:
            continue
        topology = topology_of(edges, n)
        rho = rng.uniform(0, rng.choice([0.7, 1.4]), topology.num_edges).clip(max=1.0)
        wanted = naive_forest_excess(n, topology.edges.tolist(), rho)
        outside += wanted > 0
        assert forest_excess(topology, rho, budget=UNLIMITED) == pytest.approx(wanted, abs=RESOLUTION)
    assert 10 < outside < 50


@pytest.mark.nojit
def test_uniform_weights_lie_inside():
    for graph in (grid_graph(4, 4), nx.complete_graph(8), nx.gnp_random_graph(20, 0.3, seed=5)):
        topology = topology_of(graph)
        assert forest_excess(topology, uniform_weights(topology, budget=UNLIMITED), budget=UNLIMITED) == 0.0


@pytest.mark.nojit
def test_heaviest_forests():
    rng = np.random.default_rng(3)
    topology = topology_of(grid_graph(2, 3))
    edges = topology.edges.tolist()
    weights = rng.random((topology.num_edges, 5))
    found = heaviest_forests(topology, weights, Budget())
    trees = spanning_trees(6, edges)
    for b in range(5):
        best = max(trees, key=lambda tree: sum(weights[list(tree), b]))
        assert sorted(np.flatnonzero(found[:, b]).tolist()) == sorted(best)
    asked = iter([False, False, True])
    assert heaviest_forests(topology, weights, Budget(stop=lambda: next(asked))) is None  # after the second of five


# -- given by the user -----------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], r"edge_weights: expected shape \(3,\) or \(3, 1\), .* found \(2,\)"),
        ([[0.5, 0.5]] * 3, r"edge_weights: expected shape \(3,\) or \(3, 1\), .* found \(3, 2\)"),
        ([0.5, 0.0, 0.5], r"edge_weights\[1\] of edge \(0, 2\): expected 1e-09 <= rho <= 1, found 0.0"),
        ([0.5, 1.5, 0.5], r"edge_weights\[1\] .* found 1.5"),
        ([0.5, float("nan"), 0.5], r"edge_weights\[1\] .* found nan"),
        ([1.0, 1.0, 1.0], r"not a mixture of spanning forests \(some group of variables has 1 too much\)"),
        ([0.8, 0.7, 0.6], r"not a mixture of spanning forests"),
    ],
)
def test_weights_outside_are_refused(weights, message):
    topology = topology_of(nx.cycle_graph(3))
    with pytest.raises(cz.errors.OptionError, match=message):
        checked_weights(topology, np.array(weights), 1, budget=UNLIMITED)


@pytest.mark.nojit
@pytest.mark.parametrize("n", [3, 20, 100])
@pytest.mark.parametrize("too_much", [0.0, 1e-12, 1e-9, 1e-8, 1e-6])
def test_weights_that_pass_are_inside_to_the_last_digit(n, too_much):
    # the cuts are computed in integers: what these do not see must not reach the bound
    topology = topology_of(nx.cycle_graph(n))
    try:
        rho = checked_weights(topology, np.full(n, (n - 1) / n + too_much), 1, budget=UNLIMITED)
    except cz.errors.OptionError:
        assert too_much > 0
    else:
        assert rho.sum() <= n - 1
        assert rho.sum() >= (n - 1) * (1 - 1e-4)


def test_bethe_weights_are_refused_by_trw():
    model = cz.generators.cycle(4, rng=0)
    with pytest.raises(cz.errors.OptionError, match="mixture of spanning forests"):
        cz.trw(model, edge_weights=np.ones(4))


@pytest.mark.nojit
@pytest.mark.parametrize("general", [False, True])
def test_given_weights_are_used(general):
    rng = np.random.default_rng(4)
    model = random_binary(rng, 6, random_edges(rng, 6, 0.8), 3.0)
    model = as_general(model) if general else model
    uniform = uniform_weights(model.topology, budget=UNLIMITED)
    base = cz.trw(model, tol=1e-8)
    assert cz.trw(model, tol=1e-8, edge_weights=uniform).value == pytest.approx(base.value, abs=1e-6)
    halved = cz.trw(model, tol=1e-8, max_iter=50_000, edge_weights=uniform / 2)
    assert halved.value > base.value + 1e-3  # lower weights are valid and looser
    per_lane = cz.trw(
        model, evidence=[{}, {}], tol=1e-8, max_iter=50_000, edge_weights=np.stack([uniform, uniform / 2], axis=1)
    )
    assert per_lane.value.tolist() == [pytest.approx(base.value, abs=1e-6), pytest.approx(halved.value, abs=1e-6)]


def test_weights_of_large_graphs_are_checked_against_the_uniform_ones_alone(monkeypatch):
    """A maximum flow for each of 900 variables would take minutes."""
    monkeypatch.setattr(edge_weights, "forest_excess", lambda *_: pytest.fail("a maximum flow for every variable"))
    model = cz.generators.grid(30, 30, weights=(-2, 2), rng=0)
    share = 899 / 1800  # what every edge of the torus has, but for rounding
    even = cz.trw(model, edge_weights=np.full(1800, share), tol=1.0)
    assert even.upper == pytest.approx(cz.trw(model, tol=1.0).upper, abs=1e-6)
    assert cz.trw(model, edge_weights=np.full(1800, share / 2), tol=1.0, max_iter=50).upper > even.upper
    one_more = np.full(1800, share)
    one_more[7] = 0.6
    with pytest.raises(
        cz.errors.OptionError, match=r"none above the uniform ones.*more than 500.*found 900 .*0\.6, not 0\.499"
    ):
        cz.trw(model, edge_weights=one_more)


def test_weights_that_are_no_numbers():
    with pytest.raises(cz.errors.OptionError, match="expected a number per edge"):
        cz.trw(cz.generators.cycle(4, rng=0), edge_weights=object())


# -- optimized -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [2, 3])
def test_optimized_is_never_above_uniform(labels):
    rng = np.random.default_rng(5)
    gained = 0.0
    for scale in (0.5, 2.0, 8.0):
        n = 7
        edges = random_edges(rng, n, 0.7)
        model = random_binary(rng, n, edges, scale) if labels == 2 else random_tables(rng, [3] * n, edges, scale)
        uniform, optimized = cz.trw(model), cz.trw(model, edge_weights="optimized")
        assert optimized.upper <= uniform.upper
        assert optimized.upper >= cz.exact(model).lower
        gained += uniform.upper - optimized.upper
        rho = optimized.state.rho[:, 0]
        assert (rho > 0).all() and forest_excess(model.topology, rho, budget=UNLIMITED) <= 1e-9
        assert cz.trw(model, edge_weights=rho * (1 - 1e-9), max_iter=50_000).value <= uniform.upper
    assert gained > 0.1


@pytest.mark.parametrize("general", [False, True])
def test_optimized_lanes_equal_single_runs(general):
    rng = np.random.default_rng(6)
    model = random_binary(rng, 7, random_edges(rng, 7, 0.8), 2.0)
    model = as_general(model) if general else model
    batch = cz.Batch(model, rng.normal(size=(14, 3)))
    options = {"edge_weights": "optimized", "num_steps": 5}
    many = cz.trw(batch, **options)
    for b in range(3):
        lane = batch.lane(b)
        if general:
            lane.__dict__["pair_form"] = None
        one = cz.trw(lane, **options)
        assert many[b].upper == pytest.approx(one.upper, abs=1e-6)
        np.testing.assert_allclose(many[b].marginals.flat, one.marginals.flat, atol=1e-5)
        np.testing.assert_allclose(many[b].pairwise_marginals.flat, one.pairwise_marginals.flat, atol=1e-5)
    assert (many.upper <= cz.trw(batch).upper).all()


def test_more_steps_help():
    model = cz.generators.grid(5, 5, weights=(0, 6), rng=1)
    uppers = [cz.trw(model, edge_weights="optimized", num_steps=k).upper for k in (1, 10, 40)]
    assert uppers[2] < uppers[1] < uppers[0] < cz.trw(model).upper


def test_every_kind_of_weights_differs():
    model = cz.generators.grid(4, 4, rng=2)
    uppers = {cz.trw(model, edge_weights=kind).upper for kind in ("uniform", "sampled", "optimized")}
    assert len(uppers) == 3
    assert len({cz.trw(model, edge_weights="sampled", num_trees=20, seed=s).upper for s in (0, 1)}) == 2


def test_weights_that_there_is_no_time_to_check_are_lowered_and_not_refused():
    model = cz.generators.cycle(600, rng=0)
    found = cz.trw(model, edge_weights=np.full(600, (1 - 1 / 600) * (1 - 1e-9)), time=0.0)
    assert found.stopped_by == "time" and found.upper >= cz.exact(model).lower
