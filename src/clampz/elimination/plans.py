"""Plans of exact sums over factors of any arity: what is summed, in which order, and where every table lies.

A plan carries its order and serves any values of the tables, any lane and any thread; `sums` runs it.  Index arrays are
laid out in `_kernels.elimination_plan`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz._kernels.contraction.passes import Factors
from clampz._kernels.contraction.tree import SECONDS_PER_STEP, Tree, tree_of_order
from clampz._kernels.elimination import greedy_order as orders
from clampz._kernels.elimination import plan as plans
from clampz.elimination.contraction import Contraction
from clampz.elimination.orders import CONTRACTED_ENTRIES, Order, find_order
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.tables import distinct, offsets
from clampz.numerics import Integers
from clampz.runtime.budget import Budget
from clampz.runtime.options import SMALL_BYTES, fits_into, memory_allowed

# Words of eight bytes that a sum takes beside its messages and scratch, for plan, values and results: per variable,
# factor, variable of a factor and entry of the factors' tables.  Measured as peaks of resident memory on a chain of a
# million variables and on 3,000 components, where they are nearly all and an eighth of it, and of entries on a chain of
# fifty labels and on a table of 2^20.
WORDS = np.array([19, 8, 6, 6])
# log2 of the entries up to which a table that fits no machine is counted: more digits help nobody, and fit no float.
MOST_COUNTED = 100
# For plans that are held to a limit elsewhere, or only counted.
NO_LIMIT = 2**62
# Seconds per entry of a sweep, to compare it with a contraction.
SECONDS_PER_VISIT = 2e-9
# Of the scratch of a sweep, where nothing is swept.
NO_SIZES = np.zeros(6, dtype=np.int64)


class Scopes(NamedTuple):
    """Which variables each factor is about: factor f is over variables `variables[start[f] : start[f + 1]]`, its table
    row-major in that order."""

    num_states: Integers
    start: Integers
    variables: Integers
    table_start: Integers

    @classmethod
    def of(cls, model: Model) -> "Scopes":
        """A factor per variable, then one per edge, then the larger ones."""
        pairwise, larger = cls.of_pairwise(model.num_states, model.edges), model.factors
        return Scopes(
            pairwise.num_states,
            np.concatenate([pairwise.start, pairwise.start[-1] + larger.scope_start[1:]]),
            np.concatenate([pairwise.variables, larger.variables]),
            np.concatenate([pairwise.table_start, pairwise.table_start[-1] + larger.start[1:]]),
        )

    @classmethod
    def of_pairwise(cls, num_states: Integers, edges: NDArray[Any]) -> "Scopes":
        """A factor per variable, then one per edge."""
        n, m = len(num_states), len(edges)
        arity = np.ones(n + m, dtype=np.int64)
        arity[n:] = 2
        variables = np.concatenate([np.arange(n), edges.ravel()])
        sizes = np.concatenate([num_states, num_states[edges[:, 0]] * num_states[edges[:, 1]]])
        # a copy: kernels would be compiled a second time for the model's own array, which is closed to writing
        return cls(np.array(num_states, dtype=np.int64), offsets(arity), variables, offsets(sizes))

    @property
    def num_factors(self) -> int:
        return len(self.start) - 1

    @property
    def num_bytes(self) -> int:
        """Memory that a sum over these factors takes whatever the order."""
        return _num_bytes(len(self.num_states), self.num_factors, len(self.variables), int(self.table_start[-1]))

    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor, once."""
        arity = np.diff(self.start)
        n = len(self.num_states)
        pairs = [np.empty((0, 2), dtype=np.int64)]
        for size in (np.flatnonzero(np.bincount(arity, minlength=2)[2:]) + 2).tolist():
            members = self.variables[self.start[:-1][arity == size][:, None] + np.arange(size)]
            pairs.append(
                members if size == 2 else members[:, np.stack(np.triu_indices(size, 1), axis=1)].reshape(-1, 2)
            )
        found = pairs[-1] if len(pairs) == 2 else np.concatenate(pairs)
        if not (found[:, 0] < found[:, 1]).all():
            found.sort(axis=1)
        keys = found[:, 0] * n + found[:, 1]
        if (keys[1:] > keys[:-1]).all():
            return found
        keys = distinct(keys)
        return np.stack([keys // max(n, 1), keys % max(n, 1)], axis=1)

    def neighbours(self) -> tuple[Integers, NDArray[np.int32]]:
        """Neighbour lists of the graph of these factors: those of variable i are neighbour[start[i] : start[i + 1]]."""
        start, neighbour, _ = graph.neighbour_lists(len(self.num_states), self.edges().astype(np.int32))
        return start, neighbour

    def order(self, budget: Budget | None = None) -> Order:
        """The best order found; the search for it may take a second, or what the watch leaves of it."""
        return find_order(self.num_states, *self.neighbours(), budget)

    def tree(self, order: Order) -> Tree:
        """The tree of contractions that follows an order."""
        found: Tree = tree_of_order(order.variables, np.log2(self.num_states), self.start, self.variables)
        return found


def least_bytes(model: Model) -> int:
    """Memory that a sum over a model takes whatever the order, known before anything is laid out."""
    n, m, larger = model.num_variables, model.num_edges, model.factors
    entries = len(model.unary.flat) + len(model.pairwise.flat) + len(larger.flat)
    return _num_bytes(n, n + m + len(larger), n + 2 * m + len(larger.variables), entries)


def _num_bytes(*counts: int) -> int:
    """Of variables, factors, variables of factors and entries of their tables."""
    return int(8 * WORDS @ counts)


class Restriction(NamedTuple):
    """Factors cut down to the states that are still possible, and variables with one state dropped from the scopes:
    what evidence leaves to sum over.

    Attributes
    ----------
    scopes
        The same variables and factors; scopes may be empty.
    states, entries
        Which states of all variables, and which table entries, are left.
    """

    scopes: Scopes
    states: Integers
    entries: Integers

    @classmethod
    def of_lanes(cls, batch: Batch) -> "Restriction":
        """Of a batch: the states that some lane allows."""
        return cls.of(Scopes.of(batch.model), np.logical_or.reduce(batch.possible, axis=1))

    @classmethod
    def of(cls, scopes: Scopes, possible: NDArray[np.bool_]) -> "Restriction":
        """Keep the states with `possible[state]`; a variable that has none keeps its first (its factors say that Z =
        0)."""
        state_start = offsets(scopes.num_states)
        if possible.all() and (scopes.num_states > 1).all():
            return cls(scopes, np.arange(state_start[-1]), np.arange(scopes.table_start[-1]))
        kept = possible.copy()
        left = states_left(kept, state_start)
        kept[state_start[:-1][left == 0]] = True
        left = np.maximum(left, 1)
        entries, table_start = plans.kept_entries(kept, state_start, *scopes)
        used = left[scopes.variables] > 1
        factor_of = np.repeat(np.arange(scopes.num_factors), np.diff(scopes.start))
        arity = np.bincount(factor_of[used], minlength=scopes.num_factors)
        return cls(Scopes(left, offsets(arity), scopes.variables[used], table_start), np.flatnonzero(kept), entries)


@dataclass(frozen=True, eq=False)
class Elimination:
    """The plan of a sum over factors of these scopes: the order, and where everything lies.

    Attributes
    ----------
    plan
        Index arrays for a sweep over buckets; or, for sums that take long, a tree of contractions.
    width
        The induced width of the order: variables that are summed over beside the one that is eliminated, at most.
    sizes
        Of the working memory that each thread needs beside its tables, for a sweep.
    """

    scopes: Scopes
    order: Order
    plan: plans.Plan | Contraction
    width: int
    sizes: Integers

    @classmethod
    def of(
        cls,
        scopes: Scopes,
        memory: int | str | None = None,
        *,
        marginals: bool = True,
        order: Order | None = None,
        tree: Tree | None = None,
        num_sums: int = 1,
        budget: Budget | None = None,
    ) -> "Elimination":
        """Lay out an order, one found before for the same scopes or else the best that is found now, or, of a tree of
        contractions that was found before, that; for so many sums.  TooWideError where a run would need more than
        `memory` bytes (None: half of what is free), Overdue where the watch is over before there is an order, or a
        large plan of it."""
        widest = int(np.diff(scopes.start).max(initial=1))
        _check_memory(widest - 1, scopes.num_bytes, memory, "at least ")
        start, neighbour = scopes.neighbours()
        order = find_order(scopes.num_states, start, neighbour, budget) if order is None else order
        large = math.isinf(order.total) or scopes.num_bytes > SMALL_BYTES
        if large and budget is not None:
            budget.check_stop()
        if math.isinf(order.total):
            most_states = float(np.log2(scopes.num_states.max()))
            width = math.ceil(order.log2_largest / most_states) - 1
            entries = 2 ** min(int(order.log2_largest), MOST_COUNTED)
            raise _too_wide(width, 8 * entries, memory_allowed(memory), "at least ")
        buckets = orders.bucket_scopes(order.variables, start, neighbour)
        width = int(np.diff(buckets[0]).max(initial=0))
        contraction = _contraction(scopes, order, tree, memory, num_sums, budget)
        if contraction is None:
            plan, sizes = plans.make_plan(order.variables, buckets, *scopes)
            found = cls(scopes, order, plan, width, sizes)
        else:
            if contraction.is_beyond_all:
                raise _too_wide(width, int(8 * contraction.largest), memory_allowed(memory), "at least ")
            found = cls(scopes, order, contraction, width, NO_SIZES)
        _check_memory(found.width, found.num_bytes(marginals), memory)
        return found

    @property
    def is_contracted(self) -> bool:
        return isinstance(self.plan, Contraction)

    def within(self, memory: int | str | None) -> "Elimination":
        """The same sum, in so many bytes if that can be done by making tables again."""
        if not isinstance(self.plan, Contraction):
            return self
        return replace(self, plan=replace(self.plan, memory=max(0, memory_allowed(memory) - self.scopes.num_bytes)))

    def num_bytes(self, marginals: bool = True) -> int:
        """Memory that one run needs, with what it is made of and what it returns."""
        return self.scopes.num_bytes + self.thread_bytes(marginals)

    def thread_bytes(self, marginals: bool = True) -> int:
        """What each thread needs of it for itself."""
        if isinstance(self.plan, Contraction):
            return self.plan.num_bytes(marginals)
        scratch = 3 * self.sizes[0] + 2 * self.sizes[1] + self.sizes[2:].sum()
        return int(8 * (self.num_stored(marginals) * (2 if marginals else 1) + scratch))

    def num_stored(self, marginals: bool = False) -> int:
        """Entries of all tables that are in memory together."""
        if isinstance(self.plan, Contraction):
            return self.plan.program(marginals).entries
        return int(self.plan.steps["message"][-1])

    @property
    def visits(self) -> float:
        """Table entries that the pass forwards visits, or that a sweep would visit in the time that it takes."""
        return self.plan.seconds / SECONDS_PER_VISIT if isinstance(self.plan, Contraction) else self.order.total

    def speed_up(self, marginals: bool, num_threads: int) -> float:
        """How many times as fast a sum is that so many threads share."""
        return self.plan.speed_up(marginals, num_threads) if isinstance(self.plan, Contraction) else 1.0

    @cached_property
    def state_start(self) -> Integers:
        return offsets(self.scopes.num_states)


class Moves(NamedTuple):
    """Where table entries move to when variables that are fixed to one state are fixed to another.

    Attributes
    ----------
    variables, states
        Those that are fixed, and to which states they are.
    factor, fixed, stride
        For each fixed variable of each factor: the factor, which of the variables it is, and how far apart in the
        factor's table two entries are that differ in its state by one.
    """

    variables: Integers
    states: Integers
    factor: Integers
    fixed: Integers
    stride: Integers

    @classmethod
    def of(cls, scopes: Scopes, variables: Integers, states: Integers) -> "Moves":
        number = np.full(len(scopes.num_states), -1, dtype=np.int64)
        number[variables] = np.arange(len(variables))
        places = np.flatnonzero(number[scopes.variables] >= 0)
        factor = np.searchsorted(scopes.start, places, side="right") - 1
        stride, after, end = np.ones(len(places), dtype=np.int64), places + 1, scopes.start[factor + 1]
        while (inside := after < end).any():
            stride[inside] *= scopes.num_states[scopes.variables[after[inside]]]
            after += 1
        return cls(variables, states, factor, number[scopes.variables[places]], stride)

    def entries(self, restricted: Restriction, states: Integers) -> Integers:
        """The table entries that are left when the variables are fixed to other states."""
        table_start = restricted.scopes.table_start
        by = np.bincount(
            self.factor, (self.stride * (states - self.states)[self.fixed]), minlength=len(table_start) - 1
        )
        moved: Integers = restricted.entries + np.repeat(by.astype(np.int64), table_start[1:] - table_start[:-1])
        return moved


class ExactPlan(NamedTuple):
    """How to sum over the lanes of a batch: the same states of most variables, and one of each that is fixed, which
    need not be the same."""

    restricted: Restriction
    elimination: Elimination
    moves: Moves | None = None

    @classmethod
    def of(
        cls,
        batch: Batch,
        memory: int | str | None = None,
        *,
        marginals: bool = True,
        order: Order | None = None,
        tree: Tree | None = None,
        num_sums: int = 1,
        fixed: Sequence[int] = (),
        restricted: Restriction | None = None,
        budget: Budget | None = None,
    ) -> "ExactPlan":
        """States that no lane allows are cut out, so that evidence makes the model narrower; an order found before, or
        a tree, is one for what is left then.  Every lane has one state of each variable that is `fixed`; where there
        is none, what is left may be known.  Raises what `Elimination.of` does."""
        moves = None
        if fixed:
            scopes, possible = Scopes.of(batch.model), np.logical_or.reduce(batch.possible, axis=1)
            start, states = batch.model.unary.start, []
            for i in fixed:
                own = possible[start[i] : start[i + 1]]
                states.append(int(np.argmax(own)))
                own[states[-1] + 1 :] = False
            moves, restricted = Moves.of(scopes, np.array(fixed), np.array(states)), Restriction.of(scopes, possible)
        restricted = restricted or Restriction.of_lanes(batch)
        if budget is not None:
            budget.check_cancelled()
        elimination = Elimination.of(
            restricted.scopes, memory, marginals=marginals, order=order, tree=tree, num_sums=num_sums, budget=budget
        )
        return cls(restricted, elimination, moves)

    def entries(self, lane: int, fixed: Integers) -> Integers:
        """The table entries that are left in a lane, of whose fixed variables the states are `fixed[lane]`: the states
        of all variables are the first of them."""
        return self.restricted.entries if self.moves is None else self.moves.entries(self.restricted, fixed[lane])

    def fixed_states(self, batch: Batch) -> Integers:
        """(B, K) the states of the fixed variables in every lane."""
        start, variables = batch.model.unary.start, () if self.moves is None else self.moves.variables.tolist()
        states = [batch.possible[start[i] : start[i + 1]].argmax(axis=0) for i in variables]
        return np.stack(states, axis=1) if states else np.empty((batch.num_lanes, 0), dtype=np.int64)


def _contraction(
    scopes: Scopes, order: Order, tree: Tree | None, memory: int | str | None, num_sums: int, budget: Budget | None
) -> Contraction | None:
    """A tree of contractions, along another one or else where that is quicker than to sweep over buckets."""
    to_sweep = math.inf if tree is not None else SECONDS_PER_VISIT * order.total
    if tree is None and (order.total < CONTRACTED_ENTRIES or scopes.num_factors * SECONDS_PER_STEP > to_sweep):
        return None
    allowed = memory_allowed(None)
    allowed = allowed if memory is None else min(allowed, memory_allowed(memory))
    tree = scopes.tree(order) if tree is None else tree
    found = Contraction.of(Factors(*scopes), tree, max(0, allowed - scopes.num_bytes), budget, num_sums)
    return found if found.seconds < to_sweep else None


def _check_memory(width: int, needed: int, memory: int | str | None, more: str = "") -> None:
    if not fits_into(memory, needed):
        raise _too_wide(width, needed, memory_allowed(memory), more)


def too_large(batch: Batch, memory: int | str | None) -> TooWideError | None:
    """Why no sum over a batch fits into the memory, whatever its order, seen before anything is laid out; None where it
    may fit.  Lanes that rule states out may leave less to sum than that."""
    model, least = batch.model, least_bytes(batch.model)
    if fits_into(memory, least) or not batch.possible.all():
        return None
    widest = max(1, 2 if model.num_edges else 1, int(np.diff(model.factors.scope_start).max(initial=1)))
    return _too_wide(widest - 1, least, memory_allowed(memory), "at least ")


def _too_wide(width: int, num_bytes: int, allowed: int, more: str = "") -> TooWideError:
    return TooWideError(
        f"exact inference needs {more}{num_bytes:,} bytes (width {more}{width}), and {allowed:,} are allowed: bound "
        "and solve bracket log Z without it, clamping or evidence makes it narrower, or allow more with memory=",
        width=width,
        num_bytes=num_bytes,
    )
