"""Bucket elimination on flat arrays, and what both its passes share: the product of a step, block by block.

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
plan, scratch      see `plan`
cancel_flag     (1,)      raised from outside when the run is over; looked at before every block
"""

import numpy as np

from clampz._kernels.elimination.plan import CONSTANT, CONTIGUOUS, GATHER
from clampz._kernels.jit import inline, part, part_with

# A hard zero as a logarithm: finite, so that differences of zeros are numbers, and so low that no sum with finite
# potentials leaves its neighbourhood.
LOG_ZERO = -1e200
BELOW_ZERO = -1e190

# Entries that are worked on between two looks at the flag where nothing else cuts the work into blocks: about 1 ms.
PIECE = 1 << 20

# What `logs` may be.  None has a type of its own, so a kernel is compiled without the other's loops, and for logarithms
# only when they are needed.
SCALED, LOGARITHMS = None, True

# Sums, maxima and minima vectorise only where the compiler may reorder them; nothing here is infinite or nan.
reducing = part_with("reassoc", "nnan", "ninf")


@inline
def times(a, b, logs):
    """A product, as numbers or as logarithms."""
    return a + b if logs is not None else a * b


@inline
def axes_along(plan, k, side):
    """Where the axes of step k along lo (side 0) or hi (side 1) begin and end, and how many entries they make."""
    begin = plan.steps[k].split if side == 0 else plan.steps[k].begin
    end = plan.steps[k + 1].begin if side == 0 else plan.steps[k].split
    size = 1
    for p in range(begin, end):
        size *= plan.axes[p].states
    return begin, end, size


@inline
def sizes(plan, k):
    """Entries along lo, and along hi."""
    lo_size = axes_along(plan, k, 0)[2]
    return lo_size, (plan.steps[k + 1].message - plan.steps[k].message) // lo_size


@part
def fill_products(plan, store, k, scratch, logs):
    """A[x, lo] and B[x, hi]: the products of the factors of step k's variable and one axis in lo, or hi, built one axis
    after another.

    Factors of the variable alone are in A.  (One loop for both, so that its body is compiled once.)
    """
    for side in range(2):
        out = scratch.A if side == 0 else scratch.B
        begin, end, size = axes_along(plan, k, side)
        for x in range(plan.steps[k].states):
            table = out[x * size : (x + 1) * size]
            value = 0.0 if logs is not None else 1.0
            f = plan.steps[k].factor if side == 0 else -1
            while f >= 0:
                value = times(value, store[plan.factors[f].table + x], logs)
                f = plan.factors[f].following
            table[0] = value
            built = 1
            for p in range(end - 1, begin - 1, -1):
                num_states = plan.axes[p].states
                for a in range(num_states - 1, -1, -1):  # a = 0 last: it overwrites what the others are made from
                    value = 0.0 if logs is not None else 1.0
                    f = plan.axes[p].factor
                    while f >= 0:
                        factor = plan.factors[f]
                        value = times(value, store[factor.table + x * factor.stride_x + a * factor.stride_a], logs)
                        f = factor.following
                    piece = table[a * built : (a + 1) * built]
                    for i in range(built):
                        piece[i] = times(table[i], value, logs)
                built *= num_states


@inline
def enter(plan, k, lo_size, scratch):
    """Set the operands of step k to the first hi state, and tabulate the offsets in lo of those that gather."""
    offset, lo_offset, digit = scratch.offset, scratch.lo_offset, scratch.digit
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
def advance(plan, k, scratch):
    """Move the operands of step k to the next hi state: an odometer whose last wheel turns fastest."""
    offset, digit = scratch.offset, scratch.digit
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


@part
def fill_rows(plan, store, k, h, hi_size, lo_size, scratch, logs):
    """rows[x, lo] = psi_k(x, hi, lo) for one hi."""
    A, B, rows = scratch.A, scratch.B, scratch.rows
    offset, lo_offset = scratch.offset, scratch.lo_offset
    first = plan.steps[k].operand
    num_operands = plan.steps[k + 1].operand - first
    for x in range(plan.steps[k].states):
        row = rows[x * lo_size : (x + 1) * lo_size]
        table = A[x * lo_size : (x + 1) * lo_size]
        scale = B[x * hi_size + h]
        for j in range(num_operands):
            if plan.operands[first + j].kind == CONSTANT:
                scale = times(scale, store[offset[j] + x * plan.strides[plan.operands[first + j].stride]], logs)
        for i in range(lo_size):
            row[i] = times(table[i], scale, logs)
        for j in range(num_operands):
            kind = plan.operands[first + j].kind
            if kind == CONSTANT:
                continue
            piece = store[offset[j] + x * plan.strides[plan.operands[first + j].stride] :]
            if kind == CONTIGUOUS:
                for i in range(lo_size):
                    row[i] = times(row[i], piece[i], logs)
            else:
                place = lo_offset[j * lo_size : (j + 1) * lo_size]
                for i in range(lo_size):
                    row[i] = times(row[i], piece[place[i]], logs)
