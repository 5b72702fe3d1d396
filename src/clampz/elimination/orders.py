"""Elimination orders: in which order variables are summed out, and what that costs in table entries."""

import math
from typing import Any, NamedTuple

import numpy as np

from clampz._kernels import elimination_order as orders
from clampz._kernels import graph
from clampz.numerics import Floats, Integers
from clampz.watch import NEVER, Watch, run_on

# Greedy rules (by_fill, by_size, noise) of `greedy_order`: min-fill and min-size, ties broken by the other, then
# min-fill with random ties and with more or less noise, over and over.  On random graphs and grids of 25 to 120
# variables these found the cheapest orders most often.
FIRST_RULES = [(1.0, 1e-3, 0.0), (1e-3, 1.0, 0.0)]
RANDOM_RULES = [(1.0, 1e-3, 0.9), (1.0, 1e-3, 3.0), (1.0, -0.5, 2.0)]
# Try further orders while the words of bits read (about 3 ns each) are fewer than this times the table entries of the
# best (about 4 ns each): at least MIN_WORK of them, a tenth of a millisecond, at most MAX_WORK, a second, and less
# where the tables fit no machine and only the error message gains.
ORDER_SHARE = 0.2
MIN_WORK = 3e4
MAX_WORK = 5e8
HUGE_ENTRIES = 2.0**40
WORK_IF_HUGE = 1e7
# Of a graph with more variables than LARGE_GRAPH, a PART is looked at first.
LARGE_GRAPH, PART = 2**16, 2**14
# At most, and about: for each variable that is eliminated on lists, and each word of bits that is read.
SECONDS_PER_EARLY, SECONDS_PER_WORD = 3e-6, 1e-9
# No order with more table entries than this is completed.
HOPELESS_ENTRIES = 2.0 ** (orders.HOPELESS + 1)


class Order(NamedTuple):
    """An elimination order with its cost: the entries of all tables over a variable and what it is connected to when it
    is eliminated, and the logarithm of the largest.

    `total` is inf, and the order incomplete, where every order found has a table that fits no machine.
    """

    variables: Integers
    total: float
    log2_largest: float


def find_order(num_states: Integers, start: Integers, neighbour: Any, watch: Watch | None = None) -> Order:
    """The cheapest of several greedy orders: min-fill, min-size and randomised mixtures, as many as the predicted time
    of the sums justifies, and the watch allows."""
    log_states = np.log2(num_states)
    # Variables of degree 2 may go first only where all have as many states: then some best order does so.
    max_degree = 2 if len(num_states) == 0 or (num_states == num_states[0]).all() else 1
    early, begin, count, pool, early_total, largest = _lists_first(
        log_states, start, neighbour, max_degree, math.inf, watch
    )
    if math.isinf(early_total):
        return Order(early, math.inf, largest)
    is_left = np.ones(len(num_states), dtype=np.bool_)
    is_left[early] = False
    rest = np.flatnonzero(is_left)
    if not rest.size:
        return Order(early, early_total, largest)
    rows = orders.bit_rows(rest, begin, count, pool)
    states = log_states[rest]
    best = Order(early, math.inf, math.inf)
    work = 0
    attempt = 0
    while True:
        rules = FIRST_RULES if attempt < len(FIRST_RULES) else RANDOM_RULES
        rule = rules[attempt % len(rules)]
        found, total, log2_largest, perfect, cost = _greedy(
            rows, states, rule, attempt, min(best.total, HOPELESS_ENTRIES), watch
        )
        work += cost
        if total < best.total:
            best = Order(np.concatenate([early, rest[found]]), total, max(largest, log2_largest))
        elif math.isinf(best.total):
            best = Order(early, math.inf, min(best.log2_largest, log2_largest))
        allowed = max(MIN_WORK, min(ORDER_SHARE * best.total, MAX_WORK)) if best.total < HUGE_ENTRIES else WORK_IF_HUGE
        enough = perfect or (work > allowed and attempt + 1 >= len(FIRST_RULES))
        if enough or (watch is not None and watch.must_stop()):
            return best._replace(total=best.total + early_total)
        attempt += 1


def elimination_entries(
    edges: Integers, log_states: Floats, variables: Integers, limit: float, watch: Watch | None = None
) -> float:
    """Table entries that eliminating these variables makes, by min-fill; inf from `limit` on, or where the watch was
    over first.  Quick: one order, and given up early."""
    size = len(variables)
    place = np.empty(len(log_states), dtype=np.int32)
    place[variables] = np.arange(size)
    start, neighbour, _ = graph.neighbour_lists(size, np.ascontiguousarray(place[edges]))
    rest, begin, count, states = np.arange(size), start[:-1], np.diff(start), log_states[variables]
    total: float = 0.0
    if size > orders.DENSE_LIMIT:
        early, begin, count, neighbour, total, _ = _lists_first(states, start, neighbour, 1, limit, watch)
        if math.isinf(total):
            return total
        rest = np.delete(rest, early)
        states = states[rest]
    rows = orders.bit_rows(rest, begin, count, neighbour)
    found: float = _greedy(rows, states, FIRST_RULES[0], 0, limit - total, watch)[1]
    return total + found


def _lists_first(
    log_states: Floats, start: Integers, neighbour: Any, max_degree: int, limit: float, watch: Watch | None
) -> Any:
    """What `low_degrees_first` returns: the variables that go first, so that what is left is small enough for a matrix
    of bits.  Where a part of a large graph is too wide already, so is the whole, and no more of it is looked at."""
    n = len(log_states)
    if n > LARGE_GRAPH:
        part, among_start, among = orders.around(start, neighbour, int(np.argmax(np.diff(start))), PART)
        found = orders.low_degrees_first(among_start, among, log_states[part], max_degree, 0, limit, NEVER)
        if math.isinf(found[4]):
            return found
    expected = n * SECONDS_PER_EARLY
    return run_on(
        watch, expected, orders.low_degrees_first, start, neighbour, log_states, max_degree, orders.DENSE_LIMIT, limit
    )


def _greedy(
    rows: Any, log_states: Floats, rule: tuple[float, float, float], seed: int, limit: float, watch: Watch | None
) -> Any:
    """What `greedy_order` returns."""
    size, words = rows.shape
    expected = SECONDS_PER_WORD * size * words * min(size, orders.HOPELESS) ** 2
    return run_on(watch, expected, orders.greedy_order, rows, log_states, *rule, seed, limit)
