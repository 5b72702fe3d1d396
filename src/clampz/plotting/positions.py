"""Layout: where the variables of a model go on a page.

A grid is drawn as a grid.  Any other graph is laid out component by component so that distances on the page are near
those in the graph,

    stress(x) = sum_ij (|x_i - x_j| / d_ij - 1)^2,

by majorisation: each step moves every variable to the weighted mean of where the others want it, and the stress only
falls.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz.model import Model
from clampz.numerics import Floats, Integers

# Variables beyond which a component is drawn as a circle: stress looks at all pairs.
MAX_STRESS = 500
STRESS_STEPS = 150
# Space between components, in edges.
APART = 1.0


class Layout(NamedTuple):
    """Where the variables go, (n, 2); on a torus also the (width, height) after which it repeats."""

    positions: Floats
    period: tuple[int, int] | None = None


def layout(model: Model) -> Layout:
    """A grid where the model is one, numbered row by row, toroidal or not; otherwise the layout of least stress that is
    found.

    >>> from clampz import generators
    >>> layout(generators.grid(3, 4, rng=0)).period
    (4, 3)
    """
    n = model.num_variables
    edges = {(i, j) for i, j in model.edges.tolist()}
    for rows in range(2, n // 2 + 1):
        cols, left_over = divmod(n, rows)
        if left_over or not rows * (cols - 1) + cols * (rows - 1) <= len(edges) <= 2 * n:
            continue
        open_grid, torus = _grid_edges(rows, cols)
        if edges in (open_grid, torus):
            i = np.arange(n)
            positions = np.stack([i % cols, -(i // cols)], axis=1).astype(np.float64)
            return Layout(positions, (cols, rows) if edges != open_grid else None)
    return Layout(_packed(model))


def _grid_edges(rows: int, cols: int) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The edges of the open grid and of the torus; sides of two are not wrapped, as in `generators.grid`."""
    number = np.arange(rows * cols).reshape(rows, cols)
    inside, wrapped = [], []
    for across in (number, number.T):
        inside.append(np.stack([across[:, :-1].ravel(), across[:, 1:].ravel()], axis=1))
        if across.shape[1] > 2:
            wrapped.append(np.stack([across[:, 0], across[:, -1]], axis=1))
    open_grid = {(i, j) for part in inside for i, j in part.tolist()}
    return open_grid, open_grid | {(i, j) for part in wrapped for i, j in part.tolist()}


def _packed(model: Model) -> Floats:
    """Every component by itself, the largest first, in rows from left to right about as wide as the page is high."""
    n = model.num_variables
    i, j = model.edges.T
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    component = connected_components(graph, directed=False)[1]
    order = np.argsort(component, kind="stable")
    members: list[Integers] = np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if n else []
    members.sort(key=len, reverse=True)
    parts = [_component(graph[chosen][:, chosen]) for chosen in members]
    sizes = [np.ptp(part, axis=0) + APART for part in parts]
    width = max([np.sqrt(sum(size.prod() for size in sizes)), *(size[0] for size in sizes)], default=0.0)
    positions = np.zeros((n, 2))
    x = y = height = 0.0
    for chosen, part, size in zip(members, parts, sizes, strict=True):
        if x + size[0] > 1.01 * width:
            x, y, height = 0.0, y - height, 0.0
        positions[chosen] = part - [part[:, 0].min(), part[:, 1].max()] + [x, y]
        x, height = x + size[0], max(height, size[1])
    return positions


def _component(graph: Any) -> Floats:
    """Positions of a connected graph, given as a sparse matrix."""
    n = graph.shape[0]
    angle = np.pi / 2 - np.linspace(0, 2 * np.pi, n, endpoint=False)
    circle: Floats = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (0.5 / np.sin(np.pi / n) if n > 2 else 0.5)
    if n == 1 or n > MAX_STRESS:
        return circle
    from scipy.sparse.csgraph import shortest_path

    distance = shortest_path(graph, directed=False, unweighted=True)
    # The circle suits graphs in which all are alike; most others untangle better from the axes along which distances
    # spread most.
    starts = [circle, _principal_axes(distance)]
    ends = [_lower_stress(start, distance) for start in starts]
    return min(ends, key=lambda end: end[1])[0]


def _principal_axes(distance: Floats) -> Floats:
    """Classical scaling: the two leading eigenvectors of the doubly centred squared distances."""
    squared = distance**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    axes: Floats = vectors[:, -1:-3:-1] * np.sqrt(np.maximum(values[-1:-3:-1], 0.0))
    return axes


def _lower_stress(position: Floats, distance: Floats) -> tuple[Floats, float]:
    """Positions of lower stress, and their stress."""
    n = len(distance)
    distance = distance + np.eye(n)
    weight = (1.0 - np.eye(n)) / distance**2
    total = weight.sum(axis=1)[:, None]
    for _ in range(STRESS_STEPS):
        x, y = position.T
        dx, dy = x[:, None] - x, y[:, None] - y
        pull = weight * distance / np.maximum(np.hypot(dx, dy), 1e-9)
        position = (weight @ position + np.stack([(pull * dx).sum(axis=1), (pull * dy).sum(axis=1)], axis=1)) / total
    x, y = position.T
    length = np.hypot(x[:, None] - x, y[:, None] - y)
    return position, float((weight * (length - distance) ** 2).sum())
