"""The pass forwards: every message, and log Z.  `elimination_steps` has the equations and the arrays."""

import numpy as np

from clampz._kernels import simd_math
from clampz._kernels.elimination import steps as shared
from clampz._kernels.elimination.steps import BELOW_ZERO, LOG_ZERO, PIECE, reducing
from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.statuses import DONE, STOPPED

# exp(-600) times the largest table still leaves normal numbers: as long as no product can span more, none underflows to
# a false zero.
LINEAR_RANGE = 600.0
# Roundings that each absolute term is charged for: the polynomial exp and log are off by 2.5 units, and a term takes
# part in a product and a sum.
ROUNDINGS_PER_TERM = 5.0

# Z = 0; and numbers that scaled tables cannot hold.
EMPTY, OUT_OF_RANGE = 2, 3


@reducing
def extremes(values, zero):
    """The largest entry, and the smallest above `zero`."""
    high = zero
    low = 1e300
    for i in range(values.size):
        high = max(high, values[i])
        low = min(low, values[i] if values[i] > zero else 1e300)
    return high, low


@inline
def _finish(out, logs, cancel_flag):
    """Scale a message so that its largest entry is 1.  Returns the largest entry as it was and the smallest above zero;
    leaves early, piece by piece, once the flag is raised."""
    zero = BELOW_ZERO if logs is not None else 0.0
    high = zero
    low = 1e300
    for begin in range(0, out.size, PIECE):
        if cancel_flag[0] != 0:
            break
        piece_high, piece_low = extremes(out[begin : begin + PIECE], zero)
        high = max(high, piece_high)
        low = min(low, piece_low)
    shrink = 1.0 / high
    for begin in range(0, out.size, PIECE):
        if cancel_flag[0] != 0 or high <= zero:
            break
        piece = out[begin : begin + PIECE]
        if logs is not None:
            for i in range(piece.size):
                piece[i] -= high
        else:
            for i in range(piece.size):
                piece[i] *= shrink
    return high, low


@part
def scale_factors(values, factors, logs, store, spread, cancel_flag):
    """Write each table divided by its maximum into the store, until the flag is raised.

    Returns the sum of the log maxima, what it lost to rounding, and the sum of all absolute terms; -inf where a table
    is zero.
    """
    total = 0.0
    carry = 0.0
    terms = 0.0
    for f in range(factors.size - 1):
        if cancel_flag[0] != 0:
            break
        high = -np.inf
        low = np.inf
        for t in range(factors[f].table, factors[f + 1].table):
            high = max(high, values[t])
            if values[t] > -np.inf:
                low = min(low, values[t])
        if high == -np.inf:
            return -np.inf, 0.0, 0.0
        spread[f] = high - low
        carry += simd_math.lost_in_sum(total, high)
        total += high
        terms += abs(high) + spread[f] + 2.0
        for t in range(factors[f].table, factors[f + 1].table):
            if logs is not None:
                store[t] = values[t] - high if values[t] > -np.inf else LOG_ZERO
            else:
                store[t] = simd_math.exp(max(values[t] - high, -simd_math.EXP_LIMIT)) if values[t] > -np.inf else 0.0
    return total, carry, terms


@inline
def _reach(plan, k, spread):
    """How far apart the logarithms of positive entries of psi_k can be."""
    reach = 0.0
    f = plan.steps[k].factor
    while f >= 0:
        reach += spread[f]
        f = plan.factors[f].following
    for p in range(plan.steps[k].begin, plan.steps[k + 1].begin):
        f = plan.axes[p].factor
        while f >= 0:
            reach += spread[f]
            f = plan.factors[f].following
    for j in range(plan.steps[k].operand, plan.steps[k + 1].operand):
        reach += spread[plan.operands[j].source]
    return reach


@inline
def _log_sum_exp(rows, num_states, target):
    """target[i] = log sum_x exp(rows[x, i])."""
    size = target.size
    for i in range(size):
        target[i] = rows[i]
    for x in range(1, num_states):
        row = rows[x * size : (x + 1) * size]
        for i in range(size):
            target[i] = max(target[i], row[i])
    total = rows[:size]
    for i in range(size):
        total[i] = simd_math.exp(max(total[i] - target[i], -simd_math.EXP_LIMIT))
    for x in range(1, num_states):
        row = rows[x * size : (x + 1) * size]
        for i in range(size):
            total[i] += simd_math.exp(max(row[i] - target[i], -simd_math.EXP_LIMIT))
    for i in range(size):
        target[i] += simd_math.log(total[i])


@kernel
def forwards(plan, values, store, spread, scale, scratch, logs, cancel_flag):
    """All messages, from the log tables `values`.  Returns a status, log Z, and the sum of absolute terms that bounds
    its rounding error.

    OUT_OF_RANGE: scaled tables might underflow; EMPTY: Z = 0; STOPPED: the flag was raised.
    """
    rows = scratch.rows
    num_factors = plan.factors.size - 1
    total, carry, terms = scale_factors(values, plan.factors, logs, store, spread, cancel_flag)
    if total == -np.inf:
        return EMPTY, -np.inf, 0.0
    for k in range(plan.steps.size - 1):
        num_states = plan.steps[k].states
        out = store[plan.steps[k].message : plan.steps[k + 1].message]
        lo_size, hi_size = shared.sizes(plan, k)
        reach = _reach(plan, k, spread)
        # an entry is a product of that many factors, each a rounding; of logarithms, each as large as their reach
        products = plan.steps[k + 1].begin - plan.steps[k].begin + plan.steps[k + 1].operand - plan.steps[k].operand
        terms += reach * (1.0 + products / ROUNDINGS_PER_TERM) + products + num_states
        if reach > LINEAR_RANGE and logs is None:
            return OUT_OF_RANGE, 0.0, 0.0
        shared.fill_products(plan, store, k, scratch, logs)
        shared.enter(plan, k, lo_size, scratch)
        for h in range(hi_size):
            if cancel_flag[0] != 0:
                return STOPPED, 0.0, 0.0
            shared.fill_rows(plan, store, k, h, hi_size, lo_size, scratch, logs)
            target = out[h * lo_size : (h + 1) * lo_size]
            if logs is not None:
                _log_sum_exp(rows, num_states, target)
            else:
                for i in range(lo_size):
                    target[i] = rows[i]
                for x in range(1, num_states):
                    row = rows[x * lo_size : (x + 1) * lo_size]
                    for i in range(lo_size):
                        target[i] += row[i]
            shared.advance(plan, k, scratch)
        high, low = _finish(out, logs, cancel_flag)
        if cancel_flag[0] != 0:
            return STOPPED, 0.0, 0.0
        if high <= (BELOW_ZERO if logs is not None else 0.0):
            return EMPTY, -np.inf, 0.0
        scale[k] = high
        spread[num_factors + k] = high - low if logs is not None else np.log(high / low)
        log_high = high if logs is not None else np.log(high)
        carry += simd_math.lost_in_sum(total, log_high)
        total += log_high
        terms += abs(log_high)
    return DONE, total + carry, terms
