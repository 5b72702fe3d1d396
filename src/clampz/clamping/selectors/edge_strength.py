"""Scores from the strength of edges, maxW0, maxW and Mpower, and `Remaining`, the graph that every selector scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph as graphs
from clampz._kernels.clamping import cycles as kernels
from clampz.model import Model
from clampz.model.tables import read_only
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled

# Variables up to which Mpower's series is summed to its end, by a dense inverse: some 20 ms at this size.
MAX_DENSE = 500
# Dense graphs are worth more: where a row of M adds up to more than DENSE_ROW, the first powers leave out a share of
# about its square, and up to MAX_DENSE_GRAPH variables (two seconds) the series is summed to its end as well.
DENSE_ROW = 0.05
MAX_DENSE_GRAPH = 2000
# Rows of the matrix that are done at once.
ROWS = 128
# Steps that walks of 5 and 6 edges may take, some seconds' worth; next to variables with ten thousand neighbours they
# take more, and are left out.
MAX_STEPS = 2e9
# No edge of Mpower is stronger.  On a complete graph of edges with tanh = 1 the series would diverge; there this leaves
# the variables' scores equal to nine digits, which they are before rounding too.
MAX_TANH = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class Remaining:
    """The graph of the free variables of a model, without edges of strength 0, or its core; renumbered from 0.

    Attributes
    ----------
    variables
        (k,) the model's numbers of the variables, in order.
    edges
        (l, 2) by their new numbers, in the model's order.
    edge_numbers
        (l,) the model's numbers of the edges (of its couplings, where it has larger factors).
    budget
        Of the run that scoring is a part of: where it is over, Cancelled is raised.
    """

    model: Model
    variables: Integers
    edges: NDArray[np.int32]
    edge_numbers: Integers
    budget: Budget

    @classmethod
    def of(cls, model: Model, free: NDArray[np.bool_], *, core: bool, budget: Budget) -> "Remaining":
        """Return the graph of a mask (n,) of variables, in time linear in variables and edges."""
        member = free.copy()
        edges, strength = model.couplings
        i, j = edges.T
        kept = np.flatnonzero((strength > 0) & member[i] & member[j])
        if core:
            lists = graphs.neighbour_lists(model.num_variables, edges[kept])
            member[graphs.strip_to_core(*lists)[0]] = False
            kept = kept[member[i[kept]] & member[j[kept]]]
        number = (np.cumsum(member) - 1).astype(np.int32)
        return cls(model, np.flatnonzero(member), read_only(number[edges[kept]]), kept, budget)

    @property
    def num_variables(self) -> int:
        return len(self.variables)

    @property
    def strength(self) -> Floats:
        """(l,) |W|, or the strength of tables in its place: see `Model.couplings`."""
        return self.model.couplings[1][self.edge_numbers]


def max_w(graph: Remaining) -> Floats:
    """Return (k,) s(i) = sum_j |W_ij|."""
    return sum_over_edges(graph.num_variables, graph.edges, graph.strength)


def sum_over_edges(n: int, edges: NDArray[np.int32], weight: Floats) -> Floats:
    """Return (n,) the sum of the weights (l,) of the edges (l, 2) of each variable."""
    return (np.bincount(edges[:, 0], weight, n) + np.bincount(edges[:, 1], weight, n)).astype(np.float64)


def m_power(graph: Remaining) -> Floats:
    """Return (k,) the weight of closed walks through each variable, with M_ij = tanh|W_ij / 4| / (n - 1) for an edge.

    The definition, diag((I - M)^-1 - I)_i - s_i / (1 - s_i) with s_i = [M^2]_ii, subtracts nearly all it has on large
    graphs.  Expanded in walks from i to i, those of 2 edges cancel, and of the others what s_i / (1 - s_i) takes away
    is in the square of [M^2]_ii.  With B = M^2 without its diagonal and G = (I - M)^-1 that leaves a sum without a
    negative term,

        s(i) = ( [M^3]_ii + 2 s_i [G B]_ii + [B G B]_ii ) / (1 - s_i^2).

    On large graphs walks of 3 to 6 edges are counted.  Entries of M are below 1 / (n - 1), so a walk of two edges more
    counts for less by the largest row sum of M squared: on a graph of degree 4 and 500 variables what is left out is
    below 1e-4 of a score.
    """
    n = graph.num_variables
    if n < 3:  # no cycle; and the definition divides by n - 1
        return np.zeros(n)
    weight = np.minimum(np.tanh(graph.strength / 4), MAX_TANH) / (n - 1)
    if n <= MAX_DENSE or (n <= MAX_DENSE_GRAPH and sum_over_edges(n, graph.edges, weight).max() > DENSE_ROW):
        return _all_walks(n, graph.edges, weight, graph.budget)
    return _short_walks(n, graph.edges, weight, graph.budget)


def _all_walks(n: int, edges: NDArray[np.int32], weight: Floats, budget: Budget) -> Floats:
    """Return (k,) the scores of Mpower by a dense inverse, with walks of any length."""
    i, j = edges.T
    M = np.zeros((n, n))
    M[i, j] = M[j, i] = weight
    G = np.linalg.inv(np.eye(n) - M)
    score = np.empty(n)
    for begin in range(0, n, ROWS):
        budget.check_cancelled()
        rows = slice(begin, begin + ROWS)
        B: Floats = M[rows] @ M
        diagonal = np.arange(len(B)), np.arange(begin, begin + len(B))
        s = B[diagonal]
        B[diagonal] = 0.0
        walks = (M[rows] * B).sum(axis=1) + 2 * s * (G[rows] * B).sum(axis=1) + ((B @ G) * B).sum(axis=1)
        score[rows] = walks / (1 - s * s)
    return score


def _short_walks(n: int, edges: NDArray[np.int32], weight: Floats, budget: Budget) -> Floats:
    """Return (k,) the scores of Mpower from closed walks of 3 to 6 edges, or 3 and 4 on dense neighbourhoods."""
    start, neighbour, edge_of = graphs.neighbour_lists(n, edges.copy())
    degree = np.diff(start).astype(np.float64)
    i, j = edges.T
    # a walk i - j - k goes on to every neighbour of k
    steps = degree @ (np.bincount(i, degree[j], n) + np.bincount(j, degree[i], n))
    walks: Floats = budget.run(kernels.closed_walks, start, neighbour, weight[edge_of], bool(steps <= MAX_STEPS))
    if budget.must_stop():  # some are missing
        raise Cancelled
    return walks
