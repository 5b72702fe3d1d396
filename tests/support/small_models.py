"""Seeded random models that can be enumerated, with evidence, and the distribution over all of their configurations."""

import itertools

import numpy as np
from scipy import stats

import clampz as cz


def random_model(rng, *, zeros=None):
    """4 to 6 variables of 2 to 4 labels, edges and perhaps a factor of three, some tables with hard zeros; possible."""
    while True:
        n = int(rng.integers(4, 7))
        num_states = rng.integers(2, 5, n) if n < 5 else rng.integers(2, 4, n)
        share = rng.choice([0.0, 0.1]) if zeros is None else zeros
        factors = []
        for size in (*[2] * int(rng.integers(3 * n // 2, 2 * n)), *[3] * int(rng.integers(0, 2)), 1):
            scope = tuple(rng.permutation(n)[:size].tolist())
            table = rng.normal(size=num_states[list(scope)])
            table[rng.random(table.shape) < share] = -np.inf
            factors.append((scope, table))
        model = cz.Model.from_factors(num_states, factors, constant=float(rng.normal()))
        if (probabilities(model) > 0).sum() > 1:
            return model


def all_configurations(model):
    return np.array(list(itertools.product(*map(range, model.num_states))), dtype=np.int64)


def probabilities(model, evidence=()):
    """Of every configuration, by enumerating them; those that contradict the evidence have none."""
    states = all_configurations(model)
    tables = [((i,), table) for i, table in enumerate(model.unary)] + [*model.pairwise.items()] + [*model.factors]
    scores = sum((table[tuple(states[:, list(scope)].T)] for scope, table in tables), np.zeros(len(states)))
    for i, a in dict(evidence).items():
        scores[states[:, i] != a] = -np.inf
    if scores.max() == -np.inf:
        return np.zeros(len(scores))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def possible_evidence(model, rng):
    """Of one variable, or none."""
    x = all_configurations(model)[rng.choice(len(probabilities(model)), p=probabilities(model))]
    i = int(rng.integers(model.num_variables))
    return {i: int(x[i])} if rng.random() < 0.5 else {}


def p_value(model, states, truth):
    """Of a chi-square test over all configurations, those expected less than five times taken together."""
    seen = np.bincount(np.ravel_multi_index(states.T, tuple(model.num_states)), minlength=len(truth))
    assert not seen[truth == 0].any()
    expected = len(states) * truth
    often = expected >= 5
    seen, expected = (np.append(each[often], each[~often].sum()) for each in (seen, expected))
    if expected[-1] < 1:  # too rare for a bin of its own
        seen, expected = np.append(seen[:-2], seen[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
    return float(stats.chisquare(seen, expected).pvalue) if len(seen) > 1 else 1.0
