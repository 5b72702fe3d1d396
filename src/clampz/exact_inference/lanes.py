"""Exact inference: log Z and all marginals by variable elimination, for models narrow enough.

One order and one plan serve every lane of a batch; lanes run on as many threads as there are and memory allows, and the
threads that are left share the long steps of a lane.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from clampz.errors import OptionError
from clampz.exact_inference.sums import LogSum, lay_out_lanes, sum_out
from clampz.exact_inference.trees import SumTree, Workspace
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.numerics import EPS, Floats, Integers
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import OptionKeywords, Options, check_flag, check_name, memory_allowed
from clampz.runtime.workers import Workers

# Marginals of all lanes' edges and factors are kept up to this many bytes; beyond, a lane that is asked for them is run
# again.
KEPT_BYTES = 2**28

# Lanes that store fewer numbers are done before a second thread has got hold of the interpreter.
LARGE_LANE = 10_000

ENGINES = ("auto", "elimination", "planar", "counting")

Z_IS_ZERO = "Z = 0: every configuration has probability zero, so there are no marginals"
NOT_REACHED = "the run was stopped before this sum was done"


class ExactKeywords(OptionKeywords, total=False):
    """The fields of `ExactOptions`, as a call takes them by name."""

    marginals: bool
    engine: str


@dataclass(frozen=True, kw_only=True)
class ExactOptions(Options):
    """Options of `exact`; `tol` and `max_iter` have no effect on it.  Lanes that the time did not suffice for are nan.

    Attributes
    ----------
    memory
        What it may use, in bytes or as text such as "2GB"; None for half of what is free.  A single lane that does not
        fit is summed in slices, if that takes a minute at most or the `time` that is given; else TooWideError, before
        anything is allocated.
    marginals
        False computes log Z only, in half the memory and a third of the time: unary marginals are nan, and those of
        edges and factors refused.
    engine
        How it is summed: "auto" for what is quickest of "elimination" (of one variable after another) and "planar"
        (binary models without singleton potentials on planar graphs, or with these on one face); or "counting" for
        models full of hard zeros, whose count is exact only where it is proven: `bound` says so.
    """

    marginals: bool = True
    engine: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("marginals", self.marginals)
        check_name("engine", self.engine, ENGINES)


class PlannedLanes:
    """One sum, laid out, over the lanes of a batch."""

    def __init__(self, batch: Batch, tree: SumTree, marginals: bool) -> None:
        model, n = batch.model, batch.model.num_variables
        self.batch, self.tree, self.wanted = batch, tree, marginals
        self.fixed = tree.fixed_states(batch)
        self.num_rows, self.num_kept = len(batch.unary), len(tree.restriction.states)
        table_start = tree.scopes.table_start
        self.state_start, self.table_start = table_start[: n + 1], table_start[n:]
        self.values = np.concatenate([np.zeros(self.num_rows), model.pairwise.flat, model.factors.flat])
        self.num_entries = len(self.values) - self.num_rows

    def lane(self, b: int, workspace: Workspace, unary: Floats, tables: Floats, budget: Budget | None = None) -> LogSum:
        """log Z of a lane; writes its marginals into `unary` and, edges before factors, `tables` where these are not
        empty."""
        entries, values = self.values_of(b)
        marginals = np.empty(self.num_kept if self.wanted else 0)
        found = sum_out(self.tree, values, workspace, marginals, budget=budget)
        if not np.isfinite(found.log_z) or not self.wanted:
            unary[:] = tables[:] = np.nan
            return found
        self._spread(entries, marginals, workspace.beliefs, unary, tables)
        return found

    def values_of(self, b: int) -> tuple[Integers, Floats]:
        """Which table entries are left in a lane, and the logarithms of these."""
        entries = self.tree.entries(b, self.fixed)
        values = self.values[entries]
        values[: self.num_kept] = self.batch.unary[entries[: self.num_kept], b]
        return entries, values

    def beliefs(self, entries: Integers, marginals: Floats, beliefs: Floats) -> tuple[Floats, Floats]:
        """Marginals of all variables of a lane, and of its edges and factors, from those of what is left."""
        unary, tables = np.zeros(self.num_rows), np.zeros(self.num_entries)
        self._spread(entries, marginals, beliefs, unary, tables)
        return unary, tables

    def _spread(self, entries: Integers, marginals: Floats, beliefs: Floats, unary: Floats, tables: Floats) -> None:
        num_kept = self.num_kept
        unary[entries[:num_kept]] = _normalised(marginals[:num_kept], self.state_start)
        if tables.size:
            of_tables = beliefs[num_kept : self.table_start[-1]]
            tables[entries[num_kept:] - self.num_rows] = _normalised(of_tables, self.table_start - num_kept)

    def num_threads(self, options: ExactOptions) -> int:
        """How many threads pay, and fit into memory together."""
        if self.batch.num_lanes == 1 or self.tree.num_stored() < LARGE_LANE:
            return 1
        threads = min(options.num_threads, self.batch.num_lanes)
        left = memory_allowed(options.memory) - self.tree.scopes.num_bytes
        return max(1, min(threads, left // self.tree.thread_bytes(self.wanted)))

    def tables_again(self, done: NDArray[np.bool_], b: int) -> Floats:
        """Marginals of a lane's edges and factors, nan unless it was done."""
        tables = np.full(self.num_entries, 0.0 if done[b] else np.nan)
        if done[b]:
            self.lane(b, Workspace.of(self.tree), np.zeros(self.num_rows), tables)
        return tables


def _normalised(tables: Floats, start: Integers) -> Floats:
    """Tables one after another, each made to add up to 1: what large potentials leave to rounding shows as missing
    mass.  Where all of it is missing nothing is known: nan."""
    if len(start) == 1:
        return tables
    with np.errstate(invalid="ignore"):
        whole: Floats = tables / np.repeat(np.add.reduceat(tables, start[:-1]), np.diff(start))
    return whole


@dataclass(frozen=True)
class ExactState:
    """What `exact` ends with: the marginals of the tables (B, entries), those of edges in `num_pairs` entries and then
    those of factors; or None and the means to compute a lane's again; or None for these too, and why there are none."""

    tables: Floats | None
    again: Callable[[int], Floats] | None
    num_pairs: int
    why_none: str = "this run was asked for log Z only (marginals=False)"
    rho: ClassVar[None] = None

    def take(self, lanes: Integers) -> "ExactState":
        """The state of some of the lanes."""
        again = self.again
        return ExactState(
            None if self.tables is None else self.tables[lanes],
            None if again is None else lambda lane: again(int(lanes[lane])),
            self.num_pairs,
            self.why_none,
        )

    def join(self, others: Sequence["ExactState"]) -> "ExactState":
        """The states of these lanes followed by those of others."""
        tables = [state.tables for state in (self, *others) if state.tables is not None]
        joined = np.concatenate(tables) if len(tables) == 1 + len(others) else None
        return ExactState(joined, None, self.num_pairs, self.why_none)

    def pairwise(self, lane: int) -> Floats:
        return self._of_lane("pairwise", lane)[: self.num_pairs].copy()

    def factors(self, lane: int) -> Floats:
        return self._of_lane("factor", lane)[self.num_pairs :].copy()

    def both(self, lane: int) -> Floats:
        """Marginals of edges, then those of factors."""
        return self._of_lane("pairwise", lane)

    def _of_lane(self, what: str, lane: int) -> Floats:
        if self.tables is not None:
            tables: Floats = self.tables[lane]
            return tables
        if self.again is None:
            raise OptionError(f"{what} marginals: {self.why_none}")
        return self.again(lane)


def run_exact(
    batch: Batch, options: ExactOptions, budget: Budget | None = None, tree: SumTree | None = None
) -> Estimates:
    """Sum over the lanes of a batch as they are, by a tree laid out before for the states that some lane allows."""
    budget = Budget(options.time) if budget is None else budget
    with budget.interruptible():
        try:
            tree = tree or lay_out_lanes(batch, options.memory, marginals=options.marginals, budget=budget)
        except Cancelled:
            return not_reached(batch, options, budget)
        lanes = PlannedLanes(batch, tree, options.marginals)
        num_lanes = batch.num_lanes
        keep = options.marginals and lanes.num_entries * num_lanes * 8 <= KEPT_BYTES
        unary = np.zeros((num_lanes, lanes.num_rows))
        tables = np.zeros((num_lanes, lanes.num_entries if keep else 0))
        log_z, error = np.full(num_lanes, np.nan), np.full(num_lanes, np.inf)

        def solve(some: range) -> None:
            for_each = options.num_threads // threads
            workspace = Workspace.of(lanes.tree, marginals=options.marginals, num_threads=for_each)
            for b in some:
                if b > 0 and budget.must_stop():
                    unary[b] = tables[b] = np.nan
                    continue
                found = lanes.lane(b, workspace, unary[b], tables[b], budget)
                log_z[b], error[b] = found.log_z + batch.model.constant, found.error
                if np.isnan(found.log_z):
                    continue
                done = int(np.count_nonzero(~np.isnan(log_z)))
                budget.report("exact", 1, residual=0.0, log_z=float(log_z[b]), num_lanes=num_lanes, num_finished=done)

        threads = lanes.num_threads(options)
        with Workers(threads) as pool:
            pool.map(solve, [range(t, num_lanes, threads) for t in range(threads)])
        error += EPS * np.abs(log_z, where=np.isfinite(log_z), out=np.zeros(num_lanes))
        again = partial(lanes.tables_again, ~np.isnan(log_z))
        num_pairs = len(batch.model.pairwise.flat)
        state = ExactState(tables if keep else None, again if options.marginals else None, num_pairs)
        return exact_estimates(batch, options, budget, log_z, error, unary.T, state)


def _no_tables(num_entries: int, lane: int) -> Floats:
    return np.full(num_entries, np.nan)


def not_reached(batch: Batch, options: ExactOptions, budget: Budget) -> Estimates:
    """Nothing about any lane, as the run was over first."""
    nothing, num_pairs = np.full(batch.num_lanes, np.nan), len(batch.model.pairwise.flat)
    no_tables = partial(_no_tables, num_pairs + len(batch.model.factors.flat))
    state = ExactState(None, no_tables if options.marginals else None, num_pairs)
    return exact_estimates(batch, options, budget, nothing, np.full(batch.num_lanes, np.inf), nothing, state)


def exact_estimates(
    batch: Batch,
    options: ExactOptions,
    budget: Budget,
    log_z: Floats,
    error: Floats,
    marginals: Floats,
    state: ExactState,
) -> Estimates:
    """Return the estimates of lanes whose log Z is known up to an error, or nan where the run was stopped first."""
    done = ~np.isnan(log_z)
    stopped_by = budget.stopped_by or "tol"
    return Estimates(
        method="exact",
        model=batch.model,
        log_z=log_z,
        bound="exact" if done.any() else None,
        lower=np.where(done, log_z - error, -np.inf),
        upper=np.where(done, log_z + error, np.inf),
        value=log_z,
        marginals_flat=np.broadcast_to(marginals, batch.unary.shape),
        converged=done,
        num_iter=done.astype(np.int64),
        residual=np.where(done, 0.0, np.inf),
        stopped_by=["tol" if d else stopped_by for d in done],
        options=options,
        notes=[Z_IS_ZERO if z == -np.inf else "" if d else NOT_REACHED for z, d in zip(log_z, done, strict=True)],
        state=state,
    )
