"""Presolve: the flat arrays that all rules work on.

Tables lie in one pool of logarithms, -inf for a hard zero: first the unary tables of all variables, then those of the
factors, row-major in the order of their slots, cut down in place as states and axes go.  A slot is a place for a
variable in the scope of a factor; an empty one (variable -1) is an axis of length one.  The slots of a variable are two
lists, those in factors of two variables and those in larger ones, so that a search for a larger scope does not pass by
a thousand edges.

Nothing that the postsolve needs is written over: a factor that a sum has used up keeps its table, and a state that goes
leaves the time at which it went, so that the states of a variable at any time can be told.

variables, factors, slots, states, record   records, see below
table    (entries,)  the tables end to end
numbers  (...,)      of sums: the factors that they used up, then the variables of what they left; of variables that are
                     functions of others: the state for each state of the other
scratch  (6, ...)    integers for walks over tables
count, total         numbers and sums, by the names below; `total` ends with scratch for a state of a variable each
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.records import record
from clampz._kernels.simd_math import lost_in_sum

# What became of a variable: it is there; it has one state left; it is a function of another; it is summed out.
STAYS, FIXED, EQUAL, SUMMED = 0, 1, 2, 3
# The time of what has not happened.
NEVER = 2**31 - 1

# Variables of a table that a sum may leave: NumPy's arrays had no more axes for long.
MOST_AXES = 32
# Factors that a sum may use up.
MOST_PARTS = 64


# One record per variable:
#   first, last          where its states begin and end in `states`; its unary table begins at the same place of `table`
#   map                  of a function of another: where in `numbers`
#   states, keep         how many states it has now; whether it must stay
#   fate, to             what became of it: FIXED to a state, EQUAL to a function of a variable, SUMMED by a sum
#   by                   the factor that makes it a function of another
#   time, left           when it left, and as which
#   edges, larger        its first slot in a factor of two variables, and in a larger one; num_edges, num_larger of them
#   mark, axis           scratch: whether it is in a scope, and where in a table
#   shrinks, waits       whether it is in the lists of those whose states have become fewer, or that may be summed out
# and, nothing to do with it, place k of three lists: the order of leaving, and these two.
VARIABLE = record(
    i8="first last map",
    i4="states keep fate to by time left edges larger num_edges num_larger mark axis shrinks waits order shrink ring",
)
# One record per factor:
#   table, size          its table
#   begin, end, arity    its slots, and how many of them hold a variable
#   into                 the factor that it is part of now, or -1
#   alive, zeros         whether it is there, and has hard zeros
#   pinned, alone        whether its scope must stay together; whether no other is known to be around it
#   supports, shapes     whether it is in the lists of those that may support fewer states, or whose shape has changed
# and, nothing to do with it, place k of these two lists.
FACTOR = record(i8="table size", i4="begin end arity into support shape", i1="alive zeros pinned alone supports shapes")
# One record per slot: its variable, or -1; its factor; its neighbours in the list of its variable, or -1.
SLOT = record(i4="variable factor following before")
# One record per state: when it went, or NEVER; the factor that has no support for it, or -1.
STATE = record(i4="gone reason")
# One record per sum: its variable; entries of what it left; where its factors begin in `numbers`, and where its other
# variables begin and end.
SUM = record(i8="variable size parts axes end")

# Places in `count`.  FIRST_SHAPE, RING: where these two lists begin, which go round; WIDEST: entries of the largest
# table; IMPOSSIBLE, BY: a variable without a state, and the factor that shows it; PAIRWISE, PINS, MAXIMUM: what is
# wanted.
CLOCK, FACTORS, SLOTS, ENTRIES, SUMS, NUMBERS, LEFT, STAMP, WORK = range(9)
SUPPORTS, FIRST_SHAPE, SHAPES, SHRINKS, RING, WAITING, WIDEST, IMPOSSIBLE, BY = range(9, 18)
STATES_GONE, AXES_GONE, CONSTANTS, CONTAINED, PAIRWISE, PINS, MAXIMUM = range(18, 25)
NUM_COUNTS = 25
# Places in `total`: the constant, what it lost to rounding, the error made so far; then scratch.
CONSTANT, LOST, ERROR, ROW = range(4)
# The row of `scratch` that holds a function.
IMAGE = 5


class Pools(NamedTuple):
    """The arrays described above."""

    variables: Any
    factors: Any
    slots: Any
    states: Any
    table: Any
    record: Any
    numbers: Any
    scratch: Any
    count: Any
    total: Any


@part
def add_constant(pools, value):
    """Add to the constant, carrying along what rounding loses."""
    total = pools.total
    total[LOST] += lost_in_sum(total[CONSTANT], value)
    total[CONSTANT] += value


# -- lists of slots ----------------------------------------------------------------------------------------------------


@part
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


@part
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


@part
def link_all(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            link(pools, s)


@part
def unlink_all(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            unlink(pools, s)


@part
def retire_factor(pools, f, into):
    """Mark a factor as part of factor `into`, or of the constant and unary tables (-1)."""
    unlink_all(pools, f)
    pools.factors[f].alive = 0
    pools.factors[f].into = into


@part
def empty_slot(pools, s):
    """Remove the variable of a slot from its factor, whose axis is of length one by now or cut out already."""
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


@part
def wait_for_support(pools, f):
    """Queue a factor with hard zeros for the search of unsupported states."""
    factor = pools.factors[f]
    if factor.alive and factor.zeros and not factor.supports:
        factor.supports = 1
        pools.factors[pools.count[SUPPORTS]].support = f
        pools.count[SUPPORTS] += 1


@part
def wait_for_shape(pools, f):
    """Queue a factor whose scope or table has changed for factor reduction."""
    factor = pools.factors[f]
    if factor.alive and not factor.shapes:
        factor.shapes = 1
        pools.factors[(pools.count[FIRST_SHAPE] + pools.count[SHAPES]) % pools.factors.size].shape = f
        pools.count[SHAPES] += 1


@part
def wait_to_shrink(pools, v):
    """Queue a variable that has lost a state, and its factors, which may support fewer states of others."""
    variable = pools.variables[v]
    if not variable.shrinks:
        variable.shrinks = 1
        pools.variables[pools.count[SHRINKS]].shrink = v
        pools.count[SHRINKS] += 1
    for head in (variable.edges, variable.larger):
        s = head
        while s >= 0:
            wait_for_support(pools, pools.slots[s].factor)
            s = pools.slots[s].following


@part
def wait_for_sum(pools, v):
    """Queue a variable for summing out, unless it must be kept."""
    variable = pools.variables[v]
    if not variable.waits and not variable.keep and variable.fate == STAYS:
        variable.waits = 1
        n = pools.variables.size
        place = pools.count[RING] + pools.count[WAITING]
        pools.variables[place if place < n else place - n].ring = v
        pools.count[WAITING] += 1


@part
def neighbours_wait_for_sum(pools, f):
    for s in range(pools.factors[f].begin, pools.factors[f].end):
        if pools.slots[s].variable >= 0:
            wait_for_sum(pools, pools.slots[s].variable)


@part
def record_exit(pools, v, fate, to):
    """Record that a variable leaves the model, why, and when."""
    variable = pools.variables[v]
    variable.fate = fate
    variable.to = to
    variable.time = pools.count[CLOCK]
    variable.left = pools.count[LEFT]
    pools.variables[variable.left].order = v
    pools.count[LEFT] += 1


@kernel
def begin(pools, cancel_flag):
    """Link all slots, and queue all variables and factors for the rules that may apply. Does nothing more once the flag
    is raised. No two scopes are the same."""
    for f in range(pools.count[FACTORS]):
        if cancel_flag[0] != 0:
            return
        link_all(pools, f)
    for f in range(pools.count[FACTORS]):
        if cancel_flag[0] != 0:
            return
        factor = pools.factors[f]
        for t in range(factor.table, factor.table + factor.size):
            if pools.table[t] == -np.inf:
                factor.zeros = 1
                break
        for s in range(factor.begin, factor.end):
            if factor.arity == 2 and pools.variables[pools.slots[s].variable].num_larger == 0:
                factor.alone = 1
        pools.count[WIDEST] = max(pools.count[WIDEST], factor.size)
        wait_for_support(pools, f)
        wait_for_shape(pools, f)
    for v in range(pools.variables.size):
        if cancel_flag[0] != 0:
            return
        wait_for_sum(pools, v)
        variable = pools.variables[v]
        shrinks = variable.states == 1
        for place in range(variable.first, variable.last):
            shrinks |= pools.table[place] == -np.inf
        if shrinks:
            wait_to_shrink(pools, v)
