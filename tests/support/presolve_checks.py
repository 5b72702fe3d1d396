"""What a reduced model must keep of the model that it was made from, by enumeration in decimals of both."""

import itertools
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from decimals import DIGITS, IMPOSSIBLE, Oracle

import clampz as cz
from clampz.errors import EvidenceError

# Marginals are computed in doubles: beside what is charged for them, this much rounding.
EXACT = 1e-12
# What 50 digits may be off by, of scores up to 10^10.
ORACLE = Decimal("1e-35")
# Configurations of the reduced model that are brought back.
MOST_ROWS = 100


def check_value(found, whole, rest):
    """log Z or the best score of both is the same up to what is charged; what is kept has all of its states."""
    truth, reduced = (each.best if found.operation == "max" else each.log_z for each in (whole, rest))
    if truth == IMPOSSIBLE:
        assert reduced == IMPOSSIBLE
        return
    assert reduced > IMPOSSIBLE and not found.infeasibility
    with localcontext(DIGITS):
        assert abs(truth - reduced) <= Decimal(found.error) + ORACLE
        below, above = (float(np.nextafter(float(reduced), end)) for end in (-np.inf, np.inf))
        lower, upper = found.bounds(below, above)
        assert Decimal(lower) <= truth + ORACLE and truth - ORACLE <= Decimal(upper)


def check_scope(found, keep=()):
    """What is left are variables of the original with some of their states, those that are kept with all of them."""
    assert len(found.variables) == found.model.num_variables
    start = np.concatenate([[0], np.cumsum(found.model.num_states)])
    for k, v in enumerate(found.variables.tolist()):
        states = found.states_left[start[k] : start[k + 1]].tolist()
        assert states == sorted(set(states)) and set(states) <= set(range(found.original.num_states[v]))
        assert v not in keep or len(states) == found.original.num_states[v]
    assert set(keep) <= set(found.variables.tolist())


def check_marginals(found, whole, rest):
    """Marginals of variables, edges and factors, and the joint ones of all variables, from those of the reduced model;
    where the model was simplified for log Z alone, those that are known."""
    atol = EXACT + 4 * found.error
    unary = np.concatenate([np.empty(0), *(whole.joint((i,)) for i in range(len(whole.num_states)))])
    known = found.marginals(rest.beliefs(), known=True)
    np.testing.assert_allclose(np.where(np.isnan(known), unary, known), unary, atol=atol, rtol=0)
    if not np.isnan(known).any():
        np.testing.assert_allclose(found.marginals(rest.beliefs()), unary, atol=atol, rtol=0)
        beliefs = np.concatenate(found.factor_marginals(rest.beliefs(), rest.joint))
        np.testing.assert_allclose(beliefs, whole.beliefs(at_least=2), atol=atol, rtol=0)
    scope = range(len(whole.num_states))[::-1]
    joint = found.joint(scope, rest.joint(found.joint_scope(scope)))
    np.testing.assert_allclose(joint, whole.joint(scope), atol=atol, rtol=0)


def check_configurations(found, whole, rest):
    """Each configuration of the reduced model comes back as one of the original: a possible one where states are drawn,
    and for a maximum one of that score."""
    rows = [x for x in itertools.product(*map(range, rest.num_states)) if rest.scores[x] > IMPOSSIBLE][:MOST_ROWS]
    if not rows:
        return
    back = found.states(np.array(rows, dtype=np.int64).reshape(len(rows), -1), rng=0)
    start = np.concatenate([[0], np.cumsum(rest.num_states)])[:-1].astype(np.int64)
    for x, states in zip(rows, back.tolist(), strict=True):
        assert [states[v] for v in found.variables] == found.states_left[start + np.array(x, dtype=np.int64)].tolist()
        score, reduced = whole.scores[tuple(states)], rest.scores[x]
        assert score > IMPOSSIBLE
        if found.operation == "max":
            with localcontext(DIGITS):
                assert abs(score - reduced) <= 2 * Decimal(found.error) + ORACLE


def check_infeasibility(found, whole):
    """Factors and variables that are named as impossible together are: alone, and with nothing but their zeros."""
    assert whole.log_z == IMPOSSIBLE
    said = re.findall(r"\(([\d, ]+)\)", found.infeasibility)
    assert said
    if " more contradict" in found.infeasibility:
        return
    scopes = {tuple(map(int, scope.split(", "))) for scope in said}
    named = [(scope, np.where(table > -np.inf, 0.0, -np.inf)) for scope, table in whole.tables if scope in scopes]
    assert len(named) == len(scopes)
    assert Oracle(whole.num_states, named).log_z == IMPOSSIBLE


def check(found, keep=(), whole=None):
    """All of it; `whole` is the oracle of the original, where it is known."""
    whole, rest = whole or Oracle.of(found.original), Oracle.of(found.model)
    check_scope(found, keep)
    check_value(found, whole, rest)
    if found.infeasibility:
        check_infeasibility(found, whole)
    elif whole.is_possible:
        check_configurations(found, whole, rest)
        if found.operation == "sum":
            check_marginals(found, whole, rest)


def check_case(case):
    """The presolve of one case; None where its evidence is refused, as no configuration agrees with it."""
    try:
        found = cz.simplify(case.model, **case.options)
    except EvidenceError:
        assert not Oracle.of(case.model, case.evidence).is_possible
        return None
    check(found, case.keep)
    if case.evidence:  # the original is the model under the evidence
        known, original = Oracle.of(case.model, case.evidence), Oracle.of(found.original)
        assert float(known.best) == pytest.approx(float(original.best), rel=1e-14, abs=1e-14)
        assert float(known.log_z) == pytest.approx(float(original.log_z), rel=1e-14, abs=1e-14)
    return found
