"""The choice between mean field and Bethe: which is nearer to log Z, as measured."""

import numpy as np

from clampz.model import Model

# From this pull of neighbours on, mean field is the better estimate of a mixed model of two labels.
STRONG_PULL = 8.0
# With more labels Bethe was the better one on all sparse graphs: neighbours of a variable, on average, from which a
# graph counts as dense.
DENSE_DEGREE = 6.0
# Bethe's tolerance where its value is wanted and not all of its digits, and the residual from which that counts: on a
# 100 x 100 grid log Z was then within 0.002 nats of its limit.
BETHE_TOL, SETTLED = 1e-4, 1e-3
# Edges from which large tables of mini-buckets are out of reach.
MANY_EDGES = 20_000


def prefers_mean_field(model: Model) -> bool:
    """Whether mean field is likely to be nearer to log Z than Bethe: on mixed models whose variables are strongly
    coupled.

    What counts is the pull of its neighbours on a variable, the root of sum_j W_ij^2 (1 - 1/degree_i), on average over
    the core: weights of random sign add up like that, and one neighbour would be there on a tree as well.  Measured
    against exact inference on grids, regular, random and complete graphs of 10 to 49 variables and weights up to [-16,
    16], both are equally near at a pull of 7.5 to 10.  K15 has 12 for W in [-6, 6] and 25 for [-12, 12], where mean
    field wins by far, as in the paper.  With L labels it takes L / 2 times as much, on dense graphs (K10 of 3 and 4
    labels); whether such a model is attractive is not known, but dense and strong attractive models are all the same to
    both.

    >>> from clampz import generators
    >>> prefers_mean_field(generators.complete(15, weights=(-12, 12), rng=0))
    True
    >>> prefers_mean_field(generators.grid(7, 7, rng=0))
    False
    """
    core, degrees = model.topology.core, model.topology.degrees
    if not core.any() or model.factors or not np.isfinite(model.pairwise.flat).all():
        return False
    if model.is_balanced:
        return False
    if model.pair_form is None and degrees[core].mean() < DENSE_DEGREE:
        return False
    squares = np.bincount(model.edges.ravel(), np.repeat(model.strength**2, 2), model.num_variables)
    pull = np.sqrt(squares[core] * (1 - 1 / degrees[core])).mean()
    return bool(pull >= STRONG_PULL * model.num_states[core].mean() / 2)


def bethe_leads(model: Model) -> bool:
    """Whether Bethe's lower bound beats that of mini-buckets: it is one, and edges are too many for large tables."""
    return model.is_balanced and model.num_edges > MANY_EDGES
