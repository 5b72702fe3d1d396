"""Models on which selectors are compared with their slow twins."""

import numpy as np
from random_models import random_edges, tree_edges

from clampz.model import Model

# How the weights of a random model are drawn; digits that the twin needs to see 1 - tanh of the strongest.
WEIGHTS = {
    "moderate": (lambda rng, m: rng.uniform(-6, 6, m), 60),
    "attractive": (lambda rng, m: rng.uniform(0, 3, m), 60),
    "equal": (lambda rng, m: rng.choice([-2.0, 2.0], m), 60),
    "weak": (lambda rng, m: rng.uniform(-1e-3, 1e-3, m), 60),
    "very weak": (lambda rng, m: rng.choice([-1, 1], m) * 10.0 ** rng.uniform(-12, -8, m), 120),
    "strong": (lambda rng, m: rng.choice([-1000.0, 1000.0], m), 260),
    "any": (lambda rng, m: rng.choice([-1, 1], m) * 10.0 ** rng.uniform(-6, 3, m), 300),
    "beyond underflow": (
        lambda rng, m: rng.choice([-1, 1], m) * rng.choice([5.0, 1400.0, 1500.0, 2001.0, 3000.0], m),
        700,
    ),
}


def random_model(rng, weights):
    """Up to three parts of up to seven variables, trees hanging from them, some weights zero, in any order."""
    edges, n = [], 0
    for _ in range(rng.integers(1, 4)):
        size = int(rng.integers(1, 8))
        edges += [(n + i, n + j) for i, j in random_edges(rng, size, rng.uniform(0.2, 1.0))]
        n += size
    for i, j in tree_edges(rng, int(rng.integers(1, 5))):
        edges.append((i if i else int(rng.integers(n)), n + j))
    n += 5
    W = WEIGHTS[weights][0](rng, len(edges))
    W[rng.random(len(edges)) < 0.1] = 0.0
    place = rng.permutation(n)
    clamped = rng.choice(n, size=int(rng.integers(0, 3)), replace=False).tolist()
    return Model.from_binary(rng.normal(size=n), W, place[np.array(edges, dtype=np.int64).reshape(-1, 2)]), clamped
