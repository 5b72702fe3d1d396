"""Factors of three or more variables: the model that holds them, its pairwise equivalent, and every method on both."""

import itertools
import math
import pickle

import numpy as np
import pytest

import clampz as cz
from clampz.model import conditioning
from clampz.model.batch import Batch
from clampz.model.conditioning import without_known
from clampz.model.pairwise_equivalent import Equivalent
from clampz.runtime.budget import UNLIMITED

CLOSE = 1e-9
NUM_MODELS = 40
METHODS = (cz.exact, cz.bethe, cz.trw, cz.mean_field)
SCOPES = [(0, 1, 2, 3), (1, 2, 3), (0, 2, 4)]


def random_factors(rng, num_variables, hard=False):
    """Numbers of states, and factors of zero to four variables in any order, some over the same variables."""
    num_states = rng.integers(2, 4, size=num_variables)
    scopes = [
        rng.permutation(num_variables)[: rng.integers(3, min(num_variables, 4) + 1)] for _ in range(rng.integers(1, 5))
    ]
    scopes += [rng.permutation(num_variables)[: rng.integers(0, 3)] for _ in range(6)] + [
        np.array([i]) for i in range(num_variables)
    ]
    scopes.append(scopes[0][::-1])
    factors = []
    for scope in scopes:
        table = 2 * rng.normal(size=num_states[scope])
        if hard and len(scope) > 1:
            table[rng.random(table.shape) < 0.25] = -np.inf
        factors.append((tuple(scope.tolist()), table))
    return num_states, factors


def random_model(seed, hard=False):
    rng = np.random.default_rng(seed)
    return cz.Model.from_factors(*random_factors(rng, int(rng.integers(3, 6)), hard))


def joint(model):
    """exp(score) of every configuration."""
    return np.exp([model.score(list(x)) for x in itertools.product(*map(range, model.num_states))]).reshape(
        model.num_states
    )


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_scores_are_the_sums_of_the_factors(seed):
    rng = np.random.default_rng(seed)
    num_states, factors = random_factors(rng, 4, hard=seed % 2 == 1)
    model = cz.Model.from_factors(num_states, factors, constant=0.5)
    for x in itertools.product(*map(range, num_states)):
        assert model.score(list(x)) == pytest.approx(
            0.5 + sum(table[tuple(x[i] for i in scope)] for scope, table in factors), abs=CLOSE
        )
    assert len({scope for scope, _ in model.factors}) == len(model.factors)
    assert all(list(scope) == sorted(scope) and len(scope) > 2 for scope, _ in model.factors)


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_every_method_against_enumeration(seed):
    model = random_model(seed, hard=seed % 2 == 1)
    table = joint(model)
    n = model.num_variables
    with np.errstate(divide="ignore"):
        log_z = np.log(table.sum())
    exact, lower, upper = cz.exact(model), cz.mean_field(model), cz.trw(model)
    assert exact.lower <= log_z + CLOSE and log_z - CLOSE <= exact.upper
    assert lower.lower <= log_z + CLOSE and log_z - CLOSE <= upper.upper
    assert len(upper.marginals) == len(lower.marginals) == n
    if not table.sum():
        assert upper.upper == lower.lower == -np.inf
        return
    for i in range(n):
        np.testing.assert_allclose(
            exact.marginals[i], table.sum(axis=tuple(k for k in range(n) if k != i)) / table.sum(), atol=CLOSE
        )
    for scope, found in exact.factor_marginals:
        truth = table.sum(axis=tuple(k for k in range(n) if k not in scope)) / table.sum()
        np.testing.assert_allclose(found, truth, atol=CLOSE)
    for i, j in model.pairwise:
        pair = table.sum(axis=tuple(k for k in range(n) if k not in (i, j))) / table.sum()
        np.testing.assert_allclose(exact.pairwise_marginals[i, j], pair, atol=CLOSE)
        for estimate in (cz.bethe(model), cz.trw(model, tol=1e-8)):
            np.testing.assert_allclose(estimate.pairwise_marginals[i, j].sum(axis=1), estimate.marginals[i], atol=1e-3)


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_the_equivalent_has_the_same_distribution(seed):
    model = random_model(seed, hard=seed % 2 == 1)
    equivalent = Equivalent.of(model, budget=UNLIMITED)
    assert not equivalent.model.factors and Equivalent.of(model, budget=UNLIMITED) is equivalent
    own, other = cz.exact(model), cz.exact(equivalent.model)
    assert other.log_z == own.log_z == -np.inf or other.log_z == pytest.approx(own.log_z, abs=CLOSE)
    np.testing.assert_allclose(other.marginals.flat[: len(own.marginals.flat)], own.marginals.flat, atol=CLOSE)


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_clamping_keeps_to_the_users_variables(seed):
    model = random_model(seed, hard=seed % 4 == 3)
    log_z = cz.exact(model).log_z
    order = range(model.num_variables)
    for method in ("trw", "mf"):
        assert cz.clamp(model, method, variables=order).log_z == pytest.approx(log_z, abs=1e-6) or log_z == -np.inf
    upper = [step.upper for step in cz.clamp(model, "trw", k=2, select="pseudo-greedy").steps]
    lower = [step.lower for step in cz.clamp(model, "mf", k=2, select="maxW+TRE").steps]
    assert (np.diff(upper) <= 0).all() if np.isfinite(upper).all() else True
    assert lower[-1] <= log_z + CLOSE and log_z - CLOSE <= upper[-1]
    assert set(cz.clamp(model, "bethe", k=2, select="maxW").variables) <= set(order)


def test_mean_field_works_on_the_factors_themselves():
    """Through an auxiliary variable per factor its bound collapses to the score of one configuration."""
    model = random_model(1)
    assert cz.mean_field(model).lower > cz.mean_field(Equivalent.of(model, budget=UNLIMITED).model).lower + 0.1


def test_mean_field_is_at_a_fixed_point():
    model = random_model(2)
    q = cz.mean_field(model, tol=1e-12).marginals
    axes = range(model.num_variables)
    scores = np.array([model.score(list(x)) for x in itertools.product(*map(range, model.num_states))]).reshape(
        model.num_states
    )
    for i in axes:
        others = np.ones(model.num_states)
        for j in axes:
            if j != i:
                others = others * q[j].reshape([-1 if k == j else 1 for k in axes])
        field = (scores * others).sum(axis=tuple(k for k in axes if k != i))
        np.testing.assert_allclose(q[i], np.exp(field - np.logaddexp.reduce(field)), atol=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_conditioning_sums_to_the_whole(seed):
    model = random_model(seed)
    for i in range(model.num_variables):
        parts = [cz.exact(without_known(model, {i: a})).log_z for a in range(model.num_states[i])]
        assert np.logaddexp.reduce(parts) == pytest.approx(cz.exact(model).log_z, abs=CLOSE)


def test_evidence_and_warm_starts():
    model = random_model(3)
    batch = cz.branches(model, [0])
    for method in (cz.trw, cz.bethe, cz.mean_field):
        first = method(model)
        again = method(model, start=first)
        assert again.log_z == pytest.approx(first.log_z, abs=1e-3)
        assert len(method(batch, start=first)) == batch.num_lanes
        assert method(model, start=cz.mean_field(model)).converged
        assert method(model, start=first.marginals.flat).converged
    assert cz.exact(model, evidence={0: 1}).log_z == pytest.approx(
        cz.exact(without_known(model, {0: 1})).log_z, abs=CLOSE
    )


def test_constant_factors_are_no_factors():
    model = cz.Model.from_factors([2, 2, 2], [((0, 1, 2), np.full((2, 2, 2), 1.5)), ((), 2.0)])
    assert not model.factors and model.constant == 3.5


def test_flips_turn_tables():
    model = cz.Model.from_factors([2, 2, 2], [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))])
    for x in itertools.product(range(2), repeat=3):
        assert model.flip([0, 2]).score(list(x)) == model.score([1 - x[0], x[1], 1 - x[2]])


def test_models_compare_and_pickle():
    model, other = random_model(4), random_model(5)
    assert pickle.loads(pickle.dumps(model)) == model != other
    assert "larger factor" in repr(model)


def test_names_reach_into_factors():
    model = cz.Model(
        [[0.0, 0.0]] * 3, factors=[(("c", "a", "b"), np.arange(8.0).reshape(2, 2, 2))], names=["a", "b", "c"]
    )
    assert model.factors[0].scope == (0, 1, 2) and model.score({"a": 1, "b": 0, "c": 0}) == 2.0


def test_marginals_of_factors_of_lanes():
    model = with_factors(1)
    for b, known in enumerate([{}, {"a": 1}, {"b": 2, "c": 0}]):
        table = joint(Batch.from_evidence(model, [known]).lane(0))
        lanes = [method(model, evidence=[{}, {"a": 1}, {"b": 2, "c": 0}], tol=1e-9)[b] for method in METHODS]
        np.testing.assert_allclose(
            lanes[0].marginal(tuple("abc")), table / table.sum(), atol=CLOSE
        )  # one factor: a tree
        np.testing.assert_allclose(lanes[1].marginal(tuple("abc")), table / table.sum(), atol=1e-5)
        np.testing.assert_allclose(lanes[2].marginal(tuple("abc")), table / table.sum(), atol=1e-5)
        of_each = [lanes[3].marginal(name) for name in "abc"]
        np.testing.assert_allclose(lanes[3].marginal(tuple("abc")), np.einsum("a,b,c->abc", *of_each), atol=CLOSE)


def test_factors_that_hold_variables():
    factors = cz.Model.from_factors(
        [2] * 5, [(scope, np.arange(2.0 ** len(scope)).reshape((2,) * len(scope))) for scope in SCOPES]
    ).factors
    assert [factors[f].scope for f in factors.holding([1, 3])] == [(1, 2, 3), (0, 1, 2, 3)]
    assert [factors[f].scope for f in factors.holding([4])] == [(0, 2, 4)]
    assert factors.holding([3, 4]).size == 0


def test_cycle_selectors_refuse_larger_factors():
    with pytest.raises(cz.errors.ClampzError, match="binary"):
        cz.scores(random_model(1), "frustCycles")
    assert cz.scores(random_model(1), "maxW").max() > 0


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([((0, 0, 1), np.zeros((2, 2, 2)))], r"factor 0 over \(0, 0, 1\): expected distinct variables"),
        ([((0, 1, 7), np.zeros((2, 2, 2)))], r"factor over \(0, 1, 7\): unknown variable 7"),
        (
            [((0, 1, 2), np.zeros((2, 2, 3)))],
            r"factor 0 over \(0, 1, 2\): expected a table of shape \(2, 2, 2\), found \(2, 2, 3\)",
        ),
        ([((0, 1, 2), np.full((2, 2, 2), np.nan))], r"factor 0 over \(0, 1, 2\)\[0, 0, 0\].*nan"),
        ([3], r"factor 3: expected a pair \(variables, table\)"),
    ],
)
def test_refused_factors(factors, message):
    with pytest.raises(cz.errors.ModelError, match=message):
        cz.Model.from_factors([2, 2, 2], factors)


def with_factors(seed):
    """Three variables and a factor over all of them, with names."""
    rng = np.random.default_rng(seed)
    return cz.Model(
        [rng.normal(size=k) for k in (2, 3, 2)],
        {(0, 2): rng.normal(size=(2, 2))},
        factors=[((0, 1, 2), 2 * rng.normal(size=(2, 3, 2)))],
        constant=0.5,
        names="abc",
    )


def test_a_lane_keeps_larger_factors():
    model = with_factors(0)
    batch = Batch.from_evidence(model, [{}, {"a": 1}, {"b": 2, "c": 0}])
    found = cz.exact(batch)
    for b in range(3):
        lane = batch.lane(b)
        assert lane.factors == model.factors and lane.names == model.names
        assert cz.exact(lane).log_z == pytest.approx(found.log_z[b], abs=CLOSE)
        assert np.log(joint(lane).sum()) == pytest.approx(found.log_z[b], abs=CLOSE)


@pytest.mark.parametrize("seed", range(20))
def test_given_keeps_every_variable_in_its_place(seed):
    rng = np.random.default_rng(seed)
    num_states = rng.integers(2, 4, size=6)
    scopes = [rng.permutation(6)[: rng.integers(1, 5)] for _ in range(7)]
    model = cz.Model.from_factors(
        num_states, [(s, rng.normal(size=num_states[s])) for s in scopes], names=list("abcdef"), constant=1.0
    )
    known = {int(i): int(rng.integers(num_states[i])) for i in rng.permutation(6)[:3]}
    model_given = conditioning.given(model, known)
    assert model_given.names == model.names and np.array_equal(model_given.num_states, model.num_states)
    assert not any(set(edge) & set(known) for edge in model_given.edges.tolist())
    assert not any(set(scope) & set(known) for scope, _ in model_given.factors)
    for _ in range(20):
        x = [known.get(i, int(rng.integers(size))) for i, size in enumerate(num_states)]
        assert model_given.score(x) == pytest.approx(model.score(x), abs=CLOSE)
    rest = cz.exact(without_known(model, known))
    estimates = [cz.exact(model_given), cz.mean_field(model_given), cz.bethe(model_given), cz.trw(model_given)]
    assert estimates[0].log_z == pytest.approx(rest.log_z, abs=CLOSE)
    assert estimates[1].lower - CLOSE <= rest.log_z <= estimates[3].upper + CLOSE
    for estimate in estimates:
        assert all(estimate.marginals[i][a] == pytest.approx(1, abs=CLOSE) for i, a in known.items())
    free = [i for i in range(6) if i not in known]
    for i, row in zip(free, rest.marginals, strict=True):
        np.testing.assert_allclose(estimates[0].marginals[i], row, atol=CLOSE)


@pytest.mark.parametrize("scope", [(), (0,), (0, 1), (1, 0), (0, 1, 2)])
def test_factors_of_a_scope_are_added_up_as_if_exactly(scope):
    shape = (2,) * len(scope)
    large, one = np.full(shape, 1e17), np.arange(2.0 ** len(scope)).reshape(shape)
    factors = [(scope, large), (scope, one), (scope, -large), ((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))]
    model = cz.Model.from_factors([2, 2, 2], factors)
    assert model == cz.Model.from_factors([2, 2, 2], factors[1:2] + factors[3:])


def test_sums_are_rounded_once_also_where_what_rounding_lost_cancels():
    """Twice the precision is not enough for numbers of three sizes: these gave 8e-13 where the sum is 0."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        large = rng.normal(size=4) * [1e20, 1e17, 1e9, 1e4] / 10
        terms = rng.permutation(np.concatenate([large, -large, rng.normal(size=1)]))
        model = cz.Model.from_factors([1, 2], [((0,), [term]) for term in terms] + [((0, 1), [[0.0, 1.0]])])
        assert model.unary[0][0] == math.fsum(terms)


def test_a_hard_zero_stays_one():
    model = cz.Model.from_factors([2, 2], [((0, 1), [[0, -np.inf], [1, 1]]), ((0, 1), np.full((2, 2), 1e17))] * 2)
    assert model.pairwise[0, 1][0, 1] == -np.inf


@pytest.mark.parametrize("num_states", [[2, 3], [1], []])
def test_a_factor_over_nothing_that_is_zero_makes_z_zero(num_states):
    model = cz.Model.from_factors(num_states, [((), -np.inf), ((), 2.0)], constant=1.0)
    for found in (cz.exact(model), cz.mean_field(model), cz.bethe(model), cz.trw(model), cz.bound(model)):
        assert found.lower == -np.inf and found.upper == -np.inf


def test_the_constant_is_added_up_with_the_factors_over_nothing():
    assert cz.Model([[0.0]], factors=[((), -1e17), ((), 0.25)], constant=1e17).constant == 0.25


@pytest.mark.parametrize("constant", [1e21, -6e29, np.inf, -np.inf, np.nan])
def test_constants_have_a_limit(constant):
    with pytest.raises(cz.errors.ModelError, match="constant: expected a finite number, at most 1e"):
        cz.Model([[0.0, 1.0]], constant=constant)


def test_factors_may_be_a_mapping_as_edges_may():
    tables = {(0, 1): np.eye(2), (0, 1, 2): np.arange(8.0).reshape(2, 2, 2), (2,): [0.0, 3.0]}
    assert cz.Model.from_factors([2, 2, 2], tables) == cz.Model.from_factors([2, 2, 2], list(tables.items()))
    model = cz.Model(np.zeros((3, 2)), factors={("a", "b", "c"): tables[0, 1, 2]}, names=["a", "b", "c"])
    assert model.score({"a": 1, "b": 1, "c": 0}) == 6.0
