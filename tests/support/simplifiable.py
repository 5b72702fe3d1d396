"""Models full of what the presolve looks for, and results on what is left of them, by enumeration."""

import itertools
import math

import numpy as np
from naive import enumerate_factors

import clampz as cz


def random_table(rng, shape):
    """Of some kind: generic, with zeros, of zeros and ones, a function, a product, a constant, a conditional
    distribution, or without its last axis."""
    table, k = rng.normal(size=shape), len(shape)
    kind = rng.integers(8)
    if kind == 0:
        return np.where(rng.random(shape) < 0.4, -np.inf, table)
    if kind == 1 and k > 1:
        image = rng.integers(shape[1], size=shape[0])
        allowed = np.arange(shape[1]) == image[:, None]
        return np.where(allowed.reshape(allowed.shape + (1,) * (k - 2)), table, -np.inf)
    if kind == 2:
        return sum(rng.normal(size=[s if a == b else 1 for b, s in enumerate(shape)]) for a in range(k)) + 0 * table
    if kind == 3:
        return table - np.log(np.exp(table).sum(axis=0))
    if kind == 4 and k > 1:
        return table[..., :1] + 0 * table
    if kind == 5:
        return np.where(rng.random(shape) < 0.4, -np.inf, 0.0)
    return np.full(shape, rng.normal()) if kind == 6 else table


def random_model(seed, most=8, largest=5):
    """A few variables of one to three states, and factors of up to `largest` of them; evidence now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    num_states = np.full(n, 2) if rng.random() < 0.3 else rng.integers(1, 4 if n < 9 else 3, size=n)
    factors = []
    for _ in range(int(rng.integers(2 * n + 1))):
        scope = rng.choice(n, size=min(n, int(rng.integers(1, largest + 1))), replace=False).tolist()
        factors.append((scope, random_table(rng, num_states[scope].tolist())))
    if rng.random() < 0.3:
        i = int(rng.integers(n))
        factors.append(([i], np.where(np.arange(num_states[i]) == rng.integers(num_states[i]), 0.0, -np.inf)))
    return cz.Model.from_factors(num_states, factors, constant=float(rng.normal()))


def factors_of(model):
    """All tables of a model, in the order of its unary, pairwise and larger ones."""
    factors = [((i,), model.unary[i]) for i in range(model.num_variables)]
    return factors + list(model.pairwise.items()) + [(scope, table) for scope, table in model.factors]


class Enumerated:
    """log Z, beliefs of all tables end to end, and of any scope."""

    def __init__(self, model):
        self.model = model
        self.log_z, self.unary, beliefs = enumerate_factors(model.num_states, factors_of(model), model.constant)
        self.beliefs = np.concatenate([np.empty(0), *map(np.ravel, beliefs)])

    def joint(self, scope):
        if not scope:
            return np.array(1.0)
        zeros = (scope, np.zeros(self.model.num_states[list(scope)]))
        return enumerate_factors(self.model.num_states, [*factors_of(self.model), zeros])[2][-1]


def gates(rng, num_inputs, num_gates, parents=3):
    """A Bayesian network without evidence: inputs, and two layers of gates that are functions of those before them,
    some of them nearly.  Whatever its width, log Z is 0."""
    num_states = [2] * (num_inputs + 2 * num_gates)
    factors = [([i], np.log(rng.dirichlet([2.0, 2.0]))) for i in range(num_inputs)]
    for layer in range(2):
        before = num_inputs + (layer - 1) * num_gates if layer else 0
        for gate in range(num_inputs + layer * num_gates, num_inputs + (layer + 1) * num_gates):
            of = before + rng.choice(num_gates if layer else num_inputs, size=parents - layer, replace=False)
            off = rng.choice([0.0, 0.1])
            values = rng.integers(2, size=(2,) * len(of))
            table = np.where(values[..., None] == np.arange(2), 1.0 - off, off)
            with np.errstate(divide="ignore"):
                factors.append(([*of.tolist(), gate], np.log(table)))
    return cz.Model.from_factors(num_states, factors), factors


def cone_marginal(factors, v):
    """By enumeration of what a variable depends on: factors have the variable that they are of as their last."""
    own = {scope[-1]: (scope, table) for scope, table in factors}
    cone = {v}
    while more := {u for w in cone for u in own[w][0]} - cone:
        cone |= more
    cone = sorted(cone)
    belief = np.zeros(2)
    for states in itertools.product(range(2), repeat=len(cone)):
        x = dict(zip(cone, states, strict=True))
        belief[x[v]] += math.exp(sum(own[u][1][tuple(x[w] for w in own[u][0])] for u in cone))
    return belief
