"""Partitions of a model into parts that are narrow enough to be eliminated within a limit of table entries."""

import heapq

import numpy as np

from clampz.elimination.orders import elimination_entries
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget


def tie_strength(model: Model) -> Floats:
    """(m,) how strongly each edge ties its ends together: tanh |W/4|, between 0 and 1."""
    strength: Floats = np.tanh(model.strength / 4)
    return strength


def parts_of(model: Model, max_table: float, weight: Floats, budget: Budget) -> Integers:
    """(n,) a number for each variable: those of the same number form a part whose elimination makes at most `max_table`
    table entries.

    Parts are merged two at a time, those tied by most `weight` of edges first, with all edges between them, until none
    fit or time is up.
    """
    n = model.num_variables
    edges = model.edges.astype(np.int64)
    log_states = np.log2(model.num_states)
    members: list[list[int]] = [[i] for i in range(n)]
    inside: list[list[int]] = [[] for _ in range(n)]
    between: list[dict[int, list[int]]] = [{} for _ in range(n)]
    for k, (i, j) in enumerate(edges.tolist()):
        between[i][j] = between[j][i] = [k]
    heap = [(-float(weight[k]), i, j) for k, (i, j) in enumerate(edges.tolist())]
    heapq.heapify(heap)
    alive = np.ones(n, dtype=np.bool_)
    while heap and not budget.must_stop():
        key, a, b = heapq.heappop(heap)
        ties = between[a].get(b) if alive[a] and alive[b] else None
        if ties is None or key != -float(weight[ties].sum()):
            continue
        together, kept = members[a] + members[b], inside[a] + inside[b] + ties
        if elimination_entries(edges[kept], log_states, np.array(together), max_table) >= max_table:
            continue
        members[a], inside[a], alive[b] = together, kept, False
        del between[a][b]
        for c, others in between[b].items():
            if c == a:
                continue
            del between[c][b]
            merged = between[a].get(c, []) + others
            between[a][c] = between[c][a] = merged
            heapq.heappush(heap, (-float(weight[merged].sum()), min(a, c), max(a, c)))
    labels = np.empty(n, dtype=np.int64)
    for number, a in enumerate(np.flatnonzero(alive)):
        labels[members[a]] = number
    return labels


def grouped(labels: Integers) -> list[Integers]:
    """The places of each number from 0 on, for as many as there are.

    >>> [group.tolist() for group in grouped(np.array([1, 0, 1]))]
    [[1], [0, 2]]
    """
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1]) if len(labels) else []
