"""A small table against a clique's: added along the axes that they share, or summed onto.

table    (T,)   tables of all cliques; the one meant begins at `at`, its last axis fastest
sizes    (A,)   states along each axis of that table
strides  (A,)   how far apart in the small table two states of that axis are; 0: the small table does not have the axis
small    (S,)   small tables; the one meant begins at `small_at`
scratch         see LinkScratch

The last axes, as many as `scratch.block` holds, are one *block*.  Of those before it, the ones that both tables have
are walked outside, the others inside: a block is expanded, or summed up, once for all states of what the small table
does not have, and the innermost loops run over contiguous entries.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import inline, part_with

# Sums vectorise only where the compiler may reorder them; beliefs are finite.
reducing = part_with("reassoc")

# What a block is of the small table: all of one entry, as it stands there, or anything else.
CONSTANT, CONTIGUOUS, GATHER = 0, 1, 2


class LinkScratch(NamedTuple):
    """What kernels write into as they work."""

    axes: NDArray[np.int64]  # (4, A) of an odometer: size, stride in the table, stride in the small one, state
    block: NDArray[np.float64]  # at least as many entries as any variable has states
    places: NDArray[np.uint64]  # as many: where a block's entries are in the small table
    total: NDArray[np.float64]  # of power sums
    own: NDArray[np.int32] | NDArray[np.int64]  # (2, A) sizes and strides of a table of the model's
    shift: NDArray[np.float64]  # (3, entries of the largest shift) of matching


@inline
def enter(sizes, strides, scratch):
    """Cut the axes into the block and those outside it; returns the block's size and kind, and how many axes outside
    are shared and how many are not.  Those are laid out in `scratch.axes`, shared ones first; `scratch.places` has
    where the block's entries are in the small table."""
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
    """Turn the odometer of some axes: the next place (along the strides `which`), or -1 after the last one."""
    for a in range(first, first + num):
        axes[3, a] += 1
        if axes[3, a] < axes[0, a]:
            return place + axes[which, a]
        axes[3, a] = 0
        place -= (axes[0, a] - 1) * axes[which, a]
    return -1


@inline
def place_of(axes, num):
    """Where the odometer's first axes stand in the table."""
    place = 0
    for a in range(num):
        place += axes[3, a] * axes[1, a]
    return place


@inline
def add_to(table, at, sizes, strides, small, small_at, sign, offset, scratch):
    """table[x] += sign * (small[x_I] - offset)."""
    block, places, axes = scratch.block, scratch.places, scratch.axes
    size, kind, num_shared, num_other = enter(sizes, strides, scratch)
    from_small = 0
    while from_small >= 0:
        if kind == CONSTANT:
            value = sign * (small[small_at + from_small] - offset)
            for j in range(size):
                block[j] = value
        elif kind == CONTIGUOUS:
            piece = small[small_at + from_small : small_at + from_small + size]
            for j in range(size):
                block[j] = sign * (piece[j] - offset)
        else:
            piece = small[small_at + from_small :]
            for j in range(size):
                block[j] = sign * (piece[places[j]] - offset)
        place = at + place_of(axes, num_shared)
        while place >= 0:
            piece = table[place : place + size]
            for j in range(size):
                piece[j] += block[j]
            place = advance(axes, num_shared, num_other, 1, place)
        from_small = advance(axes, 0, num_shared, 2, from_small)


@inline
def sum_onto(table, at, sizes, strides, small, small_at, sign, scratch):
    """small[x_I] += sign * sum over the other axes of table[x]."""
    block, places, axes = scratch.block, scratch.places, scratch.axes
    size, kind, num_shared, num_other = enter(sizes, strides, scratch)
    to_small = 0
    while to_small >= 0:
        place = at + place_of(axes, num_shared)
        piece = table[place : place + size]
        for j in range(size):
            block[j] = sign * piece[j]
        place = advance(axes, num_shared, num_other, 1, place)
        while place >= 0:
            piece = table[place : place + size]
            for j in range(size):
                block[j] += sign * piece[j]
            place = advance(axes, num_shared, num_other, 1, place)
        if kind == CONSTANT:
            small[small_at + to_small] += sum_of(block[:size])
        elif kind == CONTIGUOUS:
            piece = small[small_at + to_small : small_at + to_small + size]
            for j in range(size):
                piece[j] += block[j]
        else:
            piece = small[small_at + to_small :]
            for j in range(size):
                piece[places[j]] += block[j]
        to_small = advance(axes, 0, num_shared, 2, to_small)


@reducing
def sum_of(values):
    total = 0.0
    for j in range(values.size):
        total += values[j]
    return total
