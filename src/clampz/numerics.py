"""Numbers that every layer shares: array types, machine precision, charges for rounding, and log-sum-exp."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EPS = float(np.finfo(np.float64).eps)
# exp of anything between -this and this is a normal float, with all its digits.
LARGEST_LOG = 700.0
# Roundings per term of a sum, the polynomial exp and log included (each within 5e-16, about two units in the last
# place).
ROUNDINGS = 16.0


def log_sum_exp(values: Floats) -> float:
    """Compute the log of the sum of exponentials; -inf for none.

    >>> log_sum_exp(np.log([1.0, 2.0, 5.0])) == math.log(8.0)
    True
    """
    top = float(values.max(initial=-np.inf))
    return top if not np.isfinite(top) else top + math.log(float(np.exp(values - top).sum()))


def summing_error(num_terms: int, log_sum: float) -> float:
    """Bound the rounding error of a log-sum-exp.

    An exponential is off by its argument's rounding, d eps / 2 for one that is d below the largest, and these d are log
    K on average at most; NumPy adds up in blocks; the logarithm and the last addition round once each.

    >>> summing_error(1, 5.0)
    0.0
    """
    if num_terms < 2 or not math.isfinite(log_sum):
        return 0.0
    return EPS * (2 * ROUNDINGS + math.log2(num_terms) + 2 * abs(log_sum))


def largest_size(values: Floats) -> float:
    """Return the largest finite absolute value; 0 for none.

    >>> largest_size(np.array([1.0, -3.0, -math.inf]))
    3.0
    """
    return float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))
