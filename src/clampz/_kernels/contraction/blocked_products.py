"""A contraction as matrix products of blocks that are copied out of the tables, multiplied in the cache, and written to
where they belong: whatever the order of the axes, each entry is gathered once and the products run at full speed.

Axes fall into four groups: *batch* (of all three tables), *rows* (of out and first), *columns* (of out and second) and
*summed* ones (not of out):

    out[b, r, c] = sum_s first[b, s, r] second[b, s, c]

Power-of-two strides, which binary tables have everywhere, would put the rows of a block into a few lines of the cache;
the copies lie one after another.
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import inline, part

# Of a block: rows (where there are few, fewer), columns and summed entries.
WIDE, NARROW = 64, 16
COLUMNS, DEPTH = 64, 256
# Offsets along a group's innermost axes that are listed together.
LISTED = 1024


class Blocks(NamedTuple):
    """Working memory of one thread."""

    first: Any  # (DEPTH * WIDE,) [s, r]
    second: Any  # (COLUMNS * DEPTH,) [c, s]
    out: Any  # (COLUMNS * WIDE,) [c, r]


def make_blocks() -> Blocks:
    return Blocks(*(np.empty(size) for size in (DEPTH * WIDE, COLUMNS * DEPTH, COLUMNS * WIDE)))


@part
def offsets_along(walk, begin, end, num_states, stride):
    """(3, entries) where the entries along axes walk[begin : end], innermost first, lie in out, first and second."""
    entries = 1
    for q in range(begin, end):
        entries *= num_states[walk[q]]
    out = np.zeros((3, entries), dtype=np.uint64)
    built = 1
    for q in range(begin, end):
        v = walk[q]
        for x in range(1, num_states[v]):
            for side in range(3):
                moved = np.uint64(x * stride[side, v])
                for i in range(built):
                    out[side, x * built + i] = out[side, i] + moved
        built *= num_states[v]
    return out


@inline
def range_of_share(share, size):
    """From where to where share[0] of share[1] of them goes."""
    return size * share[0] // share[1], size * (share[0] + 1) // share[1]


@part
def inner_axes(walk, count, num_states, most):
    """How many of the innermost axes have at most this many entries together, at least one."""
    inner = 0
    entries = 1
    while inner < count and (inner == 0 or entries * num_states[walk[inner]] <= most):
        entries *= num_states[walk[inner]]
        inner += 1
    return inner


@inline
def _multiply(first, second, out, depth, columns, width):
    """out[c, r] = sum_s second[c, s] first[s, r], two columns and four s at a time; the width is a constant, so that
    the compiler sees which rows cannot overlap."""
    for c in range(0, columns, 2):
        target = out[c * width : (c + 2) * width]
        for i in range(2 * width):
            target[i] = 0.0
        one = second[c * depth : (c + 1) * depth]
        two = second[(c + 1) * depth : (c + 2) * depth]
        whole = depth & ~3
        for s in range(0, whole, 4):
            x0, x1, x2, x3 = one[s], one[s + 1], one[s + 2], one[s + 3]
            y0, y1, y2, y3 = two[s], two[s + 1], two[s + 2], two[s + 3]
            rows = first[s * width : (s + 4) * width]
            for i in range(width):
                a, b, c_, d = rows[i], rows[width + i], rows[2 * width + i], rows[3 * width + i]
                target[i] += a * x0 + b * x1 + (c_ * x2 + d * x3)
                target[width + i] += a * y0 + b * y1 + (c_ * y2 + d * y3)
        if whole < depth:
            x0, x1 = one[whole], one[whole + 1]
            y0, y1 = two[whole], two[whole + 1]
            rows = first[whole * width : (whole + 2) * width]
            for i in range(width):
                a, b = rows[i], rows[width + i]
                target[i] += a * x0 + b * x1
                target[width + i] += a * y0 + b * y1


@part
def _fill_first(arena, at, summed, summed_from, depth, rows, rows_from, num_rows, width, out):
    """out[s, r], with zeros to an even number of s and to the full width."""
    for s in range(depth):
        row = out[s * width : (s + 1) * width]
        piece = arena[at + np.int64(summed[summed_from + s]) :]
        place = rows[rows_from : rows_from + num_rows]
        for i in range(num_rows):
            row[i] = piece[place[i]]
        for i in range(num_rows, width):
            row[i] = 0.0
    if depth & 1:
        for i in range(depth * width, (depth + 1) * width):
            out[i] = 0.0


@part
def _fill_second(arena, at, summed, summed_from, depth, columns, columns_from, num_columns, factor, out):
    """out[c, s] times a factor, with zeros to even numbers of both."""
    padded = depth + (depth & 1)
    for c in range(num_columns):
        row = out[c * padded : (c + 1) * padded]
        piece = arena[at + np.int64(columns[columns_from + c]) :]
        place = summed[summed_from : summed_from + depth]
        for s in range(depth):
            row[s] = piece[place[s]] * factor
        if depth < padded:
            row[depth] = 0.0
    if num_columns & 1:
        for i in range(num_columns * padded, (num_columns + 1) * padded):
            out[i] = 0.0


@part
def _write(block, width, num_rows, num_columns, rows, rows_from, columns, columns_from, fresh, arena, at):
    """Write a block where it belongs, or add it to what is there."""
    for c in range(num_columns):
        row = block[c * width : (c + 1) * width]
        piece = arena[at + np.int64(columns[columns_from + c]) :]
        place = rows[rows_from : rows_from + num_rows]
        if fresh:
            for i in range(num_rows):
                piece[place[i]] = row[i]
        else:
            for i in range(num_rows):
                piece[place[i]] += row[i]


@part
def multiply_blocks(walk, count, num_states, stride, now, turned, factor, arena, blocks, share, cancel_flag):
    """The contraction of step `now`, first and second changing places if `turned`, until the flag is raised.
    walk[g, : count[g]] are the axes of group g (batch, rows, columns, summed), innermost first.  A share of it is some
    of the blocks of rows.  Returns how many blocks the summed axes were cut into."""
    one, two = (2, 1) if turned else (1, 2)
    first_at, second_at = (now.second_at, now.first_at) if turned else (now.first_at, now.second_at)
    inner = np.empty(4, dtype=np.int64)
    for g in range(4):
        inner[g] = inner_axes(walk[g], count[g], num_states, LISTED)
    batch = offsets_along(walk[0], 0, inner[0], num_states, stride)
    batches = offsets_along(walk[0], inner[0], count[0], num_states, stride)
    rows = offsets_along(walk[1], 0, inner[1], num_states, stride)
    more_rows = offsets_along(walk[1], inner[1], count[1], num_states, stride)
    columns = offsets_along(walk[2], 0, inner[2], num_states, stride)
    more_columns = offsets_along(walk[2], inner[2], count[2], num_states, stride)
    summed = offsets_along(walk[3], 0, inner[3], num_states, stride)
    more_summed = offsets_along(walk[3], inner[3], count[3], num_states, stride)
    num_rows, num_columns, num_summed = rows.shape[1], columns.shape[1], summed.shape[1]
    width = WIDE if num_rows > 2 * NARROW else NARROW
    once = num_columns <= COLUMNS and more_columns.shape[1] == 1
    in_rows = (num_rows + width - 1) // width
    mine, others = range_of_share(share, batches.shape[1] * batch.shape[1] * more_rows.shape[1] * in_rows)
    for b in range(batches.shape[1] * batch.shape[1]):
        hi, lo = b // batch.shape[1], b % batch.shape[1]
        out_b = now.out_at + np.int64(batches[0, hi] + batch[0, lo])
        first_b = first_at + np.int64(batches[one, hi] + batch[one, lo])
        second_b = second_at + np.int64(batches[two, hi] + batch[two, lo])
        for s_hi in range(more_summed.shape[1]):
            for s in range(0, num_summed, DEPTH):
                depth = min(DEPTH, num_summed - s)
                padded = depth + (depth & 1)
                first_s = first_b + np.int64(more_summed[one, s_hi])
                second_s = second_b + np.int64(more_summed[two, s_hi])
                fresh = s_hi == 0 and s == 0
                filled = False
                for r_hi in range(more_rows.shape[1]):
                    for r in range(0, num_rows, width):
                        unit = (b * more_rows.shape[1] + r_hi) * in_rows + r // width
                        if unit < mine or unit >= others:
                            continue
                        wide = min(width, num_rows - r)
                        _fill_first(
                            arena, first_s + np.int64(more_rows[one, r_hi]), summed[one], s, depth, rows[one], r, wide,
                            width, blocks.first,
                        )  # fmt: skip
                        for c_hi in range(more_columns.shape[1]):
                            for c in range(0, num_columns, COLUMNS):
                                if cancel_flag[0] != 0:
                                    return 0
                                high = min(COLUMNS, num_columns - c)
                                if not (once and filled):
                                    _fill_second(
                                        arena, second_s + np.int64(more_columns[two, c_hi]), summed[two], s, depth,
                                        columns[two], c, high, factor, blocks.second,
                                    )  # fmt: skip
                                    filled = True
                                if width == WIDE:
                                    _multiply(blocks.first, blocks.second, blocks.out, padded, high, WIDE)
                                else:
                                    _multiply(blocks.first, blocks.second, blocks.out, padded, high, NARROW)
                                out_at = out_b + np.int64(more_rows[0, r_hi] + more_columns[0, c_hi])
                                _write(blocks.out, width, wide, high, rows[0], r, columns[0], c, fresh, arena, out_at)
    return more_summed.shape[1] * ((num_summed + DEPTH - 1) // DEPTH)
