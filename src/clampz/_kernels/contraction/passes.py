"""Both passes of a contraction: factors into the arena, step after step, and marginals out of it.  `contraction_steps`
has the arrays."""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels import simd_math
from clampz._kernels.contraction.steps import axes_of, step
from clampz._kernels.elimination.forward_pass import EMPTY, LINEAR_RANGE, OUT_OF_RANGE, extremes
from clampz._kernels.elimination.steps import BELOW_ZERO, LOG_ZERO, PIECE
from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.statuses import DONE, STOPPED

# What the steps of a sum add up: the sum of logarithms and what it lost to rounding, the sum of absolute terms that
# bounds its rounding error, and powers of two beside it.
TOTAL, CARRY, TERMS, EXPONENTS = 0, 1, 2, 3
# A step that one thread makes alone.
WHOLE = (0, 1)
# What a product may lose to underflow, whose factors are at most 1 together; what an entry of a table may have lost of
# the largest; and how many times as large as that an entry of a marginal is, at least.  And the largest entry of a
# table, at least: the scales of two are a number together.
UNDERFLOW, MOST_LOST, CLEARLY, LEAST = 1e-300, 1e-30, 1e16, 1e-140


class Arena(NamedTuple):
    """Working memory of one thread: as in `steps`."""

    tables: Any
    scale: Any
    spread: Any
    lost: Any


@inline
def _next(digit, places, shape):
    """The next entry of a table, last axis fastest: how far it is from this one where the table is laid out."""
    moved = 0
    for p in range(digit.size - 1, -1, -1):
        digit[p] += 1
        if digit[p] < shape[p]:
            return moved + places[p]
        moved -= (shape[p] - 1) * places[p]
        digit[p] = 0
    return moved


@part
def _walk_factor(plan, factors, f):
    """For each variable of a factor in the order given: a digit that counts its states, where the next one lies in the
    arena, and its states."""
    begin = factors.start[f]
    count = factors.start[f + 1] - begin
    digit = np.zeros(count, dtype=np.int64)
    places = np.empty(count, dtype=np.int64)
    shape = np.empty(count, dtype=np.int64)
    for p in range(count):
        shape[p] = factors.num_states[factors.variables[begin + p]]
        stride = 1
        for q in range(plan.start[f + 1] - 1, plan.start[f] - 1, -1):
            if plan.axes[q] == factors.variables[begin + p]:
                places[p] = stride
            stride *= factors.num_states[plan.axes[q]]
    return digit, places, shape


@part
def _fill_factors(plan, factors, values, arena, logs, cancel_flag):
    """Write each factor, divided by its maximum, into the arena.

    Returns the sum of the log maxima, what it lost to rounding, and the sum of all absolute terms; -inf where a table
    is zero, and nan where one is beyond what numbers can span.
    """
    tables, scale, spread, lost = arena.tables, arena.scale, arena.spread, arena.lost
    total = 0.0
    carry = 0.0
    terms = 0.0
    for f in range(plan.num_factors):
        if cancel_flag[0] != 0:
            break
        high = -np.inf
        low = np.inf
        for t in range(factors.table_start[f], factors.table_start[f + 1]):
            high = max(high, values[t])
            if values[t] > -np.inf:
                low = min(low, values[t])
        if high == -np.inf:
            return -np.inf, 0.0, 0.0
        scale[f] = 1.0
        spread[f] = high - low
        lost[f] = 0.0
        if spread[f] > LINEAR_RANGE and logs is None:
            return np.nan, 0.0, 0.0
        carry += simd_math.lost_in_sum(total, high)
        total += high
        terms += abs(high) + spread[f] + 2.0
        digit, places, shape = _walk_factor(plan, factors, f)
        at = factors.table_start[f]
        for t in range(factors.table_start[f], factors.table_start[f + 1]):
            if logs is not None:
                tables[at] = values[t] - high if values[t] > -np.inf else LOG_ZERO
            else:
                tables[at] = simd_math.exp(max(values[t] - high, -simd_math.EXP_LIMIT)) if values[t] > -np.inf else 0.0
            at += _next(digit, places, shape)
    tables[factors.table_start[plan.num_factors]] = 0.0 if logs is not None else 1.0
    scale[scale.size - 1] = 1.0
    spread[spread.size - 1] = 0.0
    lost[lost.size - 1] = 0.0
    return total, carry, terms


@kernel
def measure(table, logs, cancel_flag):
    """The largest entry, and the smallest above zero."""
    zero = BELOW_ZERO if logs is not None else 0.0
    high = zero
    low = 1e300
    for begin in range(0, table.size, PIECE):
        if cancel_flag[0] != 0:
            break
        piece_high, piece_low = extremes(table[begin : begin + PIECE], zero)
        high = max(high, piece_high)
        low = min(low, piece_low)
    return high, low


@part
def _num_terms(plan, k, num_states, lists):
    """How many products step k, which was the last, adds up for each entry."""
    terms = 1.0
    for side in range(1, 3):
        begin, end = axes_of(plan, plan.steps[k], side)
        for p in range(begin, end):
            v = plan.axes[p]
            if lists.stride[0, v] == 0 and (side == 1 or lists.stride[1, v] == 0):
                terms *= num_states[v]
    return terms


@part
def _fill_belief(plan, factors, f, adjoint_at, tables, lost, beliefs, logs):
    """The marginal of a factor: its table times its adjoint.  False where one of its entries may be no more than what
    was lost to underflow."""
    begin, end = factors.table_start[f], factors.table_start[f + 1]
    high = 0.0
    if logs is not None:
        high = LOG_ZERO
        for i in range(end - begin):
            high = max(high, tables[begin + i] + tables[adjoint_at + i])
    digit, places, shape = _walk_factor(plan, factors, f)
    at = 0
    total = 0.0
    for t in range(begin, end):
        if logs is not None:
            value = tables[begin + at] + tables[adjoint_at + at] - high
            beliefs[t] = simd_math.exp(value) if value > -simd_math.EXP_LIMIT else 0.0
        else:
            beliefs[t] = tables[begin + at] * tables[adjoint_at + at]
            if lost > 0.0 and tables[begin + at] > 0.0 and beliefs[t] < CLEARLY * lost:
                return False
        total += beliefs[t]
        at += _next(digit, places, shape)
    for t in range(begin, end):
        beliefs[t] /= total
    return True


@kernel
def begin(plan, factors, values, arena, beliefs, ledger, logs, cancel_flag):
    """The factors, from the log tables `values`, and what they bring into the ledger; a status as that of `go_on`."""
    total, carry, terms = _fill_factors(plan, factors, values, arena, logs, cancel_flag)
    ledger[TOTAL], ledger[CARRY], ledger[TERMS], ledger[EXPONENTS] = total, carry, terms, 0.0
    if total == -np.inf:
        return EMPTY
    if np.isnan(total):
        return OUT_OF_RANGE
    for f in range(plan.num_factors if beliefs.size > 0 else 0):
        if factors.table_start[f + 1] - factors.table_start[f] == 1:
            beliefs[factors.table_start[f]] = 1.0  # perhaps of no variables, and then no step will write it
    return DONE


@kernel
def go_on(plan, factors, sizes, arena, lists, blocks, beliefs, ledger, first, last, made, logs, cancel_flag):
    """Steps `first` to `last`; the marginals of factors go into `beliefs` where there are steps back.  The first may
    have been made already: its additions, and the largest and smallest entry of its table, are `made` then.

    What entries lose to underflow is bounded step by step: a sum of `terms` products, of numbers of at most 1 each, is
    off by `terms` times what both have lost and a product loses.

    Returns OUT_OF_RANGE: scaled tables might lose too much; EMPTY: Z = 0; STOPPED: the flag was raised; or DONE.
    """
    tables, scale, spread, lost = arena.tables, arena.scale, arena.spread, arena.lost
    num_nodes = plan.num_nodes
    zero = BELOW_ZERO if logs is not None else 0.0
    for k in range(first, last):
        now = plan.steps[k]
        reach = spread[now.first] + spread[now.second]
        forwards = now.out < num_nodes
        counted = forwards and now.again == 0
        node = now.out if forwards else now.out - num_nodes
        table = tables[now.out_at : now.out_at + sizes[node]]
        if k == first and made.size > 0:
            added, high, low = made[0], made[1], made[2]
        else:
            added = step(plan, k, factors.num_states, tables, scale, lists, blocks, WHOLE, logs, cancel_flag)
            high, low = measure(table, logs, cancel_flag)
        if cancel_flag[0] != 0:
            return STOPPED
        off = 0.0
        if logs is None:
            off = 2.0 * (lost[now.first] + lost[now.second]) + (UNDERFLOW if reach > LINEAR_RANGE else 0.0)
            off *= _num_terms(plan, k, factors.num_states, lists) if off > 0.0 else 1.0
            if off > MOST_LOST * high or 0.0 < high < LEAST:
                return OUT_OF_RANGE
        if high <= zero:
            return EMPTY
        log_high = 0.0
        if logs is not None:
            for i in range(table.size):
                table[i] -= high
            scale[now.out] = 1.0
            spread[now.out] = high - low
            log_high = high
        else:
            lost[now.out] = off / high
            spread[now.out] = np.log(high / low)
            if plan.start[node] == plan.start[node + 1]:  # a number, all of which is counted now
                scale[now.out] = 1.0 / high
                log_high = np.log(high)
            else:
                exponent = int(np.ceil(np.log2(high)))
                scale[now.out] = 2.0 ** (-exponent)
                if counted:
                    ledger[EXPONENTS] += exponent
        if counted:
            ledger[CARRY] += simd_math.lost_in_sum(ledger[TOTAL], log_high)
            ledger[TOTAL] += log_high
            # each entry is a sum of that many products; of logarithms, each as large as their reach
            ledger[TERMS] += added + 3.0 + abs(log_high) + (2.0 * reach if logs is not None else 0.0)
        if not forwards and node < plan.num_factors:
            if logs is None and spread[node] + spread[now.out] > LINEAR_RANGE:
                off += UNDERFLOW
            if not _fill_belief(plan, factors, node, now.out_at, tables, off, beliefs, logs):
                return OUT_OF_RANGE
    return DONE


@kernel
def fill_marginals(factors, home, beliefs, state_start, marginals):
    """Write every variable's marginal from the belief of its factor `home`; without a factor it is uniform."""
    for v in range(home.size):
        size = factors.num_states[v]
        begin = state_start[v]
        f = home[v]
        for x in range(size):
            marginals[begin + x] = 1.0 / size if f < 0 else 0.0
        if f < 0:
            continue
        inside = 1
        for p in range(factors.start[f + 1] - 1, factors.start[f] - 1, -1):
            if factors.variables[p] == v:
                break
            inside *= factors.num_states[factors.variables[p]]
        for t in range(factors.table_start[f + 1] - factors.table_start[f]):
            marginals[begin + t // inside % size] += beliefs[factors.table_start[f] + t]
