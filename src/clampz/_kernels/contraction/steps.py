"""One contraction after another, in an arena of tables: out = sum over what it does not have of first x second.

Of the axes of the three tables, some of the innermost are the *run*, which the inner loops go along; the others that
`out` has are *outer*, those that it does not have are *summed*.  How the run lies says which loop it is:

    ROW     in out and first, not in second      out[.., r] = sum_s first[s, .., r] second[s, ..]
    GATHER  anyhow: each table has a list of where the run's entries lie
    PACKED  no run: products of matrices, see `blocked_products`

Outer and summed axes are walked by lists of offsets, in blocks with a list for the blocks, so that lists stay small.
Outer axes that `first` does not have come last: what it has there is read again.

arena    (E,)   the factors, 1, and tables as they come; the largest entry of a table times `scale` is in [1/2, 1]
scale    (2N + 1,)  powers of two, so that scaling rounds nothing
spread   (2N + 1,)  log(largest / smallest positive entry)
lost     (2N + 1,)  what an entry times `scale` may have lost to underflow
cancel_flag     (1,)   raised from outside when the run is over; looked at before every run
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels import simd_math
from clampz._kernels.contraction.blocked_products import (
    DEPTH,
    LISTED,
    inner_axes,
    multiply_blocks,
    offsets_along,
    range_of_share,
)
from clampz._kernels.elimination.steps import BELOW_ZERO, LOG_ZERO
from clampz._kernels.jit import inline, kernel, part

# Entries of a run at most, and of summed axes, whose rows of `first` stay in the second cache meanwhile.
LONGEST_RUN, SUMMED = 256, 256
# Runs that are worth a loop; shorter ones are gathered.
SHORT = 8
# Tables are copied into blocks where there are rows enough for a vector and products enough in each batch; not where a
# long run is there as it is and an entry of it takes part in a few products only.
FEW_ROWS, LITTLE, LONG, LIGHT = 4, 64, 32, 8

ROW, GATHER = 0, 1


class Lists(NamedTuple):
    """Working memory of one thread: for every variable its stride in out, first and second, and the step that wrote
    that; axes by group, innermost first; and two rows of logarithms."""

    stride: Any  # (3, n)
    seen: Any  # (n,)
    walk: Any  # (4, n)
    row: Any  # (2, LONGEST_RUN)


def make_lists(num_variables: int) -> Lists:
    n, integers = num_variables, np.int64
    return Lists(
        np.zeros((3, n), integers), np.full(n, -1, integers), np.zeros((4, n), integers), np.empty((2, LONGEST_RUN))
    )


@part
def axes_of(plan, now, side):
    """Where the axes of a step's out (0), first (1) or second (2) begin and end; those of the 1 are none."""
    table = now.out if side == 0 else now.first if side == 1 else now.second
    if table == 2 * plan.num_nodes:
        return 0, 0
    node = table if table < plan.num_nodes else table - plan.num_nodes
    return plan.start[node], plan.start[node + 1]


@part
def _fill_strides(plan, k, num_states, lists):
    """Strides of every variable of step k in its tables; 0 where it is not in one."""
    for side in range(3):
        begin, end = axes_of(plan, plan.steps[k], side)
        stride = 1
        for p in range(end - 1, begin - 1, -1):
            v = plan.axes[p]
            if lists.seen[v] != k:
                lists.seen[v] = k
                for other in range(3):
                    lists.stride[other, v] = 0
            lists.stride[side, v] = stride
            stride *= num_states[v]


@part
def _common(plan, k, num_states, stride):
    """How many of the innermost axes of out are in the same of first and second, and lie there alike; their entries,
    and which of the others have them."""
    begin, end = axes_of(plan, plan.steps[k], 0)
    count = 0
    entries = 1
    in_first = in_second = False
    for p in range(end - 1, begin - 1, -1):
        v = plan.axes[p]
        if count == 0:
            in_first, in_second = stride[1, v] > 0, stride[2, v] > 0
        if entries * num_states[v] > LONGEST_RUN:
            break
        if stride[1, v] != (entries if in_first else 0) or stride[2, v] != (entries if in_second else 0):
            break
        count += 1
        entries *= num_states[v]
    return count, entries, in_first, in_second


@part
def _choose_run(plan, k, num_states, lists, logs):
    """The run of step k, into lists.walk[0]: how it lies, how many axes and entries it has, and whether second is to be
    taken as first."""
    kind, side = GATHER, 0
    count, size, swapped = 0, 1, False
    if logs is None:
        count, size, in_first, in_second = _common(plan, k, num_states, lists.stride)
        kind = ROW if size >= SHORT and in_first != in_second else GATHER
        swapped = in_second
    if kind == GATHER:
        # the innermost axes of the largest table, however the others have them
        swapped, size = False, 0
        for other in range(3):
            begin, end = axes_of(plan, plan.steps[k], other)
            entries = 1
            found = 0
            for p in range(end - 1, begin - 1, -1):
                v = plan.axes[p]
                wide = entries * num_states[v] > LONGEST_RUN
                mixed = logs is not None and (lists.stride[0, v] > 0) != (lists.stride[0, plan.axes[end - 1]] > 0)
                if wide or mixed:
                    break
                entries *= num_states[v]
                found += 1
            if entries > size:
                side, count, size = other, found, entries
    end = axes_of(plan, plan.steps[k], side)[1]
    for q in range(count):
        lists.walk[0, q] = plan.axes[end - 1 - q]
    return kind, count, size, swapped


@part
def _fill_walk(plan, k, num_run, swapped, lists):
    """Axes that are not in the run: outer ones, those that first does not have innermost, into lists.walk[1], summed
    ones into lists.walk[2].  Returns how many of both."""
    num_outer = 0
    num_summed = 0
    first = 2 if swapped else 1
    for q in range(num_run):
        lists.seen[lists.walk[0, q]] = -1
    for only in range(2):
        begin, end = axes_of(plan, plan.steps[k], 0)
        for p in range(end - 1, begin - 1, -1):
            v = plan.axes[p]
            if lists.seen[v] == k and (lists.stride[first, v] == 0) == (only == 0):
                lists.walk[1, num_outer] = v
                num_outer += 1
    for side in range(1, 3):
        begin, end = axes_of(plan, plan.steps[k], side)
        for p in range(end - 1, begin - 1, -1):
            v = plan.axes[p]
            if lists.seen[v] == k and lists.stride[0, v] == 0:
                lists.seen[v] = -1
                lists.walk[2, num_summed] = v
                num_summed += 1
    return num_outer, num_summed


@part
def _fill_groups(plan, k, num_states, lists, count, entries):
    """Axes by group into lists.walk (batch, rows, columns, summed), those of first as it has them, then those of
    second, then those of out; how many and their entries."""
    for g in range(4):
        count[g] = 0
        entries[g] = 1
    for turn in range(3):
        begin, end = axes_of(plan, plan.steps[k], (turn + 1) % 3)
        for p in range(end - 1, begin - 1, -1):
            v = plan.axes[p]
            if lists.seen[v] != k:
                continue
            lists.seen[v] = -1
            in_first, in_second = lists.stride[1, v] > 0, lists.stride[2, v] > 0
            g = 3 if lists.stride[0, v] == 0 else 0 if in_first == in_second else 1 if in_first else 2
            lists.walk[g, count[g]] = v
            count[g] += 1
            entries[g] *= num_states[v]


@inline
def _row(arena, out, first, second, size, in_first, in_second, scale, fresh):
    """out[r] = sum_s first[s, r] second[s], four s at a time."""
    target = arena[out : out + size]
    s = 0
    while s < in_first.size:
        a = arena[first + np.int64(in_first[s]) : first + np.int64(in_first[s]) + size]
        x = arena[second + np.int64(in_second[s])] * scale
        if s + 4 <= in_first.size:
            b = arena[first + np.int64(in_first[s + 1]) : first + np.int64(in_first[s + 1]) + size]
            c = arena[first + np.int64(in_first[s + 2]) : first + np.int64(in_first[s + 2]) + size]
            d = arena[first + np.int64(in_first[s + 3]) : first + np.int64(in_first[s + 3]) + size]
            y = arena[second + np.int64(in_second[s + 1])] * scale
            z = arena[second + np.int64(in_second[s + 2])] * scale
            w = arena[second + np.int64(in_second[s + 3])] * scale
            if fresh and s == 0:
                for i in range(size):
                    target[i] = a[i] * x + b[i] * y + (c[i] * z + d[i] * w)
            else:
                for i in range(size):
                    target[i] += a[i] * x + b[i] * y + (c[i] * z + d[i] * w)
            s += 4
        elif s + 2 <= in_first.size:
            b = arena[first + np.int64(in_first[s + 1]) : first + np.int64(in_first[s + 1]) + size]
            y = arena[second + np.int64(in_second[s + 1])] * scale
            if fresh and s == 0:
                for i in range(size):
                    target[i] = a[i] * x + b[i] * y
            else:
                for i in range(size):
                    target[i] += a[i] * x + b[i] * y
            s += 2
        else:
            if fresh and s == 0:
                for i in range(size):
                    target[i] = a[i] * x
            else:
                for i in range(size):
                    target[i] += a[i] * x
            s += 1


@inline
def _gather(arena, out, first, second, size, run, in_first, in_second, scale):
    """out[r] += sum_s first[s, r] second[s, r], wherever they lie; out may have an entry several times."""
    target = arena[out:]
    for s in range(in_first.size):
        a = arena[first + np.int64(in_first[s]) :]
        b = arena[second + np.int64(in_second[s]) :]
        for i in range(size):
            target[run[0, i]] += a[run[1, i]] * (b[run[2, i]] * scale)


@inline
def _logarithms(arena, out, first, second, size, run, in_first, in_second, row):
    """out[r] = log sum_s exp(first[s, r] + second[s, r]), or added to what is there; where out has no run, over it
    too."""
    high, total = row[0], row[1]
    target = arena[out:]
    alone = size > 1 and run[0, 1] == 0
    for i in range(size):
        high[i] = LOG_ZERO if alone and i > 0 else target[run[0, i]]
    for s in range(in_first.size):
        a = arena[first + np.int64(in_first[s]) :]
        b = arena[second + np.int64(in_second[s]) :]
        for i in range(size):
            high[i] = max(high[i], a[run[1, i]] + b[run[2, i]])
    if alone:
        for i in range(1, size):
            high[0] = max(high[0], high[i])
        for i in range(1, size):
            high[i] = high[0]
    for i in range(size):
        there = LOG_ZERO if alone and i > 0 else target[run[0, i]]
        total[i] = simd_math.exp(max(there - high[i], -simd_math.EXP_LIMIT)) if there > BELOW_ZERO else 0.0
    for s in range(in_first.size):
        a = arena[first + np.int64(in_first[s]) :]
        b = arena[second + np.int64(in_second[s]) :]
        for i in range(size):
            value = a[run[1, i]] + b[run[2, i]]
            found = simd_math.exp(max(value - high[i], -simd_math.EXP_LIMIT))
            total[i] += found if value > BELOW_ZERO else 0.0
    if alone:
        for i in range(1, size):
            total[0] += total[i]
        size = 1
    for i in range(size):
        target[run[0, i]] = high[i] + simd_math.log(total[i]) if high[i] > BELOW_ZERO else LOG_ZERO


@kernel
def step(plan, k, num_states, arena, scale, lists, blocks, share, logs, cancel_flag):
    """Step k, or share[0] of share[1] of it, which write to different entries and the same in whatever thread.
    Returns how many additions any of the terms of an entry goes through."""
    now = plan.steps[k]
    factor = scale[now.first] * scale[now.second]
    _fill_strides(plan, k, num_states, lists)
    kind, num_run, size, swapped = _choose_run(plan, k, num_states, lists, logs)
    if logs is None:
        count = np.empty(4, dtype=np.int64)
        entries = np.empty(4, dtype=np.int64)
        _fill_groups(plan, k, num_states, lists, count, entries)
        turned = entries[2] > entries[1]
        work = entries[1] * entries[2] * entries[3]
        light = min(entries[1], entries[2]) * entries[3] <= LIGHT
        if max(entries[1], entries[2]) >= FEW_ROWS and work >= LITTLE and not (kind == ROW and size >= LONG and light):
            if turned:
                for q in range(max(count[1], count[2])):
                    lists.walk[1, q], lists.walk[2, q] = lists.walk[2, q], lists.walk[1, q]
                count[1], count[2] = count[2], count[1]
            num_blocks = multiply_blocks(
                lists.walk, count, num_states, lists.stride, now, turned, factor, arena, blocks, share, cancel_flag
            )
            return float(min(entries[3], DEPTH) + num_blocks)
        _fill_strides(plan, k, num_states, lists)
        kind, num_run, size, swapped = _choose_run(plan, k, num_states, lists, logs)
    num_outer, num_summed = _fill_walk(plan, k, num_run, swapped, lists)
    stride = lists.stride
    one, two = (2, 1) if swapped else (1, 2)
    out_at = now.out_at
    first_at, second_at = (now.second_at, now.first_at) if swapped else (now.first_at, now.second_at)
    run = offsets_along(lists.walk[0], 0, num_run, num_states, stride)
    inner = inner_axes(lists.walk[1], num_outer, num_states, LISTED)
    outer = offsets_along(lists.walk[1], 0, inner, num_states, stride)
    blocks_of_outer = offsets_along(lists.walk[1], inner, num_outer, num_states, stride)
    inner = inner_axes(lists.walk[2], num_summed, num_states, SUMMED)
    summed = offsets_along(lists.walk[2], 0, inner, num_states, stride)
    parts = offsets_along(lists.walk[2], inner, num_summed, num_states, stride)
    in_first, in_second = summed[one], summed[two]
    mine, others = range_of_share(share, blocks_of_outer.shape[1] * outer.shape[1])
    for q in range(parts.shape[1]):
        for h in range(blocks_of_outer.shape[1]):
            before = h * outer.shape[1]
            for i in range(max(0, mine - before), min(outer.shape[1], others - before)):
                if cancel_flag[0] != 0:
                    return 0.0
                out = out_at + np.int64(blocks_of_outer[0, h] + outer[0, i])
                first = first_at + np.int64(blocks_of_outer[one, h] + outer[one, i] + parts[one, q])
                second = second_at + np.int64(blocks_of_outer[two, h] + outer[two, i] + parts[two, q])
                if kind == GATHER and q == 0:
                    for r in range(size):
                        arena[out + np.int64(run[0, r])] = LOG_ZERO if logs is not None else 0.0
                if logs is not None:
                    _logarithms(arena, out, first, second, size, run, in_first, in_second, lists.row)
                elif kind == ROW:
                    _row(arena, out, first, second, size, in_first, in_second, factor, q == 0)
                else:
                    _gather(arena, out, first, second, size, run, in_first, in_second, factor)
    return float((size if kind == GATHER else 1) * summed.shape[1] + parts.shape[1])
