"""Descent: the shifts and weights of one lane's bound, optimised by L-BFGS as far as time goes.

A `BoundState` is one side of one lane. It can be left at any evaluation and continued later; its bound is valid at any
time, and never gets looser.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.mini_buckets import lbfgs, passes
from clampz._kernels.mini_buckets.layout import AS_THEY_ARE, DONE, MATCHED, NOTHING, STOPPED, ZEROS, Pass
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.structure import num_remembered
from clampz.model.tables import has_hard_zeros
from clampz.numerics import EPS, Floats, Integers
from clampz.runtime.budget import Budget, run_cancellable
from clampz.runtime.workers import Workers

BoundSide = Literal["upper", "lower"]
HalfFloats = NDArray[np.float32]

# The share of the promised fall that is enough, and what a step that falls short is cut to.
SUFFICIENT, CUT = 1e-4, 0.3
# A step cut so far is not tried again: steps are forgotten instead, or there is nothing left to gain.
LEAST_STEP = 1e-6
# A slope, in nats, that is not worth a step.
LEAST_SLOPE = 1e-9
# v of the cliques that have a negative weight, to begin with.
FIRST_V = -1.0
# Seconds that a pass is expected to take per table entry, and per clique, shifts and all.
SECONDS_PER_ENTRY, SECONDS_PER_CLIQUE = 10e-9, 1e-6


@dataclass(eq=False)
class BoundState:
    """One side of one lane: where its shifts and weights stand, and the best bound so far.

    Attributes
    ----------
    x
        The shifts end to end, then v, one for each clique: weights are softmax(v) over a bucket in an upper bound, and
        -exp(v) but for the main clique in a lower one.
    bound
        The best bound so far, rounding charged; infinite before the first evaluation, -inf from above where Z = 0.
    settled
        Nothing is left to gain.
    residual
        What the next step promises to gain at most, in nats.
    """

    tables: Tables
    side: BoundSide
    theta: Floats
    size: Floats
    x: Floats
    main: Integers
    matching: int
    bound: float
    value: float = math.inf
    num_evaluations: int = 0
    settled: bool = False
    residual: float = math.inf
    gradient: Floats | None = None
    _steps: HalfFloats = field(default_factory=lambda: _remembered(0))
    _changes: HalfFloats = field(default_factory=lambda: _remembered(0))
    _curvature: Floats = field(default_factory=lambda: np.ones(0))
    _newest: int = -1
    _num_kept: int = 0

    @classmethod
    def upper(cls, tables: Tables, unary: Floats, x: Floats | None = None, *, budget: Budget) -> "BoundState":
        """Begin an upper bound for the lane with these unary tables. It starts from the shifts and weights of another
        lane of the same structure, or from scratch. Raises Cancelled where the budget is over before it is laid out."""
        main = np.full(tables.model.num_variables, -1, dtype=np.int64)
        theta, size = tables.lane(unary, main, budget)
        begin = np.zeros(tables.structure.num_shifted + len(size)) if x is None else x.copy()
        matching = MATCHED if x is None else ZEROS if has_hard_zeros(theta) else AS_THEY_ARE
        return cls(tables, "upper", theta, size, begin, main, matching, math.inf)

    @classmethod
    def lower(
        cls, tables: Tables, unary: Floats, x: Floats, main: Integers | None = None, *, budget: Budget
    ) -> "BoundState":
        """Begin a lower bound for the lane with these unary tables. It starts from another lower bound with these main
        cliques; or from an upper one, whose heaviest cliques stay positive. Raises Cancelled where the budget is over
        before it is laid out."""
        begin, is_new = x.copy(), main is None
        if main is None:
            v, first = begin[tables.structure.num_shifted :], tables.layout.bucket_start
            bucket = np.repeat(np.arange(len(first) - 1), np.diff(first))
            main = np.lexsort((-v, bucket))[first[:-1]]  # the first of a bucket is its heaviest
            v[:] = FIRST_V
        theta, size = tables.lane(unary, main, budget)
        matching = MATCHED if is_new and not has_hard_zeros(theta) else AS_THEY_ARE
        return cls(tables, "lower", theta, size, begin, main, matching, -math.inf)

    @property
    def sign(self) -> float:
        """Return the sign of what is minimised: 1 for the upper bound, -1 for the lower."""
        return 1.0 if self.side == "upper" else -1.0


class BoundFound(NamedTuple):
    """The result of a forward pass, and what rounding may have taken from it. `value + error` is an upper bound, `value
    - error` a lower one."""

    status: int
    value: float
    error: float


class ForwardPass(NamedTuple):
    """A descent's request for a forward pass at some shifts and weights; answered by a BoundFound."""

    x: Floats
    matching: int = AS_THEY_ARE


class BackwardPass(NamedTuple):
    """A request for the backward pass, its gradient to be written here; answered by whether it finished."""

    gradient: Floats


PassRequest = ForwardPass | BackwardPass
Descent = Generator[PassRequest, Any, None]


def optimise(state: BoundState, num_evaluations: int, budget: Budget) -> None:
    """Optimise a bound, with at most `num_evaluations` more evaluations, until time is over or nothing is left to
    gain."""
    descent = descend(state, num_evaluations, budget, LEAST_SLOPE, None)
    request = next(descent, None)
    if request is not None:
        run_descent(state, descent, request, state.tables.new_pass(), budget)


def optimise_lanes(states: Sequence[BoundState], num_evaluations: int, budget: Budget, workers: Workers) -> None:
    """Optimise every state side by side; none depends on another, or on the thread that runs it."""
    workers.map(lambda state: optimise(state, num_evaluations, budget), list(states))


def run_descent(state: BoundState, descent: Descent, request: PassRequest | None, work: Pass, budget: Budget) -> None:
    """Serve a descent's requests, to its end."""
    point = state.x
    while request is not None:
        if isinstance(request, ForwardPass):
            point = request.x
            request = resume(descent, evaluate(state, point, work, budget, matching=request.matching))
        else:
            request = resume(descent, backward_pass(state, point, work, request.gradient, budget))


def resume(descent: Descent, found: BoundFound | bool) -> PassRequest | None:
    """Answer a descent's request; returns the next one, None at its end."""
    try:
        return descent.send(found)
    except StopIteration:
        return None


def descend(
    state: BoundState, num_evaluations: int, budget: Budget, tol: float, on_step: Callable[[BoundState], object] | None
) -> Descent:
    """Optimise by L-BFGS with backtracking: a step that falls short costs a forward pass only. The caller does the
    passes, of this lane alone or of several at once."""
    if state.settled or num_evaluations < 1:
        return
    left = num_evaluations
    if state.gradient is None:
        if not (yield from _begin(state)):
            return
        left -= 1
    assert state.gradient is not None
    direction, moved, there = np.empty_like(state.x), np.empty_like(state.x), np.empty_like(state.x)
    while left > 0 and not budget.must_stop():
        length = 1.0 / max(1e-12, math.sqrt(lbfgs.product(state.gradient, state.gradient)))
        remembered = state._steps, state._changes, state._curvature, state._newest, state._num_kept
        slope = lbfgs.fill_direction(*remembered, state.gradient, length, direction)
        state.residual = max(0.0, -slope)
        if not state.residual > max(tol, LEAST_SLOPE):
            state.settled = True
            return
        size, fallen = 1.0, False
        while left > 0 and size >= LEAST_STEP and not fallen:
            lbfgs.fill_moved(state.x, size, direction, moved)
            found = yield ForwardPass(moved)
            left -= 1
            if found.status == STOPPED:
                return
            fallen = state.sign * (found.value - state.value) <= SUFFICIENT * size * slope
            size *= CUT
        if fallen:
            if found.status == NOTHING:
                state.settled = True
                return
            if not (yield BackwardPass(there)):
                return
            _remember(state, moved, there)
            state.x, moved = moved, state.x
            state.gradient, there = there, state.gradient
            state.value = found.value
            if on_step is not None:
                on_step(state)
        elif size < LEAST_STEP:
            state.settled = state._num_kept == 0
            state._num_kept = 0
            if state.settled:
                return


def _begin(state: BoundState) -> Generator[PassRequest, Any, bool]:
    """Make the first evaluation; False if there is nothing to continue with."""
    found = yield ForwardPass(state.x, state.matching)
    state.settled = found.status == NOTHING
    gradient = np.empty_like(state.x)
    if found.status != DONE or not (yield BackwardPass(gradient)):
        return False
    state.matching = AS_THEY_ARE
    state.value, state.gradient = found.value, gradient
    state.residual = math.sqrt(lbfgs.product(gradient, gradient))
    state._steps, state._changes = _remembered(len(gradient)), _remembered(len(gradient))
    state._curvature = np.ones(len(state._steps))
    return True


def evaluate(state: BoundState, x: Floats, work: Pass, budget: Budget, *, matching: int = AS_THEY_ARE) -> BoundFound:
    """Run a forward pass at some shifts and weights, leaving p(x | rest) of every clique in `work`. The state keeps the
    bound if it is the best one."""
    tables = state.tables
    arguments = (tables.layout, state.theta, state.size, tables.roundings, x, state.main, matching, work)
    status = run_cancellable(budget, seconds_of_pass(tables), passes.forwards, *arguments)
    return record_bound(state, status, float(work.value[0]), float(work.error[0]))


def record_bound(state: BoundState, status: int, value: float, error: float) -> BoundFound:
    """Return what a forward pass has found for a lane, which keeps the bound if it is the best one."""
    if status == STOPPED:
        return BoundFound(status, state.sign * math.inf, 0.0)
    state.num_evaluations += 1
    status = NOTHING if value == -math.inf else DONE
    value += state.tables.model.constant
    if not math.isfinite(error):  # shifts beyond all numbers prove nothing
        return BoundFound(status, state.sign * math.inf, 0.0)
    found = BoundFound(status, value, error + EPS * abs(value) if math.isfinite(value) else 0.0)
    if state.side == "upper":
        state.bound = min(state.bound, found.value + found.error)
    else:
        state.bound = max(state.bound, found.value - found.error)
    return found


def backward_pass(state: BoundState, x: Floats, work: Pass, gradient: Floats, budget: Budget) -> bool:
    """Run the backward pass after a forward one at x: beliefs into `work`, and the gradient of what is minimised. False
    if it was cancelled."""
    tables = state.tables
    status = run_cancellable(
        budget, seconds_of_pass(tables), passes.backwards, tables.layout, x, state.main, work, gradient
    )
    if state.side == "lower":
        np.negative(gradient, out=gradient)
    return bool(status == DONE)


def seconds_of_pass(tables: Tables) -> float:
    """Estimate the seconds of a pass over one lane."""
    return SECONDS_PER_ENTRY * tables.structure.num_entries + SECONDS_PER_CLIQUE * tables.structure.num_cliques


def _remembered(size: int) -> HalfFloats:
    """Allocate room for remembered steps; what is not written to yet takes no memory."""
    return np.empty((num_remembered(size), size), dtype=np.float32)


def _remember(state: BoundState, moved: Floats, there: Floats) -> None:
    """Keep the last step and the change of the gradient, unless they say nothing of the curvature."""
    assert state.gradient is not None
    most = len(state._steps)
    at = (state._newest + 1) % most
    state._num_kept = min(state._num_kept, most - 1)  # the oldest makes room
    step, change = state._steps[at], state._changes[at]
    curvature, square = lbfgs.fill_step(state.x, moved, state.gradient, there, step, change)
    if math.inf > curvature > 1e-14 * square > 0.0:
        state._curvature[at], state._newest, state._num_kept = curvature, at, state._num_kept + 1
