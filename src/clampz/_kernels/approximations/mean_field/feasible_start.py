"""A configuration that no hard zero forbids, by depth-first search with forward checking.

possible    (S,)      states allowed, all variables one after another
preference  (S,)      states of higher preference are tried first
table       (tables,) as in `mean_field.tables`: hard zeros are -HARD
blocked     (S,)      how many assigned neighbours forbid a state
"""

import numpy as np

from clampz._kernels.approximations.mean_field.tables import HARD
from clampz._kernels.jit import kernel, part


@kernel
def feasible_configuration(possible, preference, graph, table, max_steps, cancel_flag):
    """Search for states of all slots that no hard zero forbids, depth first with forward checking. Returns the states,
    or an empty array after max_steps trials without success, or when the flag is raised; 2 n steps are always made."""
    n = graph.start.size - 1
    blocked = np.zeros(possible.size, dtype=np.int32)  # how many assigned neighbours forbid the state
    tried = np.zeros(possible.size, dtype=np.bool_)
    chosen = np.full(n, -1, dtype=np.int64)
    i = np.int64(0)
    steps = 0
    while 0 <= i < n:
        begin = graph.state_start[i]
        num_i = graph.state_start[i + 1] - begin
        if chosen[i] >= 0:  # back here from a dead end: undo
            _block(i, chosen[i], np.int64(-1), blocked, graph, table)
            chosen[i] = -1
        best = np.int64(-1)
        for x in range(num_i):
            s = begin + x
            if (
                possible[s]
                and not tried[s]
                and blocked[s] == 0
                and (best < 0 or preference[s] > preference[begin + best])
            ):
                best = np.int64(x)
        steps += 1
        if steps > max_steps or (steps > 2 * n and cancel_flag[0]):
            return np.empty(0, dtype=np.int64)
        if best < 0:
            tried[begin : begin + num_i] = False
            i -= 1
            continue
        tried[begin + best] = True
        chosen[i] = best
        _block(i, best, np.int64(1), blocked, graph, table)
        if _neighbours_alive(i, chosen, possible, blocked, graph):
            i += 1
    return chosen if i == n else np.empty(0, dtype=np.int64)


@part
def _block(i, x, change, blocked, graph, table):
    """Count `change` more assigned neighbours that forbid each state of the neighbours of i, which is in state x."""
    for e in range(graph.start[i], graph.start[i + 1]):
        j = graph.tail[e]
        from_j = graph.state_start[j]
        num_j = graph.state_start[j + 1] - from_j
        num_i = graph.state_start[i + 1] - graph.state_start[i]
        for y in range(num_j):
            if table[graph.table_start[e] + y * num_i + x] <= -HARD:
                blocked[from_j + y] += change


@part
def _neighbours_alive(i, chosen, possible, blocked, graph):
    """Whether every unassigned neighbour of i still has a state that is possible and not blocked."""
    for e in range(graph.start[i], graph.start[i + 1]):
        j = graph.tail[e]
        if chosen[j] >= 0:
            continue
        alive = False
        for s in range(graph.state_start[j], graph.state_start[j + 1]):
            alive |= possible[s] and blocked[s] == 0
        if not alive:
            return False
    return True
