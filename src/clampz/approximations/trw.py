"""Tree-reweighted belief propagation: an upper bound on log Z that holds at every iteration."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clampz.approximations import edge_weights as weights
from clampz.approximations.base import Start, approximation
from clampz.approximations.binary_lanes import BinaryLanes
from clampz.approximations.engine import Ending, Policy, Stagnation, iterate, solve_in_blocks
from clampz.approximations.lanes import finished, lanes_of, start_messages
from clampz.approximations.message_lanes import MessageLanes
from clampz.approximations.problems import problem_of
from clampz.batch import Batch
from clampz.executors import workers
from clampz.limits import Options, Watch, check_option
from clampz.results import Estimates
from clampz.tables import Floats, Integers, columns

EdgeWeights = Literal["uniform", "sampled", "optimized"]

# A lane whose slack has not fallen to this share of its best within PATIENCE sweeps oscillates and is damped more.  Stricter settings also damp
# lanes that only creep (strong frustrated models do, for thousands of sweeps), and make them slower still.
PROGRESS = 0.97
PATIENCE = 100
DAMPING_STEPS = (0.0, 0.25, 0.5, 0.75)
# Share of the uniform weights in optimized ones: it keeps every edge's weight positive.
UNIFORM_SHARE = 0.02
# Sweeps of the messages between two conditional-gradient steps on the edge weights, and the size 2 / (k + STEP_OFFSET) of step k.
SWEEPS_PER_STEP = 20
STEP_OFFSET = 4.0


@dataclass(frozen=True, kw_only=True)
class TRWOptions(Options):
    """Options of TRW.

    Attributes
    ----------
    tol
        In nats: the slack of the certificate, that is how far `log_z` is above `value`.
    edge_weights
        "uniform" over spanning trees (default), "sampled" from `num_trees` random ones, "optimized" to make the bound as low as they can, or
        an array (m,) or (m, B) in the order of `model.edges` that is a mixture of spanning forests.
    num_trees
        For "sampled".
    num_steps
        Conditional-gradient steps for "optimized"; `max_iter` counts for each set of weights that is converged in full.
    seed
        For "sampled".
    """

    tol: float = 1e-4
    edge_weights: EdgeWeights | NDArray[np.float64] | weights.ForestWeights = "uniform"
    num_trees: int = 1000
    num_steps: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ("uniform", "sampled", "optimized")
        given = isinstance(self.edge_weights, str)
        check_option(not given or self.edge_weights in known, "edge_weights", f"one of {', '.join(known)} or an array", self.edge_weights)
        check_option(self.num_trees >= 1, "num_trees", "a whole number >= 1", self.num_trees)
        check_option(self.num_steps >= 1, "num_steps", "a whole number >= 1", self.num_steps)


@approximation("trw", TRWOptions)
def trw(batch: Batch, options: TRWOptions, start: Start | None, watch: Watch) -> Estimates:
    """Tree-reweighted approximation: `log_z` is an upper bound on log Z, certified whatever the iteration limit.

    `value` is what the fixed point would have; `residual` is the slack of the certificate in nats, how far the bound is above `value`, and the run has
    converged when it is below `tol`.  Damping is raised for lanes whose slack stops falling.  Options: see `TRWOptions`.

    >>> from clampz import generators, trw
    >>> trw(generators.cycle(3, theta=0, weights=-4.0)).bound
    'upper'
    """
    optimize = isinstance(options.edge_weights, str) and options.edge_weights == "optimized"
    with workers(options.num_threads) as pool:
        lanes = lanes_of(problem_of(batch), pool)
        if start is not None:
            lanes.start_at(start_messages(lanes, batch, start))
        rho = _initial_weights(batch, options)
        if optimize:
            rho = np.repeat(rho, batch.num_lanes // rho.shape[1], axis=1)
        shared = rho.shape[1] == 1

        def solve(block: MessageLanes, numbers: Integers) -> Ending:
            block.set_counting(rho if shared else columns(rho, numbers))
            ending = _converge(block, options, watch, options.max_iter)
            if optimize:
                ending, rho[:, numbers] = _optimized(block, ending, options, watch)
            return ending

        # weights of a lane's own need tables of its own, except in log-odds
        ending = solve_in_blocks(lanes, solve, max_block=None if shared or isinstance(lanes, BinaryLanes) else 1)
    return finished("trw", lanes, batch, options, ending, rho, log_z=ending.upper, bound="upper")


def _initial_weights(batch: Batch, options: TRWOptions) -> Floats:
    """(m, 1), or (m, B) where lanes differ in which variables they have clamped: the weights are those of the graph of the others."""
    topology = batch.model.topology
    if isinstance(options.edge_weights, weights.ForestWeights):
        return options.edge_weights.rho
    if not isinstance(options.edge_weights, str):
        return weights.checked_weights(topology, options.edge_weights, batch.num_lanes)
    columns_of: dict[bytes, Floats] = {}
    kinds = []
    for free in (batch.num_possible > 1).T:
        kinds.append(np.packbits(free).tobytes())
        if kinds[-1] in columns_of:
            continue
        some = None if free.all() else free
        if options.edge_weights == "sampled":
            columns_of[kinds[-1]] = weights.sampled_weights(topology, options.num_trees, np.random.default_rng(options.seed), some)
        else:
            columns_of[kinds[-1]] = weights.uniform_weights(topology, some)
    return np.stack([columns_of[kind] for kind in (kinds if len(columns_of) > 1 else kinds[:1])], axis=1)


def _converge(block: MessageLanes, options: TRWOptions, watch: Watch, max_iter: int) -> Ending:
    policy = _damp_when_stuck(block.num_lanes)
    return iterate(block, options, watch, method="trw", residual_of=lambda look: look.slack, policy=policy, upper=True, max_iter=max_iter)


def _damp_when_stuck(num_lanes: int) -> Policy:
    """A policy for `iterate`: lanes whose slack has stopped falling are damped one step more."""
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


def _optimized(block: MessageLanes, ending: Ending, options: TRWOptions, watch: Watch) -> tuple[Ending, Floats]:
    """Minimise the bound over the edge weights by conditional gradient, from where the block's own weights have converged.

    The gradient of the bound is minus the mutual information of the pairwise beliefs, so each step moves towards a maximum spanning forest.  The lowest
    bound seen is kept, with its weights: never above that at the start.
    """
    first = block.rho
    current, best = first.copy(), first.copy()
    block.point = ending.point.copy()
    block.set_counting(first)
    for step in range(options.num_steps):
        size = 2.0 / (step + STEP_OFFSET)
        current = (1 - size) * current + size * weights.heaviest_forests(block.topology, block.mutual_information())
        candidate = UNIFORM_SHARE * first + (1 - UNIFORM_SHARE) * current
        block.point = _try_weights(block, candidate, best, ending, options, watch, min(SWEEPS_PER_STEP, options.max_iter))
        block.set_counting(candidate)
        if watch.must_stop():
            return ending, best
    # A bound taken after a few sweeps says little of the weights: the last ones are judged once their messages have converged, and so are the best.
    _try_weights(block, candidate, best, ending, options, watch, options.max_iter)
    unfinished = ~ending.converged
    if unfinished.any():
        block.point = ending.point.copy()
        _try_weights(block, best.copy(), best, ending, options, watch, options.max_iter)
    return ending, best


def _try_weights(block: MessageLanes, candidate: Floats, best: Floats, ending: Ending, options: TRWOptions, watch: Watch, max_iter: int) -> Floats:
    """Converge under these weights; where the bound is lower than that of `ending` (or as low, and settled), they and it take the place of the best so far.

    Returns the messages reached.
    """
    block.set_counting(candidate)
    trial = _converge(block, options, watch, max_iter)
    trial.num_iter += ending.num_iter
    lower = np.flatnonzero((trial.upper < ending.upper) | (trial.upper == ending.upper) & trial.converged)
    ending.put(lower, trial, lower)
    best[:, lower] = candidate[:, lower]
    return trial.point
