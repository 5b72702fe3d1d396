"""frustCycles and strongCycles: larger graphs, deep forests, and what they refuse."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from clampz import generators
from clampz._kernels import graph as graphs
from clampz._kernels.clamping import cycles as kernels
from clampz.clamping.selectors import choose, scores
from clampz.clamping.selectors import cycles as cycle_scores
from clampz.errors import ModelError
from clampz.model import Model

CYCLES = ["frustCycles", "strongCycles"]


def slow_cycle_scores(model):
    """frustCycles by walking every cycle in networkx's rooted maximum spanning tree; sums by fsum."""
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (int(i), int(j), float(w)) for (i, j), w in zip(model.edges, model.pair_form.W, strict=True)
    )
    tree = nx.maximum_spanning_tree(
        nx.Graph((i, j, {"weight": abs(d["weight"])}) for i, j, d in graph.edges(data=True))
    )
    parent, depth = {}, {}
    for root in (min(part) for part in nx.connected_components(tree)):
        depth[root] = 0
        for i, j in nx.bfs_edges(tree, root):
            parent[j], depth[j] = i, depth[i] + 1
    added = {i: [] for i in graph}
    for i, j, data in graph.edges(data=True):
        if tree.has_edge(i, j):
            continue
        visited, used, u, v = {i, j}, [data["weight"]], i, j
        while u != v:
            if depth[u] < depth[v]:
                u, v = v, u
            used.append(graph[u][parent[u]]["weight"])
            u = parent[u]
            visited.add(u)
        if math.prod(np.sign(used)) < 0:
            t = math.fsum(-math.log(math.tanh(abs(W) / 4)) for W in used)
            for k in visited:
                added[k].append(math.log1p(-math.exp(-t)))
    return [abs(math.fsum(added.get(i, []))) for i in range(model.num_variables)]


@pytest.mark.parametrize(
    "model",
    [
        generators.grid(25, 25, weights=(-6, 6), rng=1),
        generators.erdos_renyi(600, 3.0, weights=(-3, 3), rng=2),
        generators.from_graph(
            500, [(i, i + 1) for i in range(499)] + [(i, i + 37) for i in range(0, 463, 3)], weights=(-9, 9), rng=3
        ),  # deep trees
    ],
    ids=["grid", "erdos_renyi", "ladder"],
)
def test_cycles_of_larger_graphs(model):
    core = model.topology.core
    expected = np.where(core, slow_cycle_scores(model), 0.0)
    np.testing.assert_allclose(scores(model, "frustCycles"), expected, rtol=1e-10, atol=0)


def test_paths_of_a_deep_forest():
    """Sums along, and scores added to, paths of two long trees, against walking them."""
    rng = np.random.default_rng(0)
    n = 700
    edges = np.array([(i, i + 1 + int(rng.integers(3))) for i in range(n - 4)] + [(n - 4, n - 3)], dtype=np.int32)
    # child i + something may have several parents: keep a forest
    edges = edges[
        graphs.spanning_forest(n, edges.copy(), np.arange(len(edges)), np.zeros(1, dtype=np.uint8)).astype(bool)
    ]
    tree = nx.Graph()
    tree.add_nodes_from(range(n))
    tree.add_edges_from(edges.tolist())
    cost = 10.0 ** rng.uniform(-12, 2, len(edges))
    cost_of = {tuple(sorted(pair)): c for pair, c in zip(edges.tolist(), cost, strict=True)}
    pairs = [(i, j) for i, j in rng.integers(0, n, (400, 2)) if nx.has_path(tree, i, j)]
    assert len(pairs) > 50
    walks = [nx.shortest_path(tree, i, j) for i, j in pairs]
    forest = kernels.root_forest(*graphs.neighbour_lists(n, edges))
    assert forest.depth.max() > 60
    paths = np.array(pairs, dtype=np.int32)
    sums = [math.fsum(cost_of[tuple(sorted(step))] for step in itertools.pairwise(walk)) for walk in walks]
    np.testing.assert_allclose(kernels.path_sums(forest, paths, cost, False), sums, rtol=1e-13)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            kernels.path_sums(forest, paths, np.log(cost), True), np.log(sums), rtol=1e-12, atol=1e-12
        )
    score = 10.0 ** rng.uniform(-12, 2, len(paths))
    added = np.zeros(n)
    for walk, s in zip(walks, score, strict=True):
        added[walk] += s
    np.testing.assert_allclose(kernels.add_along_paths(forest, paths, score), added, rtol=1e-13)


def test_jumps_are_few():
    """A path of n edges is cut into at most about 2 log2 n pieces, wherever it begins and ends."""
    n = 5000
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)
    forest = kernels.root_forest(*graphs.neighbour_lists(n, chain))
    for low, high in np.sort(np.random.default_rng(0).integers(0, n, (200, 2)), axis=1):
        steps = 0
        while high > low:
            high = forest.jump[high] if forest.jump[high] >= low else forest.parent[high]
            steps += 1
        assert steps <= 2 * math.log2(n) + 2


@pytest.mark.nojit
@pytest.mark.parametrize("name", CYCLES)
def test_cycle_selectors_refuse_what_has_no_sign(name):
    triangle = [(0, 1), (1, 2), (0, 2)]
    for model in (
        generators.cycle(4, labels=3, rng=0),
        Model(np.zeros((3, 2)), {pair: [[0.0, -np.inf], [0.0, 0.0]] for pair in triangle}),
    ):
        with pytest.raises(ModelError, match="defined for binary models with finite pairwise potentials"):
            scores(model, name)


def test_costs_keep_their_digits():
    """-log tanh(w / 4) where it is tiny, and where it is large."""
    np.testing.assert_allclose(
        cycle_scores._cost(np.array([1000.0, 1e-9])), [2 * math.exp(-500.0), -math.log(0.25e-9)], rtol=1e-14
    )
    assert cycle_scores._cost(np.array([5e-324]))[0] > 700


@pytest.mark.nojit
def test_no_frustrated_cycle_scores_nothing():
    model = generators.grid(3, 3, weights=(0, 3), rng=0)
    assert (scores(model, "frustCycles") == 0).all()
    assert (scores(model, "strongCycles") > 0).all()
    assert "maxW0" in choose(model, scores(model, "frustCycles")).note
