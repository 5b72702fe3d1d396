"""Lay out connected graphs by stress majorisation: distances on the page are near those in the graph,

    stress(x) = sum_ij (|x_i - x_j| / d_ij - 1)^2,

is lowered step by step: each step minimises a quadratic function that is never below the stress and meets it where the
step began, so the stress only falls.  Large graphs are laid out by their distances to some of the nodes, the
*pivots*, and to their neighbours.
"""

from typing import Any

import numpy as np

from clampz.numerics import Floats, Integers

# Pairs of nodes up to which all of them count, a third of a second's worth; the steps at most, and the share by which a
# step lowers the stress as long as there is another.
MOST_PAIRS, STEPS, WORTH_A_STEP = 600**2, 60, 2e-3
# Steps of a first look, after which the better of two starts goes on.
LOOK = 5
# Steps in which the axes are found that a layout starts from.
LOOKS_FOR_AXES = 20
# Pivots, and nodes visited by all of them, a second's worth; and the steps that follow.
MOST_PIVOTS, FEWEST_PIVOTS, MOST_VISITS, PIVOT_STEPS = 30, 4, 2e6, 12


def place_connected(graph: Any) -> Floats:
    """Return positions (n, 2) of a connected graph, a sparse matrix of the lengths of its edges, by all pairs."""
    from scipy.sparse.csgraph import shortest_path

    n = graph.shape[0]
    distance = shortest_path(graph, directed=False)
    stress = _Stress(distance)
    # The circle suits graphs in which all are alike; most others untangle better from the axes along which distances
    # spread most.
    starts = [stress.lowered(start, LOOK) for start in (on_a_circle(n), _principal_axes(distance))]
    return stress.lowered(min(starts, key=lambda start: start[1])[0], STEPS)[0]


def on_a_circle(n: int) -> Floats:
    """Return positions (n, 2) on a circle, neighbours a unit apart, the first on top."""
    angle = np.pi / 2 - np.linspace(0, 2 * np.pi, n, endpoint=False)
    circle: Floats = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (0.5 / np.sin(np.pi / n) if n > 2 else 0.5)
    return circle


class _Stress:
    """The stress of all pairs, with weights 1 / d^2; the matrix of the quadratic function is inverted once."""

    def __init__(self, distance: Floats) -> None:
        n = len(distance)
        self._pull = 1.0 / (distance + np.eye(n))
        np.fill_diagonal(self._pull, 0.0)  # weight times distance
        weight = self._pull**2
        laplacian = np.diag(weight.sum(axis=1)) - weight
        self._inverse = np.linalg.inv(laplacian + 1.0 / n) - 1.0 / n
        self._laplacian, self._num_pairs = laplacian, n * (n - 1) / 2

    def lowered(self, position: Floats, steps: int) -> tuple[Floats, float]:
        """Return positions after some steps, fewer where they gain little, and the stress before the last of them."""
        stress = np.inf
        for _ in range(steps):
            squared = (position**2).sum(axis=1)
            length = squared[:, None] + squared - 2 * position @ position.T
            length = np.sqrt(np.maximum(length, 1e-12))
            before, stress = stress, self._num_pairs + float((position * (self._laplacian @ position)).sum())
            stress -= float((self._pull * length).sum())
            if before - stress < WORTH_A_STEP * stress:
                break
            pull = self._pull / length
            position = self._inverse @ (pull.sum(axis=1)[:, None] * position - pull @ position)
        return position, stress


def _principal_axes(distance: Floats) -> Floats:
    """Return positions by classical scaling: the two leading eigenvectors of the centred squared distances, about."""
    products = _centred(distance**2)
    vectors = np.random.default_rng(0).normal(size=(len(distance), 2))
    for _ in range(LOOKS_FOR_AXES):
        vectors = np.linalg.qr(products @ vectors)[0]
    values, turn = np.linalg.eigh(vectors.T @ products @ vectors)
    axes: Floats = vectors @ turn[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    return axes


def _centred(squared: Floats) -> Floats:
    """Turn squared distances, rows to columns, into products of vectors from the middle (double centring)."""
    middle: Floats = squared.mean(axis=0) + squared.mean(axis=1)[:, None] - squared - squared.mean()
    return middle / 2


def place_by_pivots(graph: Any) -> Floats:
    """Return positions (n, 2) of a large connected graph, by distances to pivots that are far from each other.

    Classical scaling comes first, then steps that lower the stress of pivots and edges alone, each node by itself.
    There is no more than one node per unit of area.
    """
    n = graph.shape[0]
    num = int(np.clip(MOST_VISITS / (n + graph.nnz), FEWEST_PIVOTS, MOST_PIVOTS))
    both_ways = (graph + graph.T).tocsr()
    distance, pivots = _far_apart(both_ways, min(num, n))
    products = _centred(distance.T**2)
    vectors = np.linalg.eigh(products.T @ products)[1][:, :-3:-1]
    position: Floats = products @ vectors
    i, length = np.repeat(np.arange(n), np.diff(both_ways.indptr)), both_ways.data
    position *= length.mean() / max(float(np.hypot(*(position[i] - position[both_ways.indices]).T).mean()), 1e-9)
    position = _relaxed(position, (i, both_ways.indices, length), (pivots, distance))
    spread: Floats = position * max(1.0, np.sqrt(n / max(float(np.ptp(position, axis=0).prod()), 1.0)))
    return spread


def _far_apart(graph: Any, num: int) -> tuple[Floats, Integers]:
    """Return distances (pivots, n) to the pivots, and the pivots: each is the farthest from those before it."""
    from scipy.sparse.csgraph import dijkstra

    pivots = [0]
    rows = [dijkstra(graph, indices=0)]
    for _ in range(num - 1):
        pivots.append(int(np.argmax(np.min(rows, axis=0))))
        rows.append(dijkstra(graph, indices=pivots[-1]))
    return np.array(rows), np.array(pivots)


def _relaxed(position: Floats, edges: tuple[Integers, Integers, Floats], pivots: tuple[Integers, Floats]) -> Floats:
    """Return positions after steps that move every node to the mean of where its neighbours and the pivots want it."""
    (i, j, length), (pivot, distance), n = edges, pivots, len(position)
    share = n / len(pivot)  # nodes that a pivot stands for
    weight = np.where(distance > 0, share / np.maximum(distance, 1e-9) ** 2, 0.0)
    near = 1.0 / length**2
    total = weight.sum(axis=0) + np.bincount(i, near, n)
    for _ in range(PIVOT_STEPS):
        apart = position[i] - position[j]
        scale = length / np.maximum(np.hypot(*apart.T), 1e-9)
        wanted = near[:, None] * (position[j] + scale[:, None] * apart)
        moved = np.stack([np.bincount(i, wanted[:, axis], n) for axis in (0, 1)], axis=1)
        for p, row, weights in zip(pivot, distance, weight, strict=True):
            apart = position - position[p]
            scale = row / np.maximum(np.hypot(*apart.T), 1e-9)
            moved += weights[:, None] * (position[p] + scale[:, None] * apart)
        position = moved / total[:, None]
    return position
