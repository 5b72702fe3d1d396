"""The Bethe approximation by a double loop that converges, from several starts."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.approximations.message_passing.binary import FULL_LANES
from clampz.approximations.bethe_bound import bethe_lower_bound
from clampz.approximations.edge_weights import WEIGHTS_SHARE, uniform_weights
from clampz.approximations.iteration import Endings, Stagnation, iterate
from clampz.approximations.layouts import BinaryLayout, layout_of
from clampz.approximations.mean_field import MOST_STARTS, MeanFieldOptions, mean_field
from clampz.approximations.message_passing import MessageLanes, lanes_of
from clampz.approximations.restarts import best_of_starts, solve_in_blocks
from clampz.method import AnyBeta, AnySets, CallKeywords, Method, OneBeta, OneSet, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.tables import take_lanes
from clampz.model.warm_starts import Start
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled
from clampz.runtime.options import OptionKeywords, Options, check_flag, check_whole
from clampz.runtime.workers import Workers

# Inner sweeps per outer step of the loops in the order tried.  The double loop finds its way to an optimum in a few
# sweeps and is slow to settle there; plain belief propagation (None) settles quickly where it settles at all.  So it
# gets a try after SHORT sweeps, and lanes that it fails, or leads away to a lower optimum (as it does on some strong
# mixed models), go on from where it began.  A lane whose drift is down to NEAR has found its optimum before that: on
# 566 models (the 44 reference models, more of their kinds, Potts models and tables of 3 to 8 labels) this lost none,
# and neither would five times as much.
# Five inner sweeps are enough nearly everywhere; from ten on the inner layout has non-negative counting numbers only,
# so that it converges for certain, and longer inner loops make each outer step a truer ascent.
INNER_SWEEPS = (5, None, 5, 10, 20, 40)
SHORT = 60
NEAR = 0.02
# A lane whose drift has not fallen to this share of its best within PATIENCE (outer) steps moves on to the next loop.
PROGRESS = 0.9
PATIENCE = 60
# Share of the time left that mean field gets to find a start in.
FIELD_SHARE = 0.25
# Marginals that its starts may have together: on large models one start is as good as many, and they would take longer
# than everything else.
FIELD_VALUES = 1 << 17
# Nats that the value may fall in belief propagation before it is taken to have left the double loop's optimum.
LOST = 0.01
# Messages of a model up to which starts are solved together: sweeps take less time there than what is around them.  On
# larger models starts would gain nothing as lanes, and one after another they can end where earlier ones did.
TOGETHER = 1 << 9
# A lane whose beliefs are all within this of those that an earlier start ended with, and come closer, will end there
# too; those that move away are leaving a fixed point that is no optimum, as the uniform one may be.
SAME = 0.03


class BetheKeywords(OptionKeywords, total=False):
    """The fields of `BetheOptions`, as a call takes them by name."""

    num_starts: int
    from_mean_field: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class BetheOptions(Options):
    """Options of Bethe.

    Attributes
    ----------
    tol
        The largest disagreement, in probability, between a pairwise belief's marginal and the belief; the error of log
        Z in nats is of its square.
    num_starts
        Random starts besides the uniform one and the best mean-field solution; the highest value counts, and on all but
        the smallest models what comes to an optimum that is known already ends there.  Branches of a clamping start
        from their parent's solution, the uniform point and a quarter as many random ones.
    from_mean_field
        Whether the best mean-field solution is a start.
    seed
        Of the random starts, those of mean field included.
    """

    num_starts: int = 2
    from_mean_field: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("num_starts", self.num_starts, 0, most=MOST_STARTS)
        check_flag("from_mean_field", self.from_mean_field)
        check_whole("seed", self.seed, 0)

    def in_branches(self) -> "BetheOptions":
        """Return options with fewer starts, for branches of a clamping. On the reference models the parent's start and
        the uniform one are as good as all of them, within 0.001 nats on 43 of 44."""
        return replace(self, num_starts=self.num_starts // 4, from_mean_field=False)


class BetheCall(BetheKeywords, CallKeywords, total=False):
    """What a call of `bethe` takes by name, beside evidence and beta."""

    options: BetheOptions | None


class BetheMethod(Method[BetheOptions]):
    """The method `bethe`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(  # type: ignore[overload-overlap]
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[BetheCall]
    ) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Unpack[BetheCall]
    ) -> Estimates: ...
    def __call__(self, *unnamed: Any, **given: Any) -> Any:
        return super().__call__(*unnamed, **given)


@approximation(BetheMethod, BetheOptions)
def bethe(batch: Batch, options: BetheOptions, start: Start | None, budget: Budget) -> Estimates:
    """The Bethe approximation: often the most accurate estimate of log Z.

    No bound in general; on attractive and balanced binary models `log_z` is a lower bound, certified at any iteration
    (`value` is what the messages say).

    A double loop (belief propagation whose beliefs are damped geometrically), with plain belief propagation to settle
    where that works, ends at a stationary point of the Bethe objective.  That is a maximum with many local ones, so it
    runs from several starts: uniform, the best mean-field solution, random ones, and `start` if given.  Options: see
    `BetheOptions`.

    >>> from clampz import bethe, generators
    >>> bethe(generators.cycle(3, theta=0, weights=-4.0)).converged
    True
    """
    topology = batch.model.topology
    with Workers(options.num_threads) as pool:
        single = lanes_of(layout_of(batch, budget), pool, budget=budget)
        balanced = isinstance(single.layout, BinaryLayout) and batch.model.is_balanced
        budget.check_cancelled()
        ones, rho = single.rho, uniform_weights(topology, budget=budget.share(WEIGHTS_SHARE))
        budget.check_cancelled()
        gentle = 1.0 + np.bincount(topology.edges.ravel(), np.repeat(1.0 - rho, 2), topology.num_variables)
        certain = 1.0 + (topology.core * topology.degrees).astype(np.float64)
        inertia: tuple[Any, ...] = (gentle, None, gentle, certain, certain, certain)

        together = len(single.point) <= TOGETHER  # of the model alone: a lane is solved alike in any batch
        known: list[Floats] = []  # (S, B) beliefs that earlier starts converged to

        def run(block: MessageLanes, numbers: Integers) -> Endings:
            ending = before = Endings.pending(block)
            left = np.arange(block.num_lanes)
            for level, inner in enumerate(INNER_SWEEPS):
                part = block if level == 0 else block.take(left)
                if level > 0:
                    part.point = take_lanes((before if level == 2 else ending).point, left)
                part.set_counting(ones, inertia[level], budget=UNLIMITED)
                leaving = LeavingPolicy(
                    level, [take_lanes(beliefs, numbers[left]) for beliefs in known], part.num_lanes
                )
                attempt = iterate(
                    part,
                    options,
                    budget,
                    method="bethe",
                    residual_of=lambda look: look.drift,
                    policy=leaving,
                    inner=inner,
                    begun=ending.num_iter[left] if level else None,
                    full=block.num_lanes >= FULL_LANES,
                )
                ending.put(left, attempt)
                stuck = attempt.stopped_for(None) & ~leaving.to_known
                if level == 1:  # it may also have left for another, lower optimum
                    stuck |= (attempt.converged | leaving.to_known) & (attempt.value < before.value[left] - LOST)
                left = left[stuck]
                if not left.size:
                    break
                if level == 0:
                    before = deepcopy(ending)
            return ending

        def solve(points: Floats) -> Endings:
            lanes = single.take(np.repeat(np.arange(batch.num_lanes), points.shape[1] // batch.num_lanes))
            lanes.start_at(points)
            ending = solve_in_blocks(lanes, run, budget)
            if not together:
                known.append(single.beliefs_at(ending.point, ones))
                known[-1][:, ~ending.converged] = np.nan
            return ending

        starts = _starts(single, batch, options, start, budget)
        best = best_of_starts(
            starts,
            batch.num_lanes,
            len(single.point),
            solve,
            lambda ending: _merit(ending, batch.num_lanes),
            budget,
            at_once=None if together else 1,
        )
    estimates = single.estimates("bethe", batch, options, best, ones, log_z=best.value)
    if not balanced:
        return estimates
    try:
        lower = bethe_lower_bound(single.layout, single.total, budget)
    except Cancelled:  # nothing is proven, then
        return estimates
    unseen = best.unseen & (single.layout.constant > -np.inf)
    lower = np.where(unseen, estimates.lower, lower)
    return replace(estimates, log_z=np.where(unseen, np.nan, lower), lower=lower, bound="lower")


def _merit(ending: Endings, num_lanes: int) -> Floats:
    """Rank endings by value; one that has not converged counts only where no other start of its lane has."""
    none = ~ending.converged.reshape(num_lanes, -1).any(axis=1)
    merit = np.where(ending.converged, ending.value, -np.inf)
    return np.where(np.repeat(none, len(merit) // num_lanes), -ending.residual, merit)


def _starts(
    single: MessageLanes, batch: Batch, options: BetheOptions, start: Start | None, budget: Budget
) -> list[Callable[[], Floats]]:
    """List functions that make messages (rows, lanes) to start from: the caller's, uniform, mean field's, random
    ones."""
    rng = np.random.default_rng(options.seed)

    def from_mean_field() -> Floats:
        most = max(1, FIELD_VALUES // max(1, len(batch.unary)))
        field = MeanFieldOptions(max_iter=options.max_iter, threads=options.threads, seed=options.seed)
        field = replace(field, num_starts=min(field.num_starts, most))
        found = mean_field.solve(batch, field, within=budget.share(FIELD_SHARE))
        return single.messages_from(np.nan_to_num(found.marginals_flat, nan=0.5))

    def random() -> Floats:
        weight = rng.random(size=(len(batch.unary), 1))
        return single.messages_from(np.repeat(weight, batch.num_lanes, axis=1))

    given = [] if start is None else [single.messages_of(batch, start)]
    starts: list[Callable[[], Floats]] = [lambda: given[0]] if given else []
    starts.append(lambda: np.zeros_like(single.point))
    if not single.topology.num_core:  # a forest, where any start leads to the one fixed point
        return starts[:1]
    starts += [from_mean_field] * options.from_mean_field
    return starts + [random] * options.num_starts


class LeavingPolicy:
    """A policy for `iterate`: which lanes leave the loop of this level. They leave the first loop after SHORT sweeps,
    or as soon as they are NEAR an optimum. They leave the others but the last when their drift has not fallen for long,
    and any loop once they have come to beliefs that are `known`."""

    def __init__(self, level: int, known: list[Floats], num_lanes: int) -> None:
        self.level, self.known = level, known
        self.patience = PATIENCE * (INNER_SWEEPS[level] or 1) if level < len(INNER_SWEEPS) - 1 else np.inf
        self.stagnation = Stagnation(num_lanes, PROGRESS)
        self.off = np.full((len(known), num_lanes), np.nan)  # the largest differences at the last look
        self.to_known = np.zeros(num_lanes, dtype=np.bool_)

    def __call__(self, block: MessageLanes, running: Integers, drift: Floats, num_iter: int) -> NDArray[np.bool_]:
        at_hand = block.marginals()[:, : running.size] if self.known else np.empty((0, running.size))
        for beliefs, before in zip(self.known, self.off, strict=True):
            off = np.abs(at_hand - beliefs[:, running]).max(axis=0, initial=0.0)
            self.to_known[running] |= (off <= SAME) & (off < before[running])
            before[running] = off
        if self.level == 0:
            gone = (drift <= NEAR) | (num_iter >= SHORT)
        else:
            gone = self.stagnation.waited(running, drift, num_iter) >= self.patience
        return np.asarray(gone | self.to_known[running])
