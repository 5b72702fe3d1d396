"""Exact sums where they are cheap: directly, or by fixing a few variables first so that what is left is narrow.

The sum over the states of the fixed variables of exact sums over the rest is exact too; it takes little memory and can
be done piece by piece.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from clampz._kernels import graph
from clampz.bracketing.partitions import elimination_entries
from clampz.elimination.exact import exact
from clampz.elimination.orders import find_order
from clampz.elimination.plans import Scopes
from clampz.model import Model
from clampz.model.batch import Batch, joint_lanes
from clampz.model.fixing import too_large
from clampz.model.tables import Floats, Integers
from clampz.numerics import EPS, log_sum_exp

# Table entries of a sum that stays in a processor's cache, and seconds per entry there and beyond it (measured, with
# room to spare).
CACHED_ENTRIES = 2.0**20
SECONDS_PER_ENTRY, SECONDS_BEYOND = 6e-9, 10e-9
# Entries beyond which a sum is not taken in one go.
MOST_ENTRIES = 2.0**31
# Seconds that looking for variables to fix may take.
PLANNING_SECONDS = 0.1
# Variables that are fixed at most.
MAX_FIXED = 24


@dataclass(frozen=True)
class Finish:
    """How to sum a lane exactly: the variables to fix, table entries of each sum then, how many sums, and the seconds
    that all will take."""

    fixed: tuple[int, ...]
    entries: float
    num_sums: int

    @property
    def seconds(self) -> float:
        return self.num_sums * (
            1e-4 + self.entries * (SECONDS_PER_ENTRY if self.entries <= 2 * CACHED_ENTRIES else SECONDS_BEYOND)
        )


class Finisher:
    """Exact sums over lanes of one model, whose pairwise equivalent gives the graph."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.edges = (
            Scopes.of_pairwise(model.num_states, model.edges)
            .followed_by(model.factors.scope_start, model.factors.variables, np.diff(model.factors.start))
            .edges()
        )

        self.may_fix = not model.factors and not too_large(model)

    def plan(
        self, unary: Floats, most_seconds: float, memory: float = math.inf, *, thorough: bool = False
    ) -> Finish | None:
        """The cheapest way found to sum the lane with these unary potentials (S,) exactly within so many seconds and
        bytes; None if there is none.

        `thorough` spends up to a second on finding a narrow order.
        """
        left = self._states_left(unary)
        entries = self._best_entries(left) if thorough else self._entries(left)
        direct = Finish((), entries, 1)
        best = direct if entries < MOST_ENTRIES and 8 * entries <= memory and direct.seconds <= most_seconds else None
        if entries <= CACHED_ENTRIES or (best is not None and best.seconds < 0.05):
            return best
        fixed: list[int] = []
        num_sums = 1
        began = time.perf_counter()
        while (
            self.may_fix
            and time.perf_counter() - began < min(PLANNING_SECONDS, most_seconds / 4)
            and len(fixed) < MAX_FIXED
            and num_sums * 1e-4 < most_seconds
        ):
            busy = np.bincount(self.edges[(left[self.edges] > 1).all(axis=1)].ravel(), minlength=len(left))
            if not busy.any():
                break
            variable = int(np.argmax(busy * np.log2(np.maximum(left, 1))))
            fixed.append(variable)
            num_sums *= int(left[variable])
            left[variable] = 1
            entries = self._entries(left)
            candidate = Finish(tuple(fixed), entries, num_sums)
            if (
                candidate.seconds <= most_seconds
                and 8 * entries <= memory
                and entries < MOST_ENTRIES
                and (best is None or candidate.seconds < best.seconds)
            ):
                best = candidate
            if entries <= CACHED_ENTRIES / 8:
                break
        return best

    def total(self, unary: Floats, finish: Finish) -> tuple[float, float]:
        """Lower and upper end of log Z of the lane: apart by rounding only."""
        if len(unary) and not np.logical_or.reduceat(unary > -np.inf, self.model.unary.start[:-1]).all():
            return -math.inf, -math.inf
        if finish.fixed:
            batch, constant, error = joint_lanes(self.model, unary, finish.fixed)
        else:
            batch, constant, error = Batch(self.model, unary[:, None]), np.zeros(1), 0.0
        possible = np.flatnonzero(constant > -np.inf)
        if not possible.size:
            return -math.inf, -math.inf
        found = exact(batch.take(possible), marginals=False, threads=1, memory=2**62)
        lower, upper = log_sum_exp(found.lower + constant[possible]), log_sum_exp(found.upper + constant[possible])
        rounding = error + 4 * EPS * len(found)
        return lower - rounding * (1 + abs(lower)) if math.isfinite(lower) else lower, upper + rounding * (
            1 + abs(upper)
        ) if math.isfinite(upper) else upper

    def _states_left(self, unary: Floats) -> Integers:
        found: Integers = np.add.reduceat(unary > -np.inf, self.model.unary.start[:-1], dtype=np.int64)
        return np.maximum(found, 1)

    def _best_entries(self, left: Integers) -> float:
        free = left > 1
        kept = (np.cumsum(free) - 1)[self.edges[free[self.edges].all(axis=1)]]
        start, neighbour, _ = graph.neighbour_lists(int(free.sum()), kept.astype(np.int32).reshape(-1, 2))
        return find_order(left[free], start, neighbour).total if free.any() else 1.0

    def _entries(self, left: Integers) -> float:
        """Table entries of the elimination of the variables with a choice of states; inf where they are too many."""
        free = np.flatnonzero(left > 1)
        kept = self.edges[(left[self.edges] > 1).all(axis=1)]
        return elimination_entries(kept, np.log2(left), free, MOST_ENTRIES)
