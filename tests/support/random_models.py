"""Seeded random models for the tests of the approximations: graphs, trees, any number of labels, hard zeros; and the
general twin of a binary model."""

import itertools

import numpy as np

from clampz.generators import complete, cycle
from clampz.model import Model


def random_edges(rng, n, density):
    return [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]


def tree_edges(rng, n, *, forest=0.0):
    """A random tree, or a forest where a share of the edges is left out."""
    return [(int(rng.integers(i)), i) for i in range(1, n) if rng.random() >= forest]


def random_binary(rng, n, edges, scale=2.0, theta=1.0):
    return Model.from_binary(
        rng.uniform(-theta, theta, n),
        rng.uniform(-scale, scale, len(edges)),
        np.array(edges).reshape(-1, 2),
        constant=float(rng.normal()),
    )


def random_tables(rng, num_states, edges, scale=1.0, zeros=0.0):
    """Independent entries; a share of `zeros` of the pairwise ones is impossible, but never the configuration of
    zeros."""

    def pair(i, j):
        table = rng.uniform(-scale, scale, (num_states[i], num_states[j]))
        table[rng.random(table.shape) < zeros] = -np.inf
        table[0, 0] = rng.uniform(-scale, scale)
        return table

    return Model(
        [rng.uniform(-1, 1, k) for k in num_states],
        {(i, j): pair(i, j) for i, j in edges},
        constant=float(rng.normal()),
    )


def as_general(model):
    """An equal model that the solvers treat by tables, as they treat models with more labels."""
    twin = Model.from_flat(
        model.num_states, model.unary.flat, model.edges, model.pairwise.flat, constant=model.constant, names=model.names
    )
    twin.__dict__["pair_form"] = None
    return twin


def relabelled(model, order):
    """The same model with variable `order[k]` now called k."""
    place = np.argsort(order)
    return Model(
        [model.unary[i] for i in order],
        {(int(place[i]), int(place[j])): table for (i, j), table in model.pairwise.items()},
        constant=model.constant,
    )


def random_of_any_kind(seed, most=9):
    """2 to 4 labels, weak to strong, some with hard zeros, some in several components."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    num_states = rng.integers(2, 5 if n < 7 else 3, size=n)
    density, strength = rng.random(), rng.choice([0.3, 1.0, 3.0, 10.0, 50.0])
    pairwise = {}
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < density:
            table = rng.uniform(-strength, strength, size=(num_states[i], num_states[j]))
            if seed % 4 == 3:
                table[rng.random(table.shape) < 0.2] = -np.inf
            pairwise[i, j] = table
    return Model([rng.uniform(-2, 2, size=k) for k in num_states], pairwise)


def frustrated(seed=0, n=7):
    return complete(n, weights=(-8, 8), rng=seed)


def table_cycle(labels=2):
    """A cycle of four variables with tables of any kind."""
    return cycle(4, labels=labels, potentials="table", weights=(-2, 2), rng=3)


def with_a_factor():
    """Two and three states, an edge, and a factor of three variables."""
    rng = np.random.default_rng(1)
    return Model(
        [rng.normal(size=k) for k in (2, 3, 2)],
        {(0, 2): rng.normal(size=(2, 2))},
        factors=[((0, 1, 2), rng.normal(size=(2, 3, 2)))],
        constant=0.4,
    )
