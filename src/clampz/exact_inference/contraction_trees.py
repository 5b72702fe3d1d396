"""ContractionTree: large sums as pairwise contractions, two tables at a time becoming one.

Variables that no other table has are summed out at once, and the tree of pairs is made better by local search: on grids
and pedigrees a tenth of the products and of the memory of bucket sweeps, and they are products of matrices.  A table is
freed when it was used; for marginals tables are kept where they fit, and made again where they do not.
The kernels are in `_kernels.contraction`.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.contraction import step_list
from clampz._kernels.contraction import tree as trees
from clampz._kernels.contraction.blocked_products import COLUMNS, DEPTH, WIDE
from clampz._kernels.contraction.passes import (
    CARRY,
    EXPONENTS,
    TERMS,
    TOTAL,
    Arena,
    begin,
    fill_marginals,
    go_on,
    measure,
)
from clampz._kernels.contraction.steps import step
from clampz._kernels.elimination.forward_pass import EMPTY, OUT_OF_RANGE
from clampz._kernels.elimination.steps import LOGARITHMS
from clampz._kernels.statuses import DONE
from clampz.exact_inference.trees import Needs, Room, SumTree, Workspace
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Flag
from clampz.runtime.workers import Workers

# Seconds per entry of a sweep, to compare it with a contraction.
SECONDS_PER_VISIT = 2e-9
# The tables of a contraction are at most a third of the memory each: two that are read and one that is written.
TABLE_SHARE = 1 / 3
# Entries of a table that no machine has room for.
BEYOND_ALL = 2.0**50
# Cuts of the way forwards that are tried where tables do not fit until the pass back uses them.
MOST_SEGMENTS = 256
# Words of eight bytes that a sum takes beside its arena, for each step and for each variable, and for blocks.
WORDS, BLOCK_WORDS = 12, (DEPTH + COLUMNS) * WIDE + COLUMNS * DEPTH
# Seconds from which a step is worth several threads; what each of them needs for itself is at most this share of the
# tables.
SHARED_SECONDS, LITTLE = 5e-3, 1 / 16
# Sizes of the scratch of a sweep, where nothing is swept.
NO_SCRATCH = np.zeros(6, dtype=np.int64)


class Schedule(NamedTuple):
    """Steps with the places of their tables, and the entries of the arena that they need."""

    steps: step_list.StepList
    entries: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ContractionTree(SumTree):
    """A sum as a tree of pairwise contractions.

    Attributes
    ----------
    tree
        Which two tables are contracted into which.
    seconds
        What log Z is expected to take.
    memory
        Bytes that steps for marginals keep to, if they can: what does not fit is made again.
    wanted
        (F,) the factors whose marginals are wanted, where any are; None for all.
    """

    tree: trees.Tree
    seconds: float
    memory: int
    wanted: NDArray[np.bool_] | None = None
    scratch: Integers = field(default_factory=lambda: NO_SCRATCH)

    @cached_property
    def largest(self) -> float:
        """Entries of the largest table."""
        return float(step_list.node_sizes(self.tree, self.scopes.num_states).max(initial=1.0))

    @property
    def is_beyond_all(self) -> bool:
        """Whether no machine has room for it: then there is no counting what is in memory together."""
        return self.largest > BEYOND_ALL

    @cached_property
    def sizes(self) -> Integers:
        sizes: Integers = step_list.node_sizes(self.tree, self.scopes.num_states).astype(np.int64)
        return sizes

    @cached_property
    def nodes(self) -> Integers:
        """The nodes in the order in which they are made."""
        nodes: Integers = step_list.steps_forwards(self.tree, self.sizes)
        return nodes

    @cached_property
    def _log_z_program(self) -> Schedule:
        return self._program(1, marginals=False)

    @cached_property
    def _marginals_program(self) -> Schedule:
        """The schedule with the fewest segments that fits into memory, or else the one that needs least."""
        best = self._program(1, marginals=True)
        segments = 2
        while 8 * best.entries > self.memory and segments <= min(MOST_SEGMENTS, len(self.nodes)):
            best = min(best, self._program(segments, marginals=True), key=lambda program: program.entries)
            segments *= 2
        return best

    def program(self, marginals: bool) -> Schedule:
        return self._marginals_program if marginals else self._log_z_program

    def _program(self, num_segments: int, *, marginals: bool) -> Schedule:
        written = np.cumsum(self.sizes[self.nodes]) / max(1, int(self.sizes[self.nodes].sum()))
        segment = np.minimum((written * num_segments).astype(np.int64), num_segments - 1)
        wanted = np.full(self.scopes.num_factors, marginals) if self.wanted is None else self.wanted & marginals
        steps = step_list.list_steps(self.tree, self.nodes, segment, wanted)
        entries = step_list.find_places(steps, self.sizes, self.scopes.table_start)
        start, axes = self._layout
        num_factors = self.scopes.num_factors
        return Schedule(step_list.StepList(steps, start, axes, len(self.sizes), num_factors), int(entries))

    @cached_property
    def _layout(self) -> tuple[Integers, Integers]:
        start, axes = step_list.lay_out(self.tree, self.nodes, self.scopes.num_states, self.sizes)
        return start, axes

    @cached_property
    def home(self) -> Integers:
        """(n,) the smallest factor that each variable is in, -1 for one that is in none."""
        scopes = self.scopes
        factor_of = np.repeat(np.arange(scopes.num_factors), np.diff(scopes.start))
        largest_first = np.argsort(-np.diff(scopes.table_start)[factor_of], kind="stable")
        home = np.full(len(scopes.num_states), -1, dtype=np.int64)
        home[scopes.variables[largest_first]] = factor_of[largest_first]
        return home

    @property
    def visits(self) -> float:
        return self.seconds / SECONDS_PER_VISIT

    @property
    def is_contracted(self) -> bool:
        return True

    @property
    def contractions(self) -> trees.Tree:
        return self.tree

    def within(self, num_bytes: int) -> "ContractionTree":
        return replace(self, memory=max(0, num_bytes - self.scopes.num_bytes))

    def needs(self, marginals: bool) -> Needs:
        entries, tables = self.program(marginals).entries, 2 * len(self.sizes) + 1
        return Needs(entries, int(self.scopes.table_start[-1]), tables, max(1, len(self.scopes.num_states)))

    def thread_bytes(self, marginals: bool = True) -> int:
        beside = WORDS * (len(self.program(marginals).steps.steps) + len(self.scopes.num_states))
        beliefs = int(self.scopes.table_start[-1]) if marginals else 0
        return 8 * (self.program(marginals).entries + beliefs + beside + BLOCK_WORDS)

    @cached_property
    def _lone(self) -> float:
        """log of the states of the variables that no factor has."""
        return float(np.log(self.scopes.num_states[self.home < 0]).sum())

    def _step_seconds(self, marginals: bool) -> Floats:
        """What each step takes."""
        own = trees.measure(self.tree, np.log2(self.scopes.num_states), np.inf)[1]
        out, num_nodes = self.program(marginals).steps.steps["out"], len(self.sizes)
        # what a node receives in the pass back takes as long as it took to make its parent
        seconds: Floats = own[np.where(out < num_nodes, out, self.tree.parent[out - num_nodes])]
        return seconds

    def shared_steps(self, marginals: bool) -> Integers:
        """Steps that are long enough for several threads; none where what these need for themselves is not little
        beside the tables."""
        if WORDS * len(self.scopes.num_states) > LITTLE * self.program(marginals).entries:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self._step_seconds(marginals) >= SHARED_SECONDS)

    def speed_up(self, marginals: bool, num_threads: int) -> float:
        if num_threads == 1:  # as every slice asks
            return 1.0
        steps, seconds = self.shared_steps(marginals), self._step_seconds(marginals)
        if not steps.size:
            return 1.0
        return float(seconds.sum() / (seconds.sum() - seconds[steps].sum() * (1 - 1 / num_threads)))

    def passes(
        self, values: Floats, workspace: Workspace, marginals: Floats, logs: bool | None, cancel_flag: Flag
    ) -> tuple[int, float, float]:
        tables = 2 * len(self.sizes) + 1  # of nodes, their adjoints and the 1
        arena = Arena(workspace.store, workspace.scale[:tables], workspace.spread[:tables], np.empty(tables))
        wanted = marginals.size > 0
        beliefs = workspace.beliefs[: len(values) if wanted else 0]
        found = self.attempt(values, arena, workspace.rooms, beliefs, logs, cancel_flag)
        if found[0] == OUT_OF_RANGE:
            found = self.attempt(values, arena, workspace.rooms, beliefs, LOGARITHMS, cancel_flag)
        status, log_z, terms = found
        if status == DONE and wanted:
            fill_marginals(self.scopes, self.home, beliefs, self.state_start, marginals)
        return status, log_z + self._lone, terms + self._lone

    def attempt(
        self, values: Floats, arena: Arena, rooms: Sequence[Room], beliefs: Floats, logs: bool | None, cancel_flag: Flag
    ) -> tuple[int, float, float]:
        """Sum with one kind of numbers: a status, log Z and its absolute terms; fills `beliefs`, not the marginals of
        variables."""
        program, ledger, made = self.program(beliefs.size > 0).steps, np.zeros(4), np.empty(0)
        for room in rooms:
            room.lists.seen[:] = -1  # by steps of another run
        status = begin(program, self.scopes, values, arena, beliefs, ledger, logs, cancel_flag)
        shared = self.shared_steps(beliefs.size > 0).tolist() if len(rooms) > 1 else []
        fixed = (program, self.scopes, self.sizes, arena, *rooms[0], beliefs, ledger)
        with Workers(len(rooms) if shared else 1) as team:
            for first, last in itertools.pairwise([0, *shared, len(program.steps)]):
                if status == DONE:
                    status = go_on(*fixed, first, last, made, logs, cancel_flag)
                if status == DONE and last < len(program.steps):
                    made = self._made(program, last, arena, rooms, team, logs, cancel_flag)
        if status != DONE:
            return status, -np.inf if status == EMPTY else 0.0, 0.0
        scaled = ledger[EXPONENTS] * math.log(2)
        return DONE, math.fsum([ledger[TOTAL], ledger[CARRY], scaled]), ledger[TERMS] + abs(scaled)

    def _made(
        self,
        program: step_list.StepList,
        k: int,
        arena: Arena,
        rooms: Sequence[Room],
        team: Workers,
        logs: bool | None,
        cancel_flag: Flag,
    ) -> Floats:
        """A step that all threads share: its additions, and the largest and smallest entry of its table."""
        now, num_nodes = program.steps[k], program.num_nodes
        table = arena.tables[now["out_at"] :][: self.sizes[now["out"] % num_nodes]]

        def share(t: int) -> float:
            mine = (t, len(rooms))
            added: float = step(program, k, self.scopes.num_states, *arena[:2], *rooms[t], mine, logs, cancel_flag)
            return added

        def ends(piece: Floats) -> tuple[float, float]:
            high, low = measure(piece, logs, cancel_flag)
            return high, low

        added = team.map(share, list(range(len(rooms))))
        high, low = zip(*team.map(ends, np.array_split(table, len(rooms))), strict=True)
        return np.array([max(added), max(high), min(low)])
