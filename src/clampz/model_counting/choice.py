"""When counting is worth a try."""

import numpy as np

from clampz.model import Model
from clampz.numerics import Floats, Integers

# Share of the tables over two and more variables that have hard zeros, from which models are counted.  Measured on
# simplified models of the UAI competitions: sets of clauses 1, medical diagnosis 0.67 to 0.98, pedigrees 0.49 to 0.67
# (of these only the smaller ones come to an end in 10 s); all others are below 0.25, and soft tables have a boolean per
# value, with which counters do not get far.
MANY_ZEROS = 0.5
# And that of constraints, whose entries are zero or all the same, from which they are counted before anything else is
# tried: clause sets 0.95 and more, all others 0.65 at most.
NEARLY_ALL = 0.9
# Seconds below which a sum is sooner done than a count has begun.
SOON = 1.0
# Tables beyond which nothing has come to an end.
MOST_TABLES = 100_000


def worth_counting(model: Model, seconds: float, *, first: bool = False) -> bool:
    """Whether to count a model that it would take `seconds` to sum (inf: more memory than there is); before
    anything else is tried, if `first`.

    >>> implies = [[0.0, 0.0], [-np.inf, 0.0]]
    >>> worth_counting(Model(np.zeros((2, 2)), {(0, 1): implies}), seconds=60.0)
    True
    >>> worth_counting(Model(np.zeros((2, 2)), {(0, 1): np.eye(2)}), seconds=60.0)
    False
    """
    num_tables = len(model.edges) + len(model.factors)
    if seconds < SOON or not 0 < num_tables <= MOST_TABLES:
        return False
    tables = ((model.pairwise.flat, model.pairwise.start), (model.factors.flat, model.factors.start))
    share = NEARLY_ALL if first else MANY_ZEROS
    return sum(_with_zeros(flat, start, alike=first) for flat, start in tables) >= share * num_tables


def _with_zeros(flat: Floats, start: Integers, *, alike: bool) -> int:
    """How many of some tables, none of which is empty, have zeros, and no two other values where these are alike."""
    if len(start) < 2 or flat.min(initial=0.0) > -np.inf:  # most models have none: no array need be made
        return 0
    zero, begin = flat == -np.inf, start[:-1]
    if not zero.any():  # as in most models, where there is nothing else to look at
        return 0
    found = np.logical_or.reduceat(zero, begin)
    if alike:
        found &= np.minimum.reduceat(np.where(zero, np.inf, flat), begin) >= np.maximum.reduceat(flat, begin)
    return int(np.count_nonzero(found))
