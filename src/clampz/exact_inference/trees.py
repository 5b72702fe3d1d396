"""SumTree, a sum laid out along a tree of tables, and the simpler of its two kinds: each bucket swept at once.

Index arrays are laid out in `_kernels.elimination.plan`; the loops are in its passes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from clampz._kernels.contraction.blocked_products import Blocks, make_blocks
from clampz._kernels.contraction.steps import Lists, make_lists
from clampz._kernels.contraction.tree import Tree
from clampz._kernels.elimination import plan as buckets
from clampz._kernels.elimination.backward_pass import backwards
from clampz._kernels.elimination.forward_pass import OUT_OF_RANGE, forwards
from clampz._kernels.elimination.plan import Scratch, make_scratch
from clampz._kernels.elimination.steps import LOGARITHMS
from clampz._kernels.statuses import DONE
from clampz.exact_inference.orders import EliminationOrder
from clampz.exact_inference.scopes import Moves, Restriction, Scopes
from clampz.model.batch import Batch
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Flag


class Room(NamedTuple):
    """Working memory of one thread that contracts."""

    lists: Lists
    blocks: Blocks


class Needs(NamedTuple):
    """Entries of all tables that are in memory together, entries of beliefs, numbers of tables, and of the variables of
    a contraction."""

    stored: int
    beliefs: int
    tables: int
    contracted: int


class Workspace(NamedTuple):
    """Working memory for one sum at a time, used again for the next lane, with a room for each of the threads that
    share long steps.

    After a run with marginals `beliefs` begins with those of the factors, laid out as their tables.
    """

    store: Floats
    beliefs: Floats
    spread: Floats
    scale: Floats
    scratch: Scratch
    rooms: tuple[Room, ...]

    @classmethod
    def of(cls, *trees: "SumTree", marginals: bool = True, num_threads: int = 1) -> "Workspace":
        """Allocate what any of these sums needs, with or without marginals."""
        needs = Needs(*(max(each) for each in zip(*(tree.needs(marginals) for tree in trees), strict=True)))
        n = needs.contracted
        rooms = tuple(Room(make_lists(n), make_blocks()) for _ in range(num_threads if n else 0))
        beliefs = np.empty(needs.beliefs if marginals else 0)
        scratch = make_scratch(np.max([tree.scratch for tree in trees], axis=0))
        return cls(np.empty(needs.stored), beliefs, np.empty(needs.tables), np.empty(needs.tables), scratch, rooms)


@dataclass(frozen=True, eq=False, kw_only=True)
class SumTree:
    """A sum over the factors of a model, laid out; it serves any values of the tables, any lane and any thread.

    Attributes
    ----------
    restriction
        The scopes, cut down to the states that are left in the lanes that it is for.
    order
        The elimination order that the tree follows, or that the search for it began with.
    width
        The induced width of the order: variables that are summed over beside the one that is eliminated, at most.
    scratch
        Sizes of the working memory that each thread needs beside its tables, for a sweep.
    moves
        Of lanes that have one state each of some variables: where the entries of another state are.
    """

    restriction: Restriction
    order: EliminationOrder
    width: int
    scratch: Integers
    moves: Moves | None = None

    @property
    def scopes(self) -> Scopes:
        return self.restriction.scopes

    @property
    def visits(self) -> float:
        """Table entries that the pass forwards visits, or that a sweep would visit in the time that it takes."""
        return self.order.total

    @property
    def is_contracted(self) -> bool:
        return False

    def needs(self, marginals: bool) -> Needs:
        """What a workspace must hold."""
        raise NotImplementedError

    def thread_bytes(self, marginals: bool = True) -> int:
        """Memory that each thread needs for itself."""
        raise NotImplementedError

    def passes(
        self, values: Floats, workspace: Workspace, marginals: Floats, logs: bool | None, cancel_flag: Flag
    ) -> tuple[int, float, float]:
        """Sum the log tables `values`, with logarithms where need be.

        Returns a status, log Z, and the sum of absolute terms that bounds its rounding error; fills `marginals`, unless
        it is empty, and then `workspace.beliefs`.
        """
        raise NotImplementedError

    def speed_up(self, marginals: bool, num_threads: int) -> float:
        """How many times as fast the sum is when several threads share it."""
        return 1.0

    def within(self, num_bytes: int) -> "SumTree":
        """The sum in fewer bytes, if that can be done by making tables again."""
        return self

    @property
    def contractions(self) -> Tree:
        """Its tree of contractions, or the one that follows its order."""
        return self.scopes.tree(self.order)

    def num_bytes(self, marginals: bool = True) -> int:
        """Memory that one run needs, with what it is made of and what it returns."""
        return self.scopes.num_bytes + self.thread_bytes(marginals)

    def num_stored(self, marginals: bool = False) -> int:
        """Entries of all tables that are in memory together."""
        return self.needs(marginals).stored

    def entries(self, lane: int, fixed: Integers) -> Integers:
        """The table entries that are left in a lane whose fixed variables have the states `fixed[lane]`; those of the
        variables' own tables come first."""
        return self.restriction.entries if self.moves is None else self.moves.entries(self.restriction, fixed[lane])

    def fixed_states(self, batch: Batch) -> Integers:
        """(B, K) the states of the fixed variables in every lane."""
        start, variables = batch.model.unary.start, () if self.moves is None else self.moves.variables.tolist()
        states = [batch.possible[start[i] : start[i + 1]].argmax(axis=0) for i in variables]
        return np.stack(states, axis=1) if states else np.empty((batch.num_lanes, 0), dtype=np.int64)

    @cached_property
    def state_start(self) -> Integers:
        return offsets(self.scopes.num_states)


@dataclass(frozen=True, eq=False, kw_only=True)
class BucketTree(SumTree):
    """A sum by bucket elimination: one variable after another, over the union of all scopes that have it."""

    plan: buckets.Plan

    def needs(self, marginals: bool) -> Needs:
        stored = int(self.plan.steps["message"][-1])
        return Needs(stored, stored, self.scopes.num_factors + len(self.scopes.num_states), 0)

    def thread_bytes(self, marginals: bool = True) -> int:
        scratch = 3 * self.scratch[0] + 2 * self.scratch[1] + self.scratch[2:].sum()
        return int(8 * (self.num_stored() * (2 if marginals else 1) + scratch))

    def passes(
        self, values: Floats, workspace: Workspace, marginals: Floats, logs: bool | None, cancel_flag: Flag
    ) -> tuple[int, float, float]:
        store, beliefs, spread, scale, scratch, _ = workspace
        status, log_z, terms = forwards(self.plan, values, store, spread, scale, scratch, logs, cancel_flag)
        if status == OUT_OF_RANGE:
            logs = LOGARITHMS
            status, log_z, terms = forwards(self.plan, values, store, spread, scale, scratch, logs, cancel_flag)
        if status == DONE and marginals.size:
            beliefs = beliefs[: self.num_stored()]
            status = backwards(
                self.plan, store, beliefs, scale, scratch, logs, self.state_start, marginals, cancel_flag
            )
        return status, log_z, terms
