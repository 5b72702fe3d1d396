"""The plan of an elimination: everything about it that the values of the tables do not change, as flat arrays.

Made once by `make_plan` from an order and the factors' scopes, and read by every lane and thread.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import kernel
from clampz._kernels.records import record

# Entries of (variable, lo) that are worked on at once: 8 KB, so that A, the rows made from it and an operand fit the
# first cache together.
BLOCK = 1024

# How an operand's entries lie along lo.
CONTIGUOUS, CONSTANT, GATHER = 0, 1, 2


# One record per step, and one more that only says where the last step's things end:
#   variable, states    the variable summed out, and its number of states
#   begin, split        its message is over axes begin : next begin, of which begin : split are hi and the rest lo
#   message             where its message begins in the store
#   factor              the first factor of the variable alone, or -1
#   operand             its first operand
STEP = record(i8="variable states begin split message factor operand")
# One record per step and variable in its scope, in ascending order of the step that sums that variable out:
#   step, states        that step, and the variable's number of states
#   factor              the first factor of the two variables, or -1
AXIS = record(i8="step states factor")
# One record per factor, and one more to end the last table:
#   table               where its table begins in the store
#   following           the next factor of the same one or two variables, or -1
#   stride_x, stride_a  strides of a factor of two variables, for the step's variable and for the axis
FACTOR = record(i8="table following stride_x stride_a")
# One record per operand:
#   base                where its table begins in the store
#   source              which table it is: a factor, or the number of factors + the step that made it
#   kind                how it lies along lo: CONTIGUOUS, CONSTANT or GATHER
#   stride              where its strides begin: for x, then for each axis of the step
OPERAND = record(i8="base source kind stride")


class Plan(NamedTuple):
    """Records as above, and the operands' strides."""

    steps: Any
    axes: Any
    factors: Any
    operands: Any
    strides: Any


class Scratch(NamedTuple):
    """Working memory of one thread, large enough for every step."""

    A: Any  # [x, lo] product of the factors of x and an axis in lo
    B: Any  # [x, hi] the same for hi
    rows: Any  # [x, lo] psi, then the belief
    A_sum: Any  # [x, lo] belief summed over hi
    B_sum: Any  # [x, hi] belief summed over lo
    weight: Any  # [lo] P / m
    offset: Any  # [operand] where in the store the operand's entries for this hi begin
    # [operand, lo] for operands that gather; unsigned, as indices that may be negative cost a comparison each
    lo_offset: Any
    digit: Any  # [axis] the states that make up hi


def make_scratch(sizes: Any) -> Scratch:
    """Scratch for the sizes that `make_plan` returns."""
    block, wide, lo, num_operands, gathered, axes = (int(s) for s in sizes)
    floats, integers = np.empty, np.int64
    return Scratch(
        floats(block), floats(wide), floats(block), floats(block), floats(wide), floats(lo),
        np.empty(num_operands, integers), np.empty(gathered, np.uint64), np.empty(axes, integers),
    )  # fmt: skip


def make_plan(
    order: Any, bucket_scopes: Any, num_states: Any, scope_start: Any, scopes: Any, table_start: Any
) -> tuple[Plan, Any]:
    """The plan of an order, whose `bucket_scopes` are given, and the sizes of the scratch it needs: [x, lo], [x, hi],
    lo, operands, operands x lo, axes."""
    begin, scope, first, following = bucket_scopes
    n, num_factors = len(order), len(scope_start) - 1
    num_operands = np.count_nonzero(np.diff(begin)) + np.count_nonzero(np.diff(scope_start) > 2)
    steps, axes = np.zeros(n + 1, STEP), np.zeros(len(scope), AXIS)
    factors, operands = np.zeros(num_factors + 1, FACTOR), np.zeros(num_operands, OPERAND)
    steps["variable"][:n] = order
    steps["states"][:n] = num_states[order]
    steps["begin"] = begin
    axes["step"] = scope
    axes["states"] = steps["states"][scope]
    factors["table"] = table_start
    steps["factor"] = axes["factor"] = factors["following"] = -1
    plan = (steps, axes, factors, operands)
    sizes = _fill_blocks(steps, axes, int(table_start[-1]))
    strides = _fill_factors(*plan, first, following, num_states, scope_start, scopes, sizes)
    return Plan(*plan, strides), sizes


@kernel
def _fill_blocks(steps, axes, first_message):
    """Split every scope into hi and lo, and place the messages.  Returns the scratch sizes, those of operands still
    missing."""
    sizes = np.ones(6, dtype=np.int64)
    steps[0].message = first_message
    for k in range(steps.size - 1):
        begin, end = steps[k].begin, steps[k + 1].begin
        lo = 1
        split = end
        while split > begin:
            wider = lo * axes[split - 1].states
            if wider * steps[k].states > BLOCK and lo > 1:
                break
            lo = wider
            split -= 1
        hi = 1
        for p in range(begin, split):
            hi *= axes[p].states
        steps[k].split = split
        steps[k + 1].message = steps[k].message + hi * lo
        sizes[0] = max(sizes[0], steps[k].states * lo)
        sizes[1] = max(sizes[1], steps[k].states * hi)
        sizes[2] = max(sizes[2], lo)
        sizes[5] = max(sizes[5], end - begin)
    return sizes


@kernel
def _fill_factors(steps, axes, factors, operands, first, following, num_states, scope_start, scopes, sizes):
    """Give each factor to the first step among its variables, and each message to the step that uses it up.  Returns
    the strides of the operands."""
    n = steps.size - 1
    num_factors = factors.size - 1
    step_of = np.empty(n, dtype=np.int64)
    for k in range(n):
        step_of[steps[k].variable] = k
    chain = np.full(n, -1, dtype=np.int64)  # the factors of a step
    link = np.full(num_factors, -1, dtype=np.int64)
    num_strides = 0
    for f in range(num_factors - 1, -1, -1):
        k = n
        for p in range(scope_start[f], scope_start[f + 1]):
            k = min(k, step_of[scopes[p]])
        if k < n:  # otherwise it has no variables: a constant
            link[f] = chain[k]
            chain[k] = f
            if scope_start[f + 1] - scope_start[f] > 2:
                num_strides += 1 + steps[k + 1].begin - steps[k].begin
    for k in range(n):
        child = first[k]
        while child >= 0:
            num_strides += 1 + steps[k + 1].begin - steps[k].begin
            child = following[child]
    strides = np.zeros(num_strides, dtype=np.int64)
    # where a step stands in the scope at hand: -1 for the step itself, then 0, 1, ...
    axis_of = np.empty(n, dtype=np.int64)
    used = 0
    j = 0
    for k in range(n):
        begin, end = steps[k].begin, steps[k + 1].begin
        steps[k].operand = j
        axis_of[k] = -1
        for p in range(begin, end):
            axis_of[axes[p].step] = p - begin
        f = chain[k]
        while f >= 0:
            q = scope_start[f]
            arity = scope_start[f + 1] - q
            if arity == 1:
                factors[f].following = steps[k].factor
                steps[k].factor = f
            elif arity == 2:
                x_first = step_of[scopes[q]] == k
                p = begin + axis_of[step_of[scopes[q + 1] if x_first else scopes[q]]]
                factors[f].stride_x = num_states[scopes[q + 1]] if x_first else 1
                factors[f].stride_a = 1 if x_first else num_states[scopes[q + 1]]
                factors[f].following = axes[p].factor
                axes[p].factor = f
            else:
                operands[j].base = factors[f].table
                operands[j].source = f
                operands[j].stride = used
                stride = 1
                for p in range(scope_start[f + 1] - 1, q - 1, -1):
                    strides[used + 1 + axis_of[step_of[scopes[p]]]] = stride
                    stride *= num_states[scopes[p]]
                used += 1 + end - begin
                j += 1
            f = link[f]
        child = first[k]
        while child >= 0:
            operands[j].base = steps[child].message
            operands[j].source = num_factors + child
            operands[j].stride = used
            stride = 1
            for p in range(steps[child + 1].begin - 1, steps[child].begin - 1, -1):
                strides[used + 1 + axis_of[axes[p].step]] = stride
                stride *= axes[p].states
            used += 1 + end - begin
            j += 1
            child = following[child]
        lo = 1
        for i in range(steps[k].operand, j):
            contiguous = True
            constant = True
            lo = 1
            for p in range(end - 1, steps[k].split - 1, -1):
                found = strides[operands[i].stride + 1 + p - begin]
                contiguous = contiguous and found == lo
                constant = constant and found == 0
                lo *= axes[p].states
            operands[i].kind = CONTIGUOUS if contiguous and lo > 1 else CONSTANT if constant else GATHER
        sizes[3] = max(sizes[3], j - steps[k].operand)
        sizes[4] = max(sizes[4], (j - steps[k].operand) * lo)
    steps[n].operand = j
    return strides


@kernel
def kept_entries(kept, state_start, num_states, scope_start, scopes, table_start):
    """Which table entries have only kept states, as one list, and where each factor's part of it begins."""
    num_factors = scope_start.size - 1
    entries = np.empty(table_start[num_factors], dtype=np.int64)
    new_start = np.zeros(num_factors + 1, dtype=np.int64)
    count = 0
    for f in range(num_factors):
        for t in range(table_start[f], table_start[f + 1]):
            left = t - table_start[f]
            keep = True
            for p in range(scope_start[f + 1] - 1, scope_start[f] - 1, -1):
                i = scopes[p]
                keep = keep and kept[state_start[i] + left % num_states[i]]
                left //= num_states[i]
            if keep:
                entries[count] = t
                count += 1
        new_start[f + 1] = count
    return entries[:count], new_start
