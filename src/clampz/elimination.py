"""Exact sums over factors of any arity: an elimination order, the memory it needs, and the run.

log Z and all marginals by bucket elimination.  `eliminate` takes a list of factors; `Elimination` is its reusable half: one order, one plan, any values.
The loops are in `_kernels.elimination` (sums), `_kernels.elimination_order` (orders) and `_kernels.elimination_plan` (index arrays).
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clampz._kernels import elimination as kernels
from clampz._kernels import elimination_order as orders
from clampz._kernels import elimination_plan as plans
from clampz._kernels import graph
from clampz.errors import ModelError, TooWideError
from clampz.tables import Floats, Integers, offsets

EPS = float(np.finfo(np.float64).eps)
# Share of the machine's free memory that is used without asking, and what is used without even looking.
MEMORY_SHARE = 0.5
SMALL_BYTES = 64 * 2**20

# Greedy rules (by_fill, by_size, noise) of `greedy_order`: min-fill and min-size, ties broken by the other, then min-fill with random ties and with
# more or less noise, over and over.  On random graphs and grids of 25 to 120 variables these found the cheapest orders most often.
FIRST_RULES = [(1.0, 1e-3, 0.0), (1e-3, 1.0, 0.0)]
RANDOM_RULES = [(1.0, 1e-3, 0.9), (1.0, 1e-3, 3.0), (1.0, -0.5, 2.0)]
# Try further orders while the words of bits read (about 3 ns each) are fewer than this times the table entries of the best (about 4 ns each): at least
# MIN_WORK of them, a tenth of a millisecond, at most MAX_WORK, a second, and less where the tables fit no machine and only the error message gains.
ORDER_SHARE = 0.2
MIN_WORK = 3e4
MAX_WORK = 5e8
HUGE_ENTRIES = 2.0**40
WORK_IF_HUGE = 1e7
# No order with more table entries than this is completed.
HOPELESS_ENTRIES = 2.0 ** (orders.HOPELESS + 1)


class Scopes(NamedTuple):
    """Which variables each factor is about: factor f is over variables `variables[start[f] : start[f + 1]]`, its table row-major in that order."""

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


class Order(NamedTuple):
    """An elimination order with its cost; `total` is inf, and the order incomplete, where every order found has a table that fits no machine."""

    variables: Integers
    total: float
    log2_largest: float


def find_order(num_states: Integers, start: Integers, neighbour: Any) -> Order:
    """The cheapest of several greedy orders: min-fill, min-size and randomised mixtures, as many as the predicted time of the sums justifies.

    The cost is the number of entries of all tables over a variable and what it is connected to when it is eliminated.
    """
    log_states = np.log2(num_states)
    # Variables of degree 2 may go first only where all have as many states: then some best order does so.
    max_degree = 2 if len(num_states) == 0 or (num_states == num_states[0]).all() else 1
    early, begin, count, pool, largest = orders.low_degrees_first(start, neighbour, log_states, max_degree, orders.DENSE_LIMIT)
    if largest > orders.HOPELESS:
        return Order(early, math.inf, largest)
    is_left = np.ones(len(num_states), dtype=np.bool_)
    is_left[early] = False
    rest = np.flatnonzero(is_left)
    if not rest.size:
        return Order(early, float(len(early)) * 2.0**largest, largest)
    rows = orders.bit_rows(rest, begin, count, pool)
    states = log_states[rest]
    best = Order(early, math.inf, math.inf)
    work = 0
    attempt = 0
    while True:
        rules = FIRST_RULES if attempt < len(FIRST_RULES) else RANDOM_RULES
        rule = rules[attempt % len(rules)]
        found, total, log2_largest, perfect, cost = orders.greedy_order(rows, states, *rule, attempt, min(best.total, HOPELESS_ENTRIES))
        work += cost
        if total < best.total:
            best = Order(np.concatenate([early, rest[found]]), total, max(largest, log2_largest))
        elif math.isinf(best.total):
            best = Order(early, math.inf, min(best.log2_largest, log2_largest))
        allowed = max(MIN_WORK, min(ORDER_SHARE * best.total, MAX_WORK)) if best.total < HUGE_ENTRIES else WORK_IF_HUGE
        if perfect or (work > allowed and attempt + 1 >= len(FIRST_RULES)):
            return best
        attempt += 1


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
        """Find an order and lay it out; TooWideError where a run would need more than `memory` bytes (None: half of what is free)."""
        start, neighbour, _ = graph.neighbour_lists(len(scopes.num_states), scopes.edges().astype(np.int32))
        order = find_order(scopes.num_states, start, neighbour)
        if math.isinf(order.total):
            most_states = float(np.log2(scopes.num_states.max()))
            raise _too_wide(math.ceil(order.log2_largest / most_states) - 1, 8 * 2 ** int(order.log2_largest), memory, at_least=True)
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
        return int(8 * (self.num_stored * (2 if marginals else 1) + 3 * self.sizes[0] + 2 * self.sizes[1] + self.sizes[2:].sum()))

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
        return Workspace(np.empty(size), np.empty(size if marginals else 0), spread, scale, plans.make_scratch(self.sizes))

    def run(self, values: Floats, workspace: "Workspace", marginals: Floats, *, log_domain: bool = False) -> "Sum":
        """Sum over all variables, the log tables being `values`, end to end.

        Fills `marginals` (one entry per state of each variable) unless it is empty, and then `workspace.beliefs` with the factors' marginals.
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
    """Working memory of one thread; after a run `beliefs` begins with the marginals of the factors, laid out as their tables."""

    store: Floats
    beliefs: Floats
    spread: Floats
    scale: Floats
    scratch: plans.Scratch


class Sum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Eliminated:
    """log Z of a list of factors with `lower <= log Z <= upper` (apart by rounding only), the marginals of the variables, and those of the factors' scopes.

    Where Z = 0 all marginals are nan.
    """

    log_z: float
    lower: float
    upper: float
    marginals: list[Floats]
    factor_marginals: list[Floats]
    width: int


def eliminate(num_states: ArrayLike, factors: Sequence[tuple[Sequence[int], ArrayLike]], *, memory: int | None = None, log_domain: bool = False) -> Eliminated:
    """log Z = log sum_x exp(sum of log tables), and the marginals of every variable and of every factor's scope.

    Parameters
    ----------
    num_states
        Number of states of each variable.
    factors
        Pairs (scope, log table): distinct variables, and an array with an axis for each, -inf for a hard zero.  States ruled out by a factor
        of one variable are cut before the order is chosen, so evidence makes the problem narrower.
    memory
        Bytes allowed; None for half of what is free.  TooWideError, before anything is allocated, where that is not enough.
    log_domain
        Keep to logarithms from the start.  By default scaled tables are used as long as they cannot underflow.

    >>> eliminate([2, 2, 2], [((0, 1, 2), np.log([[[1, 0.5], [1, 1]], [[1, 1], [1, 1.5]]]))]).marginals[0].tolist()
    [0.4375, 0.5625]
    """
    states = np.asarray(num_states, dtype=np.int64)
    tables = [np.asarray(table, dtype=np.float64) for _, table in factors]
    for (scope, _), table in zip(factors, tables, strict=True):
        if len(set(scope)) != len(scope) or not all(0 <= i < len(states) for i in scope):
            raise ModelError(f"factor over {tuple(scope)}: expected distinct variables from 0 to {len(states) - 1}")
        if table.shape != tuple(states[list(scope)]):
            raise ModelError(f"factor over {tuple(scope)}: expected a table of shape {tuple(states[list(scope)].tolist())}, found {table.shape}")
        if (np.isnan(table) | (table == np.inf)).any():
            raise ModelError(f"factor over {tuple(scope)}: expected log potentials, finite or -inf (a hard zero)")
    arity = np.array([len(scope) for scope, _ in factors], dtype=np.int64)
    variables = np.array([i for scope, _ in factors for i in scope], dtype=np.int64)
    sizes = np.array([table.size for table in tables], dtype=np.int64)
    scopes = Scopes(states, offsets(arity), variables, offsets(sizes))
    values = np.concatenate([np.empty(0), *(table.ravel() for table in tables)])
    possible = np.ones(int(states.sum()), dtype=np.bool_)
    state_start = offsets(states)
    for (scope, _), table in zip(factors, tables, strict=True):
        if len(scope) == 1:
            possible[state_start[scope[0]] : state_start[scope[0] + 1]] &= table > -np.inf
    restricted = Restriction.of(scopes, possible)
    elimination = Elimination.of(restricted.scopes, memory)
    workspace = elimination.workspace()
    marginals = np.full(len(restricted.states), np.nan)
    found = elimination.run(values[restricted.entries], workspace, marginals, log_domain=log_domain)
    beliefs = workspace.beliefs[: len(restricted.entries)] if found.log_z > -np.inf else np.full(len(restricted.entries), np.nan)
    unary = _whole(marginals, restricted.states, len(possible))
    flat = _whole(beliefs, restricted.entries, len(values))
    start = scopes.table_start
    return Eliminated(
        log_z=found.log_z,
        lower=found.log_z - found.error,
        upper=found.log_z + found.error,
        marginals=np.split(unary, state_start[1:-1]) if len(states) else [],
        factor_marginals=[flat[start[f] : start[f + 1]].reshape(table.shape) for f, table in enumerate(tables)],
        width=elimination.width,
    )


class Restriction(NamedTuple):
    """Factors cut down to the states that are still possible, and variables with one state dropped from the scopes: what evidence leaves to sum over.

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
        """Keep the states with `possible[state]`; a variable that has none keeps its first (its factors say that Z = 0)."""
        state_start = offsets(scopes.num_states)
        if possible.all() and (scopes.num_states > 1).all():
            return cls(scopes, np.arange(state_start[-1]), np.arange(scopes.table_start[-1]))
        kept = possible.copy()
        left = np.add.reduceat(kept, state_start[:-1], dtype=np.int64) if len(scopes.num_states) else np.empty(0, dtype=np.int64)
        kept[state_start[:-1][left == 0]] = True
        left = np.maximum(left, 1)
        entries, table_start = plans.kept_entries(kept, state_start, *scopes)
        used = left[scopes.variables] > 1
        factor_of = np.repeat(np.arange(scopes.num_factors), np.diff(scopes.start))
        arity = np.bincount(factor_of[used], minlength=scopes.num_factors)
        return cls(Scopes(left, offsets(arity), scopes.variables[used], table_start), np.flatnonzero(kept), entries)


def _whole(values: Floats, places: Integers, size: int) -> Floats:
    """Values of what is left, at their places among everything; 0 elsewhere, the probability of what was cut, or nan where Z = 0."""
    out = np.full(size, np.nan if np.isnan(values).any() else 0.0)
    out[places] = values
    return out


def memory_allowed(memory: int | None) -> int:
    """Bytes that a run may take: `memory`, or a share of what the machine (or its container) has free."""
    if memory is not None:
        return memory
    free = 2**32
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
        if limit != "max":
            free = min(free, int(limit) - int(used))
    except OSError:
        if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names and free == 2**32:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(MEMORY_SHARE * max(free, 0))


def _too_wide(width: int, num_bytes: int, allowed: int | None, *, at_least: bool = False) -> TooWideError:
    more = "at least " if at_least else ""
    limit = f"{memory_allowed(allowed):,}"
    return TooWideError(
        f"exact inference needs {more}{num_bytes:,} bytes (width {more}{width}), and {limit} are allowed: clamp or condition on some variables, "
        "use the bounds of trw and mean_field instead, or allow more with memory=",
        width=width,
        num_bytes=num_bytes,
    )
