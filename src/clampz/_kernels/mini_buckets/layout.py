"""Arrays that the passes over mini-buckets share.

Cliques are numbered in order of elimination, bucket by bucket.  The first axis of a clique's table is its bucket's own
variable, which is summed out: what is left, contiguous, is its message.  A *link* of a clique is a small table that is
added to its own: the message of a child, or a shift, with the sign that it has here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.mini_buckets.links import LinkScratch
from clampz._kernels.statuses import DONE as DONE
from clampz._kernels.statuses import STOPPED as STOPPED

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.int32] | Integers  # as long as they fit, the smaller: large models have many

# What a link may be: a message, or a shift that is added or subtracted.
MESSAGE, ADDED, SUBTRACTED = 0, 1, -1

# What is done about the shifts of a bucket on the way: nothing, hard zeros of one clique become those of the other, or
# that and the shifts are set so that both agree.
AS_THEY_ARE, ZEROS, MATCHED = 0, 1, 2

# How a pass may have ended: with no configuration possible (or the lower bound infinitely low).
NOTHING = 2


class CliqueLayout(NamedTuple):
    """The index arrays of n variables, C cliques, P shifts and L links."""

    bucket_start: Integers  # (n + 1,) cliques of a bucket
    pair_start: Integers  # (n + 1,) shifts of a bucket
    scope_start: Integers  # (C + 1,) axes of a clique
    sizes: Places  # states along each axis
    table_start: Integers  # (C + 1,) entries of a clique's table
    message_start: Integers  # (C + 1,) entries of its message
    parent: Integers  # (C,) where that goes; -1: it is a number
    link_start: Integers  # (C + 1,) links of a clique
    link_kind: NDArray[np.int8]  # (L,) MESSAGE, ADDED, SUBTRACTED
    link_of: Places  # (L,) the child, or the shift
    stride_start: Integers  # (C + 1,) strides of a clique's links, link by link, one for each of its axes
    strides: Places
    pair_left: Integers  # (P,) the clique that a shift is added to
    pair_right: Integers  # (P,) the one that it is subtracted from
    shift_start: Integers  # (P + 1,) entries of a shift


class Pass(NamedTuple):
    """The arrays that passes over W lanes of one side write, the lane last in every array. `table` is psi, then p(x |
    rest), then beliefs; `message` is m, then the belief of what it is over; `entropy` is that of x given the rest."""

    each: tuple[float] | Floats  # of length W; a tuple of one lane alone, for which kernels are then compiled
    table: Floats  # (T W,)
    message: Floats  # (M W,)
    entropy: Floats  # (M W,)
    peak: Floats  # (C W,) largest entry of a message, which is taken out of it
    spread: Floats  # (C W,) by how much its smallest possible entry is less
    weight: Floats  # (C W,)
    clique_entropy: Floats  # (C W,) entropy of x given the rest, over the beliefs
    shift_size: Floats  # (P W,) the largest entry of a shift
    value: Floats  # (W,) the bound
    error: Floats  # (W,) what rounding may have taken from it
    lost: Floats  # (W,) what sums of peaks have lost so far
    sizes: Floats  # (W,) absolute values of peaks
    largest: Floats  # (W,) the largest shift or v
    spare: Floats  # (2, W)
    scratch: LinkScratch
