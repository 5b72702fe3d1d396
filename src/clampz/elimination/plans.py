"""Exact sums over factors of any arity: an elimination order, the memory it needs, and the run.

log Z and all marginals by bucket elimination.  `eliminate` takes a list of factors; `Elimination` is its reusable half:
one order, one plan, any values.  The loops are in `_kernels.elimination` (sums), `_kernels.elimination_order` (orders)
and `_kernels.elimination_plan` (index arrays).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from clampz._kernels import elimination as kernels
from clampz._kernels import elimination_order as orders
from clampz._kernels import elimination_plan as plans
from clampz._kernels import graph
from clampz.elimination.orders import find_order
from clampz.errors import TooWideError
from clampz.model.tables import Floats, Integers, offsets
from clampz.numerics import EPS
from clampz.options import memory_allowed

# Bytes that are used without even looking at what is free.
SMALL_BYTES = 64 * 2**20


class Scopes(NamedTuple):
    """Which variables each factor is about: factor f is over variables `variables[start[f] : start[f + 1]]`, its table
    row-major in that order."""

    num_states: Integers
    start: Integers
    variables: Integers
    table_start: Integers

    @classmethod
    def of_pairwise(cls, num_states: Integers, edges: Any) -> "Scopes":
        """A factor per variable, then one per edge."""
        n, m = len(num_states), len(edges)
        arity = np.ones(n + m, dtype=np.int64)
        arity[n:] = 2
        variables = np.concatenate([np.arange(n), edges.ravel()])
        sizes = np.concatenate([num_states, num_states[edges[:, 0]] * num_states[edges[:, 1]]])
        return cls(np.asarray(num_states, dtype=np.int64), offsets(arity), variables, offsets(sizes))

    def followed_by(self, start: Integers, variables: Integers, sizes: Integers) -> "Scopes":
        """These factors and then others over the same variables."""
        scope_start = np.concatenate([self.start, self.start[-1] + start[1:]])
        table_start = np.concatenate([self.table_start, self.table_start[-1] + np.cumsum(sizes)])
        return Scopes(self.num_states, scope_start, np.concatenate([self.variables, variables]), table_start)

    @property
    def num_factors(self) -> int:
        return len(self.start) - 1

    def edges(self) -> Integers:
        """(m, 2) every pair of variables that share a factor, once."""
        arity = np.diff(self.start)
        n = len(self.num_states)
        pairs = [np.empty((0, 2), dtype=np.int64)]
        for size in range(2, int(arity.max(initial=0)) + 1):
            members = self.variables[self.start[:-1][arity == size][:, None] + np.arange(size)]
            for a in range(size):
                pairs.extend(members[:, [a, b]] for b in range(a + 1, size))
        found = np.sort(np.concatenate(pairs), axis=1)
        keys = found[:, 0] * n + found[:, 1]
        if (keys[1:] > keys[:-1]).all():
            return found
        keys = np.unique(keys)
        return np.stack([keys // max(n, 1), keys % max(n, 1)], axis=1)


@dataclass(frozen=True, eq=False)
class Elimination:
    """An elimination order for factors of these scopes, laid out and ready to run on any values.

    Attributes
    ----------
    width
        Variables in the largest message: the induced width of the order.
    sizes
        Of the working memory that each thread needs beside its tables.
    """

    scopes: Scopes
    plan: plans.Plan
    width: int
    sizes: Integers

    @classmethod
    def of(cls, scopes: Scopes, memory: int | None = None, *, marginals: bool = True) -> "Elimination":
        """Find an order and lay it out; TooWideError where a run would need more than `memory` bytes (None: half of
        what is free)."""
        start, neighbour, _ = graph.neighbour_lists(len(scopes.num_states), scopes.edges().astype(np.int32))
        order = find_order(scopes.num_states, start, neighbour)
        if math.isinf(order.total):
            most_states = float(np.log2(scopes.num_states.max()))
            raise _too_wide(
                math.ceil(order.log2_largest / most_states) - 1, 8 * 2 ** int(order.log2_largest), memory, at_least=True
            )
        buckets = orders.bucket_scopes(order.variables, start, neighbour)
        plan, sizes = plans.make_plan(order.variables, buckets, *scopes)
        width = int(np.diff(plan.steps["begin"]).max(initial=0))
        found = cls(scopes, plan, width, sizes)
        needed = found.num_bytes(marginals)
        if needed > (SMALL_BYTES if memory is None else memory) and needed > (allowed := memory_allowed(memory)):
            raise _too_wide(width, needed, allowed)
        return found

    def num_bytes(self, marginals: bool = True) -> int:
        """Memory that one run needs."""
        return int(
            8
            * (self.num_stored * (2 if marginals else 1) + 3 * self.sizes[0] + 2 * self.sizes[1] + self.sizes[2:].sum())
        )

    @property
    def num_stored(self) -> int:
        """Entries of all factor tables and messages."""
        return int(self.plan.steps["message"][-1])

    @cached_property
    def state_start(self) -> Integers:
        return offsets(self.scopes.num_states)

    def workspace(self, marginals: bool = True) -> "Workspace":
        """Memory for `run`, for one thread at a time; use it again for the next lane."""
        size, n = self.num_stored, len(self.scopes.num_states)
        spread, scale = np.empty(self.scopes.num_factors + n), np.empty(n)
        return Workspace(
            np.empty(size), np.empty(size if marginals else 0), spread, scale, plans.make_scratch(self.sizes)
        )

    def run(self, values: Floats, workspace: "Workspace", marginals: Floats, *, log_domain: bool = False) -> "Sum":
        """Sum over all variables, the log tables being `values`, end to end.

        Fills `marginals` (one entry per state of each variable) unless it is empty, and then `workspace.beliefs` with
        the factors' marginals.
        """
        store, beliefs, spread, scale, scratch = workspace
        logs = kernels.LOGARITHMS if log_domain else kernels.SCALED
        status, log_z, terms = kernels.forwards(self.plan, values, store, spread, scale, scratch, logs)
        if status == kernels.OUT_OF_RANGE:
            logs = kernels.LOGARITHMS
            status, log_z, terms = kernels.forwards(self.plan, values, store, spread, scale, scratch, logs)
        if status == kernels.EMPTY:
            return Sum(-math.inf, 0.0)
        if marginals.size:
            kernels.backwards(self.plan, store, beliefs, scale, scratch, logs, self.state_start, marginals)
        return Sum(log_z, kernels.ROUNDINGS_PER_TERM * EPS * (terms + abs(log_z)))


class Workspace(NamedTuple):
    """Working memory of one thread; after a run `beliefs` begins with the marginals of the factors, laid out as their
    tables."""

    store: Floats
    beliefs: Floats
    spread: Floats
    scale: Floats
    scratch: plans.Scratch


class Sum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


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
    def of(cls, scopes: Scopes, possible: Any) -> "Restriction":
        """Keep the states with `possible[state]`; a variable that has none keeps its first (its factors say that Z =
        0)."""
        state_start = offsets(scopes.num_states)
        if possible.all() and (scopes.num_states > 1).all():
            return cls(scopes, np.arange(state_start[-1]), np.arange(scopes.table_start[-1]))
        kept = possible.copy()
        left = (
            np.add.reduceat(kept, state_start[:-1], dtype=np.int64)
            if len(scopes.num_states)
            else np.empty(0, dtype=np.int64)
        )
        kept[state_start[:-1][left == 0]] = True
        left = np.maximum(left, 1)
        entries, table_start = plans.kept_entries(kept, state_start, *scopes)
        used = left[scopes.variables] > 1
        factor_of = np.repeat(np.arange(scopes.num_factors), np.diff(scopes.start))
        arity = np.bincount(factor_of[used], minlength=scopes.num_factors)
        return cls(Scopes(left, offsets(arity), scopes.variables[used], table_start), np.flatnonzero(kept), entries)


def _too_wide(width: int, num_bytes: int, allowed: int | None, *, at_least: bool = False) -> TooWideError:
    more = "at least " if at_least else ""
    limit = f"{memory_allowed(allowed):,}"
    return TooWideError(
        f"exact inference needs {more}{num_bytes:,} bytes (width {more}{width}), and {limit} are allowed: clamp or condition on some variables, "
        "use the bounds of trw and mean_field instead, or allow more with memory=",
        width=width,
        num_bytes=num_bytes,
    )
