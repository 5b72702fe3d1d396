"""Models of any number of labels as tables, each edge's once per direction: for messages and for mean field.

The states of all slots lie one after another (S rows), those of slot i from state_start[i]; the entries of message e,
one per state of its head, from entry_start[e]; its table, states of the tail by states of the head, from
table_start[e].

table     (tables,)     theta_ij of each message, in both directions
factor    (tables,)     exp(theta_ij / rho - shift)
shift     (2m,)         the largest finite theta_ij / rho
rho, gain (2m, 1)       as in `messages`; weights of lanes' own are solved lane by lane
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import EXP_LIMIT, exp


class StateGraph(NamedTuple):
    """Index arrays of a topology whose variables have any number of states."""

    start: NDArray[np.int64]
    tail: NDArray[np.int32]
    reverse: NDArray[np.int32]
    message_of_edge: NDArray[np.int32]
    state_start: NDArray[np.int64]
    entry_start: NDArray[np.int64]
    table_start: NDArray[np.int64]


class Potentials(NamedTuple):
    """Pairwise potentials as the messages need them."""

    table: NDArray[np.float64]
    factor: NDArray[np.float64]
    shift: NDArray[np.float64]
    rho: NDArray[np.float64]
    gain: NDArray[np.float64]


@kernel
def fill_tables(pairwise, pair_start, graph, table):
    """Lay out the tables of the edges once per message: rows are states of the tail."""
    for k in range(graph.message_of_edge.shape[0]):
        forward = graph.message_of_edge[k, 0]
        backward = graph.message_of_edge[k, 1]
        i = graph.tail[forward]
        j = graph.tail[backward]
        num_i = graph.state_start[i + 1] - graph.state_start[i]
        num_j = graph.state_start[j + 1] - graph.state_start[j]
        for a in range(num_i):
            for b in range(num_j):
                value = pairwise[pair_start[k] + a * num_j + b]
                table[graph.table_start[forward] + a * num_j + b] = value
                table[graph.table_start[backward] + b * num_i + a] = value


@kernel
def fill_factors(rho, graph, table, factor, shift):
    """factor = exp(theta / rho - shift) with shift the largest theta / rho of the message."""
    for e in range(shift.size):
        first = graph.table_start[e]
        last = graph.table_start[e + 1]
        top = -np.inf
        for k in range(first, last):
            top = max(top, table[k])
        # the reciprocal by name: left to the compiler, its vector loop would use it and its scalar loop not, and where
        # arrays lie decides which one runs
        inverse = 1.0 / rho[e, 0]
        top = top * inverse if top > -np.inf else 0.0
        shift[e] = top
        for k in range(first, last):
            x = table[k] * inverse - top
            factor[k] = exp(x) if x >= -EXP_LIMIT else 0.0


@kernel
def remove_unsupported(possible, graph, table, forwards):
    """Remove states without a partner in some neighbour, lane by lane, in one pass over the slots in their order or
    against it; returns whether there were any."""
    num_lanes = possible.shape[1]
    n = graph.start.size - 1
    removed = False
    for k in range(n):
        i = k if forwards else n - 1 - k
        first = graph.state_start[i]
        num_i = graph.state_start[i + 1] - first
        for e in range(graph.start[i], graph.start[i + 1]):
            j = graph.tail[e]
            first_j = graph.state_start[j]
            num_j = graph.state_start[j + 1] - first_j
            for x in range(num_i):
                for b in range(num_lanes):
                    if not possible[first + x, b]:
                        continue
                    supported = False
                    for y in range(num_j):
                        if possible[first_j + y, b] and table[graph.table_start[e] + y * num_i + x] > -np.inf:
                            supported = True
                            break
                    if not supported:
                        possible[first + x, b] = False
                        removed = True
    return removed


@kernel
def spreads(tables):
    """(K,) of tables (K, rows, columns) the largest spread, over pairs of rows, of their difference."""
    num_tables, num_rows, num_columns = tables.shape
    out = np.zeros(num_tables)
    for k in range(num_tables):
        for a in range(num_rows):
            for c in range(a):
                low = np.inf
                high = -np.inf
                for b in range(num_columns):
                    d = tables[k, a, b] - tables[k, c, b]
                    low = min(low, d)
                    high = max(high, d)
                out[k] = max(out[k], high - low)
    return out
