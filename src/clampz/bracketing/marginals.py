"""Certified intervals for marginals.

From bounds [l_a, u_a] on log Z with X_i = a,

    e^l_a / (e^l_a + sum_{b != a} e^u_b)  <=  p(X_i = a)  <=  e^u_a / (e^u_a + sum_{b != a} e^l_b).

All states of all variables are lanes of one model: they share its partitions into narrow parts, and each begins where
the model itself has ended.  What time is left goes to the variable whose intervals are widest.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from clampz.bracketing.bracket import Bracket
from clampz.bracketing.leaves import MOST_EDGES, LeafWork, solve_leaves
from clampz.bracketing.narrow import Narrow, NarrowState
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.search import THOROUGH_SECONDS, Search
from clampz.bracketing.tree import EVALUATIONS, FIRST_LIMIT
from clampz.clamping.branches import checked_variables
from clampz.elimination.cost import WITH_MARGINALS
from clampz.elimination.exact import ExactOptions, run_exact
from clampz.elimination.plans import ExactPlan
from clampz.elimination.slices import Slicer
from clampz.model import Model, Variable
from clampz.model.batch import Batch
from clampz.model.equivalent import pairwise_model
from clampz.model.fixing import keep_only
from clampz.numerics import Floats, log_sum_exp
from clampz.watch import Watch
from clampz.workers import Crew

# Share of the time that exact inference may take.
EXACT_SHARE = 0.7
# The share of the time for bounds on all lanes at once, in so many blocks for each thread, and evaluations of each.
LANES_SHARE, BLOCKS_PER_THREAD, LANE_EVALUATIONS = 0.5, 4, 4
# Beyond the rounding of log Z, what a computed probability may be off by.
PROBABILITY_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalBounds:
    """Certified: `lower[i][a] <= p(X_i = a) <= upper[i][a]` for the variables asked for, by number.

    `stopped_by` is "gap" where every interval is narrow enough, "exact", "time" or "interrupt".
    """

    model: Model
    lower: dict[int, Floats]
    upper: dict[int, Floats]
    stopped_by: str
    seconds: float

    @property
    def widest(self) -> float:
        """The width of the widest interval."""
        return max((float((self.upper[i] - self.lower[i]).max()) for i in self.lower), default=0.0)

    def interval(self, variable: Variable) -> Floats:
        """(states, 2) lower and upper ends for a variable, by index or name."""
        i = self.model.variable_index(variable)
        return np.stack([self.lower[i], self.upper[i]], axis=1)

    def __repr__(self) -> str:
        return (
            f"MarginalBounds({len(self.lower)} variables, widest interval {self.widest:.3g}, {self.seconds:.2g} s, "
            f"stopped by {self.stopped_by})"
        )


def bound_marginals(
    model: Model,
    variables: Sequence[Variable] | None = None,
    *,
    executor: Executor | None = None,
    options: BoundOptions | None = None,
    **changes: Any,
) -> MarginalBounds:
    """An interval for every state of some variables (all by default), certified; `gap` is the width in probability that
    is narrow enough.

    Options are those of `bound`.

    >>> from clampz import generators
    >>> bool(bound_marginals(generators.grid(3, 3, rng=0), [4]).widest < 1e-9)
    True
    """
    chosen = (options or BoundOptions()).with_changes(changes)
    asked = list(range(model.num_variables)) if variables is None else checked_variables(model, variables)
    watch = Watch(chosen.time)
    with watch.interruptible():
        found = _exactly(model, asked, chosen, watch) if chosen.exact else None
        if found is not None:
            return found
        with Crew(executor, chosen.num_threads) as crew:
            try:
                return _by_bounds(model, asked, chosen, watch, crew)
            finally:
                watch.stopped_by = watch.stopped_by or "callback"  # workers stop too


def _exactly(model: Model, asked: list[int], options: BoundOptions, watch: Watch) -> MarginalBounds | None:
    """By exact inference, where it fits in the time and memory given."""
    seconds, thorough = watch.left(EXACT_SHARE / WITH_MARGINALS), watch.left() > THOROUGH_SECONDS
    plan = Slicer(model).plan(model.unary.flat, seconds, options.num_bytes / 4, thorough=thorough)
    if plan is None or plan.fixed:
        return None
    batch = Batch.of(model)
    how = ExactPlan.of(batch, options.num_bytes, order=plan.order)
    found = run_exact(batch, ExactOptions(threads=options.threads), watch, how)[0]
    off = PROBABILITY_ROUNDING + 4 * (found.upper - found.lower) if found.log_z > -math.inf else math.nan
    lower = {i: np.maximum(found.marginals[i] - off, 0.0) for i in asked}
    upper = {i: np.minimum(found.marginals[i] + off, 1.0) for i in asked}
    return MarginalBounds(model=model, lower=lower, upper=upper, stopped_by="exact", seconds=watch.seconds)


def _by_bounds(model: Model, asked: list[int], options: BoundOptions, watch: Watch, crew: Crew) -> MarginalBounds:
    base, slack = pairwise_model(model)
    lanes = {
        (i, a): _only(base, i, a) for i in asked for a in range(int(base.num_states[i])) if base.unary[i][a] > -np.inf
    }
    low = {i: np.full(int(base.num_states[i]), -np.inf) for i in asked}
    high = {i: np.where(base.unary[i] > -np.inf, np.inf, -np.inf) for i in asked}

    def learn(key: tuple[int, int], lower: float, upper: float) -> None:
        i, a = key
        low[i][a], high[i][a] = max(low[i][a], lower - slack), min(high[i][a], upper + slack)

    together = watch.share(LANES_SHARE)
    narrow, state = _shared(base, options, watch)
    keys = list(lanes)
    num_blocks = min(len(keys), BLOCKS_PER_THREAD * crew.num_threads)
    blocks = np.array_split(np.arange(len(keys)), num_blocks) if keys else []
    jobs = []
    for block in blocks:
        work = LeafWork(
            model=base,
            unary=np.stack([lanes[keys[k]] for k in block], axis=1),
            options=options,
            seconds=together.left(),
            narrow=narrow,
            limit=0.0 if narrow is None else narrow.limit,
            start=state,
            evaluations=LANE_EVALUATIONS,
            memory_share=1 / 8,
        )
        jobs.append(crew.submit(solve_leaves, work, here=(together,)))
    for block, job in zip(blocks, jobs, strict=True):
        solved = job.result()
        for k, lower, upper in zip(block, solved.lower, solved.upper, strict=True):
            learn(keys[k], float(lower), float(upper))
    searches: dict[tuple[int, int], Iterator[Bracket]] = {}
    reason = "gap"
    widths = {i: _width(low[i], high[i]) for i in asked}  # of those that something can be done about
    while widths:
        widest = max(widths, key=lambda i: widths[i])
        if widths[widest] <= options.gap:
            break
        if watch.must_stop():
            reason = "interrupt" if watch.stopped_by == "interrupt" else "time"
            break
        del widths[widest]
        for a in range(int(base.num_states[widest])):
            key = (widest, a)
            if key in lanes and high[widest][a] > low[widest][a]:
                if key not in searches:
                    lane = Model.from_contents(base.contents._replace(unary=lanes[key]))
                    searches[key] = Search(lane, options).run(crew, watch)
                bracket = next(searches[key], None)
                if bracket is not None:
                    learn(key, bracket.lower, bracket.upper)
                    widths[widest] = _width(low[widest], high[widest])
    ends = {i: _interval(low[i], high[i]) for i in asked}
    return MarginalBounds(
        model=model,
        lower={i: ends[i][0] for i in asked},
        upper={i: ends[i][1] for i in asked},
        stopped_by=reason,
        seconds=watch.seconds,
    )


def _shared(model: Model, options: BoundOptions, watch: Watch) -> tuple[Narrow | None, NarrowState | None]:
    """The partitions that all lanes share, and where the bounds of the model itself have got to."""
    if model.num_edges > MOST_EDGES or model.num_edges == 0 or not options.exact:
        return None, None
    narrow = Narrow.of(model, FIRST_LIMIT, options.seed, watch.must_stop)
    even = np.full(len(model.unary.flat), 0.5)
    return narrow, narrow.bounds(model.unary.flat, NarrowState.at(even, even), EVALUATIONS, watch.must_stop).state


def _only(model: Model, variable: int, state: int) -> Floats:
    """(S,) the unary potentials with all other states of a variable ruled out."""
    unary = model.unary.flat.copy()
    keep_only(unary, model.unary.start, variable, [state])
    return unary


def _interval(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ends of the probability of each state, from bounds on log Z with the variable in it; rounding outwards."""
    lower, upper = np.zeros_like(low), np.zeros_like(high)
    for a in range(len(low)):
        if low[a] > -np.inf:
            lower[a] = _share(log_sum_exp(np.delete(high, a) - low[a]))
        if high[a] > -np.inf:
            upper[a] = _share(log_sum_exp(np.delete(low, a) - high[a]))
    return np.maximum(lower - PROBABILITY_ROUNDING, 0.0), np.minimum(upper + PROBABILITY_ROUNDING, 1.0)


def _share(others: float) -> float:
    """The share of 1 in the sum of 1 and exp(others)."""
    return 1.0 / (1.0 + math.exp(min(others, 700.0)))


def _width(low: Floats, high: Floats) -> float:
    lower, upper = _interval(low, high)
    return float((upper - lower).max(initial=0.0))
