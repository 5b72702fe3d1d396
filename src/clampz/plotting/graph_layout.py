"""Positions of the variables of a model on a page, and of its factors of three and more variables.

A grid is drawn as a grid.  Any other graph is laid out component by component so that distances on the page are near
those in the graph (`stress_layout`); a factor is a node there, joined to its variables.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.plotting.stress_layout import MOST_PAIRS, on_a_circle, place_by_pivots, place_connected

# Components at most that are laid out by all pairs, and by pivots; the others, which are smaller, are circles.
MAX_BY_PAIRS, MAX_BY_PIVOTS = 150, 12
# Variables up to which a circle shows as much.
FEW = 50
# Space between components, and from a factor to its variables, in edges.
APART, TO_FACTOR = 1.0, 0.75


class Layout(NamedTuple):
    """Positions of a graph on a page.

    positions   (n, 2) of the variables
    period      on a torus, the (width, height) after which it repeats
    factors     (f, 2) of the larger factors; None for the middle of their variables
    shape       of a grid, (rows, columns)
    """

    positions: Floats
    period: tuple[int, int] | None = None
    factors: Floats | None = None
    shape: tuple[int, int] | None = None


def layout(model: Model) -> Layout:
    """Lay out a model: as a grid where it is one, numbered row by row, toroidal or not, else with little stress.

    >>> from clampz import generators
    >>> layout(generators.grid(3, 4, rng=0)).period
    (4, 3)
    """
    n = model.num_variables
    beside_first = model.edges[: np.searchsorted(model.edges[:, 0], 1), 1]
    for cols in beside_first.tolist():  # one of them is the first of the second row
        rows, left_over = divmod(n, cols)
        inside = rows * (cols - 1) + cols * (rows - 1)
        around = (cols if rows > 2 else 0) + (rows if cols > 2 else 0)
        if left_over or min(rows, cols) < 2 or model.num_edges not in (inside, inside + around):
            continue
        toroidal = model.num_edges > inside
        if np.array_equal(_grid_edges(rows, cols, toroidal), model.edges):
            i = np.arange(n)
            positions = np.stack([i % cols, -(i // cols)], axis=1).astype(np.float64)
            return Layout(positions, (cols, rows) if toroidal else None, shape=(rows, cols))
    placed = _packed(*_factor_graph(model), n + len(model.factors))
    return Layout(placed[:n], factors=placed[n:])


def _grid_edges(rows: int, cols: int, toroidal: bool) -> Integers:
    """Return the edges of a grid in lexicographic order; sides of two are not wrapped, as in `generators.grid`."""
    number = np.arange(rows * cols).reshape(rows, cols)
    found = []
    for across in (number, number.T):
        found.append(np.stack([across[:, :-1].ravel(), across[:, 1:].ravel()], axis=1))
        if toroidal and across.shape[1] > 2:
            found.append(np.stack([across[:, 0], across[:, -1]], axis=1))
    edges = np.concatenate(found)
    return edges[np.lexsort(edges.T[::-1])]


def _factor_graph(model: Model) -> tuple[Integers, Floats]:
    """Return the edges (e, 2) of the factor graph, factors numbered after the variables, and their lengths."""
    factors = model.factors
    of_factor = np.repeat(np.arange(len(factors)), np.diff(factors.scope_start)) + model.num_variables
    links = np.stack([factors.variables, of_factor], axis=1)
    lengths = np.concatenate([np.ones(model.num_edges), np.full(len(links), TO_FACTOR)])
    return np.concatenate([model.edges, links]).astype(np.int64), lengths


def _packed(edges: Integers, lengths: Floats, n: int) -> Floats:
    """Lay out every component, and pack them in rows, the largest first, on a page about as wide as high."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((lengths, tuple(edges.T)), shape=(n, n)).tocsr()
    component = connected_components(graph, directed=False)[1]
    order = np.argsort(component, kind="stable")
    members: list[Integers] = np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if n else []
    members.sort(key=len, reverse=True)
    parts = _placed(graph, members)
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


def _placed(graph: Any, members: list[Integers]) -> list[Floats]:
    """Return positions of each component, given its members, within the work that all of them may take."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    parts, pairs, by_pivots = [], MOST_PAIRS, MAX_BY_PIVOTS
    rank = np.arange(graph.shape[0])
    if len(members) > MAX_BY_PIVOTS:  # neighbours near each other on the circles
        rank[reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)] = np.arange(len(rank))
    for k, chosen in enumerate(members):
        size = len(chosen)
        if size > 2 and size**2 <= pairs and k < MAX_BY_PAIRS:
            pairs -= size**2
            parts.append(place_connected(graph[chosen][:, chosen]))
        elif size > FEW and by_pivots:
            by_pivots -= 1
            parts.append(place_by_pivots(graph[chosen][:, chosen]))
        else:
            parts.append(on_a_circle(size)[np.argsort(np.argsort(rank[chosen]))])
    return parts
