"""Solver: one model, clamped at many sets of variables, each solved once per method whoever asks for it.

The sum over the joint states of a set does not depend on the order in which its variables were clamped.  All sets that
are asked for together are laid out as one batch of lanes, 2^k for a set of k variables.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from clampz.approximations.registry import METHODS
from clampz.clamping.selectors import choose, scores
from clampz.clamping.selectors.registry import TRE
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.tables import Floats
from clampz.numerics import log_sum_exp
from clampz.paper.settings import Settings

Set = tuple[int, ...]  # variables clamped together, in increasing order

# Lanes solved in one call: enough to fill any block of the engine, and a few tens of megabytes at most.
MAX_LANES = 2048
# Seconds of computing by the thread that asks: with one thread that is what a machine without other work would take,
# and other work does not disturb it.
clock = time.thread_time


class Sum(NamedTuple):
    """What a method says of a model clamped at a set of variables.

    log_z       the sum over the branches: of the certified bounds of mean field and TRW, of the values of Bethe
    num_left    branches that have not converged
    entropy     (n,) for TRW: the variables' entropies, averaged over the branches with TRW's weights
    """

    log_z: float
    num_left: int
    num_branches: int
    entropy: Floats | None = None


# Batches solved before, with the seconds that they took.
Recorded = dict[tuple[str, tuple[Set, ...]], tuple[list[Sum], float]]


class Solver:
    """Solves sets of clamped variables, and asks the heuristics at them; keeps what it has found.

    `seconds` is what all that took on one thread.  Solvers that share a record of batches take each other's results for
    the same batch, and the seconds of the first: for timing many selectors that choose alike, each as if it ran alone.
    """

    def __init__(self, model: Model, settings: Settings, threads: int = 1, recorded: Recorded | None = None) -> None:
        self.model = model
        self.settings = settings
        self.threads = threads
        self.seconds = 0.0
        self._recorded = recorded
        self._sums: dict[tuple[str, Set], Sum] = {}
        self._scores: dict[tuple[str, Set], Floats] = {}

    def sum(self, method: str, clamped: Set) -> Sum:
        """Of a set that has been solved."""
        return self._sums[method, clamped]

    def solve(self, method: str, sets: Iterable[Set]) -> None:
        """Solve those of these sets, all of one size, that have not been solved yet: as one batch."""
        new = tuple(clamped for clamped in dict.fromkeys(sets) if (method, clamped) not in self._sums)
        if not new:
            return
        known = None if self._recorded is None else self._recorded.get((method, new))
        if known is None:
            began = clock()
            known = self._solved(method, new), clock() - began
            if self._recorded is not None:
                self._recorded[method, new] = known
        sums, seconds = known
        self._sums |= {(method, clamped): found for clamped, found in zip(new, sums, strict=True)}
        self.seconds += seconds

    def choices(self, names: Sequence[str], clamped: Set) -> dict[str, int]:
        """The variable that each of these heuristics would clamp next; those with +TRE need TRW solved at the set."""
        began = clock()
        found = {}
        for name in names:
            plain = name.removesuffix(TRE)
            if (plain, clamped) not in self._scores:
                self._scores[plain, clamped] = scores(self.model, plain, clamped=clamped)
            values = self._scores[plain, clamped]
            entropy = self.sum("trw", clamped).entropy if name != plain else None
            found[name] = choose(
                self.model, values if entropy is None else values * entropy, clamped=clamped, entropy=entropy
            ).variable
        self.seconds += clock() - began
        return found

    def _solved(self, method: str, sets: tuple[Set, ...]) -> list[Sum]:
        size = max(1, MAX_LANES >> len(sets[0]))
        return [
            found
            for first in range(0, len(sets), size)
            for found in self._solved_together(method, sets[first : first + size])
        ]

    def _solved_together(self, method: str, sets: tuple[Set, ...]) -> list[Sum]:
        estimates = METHODS[method](
            clamped_lanes(self.model, sets), options=self.settings.options(method, self.threads)
        )
        log_z = (estimates.value if method == "bethe" else estimates.log_z).reshape(len(sets), -1)
        left = np.count_nonzero(~estimates.converged.reshape(log_z.shape), axis=1)
        sums = [
            Sum(log_sum_exp(branches), int(count), len(branches)) for branches, count in zip(log_z, left, strict=True)
        ]
        if method != "trw":
            return sums
        weights = np.exp(log_z - np.array([[found.log_z] for found in sums]))
        entropy = entr(estimates.marginals_flat).reshape(self.model.num_variables, 2, *log_z.shape).sum(axis=1)
        averaged = np.einsum("nsb,sb->sn", entropy, weights)
        return [found._replace(entropy=row) for found, row in zip(sums, averaged, strict=True)]


def clamped_lanes(model: Model, sets: Sequence[Set]) -> Batch:
    """The branches of each of these sets of binary variables in turn, the last variable's state changing fastest.

    >>> from clampz import generators
    >>> clamped_lanes(generators.cycle(4, rng=0), [(0, 1), (0, 3)]).num_lanes
    8
    """
    k, num_sets = len(sets[0]), len(sets)
    unary = np.repeat(model.unary.flat[:, None], num_sets << k, axis=1)
    lanes = np.arange(num_sets << k)
    branch = lanes & ((1 << k) - 1)
    for position, variables in enumerate(np.array(sets, dtype=np.int64).reshape(num_sets, k).T):
        state = branch >> (k - 1 - position) & 1
        unary[2 * np.repeat(variables, 1 << k) + 1 - state, lanes] = -np.inf
    return Batch(model, unary)
