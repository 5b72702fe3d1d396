"""The leaves that wait, and what is let go of."""

import numpy as np

import clampz as cz
from random_models import frustrated


def test_memory_prunes_the_frontier_and_loses_nothing():
    model = frustrated(5, 12)
    needed = 40 * (len(model.unary.flat) + len(model.pairwise.flat))
    bracket = cz.bound(model, gap=0.0, exact=False, leaves=60, time=20, memory=needed + 40_000)
    assert bracket.lower <= cz.exact(model).log_z <= bracket.upper
    assert (np.diff([p.lower for p in bracket.trace]) >= 0).all()
