"""Slow twins: what the library computes, written as directly as possible and with no regard for time."""

import itertools

import numpy as np


def enumerate_factors(num_states, factors):
    """log Z, marginals of the variables, and marginals of each factor's scope, by visiting every configuration.

    `factors` are pairs (scope, log table).  Where Z = 0 the marginals are nan.
    """
    num_states = [int(k) for k in num_states]
    scores = np.zeros(num_states)
    for scope, table in factors:
        # bring the table's axes into the order of the variables, with axes of length one for the others
        order = np.argsort(scope)
        shape = [num_states[i] if i in set(scope) else 1 for i in range(len(num_states))]
        scores = scores + np.transpose(np.asarray(table, dtype=float), order).reshape(shape)
    top = scores.max(initial=-np.inf)
    log_z = -np.inf if top == -np.inf else top + np.log(np.exp(scores - top).sum())
    with np.errstate(invalid="ignore"):
        p = np.exp(scores - log_z)

    def marginal(scope):
        summed = p.sum(axis=tuple(i for i in range(len(num_states)) if i not in set(scope)))
        return np.transpose(summed, np.argsort(np.argsort(scope)))

    return float(log_z), [marginal([i]) for i in range(len(num_states))], [marginal(list(scope)) for scope, _ in factors]


def enumerate_model(model):
    """log Z, unary marginals (a list) and pairwise marginals (a dict by edge) of a small model, by visiting every configuration."""
    pairs = list(model.pairwise)
    factors = [((i,), model.unary[i]) for i in range(model.num_variables)] + [(pair, model.pairwise[pair]) for pair in pairs]
    log_z, unary, marginals = enumerate_factors(model.num_states, factors)
    return log_z + model.constant, unary, dict(zip(pairs, marginals[model.num_variables :], strict=True))


def all_configurations(num_states):
    """Every joint state, the last variable fastest."""
    return itertools.product(*(range(int(k)) for k in num_states))
