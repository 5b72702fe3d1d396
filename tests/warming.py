"""The kernels that take long to compile, in shares: each process of a run compiles its own before its tests, where all
would else compile the same ones at the same time.  What no share reaches is compiled by the test that needs it."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

import clampz as cz
from clampz.planar.sums import planar_sum
from clampz.simplifying.call import simplify


def simplifying() -> None:
    rng = np.random.default_rng(0)
    triples = [((i, i + 1, i + 2), rng.normal(size=(2, 2, 2))) for i in range(3)]
    found = simplify(cz.Model(np.zeros((6, 2)), {(4, 5): np.eye(2)}, factors=triples), pairwise=True)
    rest = found.model
    found.marginals(np.ones(len(rest.unary.flat) + len(rest.pairwise.flat) + len(rest.factors.flat)))
    simplify(rest, operation="max").states(np.zeros((1, 0), dtype=np.int64), rng=0)


def eliminating() -> None:
    for weights in ((-2, 2), (-900, 900)):  # as numbers and as logarithms
        cz.exact(cz.generators.grid(3, 3, weights=weights, rng=0), engine="elimination")


def planar() -> None:
    planar_sum(cz.generators.grid(4, 4, theta=(0, 0), toroidal=False, rng=0), marginals=True)


def contracting() -> None:
    for weights in ((-2, 2), (-900, 900)):
        cz.exact(cz.generators.grid(9, 9, weights=weights, rng=0), engine="elimination")


def with_pairs() -> None:
    approximated(cz.generators.grid(3, 3, rng=0))


def with_labels() -> None:
    approximated(cz.generators.cycle(5, labels=3, potentials="table", rng=0))


def approximated(model: cz.Model) -> None:
    for method in (cz.trw, cz.bethe, cz.mean_field):
        method(model, max_iter=2).pairwise_marginals  # noqa: B018 (computed when asked for)


# The shares of two processes take about as long.
SHARES: list[Callable[[], None]] = [simplifying, eliminating, planar, contracting, with_pairs, with_labels]


def warm(process: int, num_processes: int) -> None:
    for share in SHARES[process::num_processes]:
        with suppress(Exception):  # the tests say what is wrong
            share()
