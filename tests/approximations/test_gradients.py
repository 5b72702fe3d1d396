"""d log Z / d theta: marginals of every table, from every method, are the derivatives of what it computes."""

import numpy as np
import pytest
from naive import enumerate_factors

import clampz as cz

STEP = 1e-4
# The error of a central difference is of the order of its step squared; what methods converge to is sharper.
CLOSE = 1e-6
# Mini-buckets end where the next step promises less than the rounding of a sum: 1e-9 nats, and beliefs that are off by
# the root of that.
CLOSE_IN_MINI_BUCKETS = 1e-4
# Tight enough that differences show; and mini-buckets so small that tables are split.
OPTIONS = {
    "exact": {},
    "mean_field": {"tol": 1e-13},
    "bethe": {"tol": 1e-13},
    "trw": {"tol": 1e-12},
    "mini_buckets": {"tol": 1e-13, "max_iter": 3000, "max_table": 18},
}


def mixed():
    """Two and three states, edges on cycles, larger factors, a hard zero in a table of each size."""
    rng = np.random.default_rng(5)
    table = 0.5 * rng.normal(size=(2, 3, 2))
    table[0, 1, 1] = -np.inf
    return cz.Model(
        [0.5 * rng.normal(size=k) for k in (2, 3, 2, 2)] + [[0.3, -np.inf, 0.1]],
        {
            (0, 1): 0.5 * rng.normal(size=(2, 3)),
            (0, 4): 0.5 * rng.normal(size=(2, 3)),
            (2, 4): 0.5 * rng.normal(size=(2, 3)),
            (1, 4): 0.5 * rng.normal(size=(3, 3)),
            (2, 3): [[0.2, -np.inf], [0, 1]],
        },
        factors=[((0, 1, 3), table), ((1, 2, 3), 0.5 * rng.normal(size=(3, 2, 2)))],
        constant=0.7,
    )


def tables(model):
    return [model.unary.flat, model.pairwise.flat, model.factors.flat]


def differences(model, value):
    """Central differences of a function of the model, one per entry of its tables; 0 at hard zeros."""
    whole = tables(model)
    out = []
    for k, flat in enumerate(whole):
        found = np.zeros(len(flat))
        for place in np.flatnonzero(flat > -np.inf):
            ends = []
            for step in (-STEP, STEP):
                moved = flat.copy()
                moved[place] += step
                ends.append(value(model.with_tables(*whole[:k], moved, *whole[k + 1 :])))
            found[place] = (ends[1] - ends[0]) / (2 * STEP)
        out.append(found)
    return out


def enumerated(model):
    factors = [((i,), table) for i, table in enumerate(model.unary)]
    factors += [(pair, table) for pair, table in model.pairwise.items()] + list(model.factors)
    return enumerate_factors(model.num_states, factors, model.constant)[0]


def test_exact_marginals_are_derivatives_of_the_sum_over_all_configurations():
    model = mixed()
    found = cz.exact(model)
    ours = [found.marginals.flat, found.pairwise_marginals.flat, found.factor_marginals.flat]
    for mine, difference in zip(ours, differences(model, enumerated), strict=True):
        np.testing.assert_allclose(mine, difference, atol=CLOSE)


@pytest.mark.parametrize("method", cz.methods())
def test_marginals_are_derivatives_of_what_a_method_converges_to(method):
    model, solve = mixed(), cz.methods()[method]
    begin = solve(model, **OPTIONS[method])
    assert begin.converged and (begin.upper - begin.lower < CLOSE) == (method == "exact")
    ours = [begin.marginals.flat, begin.pairwise_marginals.flat, begin.factor_marginals.flat]
    found = differences(model, lambda moved: solve(moved, start=begin, **OPTIONS[method]).value)
    for mine, difference in zip(ours, found, strict=True):
        np.testing.assert_allclose(mine, difference, atol=CLOSE_IN_MINI_BUCKETS if method == "mini_buckets" else CLOSE)
