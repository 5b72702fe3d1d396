"""Small random models with everything in them, and what evidence and events make of them, by visiting every
configuration: shares no code with the library but `Model.score`'s definition, which it writes out."""

import numpy as np

from clampz.model import Model


def random_model(rng, *, most=7, zeros=0.15):
    """2 to `most` variables of 1 to 4 states, tables of one to three variables, some entries hard zeros."""
    n = int(rng.integers(2, most + 1))
    num_states = rng.integers(1, 5 if n < 6 else 3, size=n)
    factors = []
    for _ in range(int(rng.integers(1, 2 * n))):
        scope = rng.permutation(n)[: rng.integers(1, min(n, 3) + 1)].tolist()
        table = rng.normal(size=num_states[scope]) * rng.choice([0.5, 2.0])
        table[rng.random(table.shape) < zeros * (rng.random() < 0.5)] = -np.inf
        factors.append((scope, table))
    return Model.from_factors(num_states, factors, constant=float(rng.normal()))


def brute_force(model, evidence=None, event=None):
    """Scores of all configurations, an axis per variable: -inf where they are not in the event or against the evidence,
    states and likelihoods (by index); in extended precision."""
    n, num_states = model.num_variables, [int(k) for k in model.num_states]
    scores = np.full(num_states, model.constant, dtype=np.longdouble)
    tables = [((i,), table) for i, table in enumerate(model.unary)]
    tables += list(model.pairwise.items()) + [(factor.scope, factor.table) for factor in model.factors]
    for i, said in (evidence or {}).items():
        likelihoods = np.asarray(said, dtype=float) if np.ndim(said) else np.arange(num_states[i]) == said
        with np.errstate(divide="ignore"):
            tables.append(((i,), np.log(likelihoods, dtype=float)))
    for i, states in (event or {}).items():
        with np.errstate(divide="ignore"):
            tables.append(((i,), np.log(np.isin(np.arange(num_states[i]), list(states)), dtype=float)))
    for scope, table in tables:
        shape = [num_states[i] if i in scope else 1 for i in range(n)]
        scores = scores + np.transpose(table, np.argsort(scope)).reshape(shape)
    return scores


def log_sum(scores):
    """log of the sum of exponentials."""
    top = scores.max()
    return -np.inf if top == -np.inf else float(top + np.log(np.exp(scores - top).sum()))
