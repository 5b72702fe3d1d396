"""Intervals of marginals as a goal: log Z with a variable in each of its states, by lanes of one model and by searches.

All states of all variables are lanes: they share mini-buckets, and each begins where the model itself has ended.  A
search is a portfolio for a single state, of the variable whose intervals are widest.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from clampz.bounding.bracket import Bracket
from clampz.bounding.exact_answer import ExactAnswer
from clampz.bounding.leaves.evaluate import LeafWork, Solved, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.leaves.successive_halving import max_table_in_time
from clampz.bounding.marginals.intervals import intervals_of
from clampz.bounding.marginals.marginal_bounds import ByVariable, MarginalBounds
from clampz.bounding.marginals.relevant import Known, RelevantModel
from clampz.bounding.options import LARGEST_TABLE, BoundOptions
from clampz.bounding.problem import Problem as LogZ
from clampz.bounding.strategies import STRATEGIES
from clampz.bounding.tree.frontier import bytes_needed
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.conditioning import keep_only
from clampz.model.lane_memory import lanes_that_fit
from clampz.model.tables import offsets, piece_of
from clampz.numerics import Floats, Integers
from clampz.portfolio.nested import Nested
from clampz.portfolio.problem import Problem, Stop
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget, Cancelled

# Evaluations of the mini-buckets of the model itself, and of each lane.
SHARED_EVALUATIONS, LANE_EVALUATIONS = 40, 4
# The share of the time of the first pass over all lanes; each later one has GROWTH times as much, or half of what is
# left, and tables that are larger by LEAST_GROWTH; blocks of lanes for each worker.
FIRST_SHARE, GROWTH, LEAST_GROWTH, BLOCKS_PER_WORKER = 0.01, 8.0, 2.0, 4
# Searches for single states that are kept at once.
MOST_SEARCHES = 64


class Marginals(Problem[MarginalBounds]):
    """The intervals of all states of the variables asked for; the gap is the sum of their widths.

    Attributes
    ----------
    rows
        Of the states, among those of the reduced model.
    low, high
        (S,) bounds on log Z of the reduced model with a variable in a state.
    lower, upper
        The intervals, end to end.
    exact_answer
        The strategy that may find all of them exactly, if there is one.
    """

    def __init__(self, around: RelevantModel, options: BoundOptions) -> None:
        super().__init__(options.num_bytes, enough=options.gap)
        self.around, self.options = around, options
        self.rows, self.num_states = around.rows, around.rest.num_states[around.within]
        self.begin = offsets(self.num_states)
        possible = around.rest.unary.flat > -np.inf
        self.low, self.high = np.full(len(possible), -np.inf), np.where(possible, np.inf, -np.inf)
        self.lower, self.upper = np.zeros(len(self.rows)), np.ones(len(self.rows))
        self.exact_answer: ExactAnswer | None = None
        self._is_known = np.zeros(len(self.num_states), dtype=np.bool_)  # exactly, variable by variable
        if around.is_impossible:
            self.know(Known(np.full(len(self.rows), np.nan), np.full(len(self.rows), np.nan), of_all=True))

    def know(self, known: Known) -> None:
        """Take what is known exactly."""
        is_known = ~np.isnan(known.lower) | known.of_all
        self.lower = np.where(is_known, known.lower, self.lower)
        self.upper = np.where(is_known, known.upper, self.upper)
        if len(self.num_states):
            self._is_known |= np.logical_and.reduceat(is_known, self.begin[:-1])

    def tighten(self, rows: Integers, lower: Floats, upper: Floats) -> None:
        """Take bounds on log Z of the reduced model with variables in states."""
        error = self.around.error
        self.low[rows] = np.maximum(self.low[rows], lower - error)
        self.high[rows] = np.minimum(self.high[rows], upper + error)
        touched = np.zeros(len(self.low), dtype=np.bool_)
        touched[rows] = True
        some = np.flatnonzero(np.logical_or.reduceat(touched[self.rows], self.begin[:-1]) & ~self._is_known)
        for size in np.unique(self.num_states[some]):
            places = self.begin[some[self.num_states[some] == size]][:, None] + np.arange(size)
            own = self.rows[places]
            lower, upper = intervals_of(self.low[own], self.high[own])
            self.lower[places] = np.maximum(self.lower[places], lower)  # but for rounding they only narrow
            self.upper[places] = np.minimum(self.upper[places], upper)
        if len(some) and np.isnan(self.lower[self.begin[some]]).any():  # Z = 0
            self.know(Known(np.full(len(self.rows), np.nan), np.full(len(self.rows), np.nan), of_all=True))

    @property
    def widths(self) -> Floats:
        """The widest interval of each variable; nothing is left to do about those that are known exactly."""
        if not len(self.num_states):
            return np.empty(0)
        return np.where(self._is_known, 0.0, np.maximum.reduceat(self.upper - self.lower, self.begin[:-1]))

    @property
    def open_rows(self) -> Integers:
        """States of variables with an interval that is not narrow enough, whose bounds are apart."""
        rows = self.rows[np.repeat(self.widths > self.enough, self.num_states)]
        return rows[self.high[rows] > self.low[rows]]

    @property
    def ends(self) -> tuple[float, float]:
        """The sums of all lower and of all upper ends."""
        return float(np.nansum(self.lower)), float(np.nansum(self.upper))

    @property
    def closed(self) -> bool:
        """Whether all is known exactly."""
        return bool(self._is_known.all())

    @property
    def worker_bytes(self) -> float:
        """Bytes that one worker may take."""
        return self.options.worker_bytes

    def narrow(self) -> Stop | None:
        """Return why every interval is narrow enough; None if one is not, or all may be exact in a moment."""
        if self.closed:
            return "exact"
        if self.exact_answer is not None and self.exact_answer.is_near:
            return None
        return "gap" if self.widths.max() <= self.enough else None

    def result(self, reason: Stop, seconds: float) -> MarginalBounds:
        """Return the intervals at this moment."""
        model, asked = self.around.model, self.around.asked
        lower, upper = (
            ByVariable(asked, self.num_states, ends.copy(), model.unary.names) for ends in (self.lower, self.upper)
        )
        return MarginalBounds(model=model, lower=lower, upper=upper, stopped_by=reason, seconds=seconds)

    def lanes(self, rows: Integers) -> Floats:
        """(S, B) for each row of the unary potentials, the lane with the variable in that state for certain."""
        unary = self.around.rest.unary
        lanes = np.repeat(unary.flat[:, None], len(rows), axis=1)
        for lane, row in enumerate(rows.tolist()):
            i = piece_of(unary.start, row)
            keep_only(lanes[:, lane], unary.start, i, [row - int(unary.start[i])])
        return lanes


class SharedLanes(Strategy[Marginals]):
    """Bounds all states in passes, block by block, with mini-buckets that they share and that grow with each pass."""

    name = "shared mini-buckets"
    is_parallel = is_first = True
    _seconds = 0.0  # of the last pass, all workers together
    _max_table = 0
    _is_sharing = False
    _shared: tuple[MiniBucketBounds | None, WarmStart | None] = None, None

    def __init__(self, problem: Marginals) -> None:
        super().__init__(problem)
        self._waiting: list[Integers] = []

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the mini-buckets of a pass, or for a block of lanes."""
        problem = self.problem
        if self._is_sharing:
            return None
        if not self._waiting:
            return self._next_pass(budget, num_workers)
        block = self._waiting.pop(0)
        self.is_midway = bool(self._waiting)
        mini_buckets, state = self._shared
        work = LeafWork(
            model=problem.around.rest,
            unary=problem.lanes(block),
            options=problem.options,
            seconds=budget.left(),
            mini_buckets=mini_buckets,
            start=state,
            num_evaluations=LANE_EVALUATIONS,
            beliefs=False,
        )
        return Quantum(solve_leaves, (work,), budget.share(), "anywhere", block)

    def _next_pass(self, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for larger mini-buckets of the model itself, for the states that are left; None where there are none."""
        problem, rest = self.problem, self.problem.around.rest
        rows = problem.open_rows
        self._seconds = min(GROWTH * self._seconds, budget.left(0.5)) if self._max_table else budget.left(FIRST_SHARE)
        evaluations = LANE_EVALUATIONS * len(rows) + SHARED_EVALUATIONS
        each = num_workers * self._seconds / (2 * evaluations)
        max_table = max_table_in_time(rest, problem.options, each, LARGEST_TABLE)
        if not len(rows) or max_table < LEAST_GROWTH * self._max_table:
            self.is_done = True
            return None
        self._is_sharing = self.is_midway = True
        self._max_table = max_table
        size = min(lanes_that_fit(rest, problem.worker_bytes), -(-len(rows) // (BLOCKS_PER_WORKER * num_workers)))
        self._waiting = np.split(rows, np.arange(0, len(rows), max(1, size))[1:])
        return Quantum(self._share, (max_table,), Budget(self._seconds, within=budget))

    def _share(self, max_table: int, budget: Budget) -> tuple[MiniBucketBounds | None, WarmStart | None]:
        """Optimise mini-buckets for the model itself."""
        problem = self.problem
        model, shape = problem.around.rest, Shape(max_table, problem.options.seed)
        mini_buckets = MiniBucketBounds(model, shape, shape, problem.worker_bytes)
        try:
            start = WarmStart.even(model)
            found = mini_buckets.bounds(model.unary.flat, start, SHARED_EVALUATIONS, budget=budget)
        except (Cancelled, TooWideError):
            return None, None
        return mini_buckets, found.state

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take mini-buckets for a pass, or the bounds of a block."""
        if isinstance(found, Solved):
            self.problem.tighten(quantum.label, found.lower, found.upper)
        else:
            self._is_sharing, self._shared = False, found


class Searches(Strategy[Marginals]):
    """Has a portfolio of its own for each state of the variable whose intervals are widest, again and again."""

    name = "searches"
    is_parallel = True

    def __init__(self, problem: Marginals) -> None:
        super().__init__(problem)
        num_bytes = problem.options.num_bytes / 2
        self._most = min(MOST_SEARCHES, int(num_bytes / max(1, bytes_needed(problem.around.rest))))
        self._searches: dict[int, Nested[Any]] = {}
        self._pending: dict[Quantum, int] = {}
        self._is_over = np.zeros(len(problem.low), dtype=np.bool_)

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for a quantum of the search for the state that is known least, of the widest variable that has one."""
        problem = self.problem
        if not self._most:
            problem.over = "memory"
            return None
        rows = self._rows()
        kept = np.array([*self._searches], dtype=np.int64)
        unwanted = set(kept[~np.isin(kept, rows)].tolist()) - set(self._pending.values())
        # one that made room before its time would begin anew, again and again
        is_new = ~np.isin(rows, kept)
        room = self._most - len(kept) + len(unwanted)
        for row in rows[~is_new | (np.cumsum(is_new) <= room)].tolist():
            if row not in self._searches:
                if len(self._searches) >= self._most:
                    del self._searches[unwanted.pop()]
                self._searches[row] = self._begun(row, budget, num_workers)
            search = self._searches[row]
            quantum = search.next(seconds, budget, num_workers)
            self._is_over[row] = search.is_done
            if quantum is not None:
                self._pending[quantum] = row
                return quantum
        if not self._pending and problem.over is None and self._is_over[problem.open_rows].all():
            self.is_done, problem.over = True, "exact"
        return None

    def _rows(self) -> Integers:
        """Return states whose search is not over, of the widest variable first, and of it what is known least."""
        problem = self.problem
        rows, widths = problem.rows, np.repeat(problem.widths, problem.num_states)
        is_open = (widths > problem.enough) & ~self._is_over[rows] & (problem.high[rows] > problem.low[rows])
        rows, widths = rows[is_open], widths[is_open]
        return rows[np.lexsort((problem.low[rows] - problem.high[rows], -widths))]

    def _begun(self, row: int, budget: Budget, num_workers: int) -> Nested[Any]:
        """Begin the search for a state."""
        problem = self.problem
        rest, options = problem.around.rest, problem.options
        lane = Model.from_contents(rest.contents._replace(unary=problem.lanes(np.array([row]))[:, 0]))
        own = replace(options, memory=int(options.num_bytes / 2 / self._most))

        def tell(bracket: Bracket) -> None:
            problem.tighten(np.array([row]), np.array([bracket.lower]), np.array([bracket.upper]))

        share = 1.0 / int(rest.num_states[piece_of(rest.unary.start, row)])
        search: Nested[Any] = Nested(problem, LogZ(lane, own), STRATEGIES, lambda: share, tell)
        search.begin(budget, num_workers)
        return search

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take what came of a search."""
        self._searches[self._pending.pop(quantum)].take(quantum, found)

    def fail(self, quantum: Quantum, error: Exception) -> None:
        """End the strategy of the search whose quantum failed."""
        self._searches[self._pending.pop(quantum)].fail(quantum, error)

    def withdraw(self, quantum: Quantum) -> bool:
        """Take a quantum of a search back."""
        return self._searches[self._pending[quantum]].withdraw(quantum)

    def bytes_needed(self) -> float:
        """Nothing but what the schedulers of the searches reserve."""
        return 0.0
