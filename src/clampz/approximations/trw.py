"""Tree-reweighted belief propagation: an upper bound on log Z that holds at every iteration."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from clampz.approximations.edge_weights import (
    WEIGHTS_SHARE,
    checked_weights,
    heaviest_forests,
    sampled_weights,
    uniform_weights,
)
from clampz.approximations.iteration import Endings, Policy, Stagnation, iterate
from clampz.approximations.layouts import layout_of
from clampz.approximations.message_passing import BinaryLanes, MessageLanes, lanes_of
from clampz.approximations.restarts import solve_in_blocks
from clampz.method import AnyBeta, AnySets, CallKeywords, ForestWeights, Method, OneBeta, OneSet, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.tables import take_lanes
from clampz.model.warm_starts import Start
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.options import OptionKeywords, Options, check_option, check_whole
from clampz.runtime.workers import Workers

EdgeWeights = Literal["uniform", "sampled", "optimized"]

# A lane whose slack has not fallen to this share of its best within PATIENCE sweeps oscillates and is damped more.
# Stricter settings also damp lanes that only creep (strong frustrated models do, for thousands of sweeps), and make
# them slower still.
PROGRESS = 0.97
PATIENCE = 100
DAMPING_STEPS = (0.0, 0.25, 0.5, 0.75)
# Share of the uniform weights in optimized ones: it keeps every edge's weight positive.
UNIFORM_SHARE = 0.02
# Sweeps of the messages between two conditional-gradient steps on the edge weights, and the size 2 / (k + STEP_OFFSET)
# of step k.
SWEEPS_PER_STEP = 20
STEP_OFFSET = 4.0
# Nats of slack down to which weights are converged to be compared; only those that are kept are converged to `tol`.
ROUGH = 0.01


class TRWKeywords(OptionKeywords, total=False):
    """The fields of `TRWOptions`, as a call takes them by name."""

    edge_weights: EdgeWeights | NDArray[np.float64]
    num_trees: int
    num_steps: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class TRWOptions(Options):
    """Options of TRW.

    Attributes
    ----------
    tol
        In nats: the slack of the certificate, that is how far `log_z` is above `value`.
    edge_weights
        "uniform" over spanning trees (default), "sampled" from `num_trees` random ones, "optimized" to make the bound
        as low as they can, or an array (m,) or (m, B) in the order of `model.edges` that is a mixture of spanning
        forests.
    num_trees
        For "sampled".
    num_steps
        Conditional-gradient steps for "optimized"; `max_iter` counts for each set of weights that is converged in full.
    seed
        For "sampled".
    """

    tol: float = 1e-3
    edge_weights: EdgeWeights | NDArray[np.float64] = "uniform"
    num_trees: int = 1000
    num_steps: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ("uniform", "sampled", "optimized")
        holds = not isinstance(self.edge_weights, str) or self.edge_weights in known
        check_option(holds, "edge_weights", f"one of {', '.join(known)} or an array", self.edge_weights)
        check_whole("num_trees", self.num_trees, 1)
        check_whole("num_steps", self.num_steps, 1)
        check_whole("seed", self.seed, 0)

    @property
    def is_optimized(self) -> bool:
        """Whether the edge weights are "optimized"."""
        return isinstance(self.edge_weights, str) and self.edge_weights == "optimized"


class TRWCall(TRWKeywords, CallKeywords, total=False):
    """What a call of `trw` takes by name, beside evidence and beta."""

    options: TRWOptions | None


class TRWMethod(Method[TRWOptions]):
    """The method `trw`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(  # type: ignore[overload-overlap]
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[TRWCall]
    ) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Unpack[TRWCall]
    ) -> Estimates: ...
    def __call__(self, *unnamed: Any, **given: Any) -> Any:
        return super().__call__(*unnamed, **given)


@approximation(TRWMethod, TRWOptions)
def trw(
    batch: Batch, options: TRWOptions, start: Start | None, budget: Budget, weights: ForestWeights | None = None
) -> Estimates:
    """Tree-reweighted approximation: `log_z` is an upper bound on log Z, certified whatever the iteration limit.

    `value` is what the fixed point would have. `residual` is the slack of the certificate in nats, how far the bound is
    above `value`. The run has converged when it is below `tol`. Damping is raised for lanes whose slack stops falling.
    Options: see `TRWOptions`.

    >>> from clampz import generators, trw
    >>> trw(generators.cycle(3, theta=0, weights=-4.0)).bound
    'upper'
    """
    optimize = weights.optimize if weights is not None else options.is_optimized
    with Workers(options.num_threads) as pool:
        layout = layout_of(batch, budget)
        budget.check_cancelled()
        rho = _initial_weights(batch, options, budget.share(WEIGHTS_SHARE)) if weights is None else weights.rho
        budget.check_cancelled()
        if optimize:
            rho = np.repeat(rho, batch.num_lanes // rho.shape[1], axis=1)
        shared = rho.shape[1] == 1
        lanes = lanes_of(layout, pool, rho if shared else None, budget=budget)
        budget.check_cancelled()
        if start is not None:
            lanes.start_at(lanes.messages_of(batch, start))

        def solve(block: MessageLanes, numbers: Integers) -> Endings:
            block.set_counting(rho if shared else take_lanes(rho, numbers), budget=UNLIMITED)
            if not optimize:
                return _converge(block, options, budget)
            ending, rho[:, numbers] = _optimized(block, options, budget)
            return ending

        # weights of a lane's own need tables of its own, except in log-odds
        max_block = None if shared or isinstance(lanes, BinaryLanes) else 1
        ending = solve_in_blocks(lanes, solve, budget, max_block)
    return lanes.estimates("trw", batch, options, ending, rho, log_z=ending.upper, bound="upper")


def _initial_weights(batch: Batch, options: TRWOptions, budget: Budget) -> Floats:
    """(m, 1) choose the edge weights of the free variables' graph, or (m, B) where lanes differ in what they have
    clamped."""
    topology = batch.model.topology
    if not isinstance(options.edge_weights, str):
        return checked_weights(topology, options.edge_weights, batch.num_lanes, budget)
    columns_of: dict[bytes, Floats] = {}
    kinds = []
    for free in (batch.num_possible > 1).T:
        kinds.append(np.packbits(free).tobytes())
        if kinds[-1] in columns_of:
            continue
        some = None if free.all() else free
        if options.edge_weights == "sampled":
            rng = np.random.default_rng(options.seed)
            columns_of[kinds[-1]] = sampled_weights(topology, options.num_trees, rng, some, budget=budget)
        else:
            columns_of[kinds[-1]] = uniform_weights(topology, some, budget=budget)
    return np.stack([columns_of[kind] for kind in (kinds if len(columns_of) > 1 else kinds[:1])], axis=1)


def _converge(block: MessageLanes, options: TRWOptions, budget: Budget, weights: Floats | None = None) -> Endings:
    """Iterate from where the block stands, under other weights if given, until the slack is within the tolerance. Lanes
    that are stuck are damped."""
    if weights is not None:
        block.set_counting(weights, budget=UNLIMITED)
    policy = _damp_when_stuck(block.num_lanes)
    return iterate(block, options, budget, method="trw", residual_of=lambda look: look.slack, policy=policy, upper=True)


def _damp_when_stuck(num_lanes: int) -> Policy:
    """Make a policy for `iterate`: lanes whose slack has stopped falling are damped one step more."""
    stagnation = Stagnation(num_lanes, PROGRESS)
    level = np.zeros(num_lanes, dtype=np.int64)

    def damp(block: MessageLanes, running: Integers, slack: Floats, num_iter: int) -> NDArray[np.bool_]:
        waited = stagnation.waited(running, slack, num_iter)
        stuck = running[(waited >= PATIENCE) & (level[running] < len(DAMPING_STEPS) - 1)]
        level[stuck] += 1
        stagnation.since[stuck] = num_iter
        block.keep[: running.size] = 1.0 - np.take(DAMPING_STEPS, level[running])
        return np.zeros(running.size, dtype=np.bool_)

    return damp


def _optimized(block: MessageLanes, options: TRWOptions, budget: Budget) -> tuple[Endings, Floats]:
    """Minimise the bound over the edge weights by conditional gradient, from the block's own; returns the best weights
    too. The gradient of the bound is minus the mutual information of the pairwise beliefs, so each step moves towards a
    maximum spanning forest. New weights replace the best so far where their bound is lower by more than the best one
    might still gain."""
    rough = replace(options, tol=max(options.tol, ROUGH))
    quick = replace(rough, max_iter=min(SWEEPS_PER_STEP, options.max_iter))
    first = block.rho
    current, best = first.copy(), first.copy()
    start = block.take(np.arange(block.num_lanes))
    ending = _converge(start, rough, budget)
    block.point = ending.point.copy()
    block.set_counting(first, budget=UNLIMITED)
    for step in range(options.num_steps):
        forests = None if budget.must_stop() else heaviest_forests(block.topology, block.mutual_information(), budget)
        if forests is None:
            ending.stopped_by[:] = budget.stopped_by
            return ending, best
        size = 2.0 / (step + STEP_OFFSET)
        current = (1 - size) * current + size * forests
        candidate = UNIFORM_SHARE * first + (1 - UNIFORM_SHARE) * current
        # a bound taken after a few sweeps says little of the weights, so the last ones get as many as they need
        trial = _converge(block, rough if step == options.num_steps - 1 else quick, budget, candidate)
        block.point = trial.point
        block.set_counting(candidate, budget=UNLIMITED)
        _accept(ending, trial, best, candidate, trial.upper < ending.upper - ending.residual)
    block.point = ending.point.copy()
    settled = _converge(block, options, budget, best)
    _accept(ending, settled, best, best, settled.upper <= ending.upper)
    if budget.must_stop():  # what has only come within the rough tolerance has not converged
        ending.stopped_by[ending.residual > options.tol] = budget.stopped_by
    return ending, best


def _accept(ending: Endings, trial: Endings, best: Floats, candidate: Floats, better: NDArray[np.bool_]) -> None:
    """Replace the best so far by the better lanes of a trial; sweeps add up in all of them."""
    trial.num_iter += ending.num_iter
    taken = np.flatnonzero(better)
    ending.put(taken, trial, taken)
    ending.num_iter = trial.num_iter
    best[:, taken] = candidate[:, taken]
