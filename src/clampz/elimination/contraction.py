"""Sums as pairwise contractions: two tables at a time become one, and variables that no other table has are summed out
at once.

Where a bucket of an elimination is swept over the union of all its scopes, here it is taken in pairs, and the tree of
pairs is made better by local search: on grids and pedigrees a tenth of the products and of the memory, and they are
products of matrices.  A table is freed when it was used; on the way back to marginals tables are kept where they fit,
and made again where they do not.  The kernels are in `_kernels.contraction_*`.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.contraction import step_list as plans
from clampz._kernels.contraction import tree as trees
from clampz._kernels.contraction.blocked_products import COLUMNS, DEPTH, WIDE, Blocks, make_blocks
from clampz._kernels.contraction.passes import (
    CARRY,
    EXPONENTS,
    TERMS,
    TOTAL,
    Arena,
    Factors,
    begin,
    fill_marginals,
    go_on,
    measure,
)
from clampz._kernels.contraction.steps import Lists, make_lists, step
from clampz._kernels.elimination.forward_pass import DONE, EMPTY, OUT_OF_RANGE
from clampz._kernels.elimination.steps import LOGARITHMS, SCALED
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Flag, run_cancellable
from clampz.runtime.workers import Workers

# A tree is made better for this share of the time that the sum is expected to take, a subtree taking so many seconds; a
# few are looked at whatever that is, and none of a node that takes less than a share of the whole.
TREE_SHARE, SECONDS_PER_LOOK, FIRST_LOOKS, NEGLIGIBLE = 0.5, 1e-5, 30, 1e-4
# Then tables of this share of the largest and more are made dear for a while.
TIGHTER = (1 / 2, 1 / 4, 1 / 16, 1 / 64)
# The tables of a contraction are at most a third of the memory each: two that are read and one that is written.
TABLE_SHARE = 1 / 3
# Entries of a table that no machine has room for.
BEYOND_ALL = 2.0**50
# Cuts of the way forwards that are tried where tables do not fit until they are used on the way back.
MOST_SEGMENTS = 256
# Words of eight bytes that a sum takes beside its arena, for each step and for each variable, and for blocks.
STEP_WORDS, VARIABLE_WORDS, BLOCK_WORDS = 12, 12, (DEPTH + COLUMNS) * WIDE + COLUMNS * DEPTH
# Seconds from which a step is worth several threads; what each of them needs for itself is at most this share of the
# tables.
SHARED_SECONDS, LITTLE = 5e-3, 1 / 16


class Room(NamedTuple):
    """Working memory of one thread."""

    lists: Lists
    blocks: Blocks

    @classmethod
    def of(cls, num_variables: int) -> "Room":
        return cls(make_lists(num_variables), make_blocks(num_variables > 0))


class Schedule(NamedTuple):
    """StepList with places, and the entries of the arena that they need."""

    steps: plans.StepList
    entries: int


@dataclass(frozen=True, eq=False)
class Contraction:
    """The plan of a sum over factors as a tree of pairwise contractions.

    Attributes
    ----------
    factors
        The scopes, as kernels want them.
    tree
        Which two tables are contracted into which.
    seconds
        What log Z is expected to take.
    memory
        Bytes that steps for marginals keep to, if they can: what does not fit is made again.
    wanted
        (F,) the factors whose marginals are wanted, where any are; None for all.
    """

    factors: Factors
    tree: trees.Tree
    seconds: float
    memory: int
    wanted: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls, factors: Factors, tree: trees.Tree, memory: int, budget: Budget | None = None, num_sums: int = 1
    ) -> "Contraction":
        """A tree made better for a share of the time that so many sums take, if the watch allows; tables that do not
        fit into `memory` bytes are avoided."""
        tree, seconds = improved(tree, np.log2(factors.num_states), TABLE_SHARE * memory / 8, budget, num_sums)
        return cls(factors, tree, seconds, memory)

    @cached_property
    def largest(self) -> float:
        """Entries of the largest table."""
        return float(plans.node_sizes(self.tree, self.factors.num_states).max(initial=1.0))

    @property
    def is_beyond_all(self) -> bool:
        """Whether no machine has room for it: then there is no counting what is in memory together."""
        return self.largest > BEYOND_ALL

    @cached_property
    def sizes(self) -> Integers:
        sizes: Integers = plans.node_sizes(self.tree, self.factors.num_states).astype(np.int64)
        return sizes

    @property
    def num_tables(self) -> int:
        """Of nodes, their adjoints and the 1."""
        return 2 * len(self.sizes) + 1

    @cached_property
    def order(self) -> Integers:
        """The nodes in the order in which they are made."""
        nodes: Integers = plans.steps_forwards(self.tree, self.sizes)
        return nodes

    @cached_property
    def log_z_program(self) -> Schedule:
        return self._program(1, marginals=False)

    @cached_property
    def marginals_program(self) -> Schedule:
        """The one with the fewest segments that fits into memory; or else needs least."""
        best = self._program(1, marginals=True)
        segments = 2
        while 8 * best.entries > self.memory and segments <= min(MOST_SEGMENTS, len(self.order)):
            best = min(best, self._program(segments, marginals=True), key=lambda program: program.entries)
            segments *= 2
        return best

    def program(self, marginals: bool) -> Schedule:
        return self.marginals_program if marginals else self.log_z_program

    def _program(self, num_segments: int, *, marginals: bool) -> Schedule:
        written = np.cumsum(self.sizes[self.order]) / max(1, int(self.sizes[self.order].sum()))
        segment = np.minimum((written * num_segments).astype(np.int64), num_segments - 1)
        wanted = np.full(len(self.factors.table) - 1, marginals) if self.wanted is None else self.wanted & marginals
        steps = plans.list_steps(self.tree, self.order, segment, wanted)
        entries = plans.find_places(steps, self.sizes, self.factors.table)
        start, axes = self._layout
        num_factors = len(self.factors.table) - 1
        return Schedule(plans.StepList(steps, start, axes, len(self.sizes), num_factors), int(entries))

    @cached_property
    def _layout(self) -> tuple[Integers, Integers]:
        start, axes = plans.lay_out(self.tree, self.order, self.factors.num_states, self.sizes)
        return start, axes

    @cached_property
    def home(self) -> Integers:
        """(n,) the smallest factor that each variable is in, -1 for one that is in none."""
        factors = self.factors
        factor_of = np.repeat(np.arange(len(factors.start) - 1), np.diff(factors.start))
        largest_first = np.argsort(-np.diff(factors.table)[factor_of], kind="stable")
        home = np.full(len(factors.num_states), -1, dtype=np.int64)
        home[factors.variables[largest_first]] = factor_of[largest_first]
        return home

    def num_bytes(self, marginals: bool) -> int:
        """What a thread needs for itself."""
        beside = STEP_WORDS * len(self.program(marginals).steps.steps) + VARIABLE_WORDS * len(self.factors.num_states)
        beliefs = int(self.factors.table[-1]) if marginals else 0
        return 8 * (self.program(marginals).entries + beliefs + beside + BLOCK_WORDS)

    @cached_property
    def _lone(self) -> float:
        """log of the states of the variables that no factor has."""
        return float(np.log(self.factors.num_states[self.home < 0]).sum())

    def _step_seconds(self, marginals: bool) -> Floats:
        """Of each step."""
        own = trees.measure(self.tree, np.log2(self.factors.num_states), np.inf)[1]
        out, num_nodes = self.program(marginals).steps.steps["out"], len(self.sizes)
        # what a node receives on the way back takes as long as it took to make its parent
        seconds: Floats = own[np.where(out < num_nodes, out, self.tree.parent[out - num_nodes])]
        return seconds

    def shared_steps(self, marginals: bool) -> Integers:
        """Steps that are long enough for several threads; none where what these need for themselves is not little
        beside the tables."""
        if VARIABLE_WORDS * len(self.factors.num_states) > LITTLE * self.program(marginals).entries:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self._step_seconds(marginals) >= SHARED_SECONDS)

    def speed_up(self, marginals: bool, num_threads: int) -> float:
        """How many times as fast it is by so many threads."""
        if num_threads == 1:  # as every slice asks
            return 1.0
        steps, seconds = self.shared_steps(marginals), self._step_seconds(marginals)
        if not steps.size:
            return 1.0
        return float(seconds.sum() / (seconds.sum() - seconds[steps].sum() * (1 - 1 / num_threads)))

    def run(
        self,
        values: Floats,
        arena: Arena,
        rooms: Sequence[Room],
        beliefs: Floats,
        marginals: Floats,
        log_domain: bool,
        cancel_flag: Flag,
    ) -> tuple[int, float, float]:
        """A status, log Z and the sum of absolute terms that bounds its rounding error, of the log tables `values`;
        with logarithms if need be.  Fills `marginals` unless it is empty, and `beliefs` with those of the factors.
        Long steps are shared by as many threads as there are rooms."""
        wanted = marginals.size > 0
        beliefs = beliefs[: len(values) if wanted else 0]
        status, log_z, terms = OUT_OF_RANGE, 0.0, 0.0
        for logs in (LOGARITHMS,) if log_domain else (SCALED, LOGARITHMS):
            if status == OUT_OF_RANGE:
                status, log_z, terms = self.attempt(values, arena, rooms, beliefs, logs, cancel_flag)
        if status == DONE and wanted:
            fill_marginals(self.factors, self.home, beliefs, offsets(self.factors.num_states), marginals)
        return status, log_z + self._lone, terms + self._lone

    def attempt(
        self, values: Floats, arena: Arena, rooms: Sequence[Room], beliefs: Floats, logs: bool | None, cancel_flag: Flag
    ) -> tuple[int, float, float]:
        """The same with one kind of numbers, but for the marginals of variables."""
        program, ledger, made = self.program(beliefs.size > 0).steps, np.zeros(4), np.empty(0)
        for room in rooms:
            room.lists.seen[:] = -1  # by steps of another run
        status = begin(program, self.factors, values, arena, beliefs, ledger, logs, cancel_flag)
        shared = self.shared_steps(beliefs.size > 0).tolist() if len(rooms) > 1 else []
        fixed = (program, self.factors, self.sizes, arena, *rooms[0], beliefs, ledger)
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
        program: plans.StepList,
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
            added: float = step(program, k, self.factors.num_states, *arena[:2], *rooms[t], mine, logs, cancel_flag)
            return added

        def ends(piece: Floats) -> tuple[float, float]:
            high, low = measure(piece, logs, cancel_flag)
            return high, low

        added = team.map(share, list(range(len(rooms))))
        high, low = zip(*team.map(ends, np.array_split(table, len(rooms))), strict=True)
        return np.array([max(added), max(high), min(low)])


def improved(
    tree: trees.Tree, log_states: Floats, limit: float, budget: Budget | None, num_sums: int = 1
) -> tuple[trees.Tree, float]:
    """The best tree found in the time for it, if so many sums are taken by it, and the seconds that each is expected to
    take.

    Where nothing gets better any more, large tables are made dear for a while, which leads to other trees: from the
    best one, and from the first.  On pedigrees these took a sixth of the time.
    """
    planning = Planning(log_states, budget, num_sums)
    best = planning.best(_copy(tree), limit)
    again = True
    while again:
        again = False
        for factor, start in itertools.product(TIGHTER, (best.tree, tree)):
            if planning.over(best.seconds):
                break
            other = planning.best(_copy(start), min(limit, factor * best.largest))
            other = planning.best(other.tree, limit)
            if other.cost < best.cost:
                best, again = other, True
                break
    return best.tree, best.seconds


def _copy(tree: trees.Tree) -> trees.Tree:
    return trees.Tree(*(each.copy() for each in tree))


class Improved(NamedTuple):
    """A tree, what it costs with tables beyond the limit made dear, the seconds that it is expected to take, and the
    entries of its largest table."""

    tree: trees.Tree
    cost: float
    seconds: float
    largest: float


class Planning:
    """Puts subtrees of trees together anew, and counts how many it looked at."""

    def __init__(self, log_states: Floats, budget: Budget | None, num_sums: int) -> None:
        self.log_states, self.budget, self.looked = log_states, budget, 0
        self.share = TREE_SHARE * num_sums

    def over(self, seconds: float) -> bool:
        """Whether no more time is to be spent on a sum of so many seconds."""
        stopped = self.budget is not None and self.budget.must_stop()
        return stopped or self.looked * SECONDS_PER_LOOK > self.share * seconds

    def best(self, tree: trees.Tree, limit: float) -> Improved:
        """Round after round until nothing gets better or the time for it is over.

        From the leaves to the root where there is time for all, which found trees of half the cost of any other order
        (of nodes by cost, and at random); else those of the costliest nodes.
        """
        size, own = trees.measure(tree, self.log_states, limit)
        better = True
        while better and not (self.budget is not None and self.budget.must_stop()):
            allowed = max(FIRST_LOOKS, self.share * own.sum() / SECONDS_PER_LOOK) - self.looked
            if len(own) <= allowed:
                nodes = trees.from_leaves(tree.left, tree.right, tree.parent)
            else:
                nodes = np.argsort(-own)[: max(0, int(allowed))]
                nodes = nodes[own[nodes] > NEGLIGIBLE * own.sum()]
            self.looked += len(nodes)
            fixed = (tree, size, own, nodes, self.log_states, limit)
            better, pool = run_cancellable(self.budget, len(nodes) * SECONDS_PER_LOOK, trees.reconfigure, *fixed)
            tree = tree._replace(pool=pool)
        seconds = float(trees.measure(tree, self.log_states, np.inf)[1].sum())
        return Improved(tree, float(own.sum()), seconds, float(size.max(initial=1.0)))
