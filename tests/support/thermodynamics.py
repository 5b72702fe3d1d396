"""Log Z, energy, entropy and heat capacity by enumeration."""

import itertools

import numpy as np


def table_of_scores(model, known=None):
    """Every configuration's score, by a loop that shares nothing with the library."""
    scores = []
    for x in itertools.product(*(range(k) for k in model.num_states)):
        if any(x[i] != a for i, a in (known or {}).items()):
            continue
        score = model.constant + sum(model.unary[i][a] for i, a in enumerate(x))
        score += sum(model.pairwise[i, j][x[i], x[j]] for i, j in model.pairwise)
        score += sum(table[tuple(x[i] for i in scope)] for scope, table in model.factors)
        scores.append(score)
    return np.array(scores, dtype=np.longdouble)


def thermodynamics(model, beta, known=None):
    """log Z, energy, entropy and heat capacity by enumeration; configurations that are impossible stay so."""
    scores = table_of_scores(model, known)
    scores = scores[scores > -np.inf]
    top = (beta * scores).max()
    weight = np.exp(beta * scores - top)
    log_z, p = top + np.log(weight.sum()), weight / weight.sum()
    mean = p @ scores
    variance = p @ (scores - mean) ** 2
    return tuple(float(value) for value in (log_z, -mean, log_z - beta * mean, beta**2 * variance))
