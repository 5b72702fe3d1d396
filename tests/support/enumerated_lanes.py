"""Log Z of lanes by enumeration in extended precision."""

import numpy as np

# What the enumeration itself may be wrong by, in extended precision.
TRUTH = 1e-15


def scores_of(model):
    """Scores of all configurations, less the unary tables."""
    n = model.num_variables
    out = np.full(model.num_states, model.constant, dtype=np.longdouble)

    def wide(scope, table):
        shape = [int(model.num_states[i]) if i in scope else 1 for i in range(n)]
        return np.transpose(table.astype(np.longdouble), np.argsort(scope)).reshape(shape)

    for pair, table in model.pairwise.items():
        out = out + wide(pair, table)
    for factor in model.factors:
        out = out + wide(factor.scope, factor.table)
    return out


def log_z_of(model, scores, unary):
    for i in range(model.num_variables):
        shape = [1] * model.num_variables
        shape[i] = -1
        start = model.unary.start
        scores = scores + unary[start[i] : start[i + 1]].reshape(shape)
    top = scores.max()
    return top if top == -np.inf else top + np.log(np.exp(scores - top).sum())


def lanes_of(rng, model):
    """The model's own unary tables, others, and some with states ruled out: evidence, and both sides of a clamp."""
    own = model.unary.flat
    other = own + rng.normal(size=own.shape)
    i = int(rng.integers(model.num_variables))
    begin, end = model.unary.start[i], model.unary.start[i + 1]
    clamped = own.copy()
    clamped[begin:end][np.arange(end - begin) != rng.integers(end - begin)] = -np.inf
    return [own, other, clamped]
