"""Seeded planar models: grids, triangulations, trees, outerplanar graphs, graphs with bridges and cut vertices."""

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from clampz.model import Model
from clampz.planar.ising import Unfit
from clampz.planar.plans import PlanarPlan
from clampz.planar.sums import sum_by_plan


def triangulation(rng, n):
    """Of random points."""
    graph = nx.empty_graph(n)
    for corners in Delaunay(rng.normal(size=(n, 2))).simplices.tolist():
        nx.add_cycle(graph, corners)
    return graph


def outerplanar(rng, n):
    """A cycle with chords that do not cross."""
    graph, spans = nx.cycle_graph(n), [(0, n - 1)]
    while spans:
        a, b = spans.pop()
        if b - a > 1:
            c = int(rng.integers(a + 1, b))
            graph.add_edges_from([(a, c), (c, b)] if rng.random() < 0.7 else [])
            spans += [(a, c), (c, b)]
    return graph


def joined(rng):
    """Cycles that hang together by a bridge or by a variable."""
    graph = nx.cycle_graph(int(rng.integers(3, 5)))
    for _ in range(2):
        num, more = len(graph), nx.cycle_graph(int(rng.integers(3, 5)))
        a, b = int(rng.integers(num)), num + int(rng.integers(len(more)))
        graph = nx.disjoint_union(graph, more)
        if rng.random() < 0.5:
            graph.add_edge(a, b)
        else:
            graph = nx.contracted_nodes(graph, a, b, self_loops=False)
    return nx.convert_node_labels_to_integers(graph)


def random_graph(rng):
    """A planar graph of up to 12 variables, numbered at random: how many, and its edges."""
    kinds = [
        lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(*map(int, rng.integers(1, 4, 2)))),
        lambda: triangulation(rng, int(rng.integers(4, 11))),
        lambda: nx.random_labeled_tree(int(rng.integers(1, 12)), seed=int(rng.integers(2**31))),
        lambda: nx.cycle_graph(int(rng.integers(3, 12))),
        lambda: outerplanar(rng, int(rng.integers(4, 11))),
        lambda: joined(rng),
        lambda: nx.disjoint_union(nx.cycle_graph(int(rng.integers(3, 6))), nx.path_graph(int(rng.integers(1, 5)))),
        lambda: nx.empty_graph(int(rng.integers(3))),
    ]
    graph = kinds[rng.integers(len(kinds))]()
    share = rng.choice([0.0, 0.0, 0.3])
    graph.remove_edges_from([edge for edge in list(graph.edges) if rng.random() < share])
    number = rng.permutation(len(graph))
    return len(graph), sorted(sorted((int(number[a]), int(number[b]))) for a, b in graph.edges)


def random_couplings(rng, m):
    """From 1e-3 to 50 in size: of both signs, all alike, some of them zero."""
    size = 10 ** rng.uniform(-3, np.log10(50))
    return (
        size
        * [
            rng.uniform(-1, 1, m),
            rng.normal(size=m),
            np.ones(m),
            -np.ones(m),
            rng.choice([-1.0, 1.0], m),
            rng.uniform(-1, 1, m) * (rng.random(m) < 0.7),
        ][rng.integers(6)]
    )


def of_couplings(n, edges, J, *, fields=None):
    """score(s) = sum J s_i s_j + sum h s_i."""
    h = np.zeros(n) if fields is None else fields
    return Model(np.stack([-h, h], axis=1), {tuple(e): [[j, -j], [-j, j]] for e, j in zip(edges, J, strict=True)})


def random_planar(rng, *, fields=0.0, hard=0.0):
    """A random graph with random couplings, written with singleton parts that cancel; some of the couplings hard, and
    some of the variables with fields, which need not be on one face."""
    n, edges = random_graph(rng)
    unary, pairs = np.zeros((n, 2)), {}
    for edge, j in zip(edges, random_couplings(rng, len(edges)), strict=True):
        table = np.array([[j, -j], [-j, j]]) + rng.normal()
        if rng.random() < hard:
            table[(np.eye(2) > 0) == (rng.random() < 0.5)] = -np.inf
        if rng.random() < 0.2:
            slant = rng.normal(size=2)
            table += slant[:, None]
            unary[edge[0]] -= slant
        pairs[tuple(edge)] = table
    for i in np.flatnonzero(rng.random(n) < fields):
        unary[i] += rng.normal(size=2) * 10 ** rng.uniform(-2, 1)
        if rng.random() < hard:
            unary[i, rng.integers(2)] = -np.inf
    return Model(unary, pairs)


def planar_sum(model, **given):
    """log Z as a planar graph, and None of other models."""
    plan = PlanarPlan.of(model, **given)
    found = plan if isinstance(plan, Unfit) else sum_by_plan(model, plan, **given)
    return None if isinstance(found, Unfit) else found
