"""The planarity test against networkx, and its embeddings against Euler's formula."""

import networkx as nx
import numpy as np
import pytest
from planar_models import triangulation

from clampz._kernels.planar.planarity import NOT_PLANAR, PLANAR, embed
from clampz._kernels.statuses import STOPPED
from clampz.runtime.budget import NEVER


def embedded(graph):
    edges = np.array(sorted(sorted(edge) for edge in graph.edges), dtype=np.int32).reshape(-1, 2)
    return edges, *embed(len(graph), edges, NEVER)


def check(graph):
    """The same answer as networkx's; faces as many as there must be, and made of consecutive half-edges."""
    edges, status, follows = embedded(graph)
    planar, _ = nx.check_planarity(graph)
    assert status == (PLANAR if planar else NOT_PLANAR)
    if planar:
        tail, head = edges.ravel(), edges[:, ::-1].ravel()
        assert (tail[follows] == head).all() and sorted(follows) == list(range(2 * len(edges)))
        faces = nx.number_weakly_connected_components(nx.DiGraph(enumerate(follows.tolist())))
        parts = [part for part in nx.connected_components(graph) if len(part) > 1]
        assert faces == len(edges) - sum(map(len, parts)) + 2 * len(parts)
    return planar


def test_random_graphs():
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        n = int(rng.integers(1, 13))
        found.append(check(nx.gnm_random_graph(n, int(rng.integers(0, 3 * n)), seed=int(rng.integers(2**31)))))
    assert 50 < sum(found) < 250


def test_triangulations_and_what_is_nearly_one():
    rng, found = np.random.default_rng(1), []
    for _ in range(100):
        graph = triangulation(rng, int(rng.integers(5, 40)))
        graph.remove_edges_from([edge for edge in list(graph.edges) if rng.random() < rng.choice([0.0, 0.3])])
        more = rng.integers(len(graph), size=(rng.integers(3), 2)).tolist()
        graph.add_edges_from([(a, b) for a, b in more if a != b])
        number = rng.permutation(len(graph)).tolist()
        found.append(check(nx.relabel_nodes(graph, dict(enumerate(number)))))
    assert 20 < sum(found) < 90


@pytest.mark.parametrize("graph", [nx.complete_graph(5), nx.complete_bipartite_graph(3, 3), nx.petersen_graph()])
def test_known_graphs_that_are_not(graph):
    assert not check(graph)
    subdivided = nx.Graph()
    for number, (a, b) in enumerate(graph.edges):
        nx.add_path(subdivided, [a, len(graph) + number, b])
    assert not check(subdivided)


@pytest.mark.parametrize("graph", [nx.empty_graph(0), nx.empty_graph(3), nx.path_graph(2), nx.complete_graph(4)])
def test_the_smallest(graph):
    assert check(graph)


def test_it_hears_the_flag():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(100, 100))
    edges = np.array(grid.edges, dtype=np.int32)
    assert embed(10_000, edges, NEVER)[0] == PLANAR
    assert embed(10_000, edges, np.ones(1, dtype=np.uint8))[0] == STOPPED
