"""Bucket elimination on flat arrays: log Z going forwards through the steps of an order, all marginals going back.

Step k sums out one variable x from the product psi_k(x, o) of the factors that contain it and no earlier variable and
of the messages of its children, o being the later variables they mention:

    forwards    m_k(o) = sum_x psi_k(x, o)
    backwards   b_k(x, o) = g_k(o) psi_k(x, o),   g_k(o) = P(o) / m_k(o)   (0 / 0 = 0)

b_k is the true marginal of (x, o); P(o) for a child is b of its parent, summed onto the child's scope.  No table over
(x, o) is ever stored, only the messages.  The axes of o are in the order of the steps, last step fastest, and are split
into `hi`, walked one by one, and `lo`, a block of at most BLOCK entries that fits the first cache and that the inner
loops run over.

    psi_k(x, hi, lo) = A[x, lo] B[x, hi] prod over operands

with the factors of one or two variables in A and B, and child messages and larger factors as operands, each read at
`offset(hi) + x stride + lo`.

store    (T + M,)  factor tables, then messages: scaled to a maximum of 1, or as logarithms with a maximum of 0
beliefs  (T + M,)  factor marginals, then P of each message's scope
spread   (F + n,)  log(largest / smallest positive entry) of factors, then messages
scale    (n,)      what each message was divided by (or its logarithm)
plan, scratch      see elimination_plan
"""

import numpy as np
from numba import njit

from clampz._kernels import simd_math
from clampz._kernels.elimination_plan import CONSTANT, CONTIGUOUS, GATHER
from clampz._kernels.jit import inline, kernel

# exp(-600) times the largest table still leaves normal numbers: as long as no product can span more, none underflows to
# a false zero. Roundings that each absolute term is charged for: the polynomial exp and log are off by 2.5 units, and a
# term takes part in a product and a sum.
ROUNDINGS_PER_TERM = 5.0
LINEAR_RANGE = 600.0
# A hard zero as a logarithm: finite, so that differences of zeros are numbers, and so low that no sum with finite
# potentials leaves its neighbourhood.
LOG_ZERO = -1e200
BELOW_ZERO = -1e190
# Probabilities below are taken as 0, which loses less than 1e-290 of mass; above, they are normal numbers with a
# logarithm.
TINY = 1e-300

DONE, EMPTY, OUT_OF_RANGE = 0, 1, 2

# What `logs` may be.  None has a type of its own, so a kernel is compiled without the other's loops, and for logarithms
# only when they are needed.
SCALED, LOGARITHMS = None, True


# Sums, maxima and minima vectorise only where the compiler may reorder them; nothing here is infinite or nan.
_reducing = njit(nogil=True, error_model="numpy", fastmath={"reassoc", "nnan", "ninf", "nsz", "contract"})


@_reducing
def _sum(values):
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@_reducing
def _tally(row, running):
    """Add a row to a running sum of rows, entry by entry; returns the sum of the row."""
    total = 0.0
    for i in range(row.size):
        running[i] += row[i]
        total += row[i]
    return total


@_reducing
def _extremes(values, zero):
    """The largest entry, and the smallest above `zero`."""
    high = zero
    low = 1e300
    for i in range(values.size):
        high = max(high, values[i])
        low = min(low, values[i] if values[i] > zero else 1e300)
    return high, low


@kernel
def scale_factors(values, factors, logs, store, spread):
    """Write each table divided by its maximum into the store.

    Returns the sum of the log maxima, what it lost to rounding, and the sum of all absolute terms; -inf where a table
    is zero.
    """
    total = 0.0
    carry = 0.0
    terms = 0.0
    for f in range(factors.size - 1):
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


@kernel
def _products(plan, store, k, logs, A, B):
    """A[x, lo] and B[x, hi]: the products of the factors of step k's variable and one axis in lo, or hi, built one axis
    after another.

    Factors of the variable alone are in A.  (One loop for both, so that its body is compiled once.)
    """
    for side in range(2):
        out = A if side == 0 else B
        begin = plan.steps[k].split if side == 0 else plan.steps[k].begin
        end = plan.steps[k + 1].begin if side == 0 else plan.steps[k].split
        size = 1
        for p in range(begin, end):
            size *= plan.axes[p].states
        for x in range(plan.steps[k].states):
            table = out[x * size : (x + 1) * size]
            value = 0.0 if logs is not None else 1.0
            f = plan.steps[k].factor if side == 0 else -1
            while f >= 0:
                entry = store[plan.factors[f].table + x]
                value = value + entry if logs is not None else value * entry
                f = plan.factors[f].following
            table[0] = value
            built = 1
            for p in range(end - 1, begin - 1, -1):
                num_states = plan.axes[p].states
                for a in range(num_states - 1, -1, -1):  # a = 0 last: it overwrites what the others are made from
                    value = 0.0 if logs is not None else 1.0
                    f = plan.axes[p].factor
                    while f >= 0:
                        entry = store[
                            plan.factors[f].table + x * plan.factors[f].stride_x + a * plan.factors[f].stride_a
                        ]
                        value = value + entry if logs is not None else value * entry
                        f = plan.factors[f].following
                    part = table[a * built : (a + 1) * built]
                    if logs is not None:
                        for i in range(built):
                            part[i] = table[i] + value
                    else:
                        for i in range(built):
                            part[i] = table[i] * value
                built *= num_states


@kernel
def _marginals(plan, k, A_sum, B_sum, beliefs):
    """Sum A_sum[x, lo] and B_sum[x, hi] onto the factors that `_products` has in A and B, axis by axis; leaves the
    marginal of x in A_sum[x, 0]."""
    for side in range(2):
        table = A_sum if side == 0 else B_sum
        begin = plan.steps[k].split if side == 0 else plan.steps[k].begin
        end = plan.steps[k + 1].begin if side == 0 else plan.steps[k].split
        size = 1
        for p in range(begin, end):
            size *= plan.axes[p].states
        for x in range(plan.steps[k].states):
            left = size
            part = table[x * size : (x + 1) * size]
            for p in range(begin, end):
                num_states = plan.axes[p].states
                left //= num_states
                if plan.axes[p].factor >= 0:
                    for a in range(num_states):
                        value = _sum(part[a * left : (a + 1) * left])
                        f = plan.axes[p].factor
                        while f >= 0:
                            beliefs[
                                plan.factors[f].table + x * plan.factors[f].stride_x + a * plan.factors[f].stride_a
                            ] = value
                            f = plan.factors[f].following
                for a in range(1, num_states):
                    other = part[a * left : (a + 1) * left]
                    for i in range(left):
                        part[i] += other[i]


@inline
def _enter(plan, k, lo_size, offset, lo_offset, digit):
    """Set the operands of step k to the first hi state, and tabulate the offsets in lo of those that gather."""
    for wheel in range(digit.size):
        digit[wheel] = 0
    for j in range(plan.steps[k].operand, plan.steps[k + 1].operand):
        at = j - plan.steps[k].operand
        offset[at] = plan.operands[j].base
        if plan.operands[j].kind == GATHER:
            table = lo_offset[at * lo_size : (at + 1) * lo_size]
            stride = plan.operands[j].stride + 1 - plan.steps[k].begin
            table[0] = 0
            built = 1
            for p in range(plan.steps[k + 1].begin - 1, plan.steps[k].split - 1, -1):
                for a in range(plan.axes[p].states - 1, 0, -1):
                    step = np.uint64(a * plan.strides[stride + p])
                    for i in range(built):
                        table[a * built + i] = table[i] + step
                built *= plan.axes[p].states


@inline
def _advance(plan, k, offset, digit):
    """Move the operands of step k to the next hi state: an odometer whose last wheel turns fastest."""
    for p in range(plan.steps[k].split - 1, plan.steps[k].begin - 1, -1):
        num_states = plan.axes[p].states
        wheel = p - plan.steps[k].begin
        digit[wheel] += 1
        turns = 1 if digit[wheel] < num_states else 1 - num_states
        for j in range(plan.steps[k].operand, plan.steps[k + 1].operand):
            offset[j - plan.steps[k].operand] += turns * plan.strides[plan.operands[j].stride + 1 + wheel]
        if turns == 1:
            return
        digit[wheel] = 0


@kernel
def _fill_rows(plan, store, k, h, hi_size, lo_size, offset, lo_offset, A, B, rows, logs):
    """rows[x, lo] = psi_k(x, hi, lo) for one hi."""
    first = plan.steps[k].operand
    num_operands = plan.steps[k + 1].operand - first
    for x in range(plan.steps[k].states):
        row = rows[x * lo_size : (x + 1) * lo_size]
        table = A[x * lo_size : (x + 1) * lo_size]
        scale = B[x * hi_size + h]
        for j in range(num_operands):
            if plan.operands[first + j].kind == CONSTANT:
                value = store[offset[j] + x * plan.strides[plan.operands[first + j].stride]]
                scale = scale + value if logs is not None else scale * value
        if logs is not None:
            for i in range(lo_size):
                row[i] = table[i] + scale
        else:
            for i in range(lo_size):
                row[i] = table[i] * scale
        for j in range(num_operands):
            kind = plan.operands[first + j].kind
            if kind == CONSTANT:
                continue
            part = store[offset[j] + x * plan.strides[plan.operands[first + j].stride] :]
            if kind == CONTIGUOUS:
                if logs is not None:
                    for i in range(lo_size):
                        row[i] += part[i]
                else:
                    for i in range(lo_size):
                        row[i] *= part[i]
            else:
                place = lo_offset[j * lo_size : (j + 1) * lo_size]
                if logs is not None:
                    for i in range(lo_size):
                        row[i] += part[place[i]]
                else:
                    for i in range(lo_size):
                        row[i] *= part[place[i]]


@kernel
def forwards(plan, values, store, spread, scale, scratch, logs):
    """All messages, from the log tables `values`.  Returns a status, log Z, and the sum of absolute terms that bounds
    its rounding error.

    OUT_OF_RANGE: scaled tables might underflow; EMPTY: Z = 0.
    """
    A, B, rows, offset, lo_offset, digit = (
        scratch.A,
        scratch.B,
        scratch.rows,
        scratch.offset,
        scratch.lo_offset,
        scratch.digit,
    )
    num_factors = plan.factors.size - 1
    total, carry, terms = scale_factors(values, plan.factors, logs, store, spread)
    if total == -np.inf:
        return EMPTY, -np.inf, 0.0
    for k in range(plan.steps.size - 1):
        num_states = plan.steps[k].states
        out = store[plan.steps[k].message : plan.steps[k + 1].message]
        lo_size, hi_size = _sizes(plan, k)
        reach = _reach(plan, k, spread)
        # an entry is a product of so many factors, each a rounding; of logarithms, each as large as their reach
        products = plan.steps[k + 1].begin - plan.steps[k].begin + plan.steps[k + 1].operand - plan.steps[k].operand
        terms += reach * (1.0 + products / ROUNDINGS_PER_TERM) + products + num_states
        if reach > LINEAR_RANGE and logs is None:
            return OUT_OF_RANGE, 0.0, 0.0
        _products(plan, store, k, logs, A, B)
        _enter(plan, k, lo_size, offset, lo_offset, digit)
        for h in range(hi_size):
            _fill_rows(plan, store, k, h, hi_size, lo_size, offset, lo_offset, A, B, rows, logs)
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
            _advance(plan, k, offset, digit)
        # scale the largest entry to 1
        if logs is not None:
            high, low = _extremes(out, BELOW_ZERO)
            if high <= BELOW_ZERO:
                return EMPTY, -np.inf, 0.0
            spread[num_factors + k] = high - low
            scale[k] = high
            carry += simd_math.lost_in_sum(total, high)
            total += high
            terms += abs(high)
            for i in range(out.size):
                out[i] -= high
        else:
            high, low = _extremes(out, 0.0)
            if high == 0.0:
                return EMPTY, -np.inf, 0.0
            spread[num_factors + k] = np.log(high / low)
            carry += simd_math.lost_in_sum(total, np.log(high))
            total += np.log(high)
            terms += abs(np.log(high))
            scale[k] = high
            shrink = 1.0 / high
            for i in range(out.size):
                out[i] *= shrink
    return DONE, total + carry, terms


@inline
def _sizes(plan, k):
    lo_size = 1
    for p in range(plan.steps[k].split, plan.steps[k + 1].begin):
        lo_size *= plan.axes[p].states
    return lo_size, (plan.steps[k + 1].message - plan.steps[k].message) // lo_size


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
def backwards(plan, store, beliefs, scale, scratch, logs, state_start, marginals):
    """All marginals: of variables into `marginals`, of factors into `beliefs`."""
    A, B, rows, offset, lo_offset, digit = (
        scratch.A,
        scratch.B,
        scratch.rows,
        scratch.offset,
        scratch.lo_offset,
        scratch.digit,
    )
    A_sum, B_sum, weight = scratch.A_sum, scratch.B_sum, scratch.weight
    for i in range(beliefs.size):
        beliefs[i] = 0.0
    for f in range(plan.factors.size - 1):
        if (
            plan.factors[f + 1].table - plan.factors[f].table == 1
        ):  # perhaps of no variables, and then no step will write it
            beliefs[plan.factors[f].table] = 1.0
    for k in range(plan.steps.size - 2, -1, -1):
        num_states = plan.steps[k].states
        lo_size, hi_size = _sizes(plan, k)
        first = plan.steps[k].operand
        if plan.steps[k].begin == plan.steps[k + 1].begin:
            beliefs[plan.steps[k].message] = 1.0
        _products(plan, store, k, logs, A, B)
        _enter(plan, k, lo_size, offset, lo_offset, digit)
        for i in range(num_states * lo_size):
            A_sum[i] = 0.0
        for h in range(hi_size):
            _fill_rows(plan, store, k, h, hi_size, lo_size, offset, lo_offset, A, B, rows, logs)
            at = plan.steps[k].message + h * lo_size
            _fill_weight(beliefs[at : at + lo_size], store[at : at + lo_size], scale[k], logs, weight)
            for x in range(num_states):
                row = rows[x * lo_size : (x + 1) * lo_size]
                if logs is not None:
                    for i in range(lo_size):
                        # b <= 1 up to rounding; what exp cannot reach is 0
                        exponent = min(row[i] + weight[i], 1.0)
                        row[i] = (
                            simd_math.exp(max(exponent, -simd_math.EXP_LIMIT))
                            if exponent > -simd_math.EXP_LIMIT
                            else 0.0
                        )
                else:
                    for i in range(lo_size):
                        row[i] *= weight[i]
                row_sum = _tally(row, A_sum[x * lo_size : (x + 1) * lo_size])
                B_sum[x * hi_size + h] = row_sum
                for j in range(plan.steps[k + 1].operand - first):
                    kind = plan.operands[first + j].kind
                    begin = offset[j] + x * plan.strides[plan.operands[first + j].stride]
                    part = beliefs[begin:]
                    if kind == CONSTANT:
                        part[0] += row_sum
                    elif kind == CONTIGUOUS:
                        for i in range(lo_size):
                            part[i] += row[i]
                    else:
                        place = lo_offset[j * lo_size : (j + 1) * lo_size]
                        for i in range(lo_size):
                            part[place[i]] += row[i]
            _advance(plan, k, offset, digit)
        _marginals(plan, k, A_sum, B_sum, beliefs)
        for x in range(num_states):
            marginals[state_start[plan.steps[k].variable] + x] = A_sum[x * lo_size]
            f = plan.steps[k].factor
            while f >= 0:
                beliefs[plan.factors[f].table + x] = A_sum[x * lo_size]
                f = plan.factors[f].following


@inline
def _fill_weight(belief, message, scale, logs, out):
    """out = P(o) / m(o), or its logarithm, m being the message times its scale."""
    if logs is not None:
        for i in range(belief.size):
            out[i] = simd_math.log(max(belief[i], TINY)) - (message[i] + scale) if belief[i] > TINY else LOG_ZERO
    else:
        for i in range(belief.size):
            out[i] = belief[i] / (message[i] * scale) if message[i] > 0.0 else 0.0
