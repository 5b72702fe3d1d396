"""Elimination of the matrix of a planar graph front by front, along a nested dissection of its cities.

The matrix A is real and skew-symmetric, a row for every half-edge: in a city an earlier half-edge is joined to a later
one by +scale * scale, the even side of an edge to its odd side by its weight, which has a sign.  The front of a node of
the dissection is a dense matrix: what its children left, or one city, and the edges whose second side is met here.
Half-edges with both sides inside are inner rows and eliminated (`front_elimination`), unless they are delayed; what is
left goes to the parent.

tree        the dissection: see `dissection`
matrix      the entries of A
left        what nodes have left and their parents have not yet taken, the last on top
kept        of every node its half-edges as they were eliminated, followed by the others, and its columns of L
cancel_flag        (1,)     raised from outside when the run is over
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.planar.front_elimination import OUT_OF_MEMORY, eliminate_front
from clampz._kernels.simd_math import lost_in_sum
from clampz._kernels.statuses import DONE, STOPPED

# Updates of entries between two looks at the flag, a millisecond or two.
LOOK_EVERY = 1 << 18


class Dissection(NamedTuple):
    """A dissection tree: nodes are ranges of `place`s, and children come before their parent."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    children: NDArray[np.int64]
    order: NDArray[np.int64]
    place: NDArray[np.int64]


class Matrix(NamedTuple):
    """The entries of A: half-edges by city, the city of each, scales and weights."""

    city_start: NDArray[np.int64]
    city_half: NDArray[np.int32]
    city_of: NDArray[np.int64]
    scale: NDArray[np.float64]
    weight: NDArray[np.float64]


class KeptColumns(NamedTuple):
    """The eliminated columns: node t has `half[start[t] : start[t + 1]]`, the first `num_done[t]` of them eliminated.
    Its columns of L begin at `first[t]`."""

    start: NDArray[np.int64]
    half: NDArray[np.int32]
    num_done: NDArray[np.int64]
    first: NDArray[np.int64]
    columns: NDArray[np.float64]


@inline
def _copy(array, more):
    """Copy an array into one with room for more."""
    for i in range(array.size):
        more[i] = array[i]


@part
def _rows_of(t, tree, matrix, half, left_half, left_start, left_num, left_delayed):
    """Collect the half-edges of a node's front, inner ones first: (how many, how many inner)."""
    low = tree.low[t]
    high = tree.high[t]
    inner = 0
    size = 0
    if tree.children[t, 0] < 0:
        c = tree.order[low]
        first = matrix.city_start[c]
        size = matrix.city_start[c + 1] - first
        outer = size
        for p in range(first, first + size):
            h = matrix.city_half[p]
            if matrix.city_of[h ^ 1] != c:
                outer -= 1
                half[outer] = h
            elif h & 1 == 0:
                half[inner] = h
                half[inner + 1] = h ^ 1
                inner += 2
        return size, inner
    for s in range(2):
        size += left_num[tree.children[t, s]]
    outer = size
    for s in range(2):
        child = tree.children[t, s]
        for p in range(left_num[child]):
            h = left_half[left_start[child] + p]
            if p < left_delayed[child]:
                half[inner] = h
                inner += 1
                continue
            other = tree.place[matrix.city_of[h ^ 1]]
            if other < low or other >= high:
                outer -= 1
                half[outer] = h
            elif s == 0:
                half[inner] = h
                half[inner + 1] = h ^ 1
                inner += 2
    return size, inner


@part
def _join(low, high, p, q, value, skew):
    """Add a value to A[p, q]: to the imaginary part, or to high and low parts."""
    if p < q:
        p, q = q, p
        value = -value
    if skew:
        low[p, q] += lost_in_sum(high[p, q], value)
    high[p, q] += value


@part
def _assemble(t, tree, matrix, half, at, low, high, shift, left_half, left_start, left_num, left_first, left):
    """Assemble the front of a node from its children's remainders, or its city, and the edges inside."""
    skew = shift == 0.0
    turned = -1.0 if skew else 1.0
    f = half.size
    for i in range(f):
        at[half[i]] = i
        for j in range(i + 1):
            low[i, j] = 0.0
            high[i, j] = 0.0
    if tree.children[t, 0] < 0:
        c = tree.order[tree.low[t]]
        end = matrix.city_start[c + 1]
        for p in range(matrix.city_start[c], end):
            h = matrix.city_half[p]
            low[at[h], at[h]] = -shift
            for q in range(p + 1, end):
                g = matrix.city_half[q]
                _join(low, high, at[h], at[g], matrix.scale[h] * matrix.scale[g], skew)
    else:
        for s in range(2):
            child = tree.children[t, s]
            taken = left_first[child]
            for i in range(left_num[child]):
                p = at[left_half[left_start[child] + i]]
                for j in range(i + 1):
                    q = at[left_half[left_start[child] + j]]
                    if p >= q:
                        low[p, q] = left[0, taken]
                        high[p, q] = left[1, taken]
                    else:
                        low[q, p] = turned * left[0, taken]
                        high[q, p] = -left[1, taken]
                    taken += 1
    # edges both of whose sides are met here for the first time
    for i in range(f):
        h = half[i]
        if h & 1 == 0:
            j = at[h ^ 1]
            if j < f and half[j] == h ^ 1 and _first_met(t, h, tree, matrix):
                _join(low, high, i, j, matrix.weight[h >> 1], skew)


@part
def _first_met(t, h, tree, matrix):
    """Whether the two sides of an edge inside a node are in no child of it together."""
    if tree.children[t, 0] < 0:
        return True
    middle = max(tree.low[tree.children[t, 0]], tree.low[tree.children[t, 1]])
    one = tree.place[matrix.city_of[h]] < middle
    return one != (tree.place[matrix.city_of[h ^ 1]] < middle)


@kernel
def factorise(tree, matrix, shift, most, keep, cancel_flag):
    """Factorise A in twice the precision, or i A - shift: (status, log |det|, rounding, error by half-edge,
    KeptColumns). Gives up where more than `most` numbers would be in memory at a time."""
    skew = shift == 0.0
    num_half = matrix.city_half.size
    num_nodes = tree.low.size
    error = np.zeros(num_half)
    at = np.full(num_half, num_half, dtype=np.int64)
    size = 16
    low = np.empty((size, size))
    high = np.empty((size, size))
    work_half = np.empty(size, dtype=np.int32)
    L = np.zeros((4, size))
    x = np.zeros((4, size))
    rows = np.empty(size)
    left_half = np.empty(64, dtype=np.int32)
    left = np.empty((2, 256))
    left_start = np.zeros(num_nodes, dtype=np.int64)
    left_first = np.zeros(num_nodes, dtype=np.int64)
    left_num = np.zeros(num_nodes, dtype=np.int64)
    left_delayed = np.zeros(num_nodes, dtype=np.int64)
    kept_start = np.zeros(num_nodes + 1, dtype=np.int64)
    kept_half = np.empty(64, dtype=np.int32)
    kept_done = np.zeros(num_nodes, dtype=np.int64)
    kept_first = np.zeros(num_nodes + 1, dtype=np.int64)
    columns = np.empty(256)
    total = 0.0
    lost = 0.0
    rounding = 0.0
    work = 0
    status = DONE
    for t in range(num_nodes):
        f = 8
        if tree.children[t, 0] >= 0:
            f = left_num[tree.children[t, 0]] + left_num[tree.children[t, 1]]
        if f > size:
            size = f + f // 4
            if 2 * size * size + left.size + columns.size > most:
                status = OUT_OF_MEMORY
                break
            low = np.empty((size, size))
            high = np.empty((size, size))
            work_half = np.empty(size, dtype=np.int32)
            L = np.zeros((4, size))
            x = np.zeros((4, size))
            rows = np.empty(size)
        f, inner = _rows_of(t, tree, matrix, work_half, left_half, left_start, left_num, left_delayed)
        work += f * f * (inner + 8) // (1 if skew else 4)
        if work > LOOK_EVERY:
            work = 0
            if cancel_flag[0]:
                status = STOPPED
                break
        half = work_half[:f]
        F_low = low[:f, :f]
        F_high = high[:f, :f]
        _assemble(t, tree, matrix, half, at, F_low, F_high, shift, left_half, left_start, left_num, left_first, left)
        status, done, more, more_rounding = eliminate_front(
            F_low, F_high, half, inner, skew, L[:, :f], x[:, :f], rows[:f], error
        )
        lost += lost_in_sum(total, more)
        total += more
        rounding += more_rounding
        if status != DONE:
            break
        # the children's place is free
        half_top = 0
        top = 0
        if t > 0:
            last = t - 1
            if tree.children[t, 0] >= 0:
                last = min(tree.children[t, 0], tree.children[t, 1])
                half_top = left_start[last]
                top = left_first[last]
            else:
                half_top = left_start[last] + left_num[last]
                top = left_first[last] + left_num[last] * (left_num[last] + 1) // 2
        num = f - done
        if half_top + num > left_half.size:
            more_half = np.empty(max(half_top + num, 2 * left_half.size), dtype=left_half.dtype)
            _copy(left_half, more_half)
            left_half = more_half
        if top + num * (num + 1) // 2 > left.shape[1]:
            room = 2 * (top + num * (num + 1) // 2)
            if 2 * size * size + 3 * room + columns.size > most:
                status = OUT_OF_MEMORY
                break
            more_left = np.empty((2, room))
            for side in range(2):
                for i in range(top):
                    more_left[side, i] = left[side, i]
            left = more_left
        left_start[t] = half_top
        left_first[t] = top
        left_num[t] = num
        left_delayed[t] = inner - done
        for i in range(done, f):
            left_half[half_top + i - done] = half[i]
            for j in range(done, i + 1):
                left[0, top] = F_low[i, j]
                left[1, top] = F_high[i, j]
                top += 1
        if keep:
            filled = kept_start[t]
            if filled + f > kept_half.size:
                more_kept = np.empty(max(filled + f, 2 * kept_half.size), dtype=kept_half.dtype)
                _copy(kept_half, more_kept)
                kept_half = more_kept
            for i in range(f):
                kept_half[filled + i] = half[i]
            kept_start[t + 1] = filled + f
            kept_done[t] = done
            filled = kept_first[t]
            need = filled + (done // 2) * (2 * f - done - 1)
            if need > columns.size:
                if 2 * size * size + left.size + 3 * need > most:
                    status = OUT_OF_MEMORY
                    break
                more_columns = np.empty(max(need, 2 * columns.size))
                _copy(columns, more_columns)
                columns = more_columns
            for k in range(0, done, 2):
                columns[filled] = F_high[k + 1, k]
                filled += 1
                for i in range(k + 2, f):
                    columns[filled] = F_high[i, k]
                    columns[filled + 1] = F_high[i, k + 1]
                    filled += 2
            kept_first[t + 1] = filled
    kept = KeptColumns(kept_start, kept_half, kept_done, kept_first, columns)
    return status, total + lost, rounding, error, kept


@kernel
def inverse_of_pairs(tree, num_half, kept, cancel_flag):
    """(M,) compute the entry [2e + 1, 2e] of A's inverse for every edge e. Fronts go from the root down, pairs from the
    last to the first. With R the rows after a pair in its front, and l its columns there: X_Rk = -X_RR l, X_kk = P^-1 -
    l^T X_Rk."""
    start = kept.start
    num_nodes = tree.low.size
    found = np.zeros(num_half // 2)
    at = np.full(num_half, num_half, dtype=np.int64)
    largest = 0
    for t in range(num_nodes):
        largest = max(largest, start[t + 1] - start[t])
    X = np.zeros((largest, largest))
    given = np.empty(256)
    given_start = np.zeros(num_nodes, dtype=np.int64)
    work = 0
    for t in range(num_nodes - 1, -1, -1):
        half = kept.half[start[t] : start[t + 1]]
        f = half.size
        done = kept.num_done[t]
        work += f * f * (done + 8)
        if work > LOOK_EVERY:
            work = 0
            if cancel_flag[0]:
                return found
        top = given_start[t]
        p = top
        for i in range(done, f):
            for j in range(done, f):
                X[i, j] = given[p]
                p += 1
        filled = kept.first[t + 1]
        for k in range(done - 2, -1, -2):
            filled -= 1 + 2 * (f - k - 2)
            L = kept.columns[filled + 1 : filled + 1 + 2 * (f - k - 2)]
            corner = 1.0 / kept.columns[filled]
            for i in range(k + 2, f):
                one = 0.0
                two = 0.0
                for j in range(k + 2, f):
                    one += X[i, j] * L[2 * (j - k - 2)]
                    two += X[i, j] * L[2 * (j - k - 2) + 1]
                X[i, k] = -one
                X[i, k + 1] = -two
                X[k, i] = one
                X[k + 1, i] = two
                corner += L[2 * (i - k - 2)] * two
            X[k, k] = 0.0
            X[k + 1, k + 1] = 0.0
            X[k, k + 1] = corner
            X[k + 1, k] = -corner
        for i in range(f):
            at[half[i]] = i
        for i in range(f):
            j = at[half[i] ^ 1]
            if half[i] & 1 == 0 and j < f and half[j] == half[i] ^ 1:
                found[half[i] >> 1] = X[j, i]
        if tree.children[t, 0] >= 0:  # the later child takes what it is given first
            for s in range(2):
                child = min(tree.children[t, 0], tree.children[t, 1])
                if s == 1:
                    child = max(tree.children[t, 0], tree.children[t, 1])
                given_start[child] = top
                first = start[child] + kept.num_done[child]
                num = start[child + 1] - first
                if top + num * num > given.size:
                    more = np.empty(max(top + num * num, 2 * given.size), dtype=given.dtype)
                    _copy(given, more)
                    given = more
                for p in range(first, first + num):
                    for q in range(first, first + num):
                        given[top] = X[at[kept.half[p]], at[kept.half[q]]]
                        top += 1
    return found
