"""Exact sums over narrow parts of a model."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.bounding.leaves.partitions import grouped
from clampz.elimination.plans import NO_LIMIT, Elimination, Restriction, Scopes
from clampz.elimination.sums import Workspace, sum_out
from clampz.model import Model
from clampz.model.conditioning import states_left
from clampz.model.tables import ranges
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled


class Moments(NamedTuple):
    """log Z of a subgraph with a bound on its rounding error, and its marginals laid out as its tables: those of the
    variables, then those of its edges."""

    log_z: float
    error: float
    marginals: Floats


class Subgraph:
    """Exact sums over some of a model's variables and edges, for lanes that have the same states left.

    `rows` are the entries of the model's unary tables that are its own, `pairs` those of its pairwise tables; `place`
    has the number that each of its variables has here.
    """

    def __init__(
        self,
        model: Model,
        variables: Integers,
        edges: Integers,
        possible: NDArray[np.bool_],
        place: Integers,
        budget: Budget,
    ) -> None:
        budget.check_stop()
        num_states = model.num_states[variables]
        self.rows = ranges(model.unary.start[:-1][variables], num_states)
        start = model.pairwise.start
        self.pairs = ranges(start[edges], start[edges + 1] - start[edges])
        scopes = Scopes.of_pairwise(num_states, place[model.edges[edges]].reshape(-1, 2))
        self.restricted = Restriction.of(scopes, possible[self.rows])
        self.elimination = Elimination.of(self.restricted.scopes, NO_LIMIT, budget=budget)
        kept = self.restricted.scopes.table_start
        self.owner = np.repeat(np.arange(len(kept) - 1), np.diff(kept))
        self.table_start = kept[:-1]

    @property
    def num_entries(self) -> int:
        """Table entries that a sum goes through."""
        return self.elimination.num_stored()

    def moments(self, unary: Floats, pairwise: Floats, workspace: Workspace, budget: Budget) -> Moments:
        """From log potentials of its own rows and pairs; Overdue if the run is over before that."""
        budget.check_stop()
        values = np.concatenate([unary, pairwise])
        entries, num_states = self.restricted.entries, len(self.restricted.states)
        states = np.empty(num_states)
        found = sum_out(self.elimination, values[entries], workspace, states, budget=budget)
        if math.isnan(found.log_z):
            raise Cancelled
        out = np.zeros(len(values))
        if found.log_z == -math.inf:
            return Moments(-math.inf, 0.0, out)
        beliefs = workspace.beliefs[: len(entries)].copy()
        beliefs[:num_states] = states
        total = np.add.reduceat(beliefs, self.table_start) if len(entries) else np.ones(0)
        out[entries] = beliefs / total[self.owner]
        return Moments(found.log_z, found.error, out)


class PartSums(NamedTuple):
    """What is summed for lanes with the same states left.

    Attributes
    ----------
    parts, cut
        The parts, and the edges cut between them.
    empty
        Whether a variable has no state left.
    spare
        Working memory that no thread is using, each enough for the largest of all these sums.
    """

    parts: list[Subgraph]
    cut: Integers
    empty: bool
    spare: list[Workspace]

    @classmethod
    def of(cls, model: Model, labels: Integers, possible: NDArray[np.bool_], budget: Budget) -> "PartSums":
        """Lay all of them out; Overdue if the run is over before that."""
        i, j = model.edges.T
        inside = labels[i] == labels[j]
        members = grouped(labels)
        edges = np.flatnonzero(inside)
        own = np.split(
            edges[np.argsort(labels[i[edges]], kind="stable")],
            np.cumsum(np.bincount(labels[i[edges]], minlength=len(members)))[:-1],
        )
        place = np.empty(model.num_variables, dtype=np.int64)
        parts = []
        for variables, among in zip(members, own, strict=True):
            place[variables] = np.arange(len(variables))
            parts.append(Subgraph(model, variables, among, possible, place, budget))
        empty = bool((states_left(possible, model.unary.start) == 0).any())
        return cls(parts, np.flatnonzero(~inside), empty, [])

    @property
    def num_bytes(self) -> int:
        """Working memory that a thread needs."""
        return max(part.elimination.num_bytes() for part in self.parts)

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """For one thread, until it is done."""
        try:
            found = self.spare.pop()
        except IndexError:
            found = Workspace.of(*(part.elimination for part in self.parts))
        try:
            yield found
        finally:
            self.spare.append(found)
