"""Elimination of a dense front, pair by pair, with a bound on its backward error.

In two ways.  *Skew*: a real skew-symmetric matrix A, in twice the precision: every number is a high and a low part.
*Shifted*: the Hermitian matrix i A - shift, in plain numbers, real and imaginary part.  Either is

    F = L P L* + what is left,     P = [[0, -b], [b, 0]]   or   [[a, conj b], [b, c]]   for every pair,

a pair chosen by rook pivoting among the inner rows.  A pair whose columns are too large in the outer rows is delayed:
it goes to the parent with these.

low, high   (f, f)   the front, its lower triangle: low and high parts, or real and imaginary ones
half        (f,)     the half-edge of every row: inner ones first
L, x        (4, f)   the pair's columns of L, and of the front: high and low part (or real, imaginary) of the first,
                     then of the second
rows        (f,)     bounds on the sums of |entries| along the rows
error       (2M,)    bound on the sum of |E| along the row of each half-edge, where L P L* = F + E exactly

**Backward error.**  An update f - l1 y1 - l2 y2 has an error of at most UPDATE (|f| + |l1| |y1| + |l2| |y2|), where |z|
is |re z| + |im z|; the columns l solve l P = x with a residual of at most COLUMN (|x1| + |x2|), where |a| and |c| are
at most |b| / 2 (else the front is refused), and y = x* in place of P l* is off by as much.  In units of the last place,
plain: a part of the update has four products and five additions; a column has det within 5 units, its numerators within
4, two more for the quotient, and |P^-1| |P| is at most 3.  In twice the precision: products and their sums lose what is
below the low part, a few units each, and the quotient's inverse is one step of Newton's.
"""

import numpy as np

from clampz._kernels.jit import inline, part, part_strict
from clampz._kernels.simd_math import lost_in_product, lost_in_sum
from clampz._kernels.statuses import DONE

NO_PIVOT, OUT_OF_MEMORY = 2, 3
UNIT = 2.0**-53
# In units, or units of units: roundings of an update and of a column of L, with room for that of the bounds themselves.
UPDATE, COLUMN = 24.0, 48.0
# What an entry may have lost below the smallest numbers.
UNDERFLOW = 1e-300
# Pivots whose square is smaller are none.
SMALLEST_SQUARE = 1e-280
# Entries of L in outer rows beyond which a pair is delayed.
GROWTH_LIMIT = 16.0
# Rows eliminated until the sums along the others, of which bounds are carried along, are taken again.
SUM_AGAIN = 16


@inline
def _size(low, high, i, j):
    """Return the size of an entry of the lower triangle, given in either order."""
    if i < j:
        return abs(low[j, i]) + abs(high[j, i])
    return abs(low[i, j]) + abs(high[i, j])


@part
def _swap(low, high, half, rows, p, q, skew):
    """Exchange two rows and columns of the lower triangle."""
    if p == q:
        return
    if p > q:
        p, q = q, p
    turned = -1.0 if skew else 1.0  # what becomes of the first part on the other side of the diagonal
    half[p], half[q] = half[q], half[p]
    rows[p], rows[q] = rows[q], rows[p]
    for j in range(p):
        low[p, j], low[q, j] = low[q, j], low[p, j]
        high[p, j], high[q, j] = high[q, j], high[p, j]
    for j in range(p + 1, q):
        low[j, p], low[q, j] = turned * low[q, j], turned * low[j, p]
        high[j, p], high[q, j] = -high[q, j], -high[j, p]
    low[q, p] *= turned
    high[q, p] = -high[q, p]
    low[p, p], low[q, q] = low[q, q], low[p, p]
    for j in range(q + 1, half.size):
        low[j, p], low[j, q] = low[j, q], low[j, p]
        high[j, p], high[j, q] = high[j, q], high[j, p]


@part
def _rook(low, high, k, end):
    """Find two rows from k up to end whose common entry is the largest in both (rook pivoting)."""
    p = k
    q = k
    size = -1.0
    while True:
        best = size
        r = q
        for j in range(k, end):
            if j != p:
                s = _size(low, high, p, j)
                if s > best:
                    best = s
                    r = j
        if r == q:
            return min(p, q), max(p, q)
        q, p = p, r
        size = best


@part
def _shifted_columns(re, im, k, L, x):
    """Compute the columns l = x P^-1 of a shifted pair; returns det P, or 0 where it is no pivot."""
    a = re[k, k]
    c = re[k + 1, k + 1]
    br = re[k + 1, k]
    bi = im[k + 1, k]
    b2 = br * br + bi * bi
    if not (b2 > SMALLEST_SQUARE and 4.0 * a * a <= b2 and 4.0 * c * c <= b2):  # also where it is nan
        return 0.0
    det = a * c - b2
    inverse = 1.0 / det
    for i in range(k + 2, re.shape[0]):
        x[0, i] = re[i, k]
        x[1, i] = im[i, k]
        x[2, i] = re[i, k + 1]
        x[3, i] = im[i, k + 1]
        L[0, i] = (x[0, i] * c - (x[2, i] * br - x[3, i] * bi)) * inverse
        L[1, i] = (x[1, i] * c - (x[2, i] * bi + x[3, i] * br)) * inverse
        L[2, i] = (x[2, i] * a - (x[0, i] * br + x[1, i] * bi)) * inverse
        L[3, i] = (x[3, i] * a - (x[1, i] * br - x[0, i] * bi)) * inverse
    return det


@part
def _shifted_update(re, im, k, L, x):
    """Update the front by f_ij - l_i1 conj(x_j1) - l_i2 conj(x_j2)."""
    for i in range(k + 2, re.shape[0]):
        l1r = L[0, i]
        l1i = L[1, i]
        l2r = L[2, i]
        l2i = L[3, i]
        for j in range(k + 2, i + 1):
            re[i, j] -= l1r * x[0, j] + l1i * x[1, j] + l2r * x[2, j] + l2i * x[3, j]
            im[i, j] -= l1i * x[0, j] - l1r * x[1, j] + l2i * x[2, j] - l2r * x[3, j]


@part_strict
def _skew_columns(low, high, k, L, x):
    """Compute the columns l = (-x2 / b, x1 / b) of a skew pair; returns -b^2, or 0 where it is no pivot."""
    b = high[k + 1, k]
    if not b * b > SMALLEST_SQUARE:
        return 0.0
    inverse = 1.0 / b
    product = b * inverse
    rest = ((1.0 - product) - lost_in_product(b, inverse, product) - low[k + 1, k] * inverse) * inverse
    for i in range(k + 2, low.shape[0]):
        x[0, i] = high[i, k]
        x[1, i] = low[i, k]
        x[2, i] = high[i, k + 1]
        x[3, i] = low[i, k + 1]
        product = x[0, i] * inverse
        small = lost_in_product(x[0, i], inverse, product) + (x[0, i] * rest + x[1, i] * inverse)
        L[2, i] = product + small
        L[3, i] = small - (L[2, i] - product)
        product = x[2, i] * inverse
        small = lost_in_product(x[2, i], inverse, product) + (x[2, i] * rest + x[3, i] * inverse)
        L[0, i] = -(product + small)
        L[1, i] = -(small + (L[0, i] + product))
    return -b * b


@part_strict
def _skew_update(low, high, k, L, x):
    """Update the front by f_ij + l_i1 x_j1 + l_i2 x_j2, in twice the precision."""
    for i in range(k + 2, low.shape[0]):
        l1 = L[0, i]
        l1_low = L[1, i]
        l2 = L[2, i]
        l2_low = L[3, i]
        for j in range(k + 2, i):
            one = l1 * x[0, j]
            two = l2 * x[2, j]
            small = lost_in_product(l1, x[0, j], one) + lost_in_product(l2, x[2, j], two)
            small += (l1 * x[1, j] + l1_low * x[0, j]) + (l2 * x[3, j] + l2_low * x[2, j])
            f = high[i, j]
            # f + one + two, and what these lose
            t = f + one
            part = t - f
            small += (f - (t - part)) + (one - part)
            s = t + two
            part = s - t
            small += (t - (s - part)) + (two - part)
            small += low[i, j]
            t = s + small
            part = t - s
            high[i, j] = t
            low[i, j] = (s - (t - part)) + (small - part)


@part
def _sum_rows(low, high, k, rows):
    """Sum the absolute entries along the rows, from row and column k on."""
    for i in range(k, low.shape[0]):
        rows[i] = abs(low[i, i])
        for j in range(k, i):
            s = abs(low[i, j]) + abs(high[i, j])
            rows[i] += s
            rows[j] += s


@part
def eliminate_front(low, high, half, num_inner, skew, L, x, rows, error):
    """Eliminate the inner rows of a front pair by pair: (status, rows eliminated, sum of log |det P|, its rounding)."""
    f = half.size
    total = 0.0
    lost = 0.0
    rounding = 0.0
    unit = UNIT * UNIT if skew else UNIT
    update = UPDATE * unit
    column = COLUMN * unit
    k = 0
    end = num_inner
    while k < end:
        if k % SUM_AGAIN == 0:
            _sum_rows(low, high, k, rows)
        p, q = _rook(low, high, k, end)
        _swap(low, high, half, rows, k, p, skew)
        _swap(low, high, half, rows, k + 1, q, skew)
        det = _skew_columns(low, high, k, L, x) if skew else _shifted_columns(low, high, k, L, x)
        largest = np.inf if det == 0.0 else 0.0
        first = 0.0
        second = 0.0
        for i in range(k + 2, f):
            first += abs(x[0, i]) + abs(x[1, i])
            second += abs(x[2, i]) + abs(x[3, i])
            if i >= end:
                largest = max(largest, abs(L[0, i]) + abs(L[1, i]), abs(L[2, i]) + abs(L[3, i]))
        if num_inner < f and not largest <= GROWTH_LIMIT:
            end -= 2
            _swap(low, high, half, rows, k + 1, end + 1, skew)
            _swap(low, high, half, rows, k, end, skew)
            continue
        if det == 0.0:
            return NO_PIVOT, k, total, rounding
        term = np.log(-det)
        lost += lost_in_sum(total, term)
        total += term
        rounding += UPDATE * UNIT + 2 * UNIT * abs(term)
        for i in range(k, k + 2):
            error[half[i]] += column * (first + second) + update * rows[i] + f * UNDERFLOW
        for i in range(k + 2, f):
            one = abs(L[0, i]) + abs(L[1, i])
            two = abs(L[2, i]) + abs(L[3, i])
            grown = one * first + two * second
            error[half[i]] += (
                update * (rows[i] + grown)
                + column * (one + two) * (first + second)
                + column * (abs(x[0, i]) + abs(x[1, i]) + abs(x[2, i]) + abs(x[3, i]))
                + f * UNDERFLOW
            )
            rows[i] += grown
        if skew:
            _skew_update(low, high, k, L, x)
            for i in range(k + 2, f):  # for the inverse, where later exchanges of rows reach them
                high[i, k] = L[0, i]
                high[i, k + 1] = L[2, i]
        else:
            _shifted_update(low, high, k, L, x)
        k += 2
    return DONE, k, total + lost, rounding
