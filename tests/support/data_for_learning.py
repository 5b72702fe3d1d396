"""Small seeded models with edges, a larger factor and hard zeros, and rows that are possible under them."""

import numpy as np
from naive import all_configurations

from clampz.model import Model


def small_model(rng, labels=None, zeros=0.15):
    num_states = rng.integers(2, 4, size=4) if labels is None else np.full(4, labels)

    def table(*scope):
        out = rng.normal(size=num_states[list(scope)])
        out[rng.random(out.shape) < zeros] = -np.inf
        out[(0,) * len(scope)] = 0.0
        return out

    pairs = {(0, 1): table(0, 1), (1, 3): table(1, 3), (0, 3): table(0, 3)}
    return Model([rng.normal(size=k) for k in num_states], pairs, factors=[((1, 2, 3), table(1, 2, 3))])


def random_rows(rng, model, number, missing=0.0):
    """Configurations that are possible, with a share of their states missing."""
    every = np.array(list(all_configurations(model.num_states)))
    every = every[model.scores(every) > -np.inf]
    rows = every[rng.integers(len(every), size=number)]
    return np.where(rng.random(rows.shape) < missing, -1, rows)
