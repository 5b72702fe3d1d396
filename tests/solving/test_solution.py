"""What a solution says of itself."""

import math

import numpy as np

import clampz as cz
from clampz.model.results import stopped_estimates
from clampz.solving.solution import Solution

MODEL = cz.generators.grid(3, 3, rng=0)


def test_lanes_with_and_without_an_answer_can_be_joined():
    none = stopped_estimates("trw", MODEL, 2, cz.options.TRWOptions(), "time")
    one = cz.trw(MODEL, evidence=[{}])
    for joined in (one.join([none]), none.join([one])):
        assert len(joined) == 3 and sorted(np.isfinite(joined.upper)) == [False, False, True]
        assert cz.trw(MODEL, evidence=[{}] * 3, start=joined).converged.all()


def test_marginals_of_edges_and_factors_are_those_of_the_method():
    table = np.random.default_rng(0).normal(size=(2, 3, 2))
    model = cz.Model.from_factors([2, 3, 2], [((0, 1, 2), table), ((2, 0), [[0, 1], [2, 0]])])
    found, solution = cz.exact(model), cz.solve(model)
    assert solution.factor_marginals == found.factor_marginals
    np.testing.assert_array_equal(solution.pairwise_marginals[0, 2], found.pairwise_marginals[0, 2])
    np.testing.assert_array_equal(solution.marginal((2, 0, 1)), found.marginal((0, 1, 2)).transpose(2, 0, 1))


def test_where_a_method_found_nothing_the_bounds_are_the_answer():
    found = stopped_estimates("trw", MODEL, 1, cz.options.TRWOptions(), "time")[0]
    solution = Solution.of(found, "", seconds=0.0, lower=1.0, upper=2.0)
    assert (solution.log_z, solution.bound) == (1.0, "lower")
    assert solution.marginals_by == "" and "stopped before there were any" in solution.marginals_are
    assert np.isnan(solution.pairwise_marginals.flat).all()
    assert Solution.of(found, "", seconds=0.0, upper=2.0).bound == "upper"
    assert math.isnan(Solution.of(found, "", seconds=0.0).log_z) and Solution.of(found, "", seconds=0.0).bound is None
