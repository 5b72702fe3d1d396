"""Exact sums over subgraphs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import clampz as cz
from clampz.bracketing.narrow import Narrow


def test_a_subgraph_serves_many_threads():
    """Each has working memory of its own."""
    model = cz.generators.grid(5, 5, weights=(-6, 6), rng=0)
    narrow = Narrow.of(model, 1e9)
    subgraph = narrow.sums_of(model.unary.flat).subgraphs[0]
    lanes = [model.unary.flat + shift for shift in np.linspace(0, 1, 8)]
    wanted = [subgraph.moments(lane, model.pairwise.flat).log_z for lane in lanes]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert list(pool.map(lambda lane: subgraph.moments(lane, model.pairwise.flat).log_z, lanes)) == wanted
