"""Models of any number of labels as tables, each edge's once per direction: for messages and for mean field.

The states of all slots lie one after another (S rows), those of slot i from state_start[i]; the entries of message e,
one per state of its head, from entry_start[e]; its table, states of the tail by states of the head, from
table_start[e].

table     (tables,)     theta_ij of each message, in both directions
factor    (tables,)     exp(theta_ij / rho - shift)
shift     (2m,)         the largest finite theta_ij / rho
rho, gain (2m, 1)       as in `message_passing.binary`; weights of lanes' own are solved lane by lane
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import EXP_LIMIT, exp


class StateGraph(NamedTuple):
    """The index arrays of a topology whose variables have any number of states."""

    start: NDArray[np.int64]
    tail: NDArray[np.int32]
    reverse: NDArray[np.int32]
    message_of_edge: NDArray[np.int32]
    state_start: NDArray[np.int64]
    entry_start: NDArray[np.int64]
    table_start: NDArray[np.int64]


class Potentials(NamedTuple):
    """The pairwise potentials as message passing needs them."""

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
    """Compute factor = exp(theta / rho - shift) with shift the largest theta / rho of the message."""
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
