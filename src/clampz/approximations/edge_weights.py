"""Edge weights rho for TRW: how often each edge appears in a distribution over spanning forests.

Any point of the forest polytope gives a valid bound.  Lowering an entry stays inside it, raising one may leave it; so
weights are only ever mixed or lowered, never clipped upwards.  An edge on no cycle is in every spanning tree and has
rho = 1.
"""

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz.errors import OptionError, shown
from clampz.model.tables import ranges, read_only
from clampz.model.topology import Topology
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import NEVER, Budget

# Shrinks every weight against the rounding made in computing it.
SHRINK = 1.0 - 1e-12
# How far outside the forest polytope weights that a user gives may seem to be; they are lowered by as much.
TOLERATED = 1e-9
# What the resistances of a badly conditioned graph are off by beyond that, for each of its variables (measured: 5e-16
# on chains of triangles).
ROUNDING_PER_VARIABLE = 1e-14
# Variables of the core up to which effective resistances are computed: a dense inverse, about a quarter of a second at
# this size.
MAX_DENSE = 900
# Variables of the core up to which weights that a user gives can be checked: a maximum flow for each.
MAX_CHECKED = 500
# Weights that a user gives are at least this: potentials are divided by them.
SMALLEST_GIVEN = 1e-9
# Variables of the core up to which either takes no time to speak of: some milliseconds.
QUICKLY_DENSE = 300
QUICKLY_CHECKED = 50
# Entries of Laplacians that are inverted at once.
MAX_BLOCK = 1 << 20
# Share of the time left that goes into weights.
WEIGHTS_SHARE = 0.2
# Edges from which on a spanning tree takes long enough to be watched.
LARGE_GRAPH = 200_000
# Trees sampled where the graph is too large for effective resistances; each costs one pass over its edges.
NUM_TREES_LARGE = 12


def uniform_weights(topology: Topology, free: NDArray[np.bool_] | None = None, *, budget: Budget) -> Floats:
    """(m,) compute edge probabilities in a uniform spanning forest of the `free` variables (all by default). The
    probability that an edge is in a uniform spanning tree is its effective resistance: with G the inverse of the
    Laplacian, G_ii + G_jj - 2 G_ij. Exact up to MAX_DENSE variables on cycles, or as much work in components; beyond
    that from sampled trees, as many as there is time for. Edges of other variables get weight 1."""
    if free is None and topology in _WHOLE_GRAPHS:
        return _WHOLE_GRAPHS[topology]
    rho = None
    if topology.num_core <= QUICKLY_DENSE or not budget.must_stop():
        rho = _resistances_of_all(topology, free)
    is_whole = rho is not None
    if rho is None:
        rho = sampled_weights(topology, NUM_TREES_LARGE, np.random.default_rng(0), free, budget=budget)
        is_whole = not budget.must_stop()
    if free is None and is_whole:  # however long that took: runs in short shares of one time would compute it each anew
        _WHOLE_GRAPHS[topology] = read_only(rho)
    return rho


# Weights of whole graphs, kept as long as their topology: Bethe and TRW ask for them in every run.
_WHOLE_GRAPHS: WeakKeyDictionary[Topology, Floats] = WeakKeyDictionary()


def _resistances_of_all(topology: Topology, free: NDArray[np.bool_] | None) -> Floats | None:
    """(m,) compute effective resistances, or None where the graph is too large for them."""
    chosen = topology.core if free is None else topology.core & free
    variables = np.flatnonzero(chosen)
    rho = np.ones(topology.num_edges)
    inside = np.flatnonzero(chosen[topology.edges].all(axis=1))
    if not inside.size:
        return rho
    position = np.full(topology.num_variables, -1)
    position[variables] = np.arange(len(variables))
    edges = position[topology.edges[inside]]
    labels = graph.component_labels(len(variables), read_only(edges.astype(np.int32)))
    sizes = np.bincount(labels)
    if float((sizes.astype(np.float64) ** 3).sum()) > MAX_DENSE**3:
        return None
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(variables), dtype=np.int64)  # of each variable in its component
    place[order] = np.arange(len(variables)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    component = labels[edges[:, 0]]
    by_component = np.argsort(component, kind="stable")
    num_edges = np.bincount(component, minlength=len(sizes))
    first_edge = np.cumsum(num_edges) - num_edges
    for size in np.unique(sizes).tolist():
        alike = np.flatnonzero(sizes == size)
        for some in np.array_split(alike, 1 + len(alike) * size * size // MAX_BLOCK):
            mine = by_component[ranges(first_edge[some], num_edges[some])]
            which = np.repeat(np.arange(len(some)), num_edges[some])
            i, j = place[edges[mine]].T
            rho[inside[mine]] = _resistances(which, i, j, len(some), size)
    return rho


def _resistances(which: Integers, i: Integers, j: Integers, count: int, size: int) -> Floats:
    """(l,) compute effective resistances of edges in `count` connected graphs of `size` variables each. Edge k is in
    graph which[k]. What rounding may have added is taken off."""
    laplacian = np.zeros((count, size, size))
    laplacian[which, i, j] = laplacian[which, j, i] = -1.0
    diagonal = np.arange(size)
    laplacian[:, diagonal, diagonal] = -laplacian.sum(axis=2)
    # The Laplacian is singular in the constant vector only: adding it leaves resistances as they are.
    laplacian += 1 / size
    inverse = np.linalg.inv(laplacian)
    own = inverse[:, diagonal, diagonal]
    rho = np.clip(own[which, i] + own[which, j] - 2 * inverse[which, i, j], 0.0, 1.0)
    # Foster: the resistances of a graph add up to its variables less one.  What is missing from that measures the error
    # made.
    error = np.abs(np.bincount(which, rho, count) - (size - 1)) / size
    found: Floats = rho * (SHRINK - 10 * error - ROUNDING_PER_VARIABLE * size)[which]
    return found


def sampled_weights(
    topology: Topology,
    num_trees: int,
    rng: np.random.Generator,
    free: NDArray[np.bool_] | None = None,
    *,
    budget: Budget,
) -> Floats:
    """(m,) count how often each edge is in `num_trees` random spanning forests, or more until every edge is covered. As
    many as there is time for; where these do not cover every edge, one mixture that does is added. Each tree takes the
    edges that no tree has yet first, in random order: a grid is covered by three or four trees."""
    inside = np.ones(topology.num_edges, dtype=np.bool_) if free is None else free[topology.edges].all(axis=1)
    edges = read_only(topology.edges[inside])
    count = np.zeros(len(edges))
    trees = 0
    while (trees < num_trees or (count == 0).any()) and not budget.must_stop():
        ranking = rng.permutation(len(edges))
        uncovered = count[ranking] == 0
        ranking = np.concatenate([ranking[uncovered], ranking[~uncovered]])
        if budget.must_stop():
            break
        if len(edges) < LARGE_GRAPH:
            count += graph.spanning_forest(topology.num_variables, edges, ranking, NEVER)
        else:
            tree = budget.run(graph.spanning_forest, topology.num_variables, edges, ranking)
            if budget.must_stop():  # it may lack edges
                break
            count += tree
        trees += 1
    if (count == 0).any():
        # Edge (i, j), i < j, is in the forest numbered by how many neighbours of j come before i.  In each forest a
        # variable has at most one neighbour before it, so there is no cycle; all forests count the same.
        count += 1.0 / np.bincount(edges[:, 1]).max(initial=1)
        trees += 1
    rho = np.ones(topology.num_edges)
    on_cycle = count < trees
    rho[inside] = np.where(on_cycle, SHRINK * count / max(1, trees), 1.0)
    return rho


def heaviest_forests(topology: Topology, weights: Floats, budget: Budget) -> Floats | None:
    """(m, B) mark the edges of each lane's maximum spanning forest under weights (m, B); None where time is over."""
    out = np.empty_like(weights)
    for b in range(weights.shape[1]):
        if budget.must_stop():
            return None
        ranking = np.argsort(-weights[:, b], kind="stable")
        out[:, b] = graph.spanning_forest(topology.num_variables, topology.edges, ranking, NEVER)
    return out


def checked_weights(topology: Topology, weights: Floats, num_lanes: int, budget: Budget) -> Floats:
    """Check weights (m, 1) or (m, B) that a user gave, refusing those outside the forest polytope. Weights nowhere
    above the uniform ones are in it at any size; others are checked up to MAX_CHECKED variables, and lowered to the
    uniform ones where there is no time for that."""
    m = topology.num_edges
    try:
        rho = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"edge_weights: expected a number per edge, found {shown(weights)}") from None
    rho = rho[:, None] if rho.ndim == 1 else rho
    if rho.shape not in ((m, 1), (m, num_lanes)):
        raise OptionError(
            f"edge_weights: expected shape ({m},) or ({m}, {num_lanes}), a weight per edge in the order of model.edges"
            f", found {np.shape(weights)}"
        )
    bad = np.argwhere(np.logical_not((rho >= SMALLEST_GIVEN) & (rho <= 1)))
    if bad.size:
        k = int(bad[0][0])
        raise OptionError(
            f"edge_weights[{k}] of edge {tuple(topology.edges[k].tolist())}: expected {SMALLEST_GIVEN:g} <= rho <= 1, "
            f"found {rho[k, bad[0][1]]}"
        )
    inside = topology.core[topology.edges].all(axis=1, keepdims=True)
    uniform = uniform_weights(topology, budget=budget)[:, None]
    # once time is over the uniform ones may be others, and there is none to check
    if np.all(rho <= np.where(inside, uniform + TOLERATED, 1.0)) or budget.must_stop():
        return np.where(inside, np.minimum(rho, uniform), 1.0)
    if topology.num_core > MAX_CHECKED:
        k = int(np.argmax(((rho - uniform) * inside).max(axis=1)))
        raise OptionError(
            f"edge_weights: expected none above the uniform ones, as others are not checked on more than {MAX_CHECKED} "
            f"variables on cycles, found {topology.num_core} and for edge {tuple(topology.edges[k].tolist())} "
            f"{rho[k].max():g}, not {uniform[k, 0]:g}; 'sampled' and 'optimized' need no check"
        )
    lowered = rho * inside
    for b, column in enumerate(rho.T):
        excess = forest_excess(topology, column, budget)
        if excess is None:
            lowered[:, b] = np.minimum(lowered[:, b], uniform[:, 0])
            continue
        if excess > TOLERATED:
            raise OptionError(
                f"edge_weights: not a mixture of spanning forests (some group of variables has {excess:.3g} too much); "
                "no bound would follow"
            )
        # A set S may have up to |S| - 1 + x, with x what is tolerated and what the cuts do not see: less that share, it
        # has |S| - 1 at most.
        lowered[:, b] *= SHRINK - TOLERATED - (topology.num_core + inside.sum()) / _units(topology, column)
    return np.where(inside, lowered, 1.0)


def _units(topology: Topology, rho: Floats) -> float:
    """Return the integer capacity that `forest_excess` gives to a weight of 1; edges and variables round by one unit
    each."""
    inside = topology.core[topology.edges].all(axis=1)
    return 2.0**30 / max(1.0, float(rho[inside].sum()), topology.num_core)


def forest_excess(topology: Topology, rho: Floats, budget: Budget) -> float | None:
    """Measure how far weights are outside the forest polytope; None where time is over. The largest sum of rho inside a
    set S of variables less |S| - 1; 0 means inside. For each variable r the worst set containing it is a minimum cut:
    edge k earns rho_k if both ends are in S, each variable but r costs 1."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    core = np.flatnonzero(topology.core)
    inside = topology.core[topology.edges].all(axis=1)
    if not inside.any():
        return 0.0
    position = np.full(topology.num_variables, -1)
    position[core] = np.arange(len(core))
    i, j = position[topology.edges[inside]].T
    scale = _units(topology, rho)
    earn = np.floor(rho[inside] * scale).astype(np.int64)
    cost = int(np.ceil(scale))
    n, m = len(core), len(earn)
    source, sink, infinite = n + m, n + m + 1, 2**31 - 1
    edge_node = n + np.arange(m)
    tails = np.concatenate([np.full(m, source), edge_node, edge_node, np.arange(n)])
    heads = np.concatenate([edge_node, i, j, np.full(n, sink)])
    worst = 0.0
    for r in range(n):
        if budget.must_stop() and n > QUICKLY_CHECKED:
            return None
        capacity = np.concatenate([earn, np.full(2 * m, infinite), np.where(np.arange(n) == r, 0, cost)])
        network = csr_array((capacity.astype(np.int32), (tails, heads)), shape=(n + m + 2, n + m + 2))
        gain = int(earn.sum()) - int(maximum_flow(network, source, sink).flow_value)
        worst = max(worst, gain / scale)
    return worst
