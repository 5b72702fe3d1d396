"""Intervals of probabilities from bounds on log Z with a variable in each of its states.

From bounds [l_a, u_a] on log Z with X_i = a,

    e^l_a / (e^l_a + sum_{b != a} e^u_b)  <=  p(X_i = a)  <=  e^u_a / (e^u_a + sum_{b != a} e^l_b).
"""

import numpy as np

from clampz.bounding.marginals.relevant import PROBABILITY_ROUNDING
from clampz.numerics import EPS, ROUNDINGS, Floats


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
