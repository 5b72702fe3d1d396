"""Sets of variables as bits of 64-bit words, and graphs as a row of bits for each variable.

Products of words may overflow here, as in `random_numbers`.

words            (words,)      bit u: u is in the set
rows             (n, words)    bit u of row v: u and v are neighbours
"""

import numpy as np

from clampz._kernels.jit import inline, kernel, part

ONE = np.uint64(1)
ZERO = np.uint64(0)
WORD = 64


@inline
def popcount(x):
    """Count the set bits."""
    # LLVM knows this sequence and makes it one instruction
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inline
def bit(u):
    """Return the bit of u in its word."""
    return ONE << np.uint64(u & 63)


@part
def members(words, out):
    """List the numbers of the set bits; returns how many."""
    count = 0
    for w in range(words.size):
        left = words[w]
        while left != ZERO:
            low = left & (~left + ONE)
            out[count] = w * WORD + popcount(low - ONE)
            count += 1
            left ^= low
    return count


@kernel
def bit_rows(rest, begin, count, pool):
    """Build the bit matrix of the graph among the variables `rest`, numbered by their place in `rest`."""
    size = rest.size
    place = np.full(begin.size, -1, dtype=np.int64)
    for i in range(size):
        place[rest[i]] = i
    rows = np.zeros((size, (size + WORD - 1) // WORD), dtype=np.uint64)
    for i in range(size):
        v = rest[i]
        for p in range(begin[v], begin[v] + count[v]):
            u = place[pool[p]]
            rows[i, u // WORD] |= bit(u)
    return rows


@kernel
def row_lists(rows):
    """Turn a bit matrix into neighbour lists: those of v are neighbour[start[v] : start[v + 1]]."""
    n = rows.shape[0]
    start = np.zeros(n + 1, dtype=np.int64)
    for v in range(n):
        start[v + 1] = start[v]
        for w in range(rows.shape[1]):
            start[v + 1] += popcount(rows[v, w])
    neighbour = np.empty(start[n], dtype=np.int64)
    for v in range(n):
        members(rows[v], neighbour[start[v] :])
    return start, neighbour
