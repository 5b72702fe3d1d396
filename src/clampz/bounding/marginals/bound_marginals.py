"""Certified intervals for marginals.

From bounds [l_a, u_a] on log Z with X_i = a,

    e^l_a / (e^l_a + sum_{b != a} e^u_b)  <=  p(X_i = a)  <=  e^u_a / (e^u_a + sum_{b != a} e^l_b).

All states of all variables are lanes of one model: they share its mini-buckets, and each begins where the model itself
has ended.  What time is left goes to the variable whose intervals are widest.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Unpack

import numpy as np

from clampz.bounding.bracket import Bracket
from clampz.bounding.leaves.evaluate import LeafWork, Solved, solve_leaves
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.leaves.successive_halving import max_table_in_time
from clampz.bounding.marginals.marginal_bounds import ByVariable, MarginalBounds
from clampz.bounding.marginals.relevant import PROBABILITY_ROUNDING, Known, RelevantModel, known_exactly
from clampz.bounding.options import BoundKeywords, BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.strategies import STRATEGIES
from clampz.bounding.tree.frontier import bytes_needed, check_room
from clampz.clamping.branches import checked_variables
from clampz.errors import TooWideError
from clampz.model import Evidence, Model, Variable
from clampz.model.conditioning import given, keep_only
from clampz.model.lane_memory import lanes_that_fit
from clampz.model.tables import offsets, piece_of
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers
from clampz.portfolio.scheduler import Scheduler
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import takes_names
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, with_rng
from clampz.runtime.workers import Crew, Job, run_jobs

# The share of the time for bounds on all lanes at once, blocks of lanes for each thread, and evaluations of each.
LANES_SHARE, BLOCKS_PER_THREAD, LANE_EVALUATIONS = 0.5, 4, 4
# Evaluations of the bounds of the model itself, the share of the lanes' time that they may take, and table entries of
# the mini-buckets at most.
SHARED_EVALUATIONS, SHARED_TIME, LARGEST_SHARED = 40, 0.3, 2**14
# Searches for single states that are kept at once.
MOST_SEARCHES = 64
# Seconds that a search takes to begin, for each table entry of the model.
SECONDS_PER_ENTRY = 2e-7


@takes_names
def bound_marginals(
    model: Model,
    variables: Sequence[Variable] | None = None,
    *,
    evidence: Evidence | None = None,
    executor: Executor | None = None,
    rng: Seed = None,
    progress: Listener[MarginalBounds] = None,
    options: BoundOptions | None = None,
    **changes: Unpack[BoundKeywords],
) -> MarginalBounds:
    """Bound the probability of every state of some variables (all by default), certified.

    Parameters
    ----------
    model
        What to bracket the marginals of.
    variables
        By index or name; None for all.
    progress
        True for a live line; or called with the intervals so far as they close, and may raise StopIteration to stop.
    evidence, executor, rng
        As for `bound`.
    options, changes
        `BoundOptions` whole, or its fields by name; `gap` is the width in probability that is narrow enough.

    Returns
    -------
    MarginalBounds
        An interval for each state of each variable asked for; nan where Z = 0 and nothing has a probability.

    Raises
    ------
    OptionError, EvidenceError
        As for `bound`.

    Examples
    --------
    >>> from clampz import generators
    >>> bool(bound_marginals(generators.grid(3, 3, rng=0), [4]).widest < 1e-9)
    True
    """
    chosen = BoundOptions.chosen(options, with_rng(changes, rng))
    budget = Budget(chosen.time)
    with as_callback(progress, "bounding marginals") as listener, budget.interruptible():
        model = given(model, evidence)
        check_room(model, chosen.num_bytes)
        asked = np.arange(model.num_variables)
        if variables is not None:
            asked = np.array(checked_variables(model, variables), dtype=np.int64)
        around = RelevantModel.of(model, asked, chosen, budget)
        if around.is_impossible:
            nothing = np.full(int(model.num_states[asked].sum()), np.nan)
            return _marginal_bounds(model, asked, nothing, nothing, "exact", budget)
        known = known_exactly(around, chosen, budget) if chosen.exact else Known.nothing(around)
        if known.of_all:
            return _marginal_bounds(model, asked, known.lower, known.upper, "exact", budget)
        with Crew(executor, chosen.num_threads) as crew:
            try:
                return _by_bounds(around, known, chosen, budget, crew, listener)
            finally:
                budget.end()


def _marginal_bounds(
    model: Model, asked: Integers, lower: Floats, upper: Floats, stopped_by: str, budget: Budget
) -> MarginalBounds:
    num_states = model.num_states[asked]
    return MarginalBounds(
        model=model,
        lower=ByVariable(asked, num_states, lower, model.unary.names),
        upper=ByVariable(asked, num_states, upper, model.unary.names),
        stopped_by=stopped_by,
        seconds=budget.seconds,
    )


def _by_bounds(
    around: RelevantModel,
    known: Known,
    options: BoundOptions,
    budget: Budget,
    crew: Crew,
    progress: Callable[[MarginalBounds], object] | None,
) -> MarginalBounds:
    """Bound the probabilities that are not known yet."""
    model, error = around.rest, around.error
    sizes = model.num_states[around.within]
    unknown = np.logical_or.reduceat(np.isnan(known.lower), offsets(sizes)[:-1])
    asked, is_left = around.within[unknown], np.repeat(unknown, sizes)
    rows = around.rows[is_left]
    possible = model.unary.flat > -np.inf
    low, high = np.full(len(possible), -np.inf), np.where(possible, np.inf, -np.inf)

    def tighten(row: int, lower: float, upper: float) -> None:
        low[row], high[row] = max(low[row], lower - error), min(high[row], upper + error)

    bound_lanes(model, rows[possible[rows]], partial(_lanes, model), options, budget.share(LANES_SHARE), crew, tighten)
    ends = _Intervals(model.num_states[asked], rows)

    def found(reason: str) -> MarginalBounds:
        lower, upper = known.lower.copy(), known.upper.copy()
        lower[is_left], upper[is_left] = ends.of(low, high)
        return _marginal_bounds(around.model, around.asked, lower, upper, reason, budget)

    def tell() -> None:
        if progress is not None and says_stop(progress, found("left")):
            budget.stop("callback")

    tell()
    return found(_widest_first(model, asked, options, budget, crew, (low, high), ends, tighten, tell))


def bound_lanes(
    base: Model,
    rows: Integers,
    lanes_of: Callable[[Integers], Floats],
    options: BoundOptions,
    budget: Budget,
    crew: Crew,
    tighten: Callable[[int, float, float], None],
) -> None:
    """Bound lanes of a model that rule out states of it, block by block, as far as time goes.

    `lanes_of` makes the lanes (S, B) of some rows; `tighten` is told the ends of each row.
    """
    mini_buckets, state = _shared(base, len(rows), options, budget)
    room = lanes_that_fit(base, options.worker_bytes)
    size = max(1, min(room, -(-len(rows) // (BLOCKS_PER_THREAD * crew.num_threads))))

    def submitted() -> Iterator[tuple[Integers, Job[Solved]]]:
        for begin in range(0, len(rows), size):
            block = rows[begin : begin + size]
            work = LeafWork(
                model=base,
                unary=lanes_of(block),
                options=options,
                seconds=budget.left(),
                mini_buckets=mini_buckets,
                start=state,
                num_evaluations=LANE_EVALUATIONS,
                beliefs=False,
            )
            yield block, crew.submit(solve_leaves, work, local_args=(budget,))

    for block, solved in run_jobs(submitted(), budget, crew.num_at_once):
        for row, lower, upper in zip(block, solved.lower, solved.upper, strict=True):
            tighten(int(row), float(lower), float(upper))


def _widest_first(
    base: Model,
    asked: Integers,
    options: BoundOptions,
    budget: Budget,
    crew: Crew,
    ends: tuple[Floats, Floats],
    intervals: "_Intervals",
    tighten: Callable[[int, float, float], None],
    tell: Callable[[], None],
) -> str:
    """Search for each state of the variable whose interval is widest, again and again; return why it ended."""
    low, high = ends
    start = base.unary.start
    widths = intervals.widths(low, high)  # of those that something can be done about; -1 for the others
    # searches that are kept, each with its share of the memory
    most = min(MOST_SEARCHES, int(options.num_bytes / 2 / bytes_needed(base)))
    searches: dict[int, Generator[Bracket]] = {}
    least = SECONDS_PER_ENTRY * (len(base.unary.flat) + len(base.pairwise.flat))
    while len(widths):
        at = int(np.argmax(widths))
        if widths[at] <= options.gap:
            break
        if budget.must_stop() or budget.left() < least:
            return budget.stopped_by if budget.stopped_by in ("interrupt", "callback") else "time"
        if not most:
            return "memory"
        widths[at], widest = -1.0, int(asked[at])
        own = slice(start[widest], start[widest + 1])
        for row in range(own.start, own.stop):
            if not high[row] > low[row]:
                continue
            if row not in searches:
                for old in list(searches)[: 1 + len(searches) - most]:
                    searches.pop(old).close()
                lane = Model.from_contents(base.contents._replace(unary=_lanes(base, np.array([row]))[:, 0]))
                share = replace(options, memory=int(options.num_bytes / 2 / most))
                searches[row] = Scheduler(Problem(lane, share), STRATEGIES).run(crew, budget)
            bracket = next(searches[row], None)
            if bracket is not None:
                tighten(row, bracket.lower, bracket.upper)
                lower, upper = intervals_of(low[None, own], high[None, own])
                widths[at] = np.nan_to_num((upper - lower).max(), nan=-1.0)
        tell()
    return "gap"


def _shared(
    model: Model, num_lanes: int, options: BoundOptions, budget: Budget
) -> tuple[MiniBucketBounds | None, WarmStart | None]:
    """Make the mini-buckets that all lanes share, as large as time allows, and optimise them for the model itself."""
    if not model.num_variables:
        return None, None
    evaluations = LANE_EVALUATIONS * num_lanes + SHARED_EVALUATIONS
    seconds = options.num_threads * budget.left()
    max_table = max_table_in_time(model, options, seconds / (2 * evaluations), LARGEST_SHARED)
    shape = Shape(max_table, options.seed)
    mini_buckets = MiniBucketBounds(model, shape, shape, options.worker_bytes)
    try:
        found = mini_buckets.bounds(
            model.unary.flat, WarmStart.even(model), SHARED_EVALUATIONS, budget=budget.share(SHARED_TIME)
        )
    except (Cancelled, TooWideError):
        return None, None
    return mini_buckets, found.state


def _lanes(model: Model, rows: Integers) -> Floats:
    """(S, B) for each row of the unary potentials, the lane with the variable in that state for certain."""
    start = model.unary.start
    lanes = np.repeat(model.unary.flat[:, None], len(rows), axis=1)
    for lane, row in enumerate(rows.tolist()):
        i = piece_of(start, row)
        keep_only(lanes[:, lane], start, i, [row - int(start[i])])
    return lanes


class _Intervals:
    """Intervals of the probabilities of some variables' states, all at once.

    Variables with equally many states are worked on together; `rows` are the places of their states among all.
    """

    def __init__(self, num_states: Integers, rows: Integers) -> None:
        self.rows, self.begin = rows, offsets(num_states)[:-1]
        self.groups = [self.begin[num_states == size][:, None] + np.arange(size) for size in np.unique(num_states)]

    def of(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return lower and upper ends, one variable after another, from bounds (S,) on log Z with a variable in a
        state."""
        lower, upper = np.zeros(len(self.rows)), np.ones(len(self.rows))
        for group in self.groups:
            own = self.rows[group]
            known = ((low[own] > -np.inf) | (high[own] < np.inf)).any(axis=1)  # of a large model often few, or none
            own, known = own[known], group[known]
            lower[known], upper[known] = intervals_of(low[own], high[own])
        return lower, upper

    def widths(self, low: Floats, high: Floats) -> Floats:
        """Return the width of the widest interval of each variable."""
        lower, upper = self.of(low, high)
        if not len(self.begin):
            return np.empty(0)
        widths: Floats = np.nan_to_num(np.maximum.reduceat(upper - lower, self.begin), nan=-1.0)
        return widths


def intervals_of(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return ends of the probability of each state, from bounds (k, L) on log Z with k variables in each of L states.

    Rounding is outwards.

    >>> lower, upper = intervals_of(np.log([[1.0, 2.0]]), np.log([[1.0, 3.0]]))
    >>> np.round(lower, 3).tolist(), np.round(upper, 3).tolist()
    ([[0.25, 0.667]], [[0.333, 0.75]])
    """
    impossible = (high == -np.inf).all(axis=1, keepdims=True)  # Z = 0: there are no probabilities
    # relative to a number near the largest; what that rounds away is added to the others, or taken from them
    finite = np.where(np.isfinite(high), high, -np.inf)
    shift = finite.max(axis=1, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    low, high = low - shift, high - shift
    with np.errstate(invalid="ignore", over="ignore"):
        lower = np.where(low > -np.inf, _share(_sum_of_others(high), low, 1.0), 0.0)
        upper = np.where(high > -np.inf, _share(_sum_of_others(low), high, -1.0), 0.0)
    lower, upper = np.maximum(lower - PROBABILITY_ROUNDING, 0.0), np.minimum(upper + PROBABILITY_ROUNDING, 1.0)
    return np.where(impossible, np.nan, lower), np.where(impossible, np.nan, upper)


def _sum_of_others(logs: Floats) -> Floats:
    """(k, L) the logarithm of the sum over all other entries of the row."""
    none = np.full((len(logs), 1), -np.inf)
    before = np.logaddexp.accumulate(logs, axis=1)[:, :-1]
    after = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, ::-1][:, 1:]
    others: Floats = np.logaddexp(np.hstack([none, before]), np.hstack([after, none]))
    return others


def _share(others: Floats, own: Floats, sense: float) -> Floats:
    """Return the share of exp(own) in its sum with exp(others).

    Others are raised (sense 1) or lowered (-1) by what rounding may have changed in either.
    """
    size = np.where(np.isfinite(others), np.abs(others), 0.0) + np.where(np.isfinite(own), np.abs(own), 0.0)
    error = ROUNDINGS * EPS * (size + others.shape[1])
    share: Floats = 1.0 / (1.0 + np.exp(np.minimum(others - own + sense * error, 700.0)))
    return share
