"""What draws say of log Z: an estimate, its standard error, and an interval at a confidence.

Weights `w = f / q` of draws from a proposal are on average Z, dead draws (weight 0) counted, and at most exp(bound), so
that `y = w / exp(bound)` is in [0, 1].  The *empirical-Bernstein inequality* (Theorem 4 of Maurer and Pontil, 2009):
of n such numbers, independent, with mean m and variance V (of the sample, over n - 1), with probability 1 - delta

    E[y] <= m + sqrt(2 V log(2 / delta) / n) + 7 log(2 / delta) / (3 (n - 1)),

and the same from below, so both at once with `log(4 / delta)`.  It holds for an n fixed beforehand.  A run may stop
whenever it likes all the same: the inequality is asked for at the doublings alone, after 1, 2, 4, ... blocks of draws,
the k-th with `delta / (k (k + 1))`.  These add up to delta, so that with probability 1 - delta all of the intervals
hold at once, whichever of them have been reached by the time somebody looks, and so does what they have in common.
Proposals share delta in the same way, the j-th with `delta / (j (j + 1))`: each is fixed, its bound too, before its
draws are made, whatever it was chosen by.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.proposals import Draws, States
from clampz.model.model import Model
from clampz.numerics import EPS, Floats, Integers, log_sum_exp
from clampz.runtime.options import check_option, is_number

# Draws of equal weight that others are worth, below which an estimate and its error mean nothing.
LEAST_EFFECTIVE = 50.0
# A log weight that is none: that of a block whose draws are all dead.
NEVER_SEEN = -1e300
# States that are counted at once.
AT_ONCE = 2**20


class Tally(NamedTuple):
    """Sums over draws: how many there are, how many of them are dead, and the logs of the sums of y and of y squared.

    >>> both = Tally.of(np.log([0.5, 0.25])).plus(Tally.of(np.array([-np.inf])))
    >>> both.number, both.num_dead, round(math.exp(both.log_mean), 10)
    (3, 1, 0.25)
    """

    number: int = 0
    num_dead: int = 0
    log_sum: float = -math.inf
    log_squares: float = -math.inf

    @classmethod
    def of(cls, log_y: Floats) -> "Tally":
        dead = int(np.isneginf(log_y).sum())
        return cls(len(log_y), dead, log_sum_exp(log_y), log_sum_exp(2.0 * log_y))

    def plus(self, other: "Tally") -> "Tally":
        return Tally(
            self.number + other.number,
            self.num_dead + other.num_dead,
            float(np.logaddexp(self.log_sum, other.log_sum)),
            float(np.logaddexp(self.log_squares, other.log_squares)),
        )

    @property
    def log_mean(self) -> float:
        return self.log_sum - math.log(self.number) if self.number else -math.inf

    @property
    def relative_variance(self) -> float:
        """The sample variance in units of the mean squared; infinite where all are dead, or there is only one."""
        if self.number < 2 or self.log_sum == -math.inf:
            return math.inf
        n = self.number
        spread = n * math.exp(min(self.log_squares - 2.0 * self.log_sum, 0.0)) - 1.0
        return max(spread, 0.0) * n / (n - 1)

    @property
    def standard_error(self) -> float:
        """The standard error of the log of the mean (delta method)."""
        return math.sqrt(self.relative_variance / self.number) if self.number else math.inf

    @property
    def effective(self) -> float:
        """Draws of equal weight that these are worth."""
        return math.exp(2.0 * self.log_sum - self.log_squares) if self.log_sum > -math.inf else 0.0

    def interval(self, delta: float) -> tuple[float, float]:
        """Return ends of log E[y] that hold with probability 1 - delta, for a number of draws fixed beforehand."""
        if self.number < 2:
            return -math.inf, 0.0
        mean, asked = math.exp(self.log_mean), math.log(4.0 / delta)
        variance = self.relative_variance * mean * mean if mean > 0.0 else 0.0
        margin = math.sqrt(2.0 * variance * asked / self.number) + 7.0 * asked / (3.0 * (self.number - 1))
        low, high = mean - margin, mean + margin
        return math.log(low) if low > 0.0 else -math.inf, math.log(min(high, 1.0))


NO_DRAWS = Tally()


@dataclass(frozen=True)
class Sampled:
    """What the draws of one proposal have come to.

    Attributes
    ----------
    bound
        On the log weights, known before any draw.
    rounding
        What log weights may be off by.
    tally
        Of all blocks so far.
    doublings
        Those after 1, 2, 4, ... blocks.
    """

    bound: float
    rounding: float = 0.0
    num_blocks: int = 0
    tally: Tally = NO_DRAWS
    doublings: tuple[Tally, ...] = ()

    def with_block(self, log_weights: Floats) -> "Sampled":
        """Add one more block: blocks come in their order, or what they say would depend on which are quick."""
        tally, number = self.tally.plus(Tally.of(log_weights - self.bound)), self.num_blocks + 1
        doublings = (*self.doublings, tally) if number.bit_count() == 1 else self.doublings
        return Sampled(self.bound, self.rounding, number, tally, doublings)

    @property
    def log_z(self) -> float:
        """The estimate: the log of the mean weight."""
        return self.bound + self.tally.log_mean

    @property
    def standard_error(self) -> float:
        return self.tally.standard_error

    def interval(self, delta: float) -> tuple[float, float]:
        """Return ends of log Z that hold with probability 1 - delta, whenever the draws are stopped.

        They are what the intervals of all doublings have in common.
        """
        low, high = -math.inf, self.bound
        for k, tally in enumerate(self.doublings, 1):
            below, above = tally.interval(delta / (k * (k + 1)))
            low, high = max(low, self.bound + below - self.rounding), min(high, self.bound + above + self.rounding)
        return low, high


def interval(sampled: Sequence[Sampled], confidence: float) -> tuple[float, float]:
    """Return ends of log Z that hold together with this probability, by the draws of all proposals in order.

    >>> sampled = Sampled(bound=0.0)
    >>> for _ in range(4):
    ...     sampled = sampled.with_block(np.log(np.tile([0.4, 0.6], 1000)))
    >>> low, high = interval([sampled], 0.95)
    >>> round(math.exp(low), 3), round(math.exp(high), 3)
    (0.493, 0.507)
    """
    expected = "a number above 0 and below 1"
    check_option(is_number(confidence) and 0.0 < confidence < 1.0, "confidence", expected, confidence)
    low, high = -math.inf, math.inf
    for j, each in enumerate(sampled, 1):
        below, above = each.interval((1.0 - confidence) / (j * (j + 1)))
        low, high = max(low, below), min(high, above)
    return low, high


def best(sampled: Sequence[Sampled]) -> Sampled | None:
    """Return the one of smallest standard error, of those that are worth enough draws of equal weight."""
    worth = [each for each in sampled if each.tally.effective >= LEAST_EFFECTIVE]
    return min(worth, key=lambda each: each.standard_error, default=None)


def score_rounding(model: Model) -> float:
    """Return what the score of a configuration may be off by.

    That is an addition for each table, of sums no larger than all of their largest entries together.
    """
    num_terms = 2 + model.num_variables + model.num_edges + len(model.factors)
    return EPS * num_terms * model.sizes.with_unary(model.unary.flat[:, None], model.num_states).total


@dataclass(frozen=True, eq=False)
class MarginalTally:
    """Sums over draws that marginals follow from: of y and y squared, in all and for each state.

    Attributes
    ----------
    tally
        In all.
    scale
        What is taken out of the logs of the sums below, so that they are numbers that floats have.
    sums, squares
        (S,) over the draws that have a variable in a state.
    """

    tally: Tally
    scale: float
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, model: Model, draws: Draws, bound: float) -> "MarginalTally":
        log_y = draws.log_weights - bound
        scale = float(log_y.max(initial=NEVER_SEEN))
        y = np.exp(log_y - scale)
        sums, squares = (weights_of_states(draws.states, each, model.unary.start) for each in (y, y * y))
        return cls(Tally.of(log_y), scale, sums, squares)

    def plus(self, other: "MarginalTally") -> "MarginalTally":
        scale = max(self.scale, other.scale)
        mine, its = math.exp(self.scale - scale), math.exp(other.scale - scale)
        sums = mine * self.sums + its * other.sums
        squares = mine**2 * self.squares + its**2 * other.squares
        return MarginalTally(self.tally.plus(other.tally), scale, sums, squares)

    def marginals(self) -> tuple[Floats, Floats]:
        """(S,) shares of the weights, and their standard errors."""
        total = math.exp(self.tally.log_sum - self.scale)
        all_squares = math.exp(self.tally.log_squares - 2.0 * self.scale)
        share = np.minimum(self.sums / total, 1.0)
        return share, np.sqrt(variance_of_shares(share, self.squares, all_squares)) / total


def weights_of_states(states: States, weights: Floats, start: Integers) -> Floats:
    """(S,) the weight of the configurations (N, n) that have a variable in a state."""
    out = np.zeros(int(start[-1]))
    rows = max(1, AT_ONCE // max(1, states.shape[1]))
    for begin in range(0, len(states), rows):
        some = states[begin : begin + rows] + start[:-1]
        of_each = np.repeat(weights[begin : begin + rows], states.shape[1])
        out += np.bincount(some.ravel(), of_each, len(out))
    return out


def variance_of_shares(share: Floats, squares: Floats, all_squares: float) -> Floats:
    """(S,) the variance of shares p = sum w [x = a] / sum w by the delta method, times (sum w)^2.

    It is `sum w^2 ([x = a] - p)^2`, from the sums of w^2 over the draws that have the state, and over all.
    """
    return squares * (1.0 - share) ** 2 + np.maximum(all_squares - squares, 0.0) * share**2
