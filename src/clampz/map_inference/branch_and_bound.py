"""A best-first branch and bound over configurations by a heuristic; the loops are in
`_kernels.map_inference.best_first`."""

import math
from dataclasses import dataclass

import numpy as np

from clampz._kernels.map_inference import best_first
from clampz._kernels.map_inference.best_first import FLOOR, NUM_COUNTS, NUM_FOUND, NUM_NUMBERS, Dive, Pool
from clampz._kernels.mini_buckets.layout import DONE
from clampz.map_inference.heuristics import Heuristic
from clampz.map_inference.local_search import States
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import Budget

# Backtracks of a dive before what is left of it becomes open nodes.
MOST_BACKTRACKS = 64
# Bytes of a node, and nodes at most and at least.
NODE_BYTES, MOST_NODES, LEAST_NODES = 28, 2**27, 2**10


@dataclass(eq=False)
class BestFirst:
    """A search, as far as it has come.

    Attributes
    ----------
    num_nodes
        Looked at so far.
    is_done
        Nothing is left that is better than what was found, or than the floor, by more than the tolerance.
    """

    heuristic: Heuristic
    dive: Dive
    pool: Pool
    best_f: Floats
    best_x: States
    num_nodes: int = 0
    is_done: bool = False

    @classmethod
    def of(cls, heuristic: Heuristic, num_best: int, num_bytes: float) -> "BestFirst":
        """Lay out a search whose open nodes take at most this many bytes."""
        model = heuristic.tables.model
        n, num_states = model.num_variables, int(model.num_states.sum())
        capacity = int(min(max(num_bytes / NODE_BYTES, LEAST_NODES), MOST_NODES))
        dive = Dive(
            x=np.zeros(n, dtype=np.int32),
            left_start=np.zeros(n + 1, dtype=np.int64),
            left_end=np.zeros(n, dtype=np.int64),
            left_f=np.zeros(num_states),
            left_state=np.zeros(num_states, dtype=np.int32),
            counts=np.zeros(NUM_COUNTS, dtype=np.int64),
            numbers=np.zeros(NUM_NUMBERS),
        )
        pool = Pool(np.empty(capacity), *(np.empty(capacity, dtype=np.int32) for _ in range(5)))
        best_first.begin(heuristic.tables.layout, dive, pool)
        return cls(heuristic, dive, pool, np.empty(num_best), np.empty((num_best, n), dtype=np.int32))

    def step(self, num_nodes: int, gap: float, budget: Budget, *, lower: float = -math.inf) -> None:
        """Look at `num_nodes` more, for configurations that are better than `lower` by more than `gap`."""
        value, tables = self.heuristic.value, self.heuristic.tables
        self.dive.numbers[FLOOR] = max(self.dive.numbers[FLOOR], lower - tables.model.constant - value)
        bounds = tables.layout, tables.structure.order, tables.structure.scope, self.heuristic.work
        state = self.dive, self.pool, self.best_f, self.best_x
        tol = gap + self.heuristic.error
        status = budget.run(best_first.search, *bounds, *state, tol, MOST_BACKTRACKS, num_nodes)
        self.num_nodes += num_nodes
        self.is_done = bool(status == DONE)

    @property
    def found(self) -> States:
        """The best configurations so far, best first."""
        return self.best_x[: int(self.dive.counts[NUM_FOUND])]

    @property
    def upper(self) -> float:
        """Certified: no configuration scores more, but for those that were found."""
        f = float(best_first.open_upper_bound(self.dive, self.pool))
        if f == -math.inf:
            return f
        # f is a sum of differences none of which is positive, so that no partial sum is larger
        roundings = 2.0 * self.heuristic.tables.structure.num_cliques + 8.0
        constant = self.heuristic.tables.model.constant
        value = self.heuristic.value + f + constant
        sizes = abs(self.heuristic.value) + abs(f) + abs(constant)
        return min(self.heuristic.upper, value + self.heuristic.error + EPS * (roundings * abs(f) + 4.0 * sizes))
