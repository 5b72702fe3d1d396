"""Exact sums over narrow subgraphs of a model: what both of the bounds from narrow parts are made of."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.elimination.plans import Elimination, Restriction, Scopes
from clampz.elimination.sums import Workspace, sum_out
from clampz.model import Model
from clampz.model.fixing import states_left
from clampz.model.tables import ranges
from clampz.numerics import Floats, Integers


class Moments(NamedTuple):
    """log Z of a subgraph with a bound on its rounding error, and its marginals laid out as its tables: those of the
    variables, then those of its edges."""

    log_z: float
    error: float
    marginals: Floats


class Subgraph:
    """Exact sums over some of a model's variables and edges, for lanes that have the same states left.

    `rows` are the entries of the model's unary tables that are its own, `pairs` those of its pairwise tables.
    """

    def __init__(self, model: Model, variables: Integers, edges: Integers, possible: NDArray[np.bool_]) -> None:
        self.variables, self.edges = variables, edges
        place = np.full(model.num_variables, -1, dtype=np.int64)
        place[variables] = np.arange(len(variables))
        num_states = model.num_states[variables]
        self.rows = ranges(model.unary.start[:-1][variables], num_states)
        start = model.pairwise.start
        self.pairs = ranges(start[edges], start[edges + 1] - start[edges])
        scopes = Scopes.of_pairwise(num_states, place[model.edges[edges]].reshape(-1, 2))
        self.restricted = Restriction.of(scopes, possible[self.rows])
        self.elimination = Elimination.of(self.restricted.scopes, None)
        self.spare: list[Workspace] = []  # working memory that no thread is using
        kept = self.restricted.scopes.table_start
        self.owner = np.repeat(np.arange(len(kept) - 1), np.diff(kept))
        self.table_start = kept[:-1]

    @property
    def num_entries(self) -> int:
        """Table entries that a sum goes through."""
        return self.elimination.num_stored

    def moments(self, unary: Floats, pairwise: Floats) -> Moments:
        """From log potentials of its own rows and pairs; threads may ask at once."""
        try:
            workspace = self.spare.pop()
        except IndexError:
            workspace = Workspace.of(self.elimination)
        try:
            return self._moments(np.concatenate([unary, pairwise]), workspace)
        finally:
            self.spare.append(workspace)

    def _moments(self, values: Floats, workspace: Workspace) -> Moments:
        entries, num_states = self.restricted.entries, len(self.restricted.states)
        states = np.empty(num_states)
        found = sum_out(self.elimination, values[entries], workspace, states)
        out = np.zeros(len(values))
        if found.log_z == -math.inf:
            return Moments(-math.inf, 0.0, out)
        beliefs = workspace.beliefs[: len(entries)].copy()
        beliefs[:num_states] = states
        total = np.add.reduceat(beliefs, self.table_start) if len(entries) else np.ones(0)
        out[entries] = beliefs / total[self.owner]
        return Moments(found.log_z, found.error, out)


class NarrowSums(NamedTuple):
    """What is summed for lanes with the same states left: the parts of the lower bound and the edges cut between them,
    the subgraphs of the upper bound and how many of them have each edge; and whether a variable has no state left."""

    parts: list[Subgraph]
    cut: Integers
    subgraphs: list[Subgraph]
    counts: Integers
    empty: bool

    @classmethod
    def of(
        cls, model: Model, labels: Integers, masks: list[NDArray[np.bool_]], possible: NDArray[np.bool_]
    ) -> "NarrowSums":
        i, j = model.edges.T
        inside = labels[i] == labels[j]
        parts = []
        for number in range(int(labels.max(initial=-1)) + 1):
            edges = np.flatnonzero(inside & (labels[i] == number))
            parts.append(Subgraph(model, np.flatnonzero(labels == number), edges, possible))
        every = np.arange(model.num_variables)
        subgraphs = [Subgraph(model, every, np.flatnonzero(mask), possible) for mask in masks]
        empty = bool((states_left(possible, model.unary.start) == 0).any())
        return cls(parts, np.flatnonzero(~inside), subgraphs, np.sum(masks, axis=0), empty)
