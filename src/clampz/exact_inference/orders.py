"""Elimination orders: in which order variables are summed out, and what that costs in table entries."""

import itertools
import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz._kernels.bits import bit_rows, row_lists
from clampz._kernels.elimination import dissection as stages
from clampz._kernels.elimination import greedy_order as orders
from clampz._kernels.elimination import low_degrees as lists
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import NEVER, Budget, Flag, run_cancellable

# Greedy rules (by_fill, by_size, noise) of `greedy_order`: min-fill and min-size, ties broken by the other, then
# min-fill with random ties and with more or less noise, over and over.  On random graphs and grids of 25 to 120
# variables these found the cheapest orders most often.
FIRST_RULES = [(1.0, 1e-3, 0.0), (1e-3, 1.0, 0.0)]
RANDOM_RULES = [(1.0, 1e-3, 0.9), (1.0, 1e-3, 3.0), (1.0, -0.5, 2.0)]
# Try further orders while the words of bits read (about 3 ns each) are fewer than this times the table entries of the
# best (about 4 ns each, and less from CONTRACTED_ENTRIES on, as sums are contracted then): at least MIN_WORK of them, a
# tenth of a millisecond, or TINY_SHARE for each entry where these are few, at most MAX_WORK, a fifth of a second, and
# less where the tables fit no machine and only the error message gains.
ORDER_SHARE, CONTRACTED_SHARE, TINY_SHARE = 0.2, 0.05, 64.0
MIN_WORK = 4e4
MAX_WORK = 1e8
# What it takes to ask for an order at all, in words of bits.
WORK_TO_ASK = 1.5e3
# Table entries from which a sum may gain from being contracted in pairs: a few milliseconds, more than a tree takes to
# plan.
CONTRACTED_ENTRIES = 2.0**20
HUGE_ENTRIES = 2.0**40
WORK_IF_HUGE = 1e7
# Orders that follow the shape of the graph are tried beside those where a sum is worth more than MIN_WORK, for so much
# of the work that the others may take; a shape goes on being tried, from other ends of the graph, if its first order
# has at most this many times the table entries of the best.  (Sweeps in bands of one and two levels are best on grids,
# which they sum in tables as wide as the grid where greed makes them 1.3 times as wide; on linkage and diagnosis
# dissections were best, of parts of about a hundred variables.)
SHAPED_SHARE, SHAPED_SLACK = 0.5, 8.0
SWEEPS = (2, 1, 4)
DISSECTIONS = ((100, 0.25), (32, 0.15), (100, 0.35))
# Ends of the graph are looked for far from variables so far apart in number: a prime.
NEXT_END = 7919
# Of a graph with more variables than LARGE_GRAPH, a PART is looked at first.
LARGE_GRAPH, PART = 2**16, 2**14
# At most, and about: for each variable that is eliminated on lists, each word of bits that is read, each neighbour on
# the way through a graph, and each table entry of a sum.
SECONDS_PER_EARLY, SECONDS_PER_WORD, SECONDS_PER_STEP, SECONDS_PER_ENTRY = 3e-6, 1e-9, 3e-9, 4e-9
# No order with more table entries than this is completed.
HOPELESS_ENTRIES = 2.0 ** (orders.HOPELESS + 1)


# For orders that follow no shape.
NO_STAGES: Integers = np.zeros(0, dtype=np.int64)
Rule = tuple[float, float, float]


def _swept(band: int, start: Integers, neighbour: Any, root: int, cancel_flag: Flag) -> tuple[Integers, float]:
    """Return the stages of a sweep, `band` levels at a time, and the work."""
    return stages.sweep(start, neighbour, root) // band, float(stages.ROUNDS * len(neighbour))


def _dissected(
    leaf: int, share: float, start: Integers, neighbour: Any, root: int, cancel_flag: Flag
) -> tuple[Integers, float]:
    """Return the stages of a nested dissection, and the work."""
    stage, work = stages.dissection(start, neighbour, int(orders.HOPELESS), leaf, share, root, cancel_flag)
    return stage, float(work)


# What orders may follow: a function of the graph, and of the variable from which an end of it is looked for.
Shape = Callable[[Integers, Any, int, Flag], tuple[Integers, float]]
SHAPES: list[Shape] = [
    *(partial(_swept, band) for band in SWEEPS),
    *(partial(_dissected, leaf, share) for leaf, share in DISSECTIONS),
]


class EliminationOrder(NamedTuple):
    """An elimination order with its cost: the entries of all tables over a variable and what it is connected to when it
    is eliminated, and the logarithm of the largest.

    `total` is inf, and the order incomplete, where every order found has a table that fits no machine.
    """

    variables: Integers
    total: float
    log2_largest: float


def find_order(num_states: Integers, start: Integers, neighbour: Any, budget: Budget | None = None) -> EliminationOrder:
    """The cheapest of several orders: min-fill, min-size and randomised mixtures, sweeps and nested dissections, as
    many as the predicted time of the sums justifies, and the budget allows."""
    log_states = np.log2(num_states)
    # Variables of degree 2 may go first only where all have as many states: then some best order does so.
    max_degree = 2 if len(num_states) == 0 or (num_states == num_states[0]).all() else 1
    early, begin, count, pool, early_total, largest = _lists_first(
        log_states, start, neighbour, max_degree, math.inf, budget
    )
    if math.isinf(early_total):
        return EliminationOrder(early, math.inf, largest)
    is_left = np.ones(len(num_states), dtype=np.bool_)
    is_left[early] = False
    rest = np.flatnonzero(is_left)
    if not rest.size:
        return EliminationOrder(early, early_total, largest)
    found = _Attempts(bit_rows(rest, begin, count, pool), log_states[rest], budget).best()
    variables = early if math.isinf(found.total) else np.concatenate([early, rest[found.variables]])
    best = EliminationOrder(variables, early_total + found.total, max(largest, found.log2_largest))
    if len(num_states) > orders.DENSE_LIMIT:
        best = _swept_on_lists(log_states, start, neighbour, max_degree, best, budget)
    return best


class _Attempts:
    """Orders of a graph as a matrix of bits."""

    def __init__(self, rows: Any, log_states: Floats, budget: Budget | None) -> None:
        self.rows, self.log_states, self.budget = rows, log_states, budget
        self.found = EliminationOrder(np.empty(0, dtype=np.int64), math.inf, math.inf)
        self.perfect = False
        self.shaped_work = 0.0

    def best(self) -> EliminationOrder:
        """Return the cheapest order of all attempts."""
        work, shapes = 0.0, list[Shape]()
        for attempt in itertools.count():
            rules = FIRST_RULES if attempt < len(FIRST_RULES) else RANDOM_RULES
            rule = rules[attempt % len(rules)]
            work += WORK_TO_ASK + self._greedy(NO_STAGES, rule, attempt)[1]
            if attempt + 1 < len(FIRST_RULES) and not self.perfect:
                continue
            if attempt + 1 == len(FIRST_RULES) and self.allowed > MIN_WORK and not self.perfect:
                shapes = self._shapes_that_suit()
            if self.perfect or work > self.allowed or self._over():
                return self.found
            if shapes and self.shaped_work < SHAPED_SHARE * self.allowed:
                self._shaped(shapes[attempt % len(shapes)], rule, attempt)
        raise AssertionError  # it counts for ever

    @property
    def allowed(self) -> float:
        """Words of bits that may be read for what there is to gain."""
        entries = self.found.total
        if entries >= HUGE_ENTRIES:
            return WORK_IF_HUGE
        swept = min(entries, CONTRACTED_ENTRIES)
        worth = ORDER_SHARE * swept + CONTRACTED_SHARE * (entries - swept)
        return max(min(MIN_WORK, TINY_SHARE * entries), min(worth, MAX_WORK))

    def _over(self) -> bool:
        return self.budget is not None and self.budget.must_stop()

    def _greedy(self, stage: Integers, rule: Rule, seed: int, slack: float = 1.0) -> tuple[float, float]:
        """Try an order, and keep it if it is the best; its table entries, inf where they are `slack` times as many as
        the best order has, and the work."""
        limit = min(slack * self.found.total, HOPELESS_ENTRIES)
        greedy = self.rows, self.log_states, stage, *rule, seed, limit
        found = run_cancellable(self.budget, _greedy_seconds(self.rows), orders.greedy_order, *greedy)
        variables, total, log2_largest, perfect, work = found
        # with no edge added, even if it was given up: its tables so far arise in every order
        self.perfect = perfect
        if total < self.found.total:
            self.found = EliminationOrder(variables, total, log2_largest)
        elif math.isinf(self.found.total) and stage is NO_STAGES:
            self.found = self.found._replace(log2_largest=min(self.found.log2_largest, log2_largest))
        return total, work

    def _shapes_that_suit(self) -> list[Shape]:
        """Return the shapes whose first order is not far from the best."""
        return [
            shape
            for shape in SHAPES
            if self.shaped_work < SHAPED_SHARE * self.allowed
            and not self._over()
            and self._shaped(shape, FIRST_RULES[0], 0, SHAPED_SLACK) < math.inf
        ]

    def _shaped(self, shape: Shape, rule: Rule, seed: int, slack: float = 1.0) -> float:
        """Try an order by the shape of the graph, from an end of it that the seed decides; its table entries."""
        start, neighbour = self.lists
        expected = SECONDS_PER_STEP * len(neighbour) * orders.HOPELESS
        stage, work = run_cancellable(self.budget, expected, shape, start, neighbour, seed * NEXT_END % len(self.rows))
        total, more = self._greedy(stage, rule, seed, slack)
        self.shaped_work += work + more
        return total

    @cached_property
    def lists(self) -> tuple[Integers, Integers]:
        """Neighbour lists of the graph."""
        start, neighbour = row_lists(self.rows)
        return start, neighbour


def _swept_on_lists(
    log_states: Floats, start: Integers, neighbour: Any, max_degree: int, best: EliminationOrder, budget: Budget | None
) -> EliminationOrder:
    """A sweep through all of a large graph, if that is cheaper than the best order so far and worth the look."""
    n = len(log_states)
    if n * SECONDS_PER_EARLY > SHAPED_SHARE * SECONDS_PER_ENTRY * best.total or not best.total < HUGE_ENTRIES:
        return best
    ends = stages.sweep(start, neighbour, 0)
    for band in SWEEPS[:2]:
        work = start, neighbour, log_states, ends // band, max_degree, 0, best.total
        found = run_cancellable(budget, n * SECONDS_PER_EARLY, lists.low_degrees_first, *work)
        variables, *_, total, largest = found
        if total < best.total:
            best = EliminationOrder(variables, total, largest)
    return best


def quick_order(
    edges: Integers,
    log_states: Floats,
    chosen: NDArray[np.bool_],
    limit: float,
    budget: Budget | None = None,
    seed: int = 0,
) -> EliminationOrder:
    """An order of all variables by min-fill: first those that are not chosen, which no edge has and nothing is counted
    for, then those that are; incomplete, and its total inf, where its table entries reach `limit`, or the budget ended
    first.  A seed other than 0 leaves something to chance.  Quick: one order, and given up early."""
    others, variables = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    size = len(variables)
    place = np.empty(len(log_states), dtype=np.int32)
    place[variables] = np.arange(size)
    start, neighbour, _ = graph.neighbour_lists(size, np.ascontiguousarray(place[edges]))
    early, rest = np.empty(0, dtype=np.int64), np.arange(size)
    begin, count, states = start[:-1], np.diff(start), log_states[variables]
    total = largest = 0.0
    if size > orders.DENSE_LIMIT:
        early, begin, count, neighbour, total, largest = _lists_first(states, start, neighbour, 1, float(limit), budget)
        if math.isinf(total):
            return EliminationOrder(np.concatenate([others, variables[early]]), total, largest)
        rest = np.delete(rest, early)
        states = states[rest]
    rows = bit_rows(rest, begin, count, neighbour)
    allowed = min(limit - total, HOPELESS_ENTRIES)
    rule = RANDOM_RULES[0] if seed else FIRST_RULES[0]
    greedy = rows, states, NO_STAGES, *rule, seed, allowed
    found, more, largest_of_rest, *_ = run_cancellable(budget, _greedy_seconds(rows), orders.greedy_order, *greedy)
    rest = rest[found] if more < math.inf else rest[:0]
    in_turn = np.concatenate([others, variables[early], variables[rest]])
    return EliminationOrder(in_turn, total + more, max(largest, largest_of_rest))


def _lists_first(
    log_states: Floats, start: Integers, neighbour: Any, max_degree: int, limit: float, budget: Budget | None
) -> Any:
    """What `low_degrees_first` returns: the variables that go first, so that what is left is small enough for a matrix
    of bits.  Where a part of a large graph is too wide already, so is the whole, and no more of it is looked at."""
    n = len(log_states)
    if n > LARGE_GRAPH:
        part, among_start, among = lists.around(start, neighbour, int(np.argmax(np.diff(start))), PART)
        found = lists.low_degrees_first(among_start, among, log_states[part], NO_STAGES, max_degree, 0, limit, NEVER)
        if math.isinf(found[4]):
            return found
    work = start, neighbour, log_states, NO_STAGES, max_degree, orders.DENSE_LIMIT, limit
    return run_cancellable(budget, n * SECONDS_PER_EARLY, lists.low_degrees_first, *work)


def _greedy_seconds(rows: Any) -> float:
    """What `greedy_order` takes."""
    size, words = rows.shape
    return float(SECONDS_PER_WORD * size * words * min(size, orders.HOPELESS) ** 2)
