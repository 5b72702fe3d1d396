"""Seeded random models with factors of up to four variables, labels, hard zeros and strong potentials, small enough
to be enumerated."""

import numpy as np

from clampz.model import Model


def random_factors(rng, *, zeros=None):
    """2 to 8 variables of 1 to 5 states, up to about 600 configurations."""
    while True:
        n = int(rng.integers(2, 9))
        K = rng.integers(2, 6, size=n) if rng.random() < 0.3 else rng.integers(1, 4, size=n)
        if np.prod(K) <= 600:
            break
    strength = rng.choice([0.5, 2.0, 10.0])
    zeros = rng.choice([0.0, 0.0, 0.15, 0.4]) if zeros is None else zeros

    def table(shape):
        out = rng.normal(size=shape) * strength
        out[rng.random(shape) < zeros] = -np.inf
        return out

    factors = []
    for _ in range(int(rng.integers(1, 3 * n))):
        arity = min(n, int(rng.choice([1, 2, 2, 2, 3, 4])))
        scope = tuple(int(i) for i in rng.choice(n, size=arity, replace=False))
        factors.append((scope, table(tuple(K[list(scope)]))))
    return Model.from_factors(K, factors, constant=float(rng.normal()))
