"""Lanes over threads: a batch is cut into blocks of lanes, and a single large model into ranges of slots.

The kernels release the GIL, so threads run them side by side.  No result depends on how many threads there are: lanes
do not touch each other, and a range is cut where the arithmetic is the same on both sides.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from clampz._kernels.messages import FULL_LANES
from clampz.numerics import Integers

T = TypeVar("T")

# Lanes per block at most: the messages of a hundred-variable model times 64 lanes still fit in a second-level cache.
MAX_BLOCK = 64
# Values (messages times lanes) below which a range is not worth cutting: handing it to another thread costs about 20
# microseconds.
MIN_RANGE = 50_000
# Sums over ranges are taken in blocks of this size whatever the number of threads, so that rounding is the same.
SUM_BLOCK = 1 << 16


class Workers:
    """A pool of threads; with one thread, no pool."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None

    def map(self, function: Callable[[Any], T], items: list[Any]) -> list[T]:
        """The function of each item, in order."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


@contextmanager
def workers(num_threads: int) -> Iterator[Workers]:
    """Workers for the length of a run."""
    pool = Workers(num_threads)
    try:
        yield pool
    finally:
        pool.close()


def lane_blocks(num_lanes: int, num_threads: int, max_block: int | None = None) -> list[Integers]:
    """Cut lanes into blocks: as many as keep the threads busy, none smaller than fills the vector registers unless
    `max_block` does not allow that."""
    size = max(1, -(-num_lanes // num_threads))
    size = min(MAX_BLOCK if max_block is None else max_block, -(-size // FULL_LANES) * FULL_LANES)
    begin = np.arange(0, num_lanes, size)
    if len(begin) > 1 and size >= FULL_LANES > num_lanes - begin[-1]:
        begin = begin[
            :-1
        ]  # a remainder joins the last block: alone it would be too few lanes for the kernels of full ones, which round differently
    return np.split(np.arange(num_lanes), begin[1:]) if num_lanes else []


def padded(lanes: Integers, enough: bool) -> Integers:
    """Lanes repeated up to a multiple of the vector width, where there are `enough` of them to use it: remainders run
    at scalar speed."""
    if not enough or len(lanes) % FULL_LANES == 0:
        return lanes
    return np.concatenate([lanes, np.repeat(lanes[-1:], -len(lanes) % FULL_LANES)])


def cut(first: int, last: int, num_parts: int) -> list[tuple[int, int]]:
    """A range in about equal parts."""
    bounds = np.linspace(first, last, num_parts + 1).astype(np.int64)
    return [(int(a), int(b)) for a, b in pairwise(bounds) if a < b]


def sum_blocks(size: int) -> list[tuple[int, int]]:
    """A range in blocks that do not depend on the number of threads."""
    return [(begin, min(begin + SUM_BLOCK, size)) for begin in range(0, size, SUM_BLOCK)]
