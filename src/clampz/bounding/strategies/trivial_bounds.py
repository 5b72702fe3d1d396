"""Ends of log Z at sight, in one pass over the tables: what a bracket has before any method had time for more."""

import math

import numpy as np

from clampz.model import Model
from clampz.numerics import EPS, Floats, Integers

# NumPy adds up in blocks, and so a sum is off by at most this many times EPS of its absolute terms; so is a logarithm.
ROUNDINGS_OF_SUMS = 64


def trivial_bounds(model: Model) -> tuple[float, float]:
    """Below, the score of the configuration whose unary potentials are highest; above, what there would be if every
    table of several variables had its largest entry everywhere.

    >>> lower, upper = trivial_bounds(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)]))
    >>> round(lower, 6), round(upper, 6)
    (1.0, 2.386294)
    """
    if not model.num_variables:
        return -math.inf, math.inf
    start = model.unary.start
    highest = _largest(model.unary.flat, start)
    if (highest == -np.inf).any():
        return -math.inf, -math.inf
    weight = np.exp(model.unary.flat - np.repeat(highest, model.num_states))
    states = _first_largest(model.unary.flat, start, highest)
    above = [highest, np.log(np.add.reduceat(weight, start[:-1])), np.array([model.constant])]
    below = [highest, np.array([model.constant])]
    if model.num_edges:
        i, j = model.edges.T
        above.append(_largest(model.pairwise.flat, model.pairwise.start))
        below.append(model.pairwise.flat[model.pairwise.start[:-1] + states[i] * model.num_states[j] + states[j]])
    if larger := model.factors:
        entry = np.add.reduceat(larger.strides * states[larger.variables], larger.scope_start[:-1])
        above.append(_largest(larger.flat, larger.start))
        below.append(larger.flat[larger.start[:-1] + entry])
    return _total(below, -1.0, 0), _total(above, 1.0, len(weight))


def _largest(flat: Floats, start: Integers) -> Floats:
    """The largest entry of each table."""
    found: Floats = np.maximum.reduceat(flat, start[:-1])
    return found


def _first_largest(flat: Floats, start: Integers, highest: Floats) -> Integers:
    """(n,) of each table, the place of its largest entry."""
    at = np.flatnonzero(flat == np.repeat(highest, np.diff(start)))
    first = at[np.searchsorted(at, start[:-1])]
    found: Integers = first - start[:-1]
    return found


def _total(terms: list[Floats], sense: float, num_added: int) -> float:
    """Their sum, off to the safe side; so many numbers were added up one after another to get some of them."""
    total = sum(float(each.sum()) for each in terms)
    if total == -math.inf:
        return total
    size = sum(float(np.abs(each).sum()) + len(each) for each in terms) + num_added
    return total + sense * ROUNDINGS_OF_SUMS * EPS * size
