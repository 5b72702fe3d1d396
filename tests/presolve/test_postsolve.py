"""Postsolve: marginals, joint beliefs and configurations are those of the original."""

import numpy as np
from decimals import Oracle
from hypothesis import given
from hypothesis import strategies as st
from presolve_cases import cases
from presolve_checks import check_configurations, check_marginals

import clampz as cz


def solved(case):
    """The presolve of a case, and both oracles."""
    found = cz.simplify(case.model, **case.options)
    return found, Oracle.of(found.original), Oracle.of(found.model)


@given(cases(operation="sum", evidence=None))
def test_marginals_of_variables_edges_and_factors_come_back(case):
    found, whole, rest = solved(case)
    if whole.is_possible:
        check_marginals(found, whole, rest)
        assert not case.marginals or not np.isnan(found.marginals(rest.beliefs())).any()


@given(cases(operation="sum", evidence=None), st.data())
def test_joint_beliefs_of_any_scope_come_back(case, data):
    found, whole, rest = solved(case)
    scope = data.draw(st.lists(st.integers(0, len(case.num_states) - 1), min_size=1, max_size=3, unique=True))
    if whole.is_possible:
        belief = found.joint(scope, rest.joint(found.joint_scope(scope)))
        np.testing.assert_allclose(belief, whole.joint(scope), atol=1e-12 + 4 * found.error, rtol=0)


@given(cases(evidence=None))
def test_configurations_come_back_with_their_scores(case):
    found, whole, rest = solved(case)
    if whole.is_possible:
        check_configurations(found, whole, rest)
