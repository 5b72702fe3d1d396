"""Joint marginals of any variables, against enumeration."""

import math

import numpy as np
import pytest
from enumerated import brute_force, random_model

import clampz as cz
from clampz.exact_inference import marginal_queries
from clampz.exact_inference.marginal_queries import joint_marginal
from clampz.runtime.budget import Budget

EXACT = 1e-10


def enumerated(model, variables, evidence=None, beta=1.0):
    """An axis for each of some variables, in their order; nan where Z = 0."""
    scores = beta * brute_force(model, evidence)
    if scores.max() == -np.inf:
        return np.full(model.num_states[variables], np.nan)
    weights = np.exp(scores - scores.max())
    others = tuple(i for i in range(model.num_variables) if i not in variables)
    table = weights.sum(axis=others) / weights.sum()
    return np.transpose(table, [sorted(variables).index(i) for i in variables]).astype(float)


def some_variables(rng, model):
    return rng.permutation(model.num_variables)[: rng.integers(1, 5)].tolist()


@pytest.mark.parametrize("seed", range(40))
def test_joints_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.3)
    found = cz.exact(model)
    for _ in range(3):
        variables = some_variables(rng, model)
        np.testing.assert_allclose(found.joint(variables), enumerated(model, variables), atol=EXACT)


@pytest.mark.parametrize("seed", range(20))
def test_joints_under_evidence_and_at_a_temperature(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.0)
    i, j = rng.permutation(model.num_variables)[:2].tolist()
    state, likelihoods = int(rng.integers(model.num_states[i])), rng.random(model.num_states[j]) + 0.1
    evidence, variables = {i: state, j: likelihoods}, some_variables(rng, model)
    expected = enumerated(model, variables, evidence)
    np.testing.assert_allclose(cz.exact(model, evidence=evidence).joint(variables), expected, atol=EXACT)
    np.testing.assert_allclose(cz.solve(model, evidence=evidence).joint(variables), expected, atol=EXACT)
    clamped = cz.clamp(model, "exact", variables=[j], evidence=evidence)
    np.testing.assert_allclose(clamped.joint(variables), expected, atol=EXACT)
    lanes = cz.exact(model, evidence=[{}, evidence], beta=[0.5, 2.0])
    np.testing.assert_allclose(lanes[0].joint(variables), enumerated(model, variables, beta=0.5), atol=EXACT)
    hot = enumerated(model, variables, evidence, beta=2.0)
    np.testing.assert_allclose(lanes[1].joint(variables), hot, atol=EXACT)


@pytest.mark.parametrize("seed", range(20))
def test_state_by_state_is_the_same(seed, monkeypatch):
    """As where one table over all of them is too wide."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.3)
    variables = some_variables(rng, model)

    def too_wide(*args):
        raise cz.errors.TooWideError("", width=0, num_bytes=0)

    monkeypatch.setattr(marginal_queries, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(marginal_queries.Block, "fill", too_wide)
    found = joint_marginal(model, variables, None, Budget())
    np.testing.assert_allclose(found, enumerated(model, variables), atol=EXACT)


def test_names_and_the_order_of_the_axes():
    model = cz.Model(
        [[0.0, 1.0], [0.0, 0.5, 0.2], [0.0, 0.0]],
        {("a", "b"): [[0, 1, 0], [2, 0, 0]], ("b", "c"): [[0, 1], [1, 0], [0, 3]]},
        names=["a", "b", "c"],
    )
    found = cz.exact(model)
    table = found.joint(["c", "a"])
    assert table.shape == (2, 2)
    np.testing.assert_allclose(table, found.joint([0, 2]).T, atol=EXACT)
    np.testing.assert_allclose(table.sum(axis=0), found.marginal("a"), atol=EXACT)
    np.testing.assert_allclose(found.joint(("b", "a")), found.pairwise_marginals["b", "a"], atol=EXACT)


def test_wide_models_are_summed_state_by_state_and_else_refused():
    found, apart = cz.exact(cz.generators.grid(7, 7, rng=0)), [0, 10, 17, 24, 31, 38]
    at_once = found.joint(apart)
    np.testing.assert_allclose(found.joint(apart, memory="500KB"), at_once, atol=EXACT)
    with pytest.raises(cz.errors.TooWideError, match="bytes"):
        found.joint(apart, memory="20KB")
    with pytest.raises(
        cz.errors.TooWideError, match=r"joint marginal of 49 variables takes .* ask for fewer variables"
    ):
        found.joint(range(49))


def test_limits_are_kept():
    found = joint_marginal(cz.generators.grid(12, 12, rng=0), [0, 70], None, Budget(0.0))
    assert found.shape == (2, 2) and np.isnan(found).all()
    with pytest.raises(cz.errors.OptionError, match="time"):
        cz.exact(cz.generators.cycle(4, rng=0)).joint([0, 2], time=-1)


def test_what_is_refused():
    model = cz.generators.cycle(5, rng=0)
    with pytest.raises(cz.errors.OptionError, match=r"marginals of Bethe.*cz\.exact\(model\)\.joint"):
        cz.bethe(model).joint([0, 2])
    exact = cz.exact(model)
    with pytest.raises(cz.errors.EvidenceError, match="distinct"):
        exact.joint([0, 0])
    with pytest.raises(cz.errors.EvidenceError, match="a list of variables"):
        exact.joint(3)
    with pytest.raises(cz.errors.EvidenceError, match=r"joint\(\[0, 2\]\)"):
        exact.marginal([0, 2])
    assert exact.joint([]).shape == () and math.isclose(exact.joint([]), 1.0)
