"""Models without a possible configuration are recognised, and told by the factors that contradict each other."""

import numpy as np
import pytest
from decimals import Oracle
from hypothesis import given
from presolve_cases import HARD_KINDS, cases
from presolve_checks import check_infeasibility

import clampz as cz
from clampz.errors import OptionError
from clampz.presolve.simplify import simplify


@given(cases(kinds=HARD_KINDS, evidence=None))
def test_contradictions_are_proved_by_the_factors_that_are_named(case):
    found, whole = simplify(case.model, **case.options), Oracle.of(case.model)
    assert Oracle.of(found.model).is_possible == whole.is_possible
    if found.infeasibility:
        check_infeasibility(found, whole)
        assert found.words == ("found to be impossible: Z = 0",)
        assert set(case.keep) <= set(found.variables.tolist())
        assert found.bounds(0.0, 1.0) == (-np.inf, -np.inf)


def test_a_contradiction_names_its_factors():
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    base = cz.generators.grid(4, 4, potentials="table", rng=0)
    pairwise = {**base.pairwise, (0, 10): differ, (0, 5): differ, (5, 10): differ}
    found = simplify(cz.Model(list(base.unary), pairwise, names=[f"v{i}" for i in range(16)]))
    assert cz.exact(found.model).log_z == -np.inf
    assert found.bounds(-np.inf, 3.0) == (-np.inf, -np.inf)
    assert all(scope in found.infeasibility for scope in ("(v0, v10)", "(v0, v5)", "(v5, v10)"))
    assert "(v0, v1)" not in found.infeasibility and "contradict each other" in found.infeasibility
    with pytest.raises(OptionError, match="Z = 0"):
        found.marginals(np.zeros(2))


def test_evidence_against_a_factor_is_a_contradiction():
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    found = simplify(cz.Model([[0.0, -np.inf], [0.0, 0.0], [-np.inf, 0.0]], {(0, 1): equal, (1, 2): equal}), [1])
    assert "(0, 1), (1, 2), (0), (2)" in found.infeasibility
    assert 1 in found.variables
    assert cz.exact(found.model).log_z == -np.inf
    alone = simplify(cz.Model([[-np.inf, -np.inf]]))
    assert "the factor over (0) rules all of them out" in alone.infeasibility
