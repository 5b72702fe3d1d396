"""Links: a small table is added to a clique's along the axes that they share, or the clique's is summed onto it.

table    (T,)   tables of all cliques; the one meant begins at `at`, its last axis fastest
sizes    (A,)   states along each axis of that table
strides  (A,)   how far apart in the small table two states of that axis are; 0: the small table does not have the axis
small    (S,)   small tables; the one meant begins at `small_at`
W               lanes, side by side: the last axis of both tables, beside those that sizes and strides are of
scratch         see LinkScratch

The last axes, as many as `scratch.block` holds, are one *block*.  Of those before it, the ones that both tables have
are walked outside, the others inside: a block is expanded, or summed up, once for all states of what the small table
does not have, and the innermost loops run over contiguous entries.  Several lanes are gathered and scattered by rows of
W entries, one lane entry by entry; all sums are in the same order, so that a lane has the same numbers in either way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import inline, part_in_place

# What a block is of the small table: all of one entry, as it stands there, or anything else.
CONSTANT, CONTIGUOUS, GATHER = 0, 1, 2
# Rows that are added up one after another: halves of fewer are no long vectors.
FEW_ROWS = 8


class LinkScratch(NamedTuple):
    """The working memory of the kernels."""

    axes: NDArray[np.int64]  # (4, A) of an odometer: size, stride in the table, stride in the small one, state
    block: NDArray[np.float64]  # of every lane, at least as many entries as any variable has states
    places: NDArray[np.uint64]  # as many: where a block's entries are in the small table
    total: NDArray[np.float64]  # of power sums; a multiple of W
    tile: NDArray[np.float64]  # (2, as many) weights of the lanes, over and over, and 1 over them
    zeros: NDArray[np.float64]  # (W,) what is taken out of shifts
    own: NDArray[np.int32] | NDArray[np.int64]  # (2, A) sizes and strides of a table of the model's
    shift: NDArray[np.float64]  # (3, entries of the largest shift, of every lane) of matching


@inline
def enter(sizes, strides, scratch):
    """Cut the axes into the block and those outside it; returns the block's size and kind, and the numbers of shared
    and other axes. Outer axes are laid out in `scratch.axes`, shared ones first; `scratch.places` has where the block's
    entries are in the small table."""
    places, axes = scratch.places, scratch.axes
    first = sizes.size
    size = 1
    constant, contiguous = True, True
    places[0] = 0
    while first > 0 and (size == 1 or size * sizes[first - 1] <= places.size):
        first -= 1
        num_states, stride = sizes[first], strides[first]
        if num_states == 1:
            continue
        constant = constant and stride == 0
        contiguous = contiguous and stride == size
        for a in range(1, num_states):
            step = np.uint64(a * stride)
            for j in range(size):
                places[a * size + j] = places[j] + step
        size *= num_states
    num_shared = 0
    num_axes = 0
    for shared in (True, False):
        stride = size
        for a in range(first - 1, -1, -1):
            if sizes[a] > 1 and (strides[a] > 0) == shared:
                axes[0, num_axes] = sizes[a]
                axes[1, num_axes] = stride
                axes[2, num_axes] = strides[a]
                axes[3, num_axes] = 0
                num_axes += 1
            stride *= sizes[a]
        if shared:
            num_shared = num_axes
    kind = CONSTANT if constant else CONTIGUOUS if contiguous else GATHER
    return size, kind, num_shared, num_axes - num_shared


@inline
def advance(axes, first, num, which, place):
    """Step the odometer of some axes: the next place (along the strides `which`), or -1 after the last one."""
    for a in range(first, first + num):
        axes[3, a] += 1
        if axes[3, a] < axes[0, a]:
            return place + axes[which, a]
        axes[3, a] = 0
        place -= (axes[0, a] - 1) * axes[which, a]
    return -1


@inline
def place_of(axes, num):
    """Return the place of the odometer's first axes in the table."""
    place = 0
    for a in range(num):
        place += axes[3, a] * axes[1, a]
    return place


@inline
def add_to(table, at, sizes, strides, small, small_at, sign, offset, W, scratch):
    """Add a small table to a clique's: table[x] += sign * (small[x_I] - offset), with each lane's own offset."""
    block, places, axes = scratch.block, scratch.places, scratch.axes
    size, kind, num_shared, num_other = enter(sizes, strides, scratch)
    from_small = 0
    while from_small >= 0:
        begin = (small_at + from_small) * W
        if W > 1:
            fill_rows(block, size, places, small[begin:], sign, offset)
        elif kind == CONSTANT:
            value = sign * (small[begin] - offset[0])
            for j in range(size):
                block[j] = value
        elif kind == CONTIGUOUS:
            piece, less = small[begin : begin + size], offset[0]
            for j in range(size):
                block[j] = sign * (piece[j] - less)
        else:
            piece, less = small[begin:], offset[0]
            for j in range(size):
                block[j] = sign * (piece[places[j]] - less)
        place = at + place_of(axes, num_shared)
        while place >= 0:
            piece = table[place * W : (place + size) * W]
            for j in range(size * W):
                piece[j] += block[j]
            place = advance(axes, num_shared, num_other, 1, place)
        from_small = advance(axes, 0, num_shared, 2, from_small)


@inline
def sum_onto(table, at, sizes, strides, small, small_at, sign, W, scratch):
    """Sum a clique's table onto a small one: small[x_I] += sign * sum over the other axes of table[x]."""
    block, places, axes = scratch.block, scratch.places, scratch.axes
    size, kind, num_shared, num_other = enter(sizes, strides, scratch)
    to_small = 0
    while to_small >= 0:
        place = at + place_of(axes, num_shared)
        piece = table[place * W : (place + size) * W]
        for j in range(size * W):
            block[j] = sign * piece[j]
        place = advance(axes, num_shared, num_other, 1, place)
        while place >= 0:
            piece = table[place * W : (place + size) * W]
            for j in range(size * W):
                block[j] += sign * piece[j]
            place = advance(axes, num_shared, num_other, 1, place)
        begin = (small_at + to_small) * W
        if kind == CONSTANT:
            add_rows(block, size, small[begin : begin + W])
        elif kind == CONTIGUOUS:
            piece = small[begin : begin + size * W]
            for j in range(size * W):
                piece[j] += block[j]
        elif W > 1:
            add_rows_to(small[begin:], places, block, size, W)
        else:
            piece = small[begin:]
            for j in range(size):
                piece[places[j]] += block[j]
        to_small = advance(axes, 0, num_shared, 2, to_small)


@inline
def fill_rows(block, size, places, small, sign, offset):
    """Fill a block of several lanes from a small table."""
    W = offset.size
    for j in range(size):
        at = np.int64(places[j]) * W
        row, own = block[j * W : (j + 1) * W], small[at : at + W]
        for b in range(W):
            row[b] = sign * (own[b] - offset[b])


@part_in_place
def add_rows_to(small, places, block, size, W):
    """Add a block of several lanes onto a small table."""
    for j in range(size):
        at = np.int64(places[j]) * W
        own, row = small[at : at + W], block[j * W : (j + 1) * W]
        for b in range(W):
            own[b] += row[b]


@part_in_place
def add_rows(block, num_rows, out):
    """Add the sum of a block's rows to out[b]; the rows are used up. Halves are added up as long as they make long
    vectors of one lane too, then row by row."""
    W = out.size
    while num_rows > FEW_ROWS:
        half = (num_rows + 1) // 2
        near, far = block[: (num_rows - half) * W], block[half * W : num_rows * W]
        for j in range(near.size):
            near[j] += far[j]
        num_rows = half
    if W == 1:
        total = block[0]
        for r in range(1, num_rows):
            total += block[r]
        out[0] += total
        return
    for r in range(1, num_rows):
        row = block[r * W : (r + 1) * W]
        for b in range(W):
            block[b] += row[b]
    for b in range(W):
        out[b] += block[b]


@inline
def fill_products(a, b, out, W, scratch):
    """Compute sums of products: of few rows in four parts, of many in as long vectors as there is room for."""
    block, most = scratch.block, scratch.places.size
    num_rows = a.size // W
    if num_rows > most:
        block[: most * W] = 0.0
        for begin in range(0, num_rows, most):
            left, right = a[begin * W : (begin + most) * W], b[begin * W : (begin + most) * W]
            for j in range(left.size):
                block[j] += left[j] * right[j]
        out[:] = 0.0
        add_rows(block, most, out)
    elif W > 1:
        block[: 4 * W] = 0.0
        for r in range(num_rows):
            left, right = a[r * W : (r + 1) * W], b[r * W : (r + 1) * W]
            part = block[r % 4 * W : (r % 4 + 1) * W]
            for k in range(W):
                part[k] += left[k] * right[k]
        for k in range(W):
            out[k] = (block[k] + block[W + k]) + (block[2 * W + k] + block[3 * W + k])
    else:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        whole = num_rows - num_rows % 4
        for j in range(0, whole, 4):
            s0 += a[j] * b[j]
            s1 += a[j + 1] * b[j + 1]
            s2 += a[j + 2] * b[j + 2]
            s3 += a[j + 3] * b[j + 3]
        if num_rows > whole:
            s0 += a[whole] * b[whole]
        if num_rows > whole + 1:
            s1 += a[whole + 1] * b[whole + 1]
        if num_rows > whole + 2:
            s2 += a[whole + 2] * b[whole + 2]
        out[0] = (s0 + s1) + (s2 + s3)
