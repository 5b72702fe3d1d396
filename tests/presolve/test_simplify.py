"""The presolve: log Z, the best score, all marginals and states are those of the model as it was."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from presolve_cases import cases
from presolve_checks import check as check_against_decimals
from presolve_checks import check_case
from simplifiable import Enumerated, random_model

import clampz as cz
from clampz.errors import EvidenceError, OptionError
from clampz.model.conditioning import without_known
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget

EXACT = 1e-12
SETTINGS = list(itertools.product([True, False], [True, False]))


def check(seed, **drawing):
    """Every setting on one model.  Returns how many of its variables went."""
    model = random_model(seed, **drawing)
    rng = np.random.default_rng([seed, 1])
    n = model.num_variables
    keep = rng.choice(n, size=int(rng.integers(min(n, 3) + 1)), replace=False).tolist() if rng.random() < 0.4 else []
    whole = Enumerated(model)
    gone = 0
    for marginals, pairwise in SETTINGS:
        found = simplify(model, keep, marginals=marginals, pairwise=pairwise)
        rest = Enumerated(found.model)
        gone += n - found.model.num_variables
        place = {v: k for k, v in enumerate(found.variables.tolist())}
        assert all(found.model.num_states[place[v]] == model.num_states[v] for v in keep)
        if whole.log_z == -np.inf:
            assert rest.log_z == -np.inf
            continue
        assert not found.infeasibility
        assert found.error < EXACT
        lower, upper = found.bounds(rest.log_z, rest.log_z)
        assert lower - 1e-15 * abs(lower) <= whole.log_z <= upper + 1e-15 * abs(upper)
        if marginals:
            np.testing.assert_allclose(found.marginals(rest.beliefs), np.concatenate(whole.unary), atol=EXACT)
            beliefs = np.concatenate(found.factor_marginals(rest.beliefs, rest.joint))
            np.testing.assert_allclose(beliefs, whole.beliefs[len(model.unary.flat) :], atol=EXACT)
        known = found.marginals(rest.beliefs, known=True)
        assert marginals <= (not np.isnan(known).any())
        np.testing.assert_allclose(
            np.where(np.isnan(known), np.concatenate(whole.unary), known), np.concatenate(whole.unary), atol=EXACT
        )
        some = rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
        table = found.joint(some, rest.joint(found.joint_scope(some)))
        np.testing.assert_allclose(table, whole.joint(some), atol=EXACT)
    check_maximum(model, keep)
    return gone


def check_maximum(model, keep=()):
    """The best of the rest leads back to the best of all."""
    found = simplify(model, keep, "max")
    best = max(map(model.score, itertools.product(*map(range, model.num_states))))
    configurations = list(itertools.product(*map(range, found.model.num_states)))
    scores = [found.model.score(x) for x in configurations]
    if best == -np.inf:
        assert max(scores) == -np.inf
        return
    assert max(scores) == pytest.approx(best, abs=1e-11)
    x = found.states(np.array(configurations[int(np.argmax(scores))], dtype=np.int64).reshape(1, -1))
    assert model.score(x[0]) == pytest.approx(best, abs=1e-11)


@given(cases())
def test_models_keep_their_sums_maxima_and_marginals(case):
    check_case(case)


@given(cases(), st.sampled_from([0, 1e-6, 1e-5, 1e-4, 1e-3, 1.0]), st.sampled_from([1, 10_000, 50_000, "1MB"]))
def test_within_limits_of_time_and_memory_less_may_be_done(case, time, memory):
    found = cz.simplify(case.model, **case.options | {"evidence": None}, time=time, memory=memory)
    check_against_decimals(found, case.keep)
    assert found.is_trivial or memory != 1


@given(cases(evidence=None), st.sampled_from([0, 1, 2]))
def test_room_for_new_tables_may_be_made_one_by_one(case, spare):
    with mock.patch("clampz.presolve.pools.SPARE", spare):
        cramped = cz.simplify(case.model, **case.options)
    found = cz.simplify(case.model, **case.options)
    assert cramped.words == found.words and cramped.error == found.error
    np.testing.assert_array_equal(cramped.variables, found.variables)
    assert cramped.model.constant == found.model.constant
    np.testing.assert_array_equal(cramped.model.pairwise.flat, found.model.pairwise.flat)
    np.testing.assert_array_equal(cramped.model.factors.flat, found.model.factors.flat)


def test_random_models_keep_their_sums_maxima_and_marginals():
    gone = [check(seed, most=7) for seed in range(150)]
    assert np.mean(gone) > 5


@pytest.mark.large
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_random_models(block):
    for seed in range(1000 * block, 1000 * (block + 1)):
        check(1000 + seed, most=7 if seed % 10 else 12)


def test_drawn_states_are_those_of_the_model():
    """A model without a rest, drawn many times."""
    model = random_model(4, most=5)
    found = simplify(model, marginals=False)
    assert found.model.num_variables == 0
    x = found.states(np.empty((40_000, 0)), rng=0)
    whole = Enumerated(model)
    for i, marginal in enumerate(whole.unary):
        drawn = np.bincount(x[:, i], minlength=len(marginal)) / len(x)
        np.testing.assert_allclose(drawn, marginal, atol=0.02)
        assert not drawn[marginal == 0].any()
    assert np.isfinite([model.score(row) for row in x[:100]]).all()
    np.testing.assert_array_equal(x, found.states(np.empty((40_000, 0)), rng=0))


def test_several_threads_at_once_are_not_in_each_others_way():
    found = cz.simplify(cz.generators.cycle(400, rng=0), marginals=False)
    assert found.model.num_variables == 0
    few = np.empty((8, 0), dtype=np.int64)
    alone = found.states(few, rng=1)
    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(lambda _: found.states(few, rng=1), range(1000)):
            np.testing.assert_array_equal(together, alone)


# -- rules one by one --------------------------------------------------------------------------------------------------


def torus(n=4, labels=2, seed=0):
    """No rule applies to it."""
    return cz.generators.grid(n, n, labels=labels, potentials="table", rng=seed)


def test_where_nothing_is_to_be_done_the_model_stays():
    model = torus()
    found = simplify(model)
    assert found.is_trivial and found.model is model and found.error == 0.0 and not found.words
    beliefs = np.arange(len(model.unary.flat) + len(model.pairwise.flat), dtype=float)
    np.testing.assert_array_equal(found.marginals(beliefs), beliefs[: len(model.unary.flat)])
    np.testing.assert_array_equal(found.factor_marginals(beliefs, None)[0], beliefs[len(model.unary.flat) :])
    assert found.bounds(-1.0, 2.0) == (-1.0, 2.0)
    assert found.states([[1] * 16]).tolist() == [[1] * 16]
    assert found.joint_scope([3, 1]) == (3, 1)


def test_clauses_propagate():
    """x0, x0 -> x1, x1 -> x2, and so on: all states follow."""
    implies = [[0.0, 0.0], [-np.inf, 0.0]]
    n = 50
    model = cz.Model([[-np.inf, 0.0]] + [[0.0, 0.5]] * (n - 1), {(i, i + 1): implies for i in range(n - 1)})
    found = simplify(model, operation="max")
    assert found.model.num_variables == 0
    assert found.model.constant == pytest.approx(0.5 * (n - 1))
    assert found.states(np.empty((1, 0))).tolist() == [[1] * n]
    assert "50 variables with one state left" in found.words


def test_equal_variables_become_one():
    model, rng = torus(), np.random.default_rng(0)
    n = model.num_variables
    permuted = np.full((2, 2), -np.inf)
    permuted[[0, 1], [1, 0]] = rng.normal(size=2)
    # a twin of variable 0, with its neighbours divided among them
    pairwise = {**model.pairwise, (0, n): permuted}
    pairwise[n, 1] = pairwise.pop((0, 1))[::-1]
    pairwise[n, 4] = pairwise.pop((0, 4))[::-1]
    twin = cz.Model([*model.unary, [0.3, 0.7]], pairwise)
    for keep, left in (((), n), ((0,), n), ((n,), n), ((0, n), n + 1)):
        found = simplify(twin, keep)
        assert found.model.num_variables == left
        assert ("1 variable determined by others" in found.words) == (left == n)
        assert cz.exact(found.model).log_z == pytest.approx(cz.exact(twin).log_z, abs=1e-11)


def test_products_and_constants_fall_apart():
    model, rng = torus(), np.random.default_rng(0)
    product = rng.normal(size=(2, 1, 1)) + rng.normal(size=(1, 2, 2))
    larger = [((0, 5, 10), product), ((0, 6, 11), rng.normal(size=(2, 1, 2)) + np.zeros((2, 2, 2)))]
    found = simplify(cz.Model(list(model.unary), dict(model.pairwise), factors=larger))
    assert not found.model.factors
    assert {tuple(e) for e in found.model.edges.tolist()} == {*model.pairwise, (5, 10), (0, 11)}
    assert found.scopes == [(0, 5, 10), (0, 6, 11)]
    assert "2 axes split off a factor" in found.words


def test_what_is_nearly_a_product_is_charged_or_left():
    model = torus()
    for off, left, charged in ((4e-15, 32, True), (1e-9, 33, False), (0.0, 32, False)):
        near = {**model.pairwise, (0, 5): [[0.25, 0.5], [1.25, 1.5 + off]]}
        found = simplify(cz.Model(list(model.unary), near))
        assert found.model.num_edges == left
        assert (found.error > 2e-15) == charged


def test_scopes_inside_others_are_multiplied_in():
    rng = np.random.default_rng(0)
    inside = {(i, j): rng.normal(size=(2, 2)) for i, j in itertools.combinations(range(5), 2)}
    whole = rng.normal(size=(2,) * 5)
    model = cz.Model(rng.normal(size=(5, 2)), inside, factors=[((0, 1, 2, 3, 4), whole), ((4, 2, 0), whole[0, 0])])
    found = simplify(model, range(5))
    assert (found.model.num_edges, len(found.model.factors)) == (0, 1)
    x = rng.integers(2, size=5)
    assert found.model.score(x) == pytest.approx(model.score(x))


def test_pairwise_methods_get_no_larger_tables():
    """A variable in a factor of three and in an edge: summed out, it leaves a table of three."""
    rng = np.random.default_rng(0)
    base = torus()
    pairwise = {**base.pairwise, (16, 10): rng.normal(size=(2, 2))}
    model = cz.Model([*base.unary, [0.0, 1.0]], pairwise, factors=[((16, 0, 5), rng.normal(size=(2, 2, 2)))])
    assert simplify(model).model.num_variables == 16
    assert simplify(model, pairwise=True).is_trivial
    smaller = cz.Model([*base.unary, [0.0, 1.0]], dict(base.pairwise), factors=list(model.factors))
    assert simplify(smaller, pairwise=True).model.num_variables == 16


def test_barren_nodes_vanish_unless_marginals_are_wanted():
    """A child of two variables that sums to one says nothing about them; its own marginals need both."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet([1.0, 1.0], size=(2, 2))
    base = torus()
    model = cz.Model([*base.unary, [0.0, 0.0]], dict(base.pairwise), factors=[((0, 10, 16), np.log(table))])
    assert simplify(model, marginals=False).model.num_edges == 32
    found = simplify(model)
    assert found.model.num_edges == 33 and found.model.num_variables == 16
    whole, rest = cz.exact(model), Enumerated(found.model)
    np.testing.assert_allclose(found.marginals(rest.beliefs), whole.marginals.flat, atol=1e-12)
    with pytest.raises(OptionError, match="simplify it with marginals=True"):
        simplify(model, marginals=False).marginals(np.zeros(32 + 128))
    alone = simplify(model, marginals=False)
    known = alone.marginals(Enumerated(alone.model).beliefs, known=True)
    np.testing.assert_allclose(known[:-2], whole.marginals.flat[:-2], atol=1e-12)
    assert np.isnan(known[-2:]).all()


def test_names_and_states_stay_with_what_is_left():
    base = torus(labels=3)
    unary = [table.copy() for table in base.unary]
    unary[2][1] = -np.inf
    names, state_names = [f"v{i}" for i in range(16)], [["a", "b", "c"]] * 16
    model = cz.Model(unary, dict(base.pairwise), names=names, state_names=state_names)
    found = simplify(model)
    assert found.model.names == tuple(names) and found.model.state_names[2] == ("a", "c")
    assert found.states_left[: 3 + 3 + 2].tolist() == [0, 1, 2, 0, 1, 2, 0, 2]
    assert simplify(model, ["v2"]).is_trivial


def test_names_of_a_model_of_which_nothing_is_left():
    pairs = {(0, 1): np.eye(2), (1, 2): np.eye(2)}
    model = cz.Model(np.zeros((3, 2)), pairs, names=["a", "b", "c"], state_names=[["no", "yes"]] * 3)
    rest = simplify(model).model
    assert rest.num_variables == 0 and rest.names == rest.state_names == ()


# -- sizes, limits, bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e15, 1e20])
def test_potentials_of_any_size(scale):
    def scaled(table):
        return np.where(table > -np.inf, scale * np.clip(table, -1, 1), -np.inf)

    for seed in range(20):
        base = random_model(seed, most=5)
        model = cz.Model(
            [scaled(table) for table in base.unary],
            {pair: scaled(table) for pair, table in base.pairwise.items()},
            factors=[(scope, scaled(table)) for scope, table in base.factors],
        )
        whole = Enumerated(model).log_z
        found = simplify(model)
        lower, upper = found.bounds(*[Enumerated(found.model).log_z] * 2)
        assert lower <= whole <= upper
        assert found.error <= 1e-12 * (1 + scale)


def test_empty_models_and_single_states():
    assert simplify(cz.Model([])).is_trivial
    found = simplify(cz.Model([[2.0]] * 3, {(0, 1): [[1.0]]}, factors=[((0, 1, 2), [[[0.5]]])], constant=1.0))
    assert found.model.num_variables == 0 and found.model.constant == pytest.approx(8.5)
    np.testing.assert_allclose(found.marginals(np.empty(0)), [1.0, 1.0, 1.0])
    assert found.factor_marginals(np.empty(0), None)[0].tolist() == [1.0]
    kept = simplify(cz.Model([[2.0]] * 3, {(0, 1): [[1.0]]}), range(3))
    assert kept.model.num_variables == 3


def test_a_run_that_is_over_leaves_the_rest_as_it_is():
    """Stopped anywhere, what is done is done whole."""
    for seed in range(30):
        model = random_model(seed)
        budget = Budget(0.0)
        assert budget.must_stop()
        found = simplify(model, budget=budget)
        assert Enumerated(found.model).log_z == pytest.approx(Enumerated(model).log_z, abs=1e-11)


@pytest.mark.parametrize("work", range(0, 60, 7))
def test_every_prefix_of_the_rules_is_a_simplification(work, monkeypatch):
    monkeypatch.setattr("clampz.presolve.simplify.WORK_PER_ENTRY", 0)
    monkeypatch.setattr("clampz.presolve.simplify.LEAST_WORK", work)
    for seed in range(12):
        check(seed, most=6)


def test_of_a_large_model_more_than_its_corners_must_go(monkeypatch):
    """An open grid: four variables in two edges each.  Copied whole for these, it would take seconds for nothing."""
    side = 40
    at = np.arange(side * side).reshape(side, side)
    edges = [
        *zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True),
        *zip(at[:-1].ravel(), at[1:].ravel(), strict=True),
    ]
    model = cz.generators.from_graph(side * side, edges, rng=0)
    assert simplify(model).model.num_variables == side * side - 4
    monkeypatch.setattr("clampz.presolve.simplify.LARGE_MODEL", 1000)
    monkeypatch.setattr("clampz.presolve.simplify.LEAST_SHARE", 0.01)
    assert simplify(model).is_trivial
    assert not simplify(without_known(model, dict.fromkeys(np.diagonal(at).tolist(), 0))).is_trivial


def test_wrong_arguments_are_refused():
    model = torus()
    with pytest.raises(OptionError, match="operation"):
        simplify(model, operation="mean")
    with pytest.raises(EvidenceError, match="unknown variable"):
        simplify(model, [99])
    found = simplify(cz.Model([[0.0, 1.0]] * 2, {(0, 1): [[0.0, 1.0], [1.0, 0.0]]}))
    with pytest.raises(OptionError, match="beliefs: expected shape"):
        found.marginals(np.zeros(3))
    with pytest.raises(EvidenceError, match="configurations"):
        found.states([[0, 1]])


def test_a_factor_of_twelve_variables_and_a_long_chain():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2,) * 12)
    found = simplify(cz.Model(np.zeros((12, 2)), factors=[(range(12), wide)]))
    assert found.model.num_variables == 0
    assert found.model.constant == pytest.approx(np.logaddexp.reduce(wide, axis=None), abs=1e-12)
    chain = cz.generators.from_graph(20_000, [(i, i + 1) for i in range(19_999)], rng=0)
    found = simplify(chain)
    assert found.model.num_variables == 0 and found.error < 1e-8
    exact = cz.exact(chain)
    assert exact.lower - found.error <= found.model.constant <= exact.upper + found.error
    np.testing.assert_allclose(found.marginals(np.empty(0)), exact.marginals.flat, atol=1e-10)
    pairs, _ = found.factor_marginals(np.empty(0), None)
    np.testing.assert_allclose(pairs, exact.pairwise_marginals.flat, atol=1e-10)


def test_names_of_states_are_no_obstacle_where_all_variables_go():
    model = cz.Model([[0.0, 1.0], [0.5, 0.0]], {(0, 1): [[1.0, 0.0], [0.0, 2.0]]}, state_names=[["no", "yes"]] * 2)
    found = simplify(model)
    assert found.model.num_variables == 0 and found.model.constant == pytest.approx(cz.exact(model).log_z, abs=1e-12)
    assert simplify(model, keep=[1]).model.state_names == (("no", "yes"),)
