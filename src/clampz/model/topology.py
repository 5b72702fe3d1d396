"""Topology: the graph of a model as index arrays, built once and shared by every lane.

The kernels do not see variables but *slots*: variables renumbered so that what is updated together lies together.

    slots of the core, one colour class after another | pendant slots, as the core was stripped of them

No edge joins two slots of one colour class, so a class can be updated by all threads at once and the result does not
depend on how many there are; and the messages into a class are one contiguous range.  Pendant trees need no iteration:
their messages towards the core are computed once before it (in slot order), those away from it once after (in reverse).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz.model.tables import read_only
from clampz.numerics import Integers

Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Topology:
    """Index arrays of a graph with n variables and m edges (2m directed messages).

    Attributes
    ----------
    edges
        (m, 2) the variables of each edge, smaller first, in lexicographic order.
    slot_of, variable_of
        (n,) the slot of each variable, and back.
    class_start
        Slots `class_start[c] : class_start[c + 1]` are colour class c of the core.
    start
        (n + 1,) messages `start[p] : start[p + 1]` end in slot p.
    tail, reverse, edge_of_message
        (2m,) the slot each message comes from, the message the other way, and its edge.
    message_of_edge
        (m, 2) the message from the edge's first variable to its second, and the one back.
    pendant_up, pendant_down
        The message from each pendant slot towards the core, in the order to compute them, and those back in theirs;
        isolated variables have none.
    """

    num_variables: int
    edges: Indices
    slot_of: Indices
    variable_of: Indices
    class_start: Integers
    start: Integers
    tail: Indices
    reverse: Indices
    edge_of_message: Indices
    message_of_edge: Indices
    pendant_up: Indices
    pendant_down: Indices

    @classmethod
    def from_edges(cls, num_variables: int, edges: NDArray[np.integer]) -> "Topology":
        """Build a topology from edges that are sorted, distinct and without self-loops."""
        edges = np.array(edges, dtype=np.int32, order="C").reshape(-1, 2)
        start, neighbour, edge_of = graph.neighbour_lists(num_variables, edges)
        removed, last_edge = graph.strip_to_core(start, neighbour, edge_of)
        member = np.ones(num_variables, dtype=np.bool_)
        member[removed] = False
        colour = graph.first_fit_colours(start, neighbour, member)
        core = np.flatnonzero(member)
        core = core[np.argsort(colour[core], kind="stable")]
        variable_of = np.concatenate([core, removed]).astype(np.int32)
        slot_of = np.empty(num_variables, dtype=np.int32)
        slot_of[variable_of] = np.arange(num_variables, dtype=np.int32)
        class_start = np.concatenate([[0], np.cumsum(np.bincount(colour[core]))]).astype(np.int64)
        message_start, tail, reverse, edge_of_message, message_of_edge = graph.message_lists(
            edges, slot_of, num_variables
        )
        held = last_edge >= 0
        leaves_first = edges[last_edge[held], 0] == removed[held]
        pendant_up = message_of_edge[last_edge[held], np.where(leaves_first, 0, 1)]
        arrays = (
            edges, slot_of, variable_of, class_start, message_start, tail, reverse, edge_of_message, message_of_edge,
            pendant_up.astype(np.int32), reverse[pendant_up[::-1]],
        )  # fmt: skip
        return cls(num_variables, *map(read_only, arrays))

    def __reduce__(self) -> tuple[Any, ...]:
        return Topology.from_edges, (self.num_variables, self.edges)

    @property
    def num_edges(self) -> int:
        return len(self.edges)

    @property
    def num_core(self) -> int:
        """Count the variables of the core, which are the first slots."""
        return int(self.class_start[-1])

    @cached_property
    def degrees(self) -> Integers:
        """(n,) count the neighbours of each variable."""
        return np.bincount(self.edges.ravel(), minlength=self.num_variables)

    @cached_property
    def core(self) -> NDArray[np.bool_]:
        """(n,) True for variables on a cycle or between cycles: what is left when variables of degree <= 1 are
        stripped."""
        return self.slot_of < self.num_core

    @cached_property
    def components(self) -> Integers:
        """(n,) label the connected component of each variable, in the order of their smallest variables."""
        labels: Integers = graph.component_labels(self.num_variables, self.edges)
        return labels

    @property
    def num_components(self) -> int:
        return int(self.components.max(initial=-1)) + 1
