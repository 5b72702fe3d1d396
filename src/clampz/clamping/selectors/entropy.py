"""Singleton entropies under TRW, by which the +TRE selectors multiply their scores.

A variable of low entropy is all but fixed already, by its own potentials or by clamps made before, and there is little
to gain from clamping it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clampz.approximations.trw import trw
from clampz.clamping.branches import branch_weights, branches
from clampz.errors import OptionError, shown
from clampz.model import Model, Variable
from clampz.model.results import Estimate, Estimates
from clampz.numerics import Floats

# Nats per variable to which TRW is run for its entropies, and sweeps at most.  Entropies rank variables: on strong
# frustrated models the last digits take thousands of sweeps and change no ranking.
TOL_PER_VARIABLE = 1e-6
MAX_SWEEPS = 1000


def singleton_entropies(found: Estimate | Estimates) -> Floats:
    """Return (n,) the entropy of each variable's marginal, averaged over lanes (branches) with weights e^log_z.

    >>> from clampz import generators, trw
    >>> branches = trw(generators.cycle(4, theta=0, weights=40.0), evidence=[{0: 0}, {0: 1}])
    >>> singleton_entropies(branches).round(3).tolist()  # one clamp fixes them all
    [0.0, 0.0, 0.0, 0.0]
    """
    if isinstance(found, Estimate):
        return entropies(found.model, found.marginals.flat[:, None])[:, 0]
    possible = found.log_z > -np.inf
    averaged: Floats = entropies(found.model, found.marginals_flat[:, possible]) @ branch_weights(found)[possible]
    return averaged


def entropies(model: Model, marginals: Floats) -> Floats:
    """Return (n, B) the entropy of each variable, from marginals (S, B)."""
    if model.num_variables == 0:
        return np.zeros((0, marginals.shape[1]))
    terms = -marginals * np.log(np.where(marginals > 0, marginals, 1.0))
    return np.maximum(np.add.reduceat(terms, model.unary.start[:-1], axis=0), 0.0)


def trw_entropies(model: Model, clamped: Sequence[Variable] = (), **limits: Any) -> Floats:
    """Return (n,) entropies by a run of TRW on the model, or on the branches of some clamps, under these limits."""
    if clamped:
        return singleton_entropies(trw(branches(model, clamped), **limits))
    if model.num_variables == 0:
        return np.zeros(0)
    tol = max(1e-4, TOL_PER_VARIABLE * model.num_variables)
    return singleton_entropies(trw(model, tol=tol, max_iter=MAX_SWEEPS, **limits))


def as_entropies(entropy: ArrayLike, model: Model) -> Floats:
    """Return a caller's entropies as an array (n,), checked."""
    try:
        array = np.asarray(entropy, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"entropy: expected a number per variable, found {shown(entropy)}") from None
    if array.shape != (model.num_variables,):
        raise OptionError(
            f"entropy: expected a number per variable, shape ({model.num_variables},), found shape {array.shape}"
        )
    bad = np.flatnonzero(~((array >= 0) & (array < np.inf)))
    if bad.size:
        raise OptionError(f"entropy of variable {bad[0]}: expected a number of nats >= 0, found {array[bad[0]]}")
    return array
