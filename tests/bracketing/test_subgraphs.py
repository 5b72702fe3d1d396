"""Exact sums over subgraphs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import clampz as cz
from clampz.bracketing.narrow import Narrow
from clampz.watch import Watch


def test_a_subgraph_serves_many_threads():
    """Each has working memory of its own."""
    model = cz.generators.grid(5, 5, weights=(-6, 6), rng=0)
    narrow = Narrow.of(model, 1e9)
    sums = narrow.sums_of(model.unary.flat, Watch())
    lanes = [model.unary.flat + shift for shift in np.linspace(0, 1, 8)]

    def log_z(lane):
        with sums.workspace() as workspace:
            return sums.subgraphs[0].moments(lane, model.pairwise.flat, workspace, Watch()).log_z

    wanted = [log_z(lane) for lane in lanes]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert list(pool.map(log_z, lanes)) == wanted
