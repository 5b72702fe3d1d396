"""The pass back: all marginals, from the messages.  `elimination_steps` has the equations and the arrays."""

from clampz._kernels import simd_math
from clampz._kernels.elimination import steps as shared
from clampz._kernels.elimination.plan import CONSTANT, CONTIGUOUS
from clampz._kernels.elimination.steps import LOG_ZERO, PIECE, reducing
from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.statuses import DONE, STOPPED

# Probabilities below are taken as 0, which loses less than 1e-290 of mass; above, they are normal numbers with a
# logarithm.
TINY = 1e-300


@reducing
def _sum(values):
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@reducing
def _tally(row, running):
    """Add a row to a running sum of rows, entry by entry; returns the sum of the row."""
    total = 0.0
    for i in range(row.size):
        running[i] += row[i]
        total += row[i]
    return total


@part
def _marginals(plan, k, A_sum, B_sum, beliefs):
    """Sum A_sum[x, lo] and B_sum[x, hi] onto the factors that `fill_products` has in A and B, axis by axis; leaves the
    marginal of x in A_sum[x, 0]."""
    for side in range(2):
        table = A_sum if side == 0 else B_sum
        begin, end, size = shared.axes_along(plan, k, side)
        for x in range(plan.steps[k].states):
            left = size
            piece = table[x * size : (x + 1) * size]
            for p in range(begin, end):
                num_states = plan.axes[p].states
                left //= num_states
                if plan.axes[p].factor >= 0:
                    for a in range(num_states):
                        value = _sum(piece[a * left : (a + 1) * left])
                        f = plan.axes[p].factor
                        while f >= 0:
                            factor = plan.factors[f]
                            beliefs[factor.table + x * factor.stride_x + a * factor.stride_a] = value
                            f = factor.following
                for a in range(1, num_states):
                    other = piece[a * left : (a + 1) * left]
                    for i in range(left):
                        piece[i] += other[i]


@inline
def _fill_weight(belief, message, scale, logs, out):
    """out = P(o) / m(o), or its logarithm, m being the message times its scale."""
    if logs is not None:
        for i in range(belief.size):
            out[i] = simd_math.log(max(belief[i], TINY)) - (message[i] + scale) if belief[i] > TINY else LOG_ZERO
    else:
        for i in range(belief.size):
            out[i] = belief[i] / (message[i] * scale) if message[i] > 0.0 else 0.0


@kernel
def backwards(plan, store, beliefs, scale, scratch, logs, state_start, marginals, cancel_flag):
    """All marginals: of variables into `marginals`, of factors into `beliefs`.  Returns DONE, or STOPPED where the flag
    was raised."""
    rows, offset, lo_offset = scratch.rows, scratch.offset, scratch.lo_offset
    A_sum, B_sum, weight = scratch.A_sum, scratch.B_sum, scratch.weight
    for begin in range(0, beliefs.size, PIECE):
        if cancel_flag[0] != 0:
            return STOPPED
        for i in range(begin, min(begin + PIECE, beliefs.size)):
            beliefs[i] = 0.0
    for f in range(plan.factors.size - 1):
        # perhaps of no variables, and then no step will write it
        if plan.factors[f + 1].table - plan.factors[f].table == 1:
            beliefs[plan.factors[f].table] = 1.0
    for k in range(plan.steps.size - 2, -1, -1):
        num_states = plan.steps[k].states
        lo_size, hi_size = shared.sizes(plan, k)
        first = plan.steps[k].operand
        if plan.steps[k].begin == plan.steps[k + 1].begin:
            beliefs[plan.steps[k].message] = 1.0
        shared.fill_products(plan, store, k, scratch, logs)
        shared.enter(plan, k, lo_size, scratch)
        for i in range(num_states * lo_size):
            A_sum[i] = 0.0
        for h in range(hi_size):
            if cancel_flag[0] != 0:
                return STOPPED
            shared.fill_rows(plan, store, k, h, hi_size, lo_size, scratch, logs)
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
                    piece = beliefs[begin:]
                    if kind == CONSTANT:
                        piece[0] += row_sum
                    elif kind == CONTIGUOUS:
                        for i in range(lo_size):
                            piece[i] += row[i]
                    else:
                        place = lo_offset[j * lo_size : (j + 1) * lo_size]
                        for i in range(lo_size):
                            piece[place[i]] += row[i]
            shared.advance(plan, k, scratch)
        _marginals(plan, k, A_sum, B_sum, beliefs)
        for x in range(num_states):
            marginals[state_start[plan.steps[k].variable] + x] = A_sum[x * lo_size]
            f = plan.steps[k].factor
            while f >= 0:
                beliefs[plan.factors[f].table + x] = A_sum[x * lo_size]
                f = plan.factors[f].following
    return DONE
