"""Simplifying: what all of its rules work on, as a few flat arrays.

Tables lie in one pool of logarithms, -inf for a hard zero: first the unary tables of all variables, then those of the
factors, row-major in the order of their slots, cut down in place as states and axes go.  A slot is a place for a
variable in the scope of a factor; an empty one (variable -1) is an axis of length one.  The slots of a variable are two
lists, those in factors of two variables and those in larger ones, so that a search for a larger scope does not pass by
a thousand edges.

Nothing that the way back needs is written over: a factor that a sum has used up keeps its table, and a state that goes
leaves the time at which it went, so that the states of a variable at any time can be told.

variables, factors, slots   records, see below
first      (n + 1,)  where the states of each variable begin, as the model numbers them; its unary table begins there
gone       (S,)      when a state went, NEVER while it is there
reason     (S,)      the factor that has no support for it
order      (n,)      the variables that have left, in this order
record, parts, axes  sums: their variable, the factors they used up, the variables of what they left
maps                 of variables that are functions of others: the state for each state of the other
support, shape, shrink, ring   who waits for which rule
scratch    (6, A)    integers for walks over tables; strides (P, A) the same for the parts of a sum; image, row (d,)
count, total         numbers and sums, by the names below
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import kernel
from clampz._kernels.simd_math import lost_in_sum

# What became of a variable: it is there; it has one state left; it is a function of another; it is summed out.
STAYS, FIXED, EQUAL, SUMMED = 0, 1, 2, 3
# The time of what has not happened.
NEVER = 2**31 - 1

# Variables of a table that a sum may leave: NumPy's arrays had no more axes for long.
MOST_AXES = 32
# Factors that a sum may use up.
MOST_PARTS = 64

VARIABLE = np.dtype(
    [(name, np.int32) for name in ("states", "keep", "fate", "to", "time", "edges", "larger")]
    + [(name, np.int32) for name in ("num_edges", "num_larger", "mark", "axis", "shrinks", "waits", "left")]
    + [("map", np.int64)]
)
# begin, end: its slots; arity: how many of them hold a variable; into: the factor that it is part of now, or -1
FACTOR = np.dtype(
    [("table", np.int64), ("size", np.int64)]
    + [(name, np.int32) for name in ("begin", "end", "arity", "into")]
    + [(name, np.int8) for name in ("alive", "pinned", "zeros", "supports", "shapes", "spare")]
    + [("padding", np.int16)]
)
SLOT = np.dtype([(name, np.int32) for name in ("variable", "factor", "following", "before")])
RECORD = np.dtype([(name, np.int64) for name in ("variable", "part", "axis", "size")])

# Places in `count`.
CLOCK, FACTORS, SLOTS, ENTRIES, RECORDS, PARTS, AXES, MAPS, LEFT = 0, 1, 2, 3, 4, 5, 6, 7, 8
SUPPORTS, SHAPES, SHRINKS, RING, WAITING, STAMP, WORK, LARGEST_TABLE = 9, 10, 11, 12, 13, 14, 15, 16
IMPOSSIBLE, BY, STATES_GONE, AXES_GONE, CONSTANTS, CONTAINED, PAIRWISE, PINS, MAXIMUM = 17, 18, 19, 20, 21, 22, 23, 24, 25
NUM_COUNTS = 26
# Places in `total`: the constant, what it lost to rounding, and the error made so far.
CONSTANT, LOST, ERROR = 0, 1, 2

EPS = 2.0**-52


class Pools(NamedTuple):
    """See above."""

    variables: Any
    factors: Any
    slots: Any
    table: Any
    first: Any
    gone: Any
    reason: Any
    order: Any
    record: Any
    parts: Any
    axes: Any
    maps: Any
    support: Any
    shape: Any
    shrink: Any
    ring: Any
    scratch: Any
    strides: Any
    image: Any
    row: Any
    count: Any
    total: Any


@kernel
def add_constant(pools, value):
    """Add to the constant, with what that loses."""
    total = pools.total
    total[LOST] += lost_in_sum(total[CONSTANT], value)
    total[CONSTANT] += value


# -- lists of slots ----------------------------------------------------------------------------------------------------


@kernel
def link(pools, s):
    """Put a slot into the list of its variable."""
    slot = pools.slots[s]
    variable = pools.variables[slot.variable]
    large = pools.factors[slot.factor].arity > 2
    head = variable.larger if large else variable.edges
    slot.before = -1
    slot.following = head
    if head >= 0:
        pools.slots[head].before = s
    if large:
        variable.larger = s
        variable.num_larger += 1
    else:
        variable.edges = s
        variable.num_edges += 1


@kernel
def unlink(pools, s):
    """Take a slot out of the list of its variable; its factor has not yet changed."""
    slot = pools.slots[s]
    variable = pools.variables[slot.variable]
    large = pools.factors[slot.factor].arity > 2
    if slot.following >= 0:
        pools.slots[slot.following].before = slot.before
    if slot.before >= 0:
        pools.slots[slot.before].following = slot.following
    elif large:
        variable.larger = slot.following
    else:
        variable.edges = slot.following
    if large:
        variable.num_larger -= 1
    else:
        variable.num_edges -= 1


@kernel
def link_all(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            link(pools, s)


@kernel
def unlink_all(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            unlink(pools, s)


@kernel
def end_factor(pools, f, into):
    """A factor is part of another now, or of the constant and unary tables (-1)."""
    unlink_all(pools, f)
    pools.factors[f].alive = 0
    pools.factors[f].into = into


@kernel
def empty_slot(pools, s):
    """The factor of this slot has an axis less: it must be of length one by now, or cut out already."""
    f = pools.slots[s].factor
    if pools.factors[f].arity == 3:  # from the lists of larger factors to those of edges
        unlink_all(pools, f)
        pools.slots[s].variable = -1
        pools.factors[f].arity = 2
        link_all(pools, f)
    else:
        unlink(pools, s)
        pools.slots[s].variable = -1
        pools.factors[f].arity -= 1


# -- who waits for which rule ------------------------------------------------------------------------------------------


@kernel
def wait_for_support(pools, f):
    factor = pools.factors[f]
    if factor.alive and factor.zeros and not factor.supports:
        factor.supports = 1
        pools.support[pools.count[SUPPORTS]] = f
        pools.count[SUPPORTS] += 1


@kernel
def wait_for_shape(pools, f):
    factor = pools.factors[f]
    if factor.alive and not factor.shapes:
        factor.shapes = 1
        pools.shape[pools.count[SHAPES]] = f
        pools.count[SHAPES] += 1


@kernel
def wait_to_shrink(pools, v):
    """A state of this variable has become impossible: its factors may support fewer states of others."""
    variable = pools.variables[v]
    if not variable.shrinks:
        variable.shrinks = 1
        pools.shrink[pools.count[SHRINKS]] = v
        pools.count[SHRINKS] += 1
    for head in (variable.edges, variable.larger):
        s = head
        while s >= 0:
            wait_for_support(pools, pools.slots[s].factor)
            s = pools.slots[s].following


@kernel
def wait_for_sum(pools, v):
    variable = pools.variables[v]
    if not variable.waits and not variable.keep and variable.fate == STAYS:
        variable.waits = 1
        n = pools.variables.size
        place = pools.count[RING] + pools.count[WAITING]
        pools.ring[place if place < n else place - n] = v
        pools.count[WAITING] += 1


@kernel
def neighbours_wait_for_sum(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            wait_for_sum(pools, pools.slots[s].variable)


@kernel
def leave(pools, v, fate, to):
    """A variable leaves the model."""
    variable = pools.variables[v]
    variable.fate = fate
    variable.to = to
    variable.time = pools.count[CLOCK]
    variable.left = pools.count[LEFT]
    pools.order[variable.left] = v
    pools.count[LEFT] += 1


@kernel
def begin(pools, num_slots):
    """Link all slots, and have everything wait that a rule might apply to."""
    for s in range(num_slots):
        link(pools, s)
    for f in range(pools.count[FACTORS]):
        factor = pools.factors[f]
        for t in range(factor.table, factor.table + factor.size):
            if pools.table[t] == -np.inf:
                factor.zeros = 1
                break
        pools.count[LARGEST_TABLE] = max(pools.count[LARGEST_TABLE], factor.size)
        wait_for_support(pools, f)
        wait_for_shape(pools, f)
    for v in range(pools.variables.size):
        wait_for_sum(pools, v)
        for place in range(pools.first[v], pools.first[v + 1]):
            if pools.table[place] == -np.inf:
                wait_to_shrink(pools, v)
                break
        if pools.variables[v].states == 1 and not pools.variables[v].shrinks:
            wait_to_shrink(pools, v)
