"""Branches and the sums over them: what they are, and the theorems of [WD16] on the raw sums, which no running minimum
has touched."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import (
    all_configurations,
    entropy,
    enumerate_factors,
    enumerate_model,
    naive_mean_field_objective,
    naive_objective,
)
from random_models import as_general, random_binary, random_edges, random_tables
from strategies import finite_or_hard, models

import clampz as cz
from clampz import generators
from clampz.clamping.branches import branch_weights, check_memory, split
from clampz.method import ForestWeights
from clampz.numerics import log_sum_exp

# Sums and marginals that are equal but for rounding.
EXACT = 1e-9
# TRW's tolerance in the theorems, in nats: each branch's bound is at most so far above its optimum, so their sum is
# too.
TRW_TOL = 1e-7
# Bethe's value at beliefs that disagree by its tolerance of 1e-6 and less, in nats.
BETHE_TOL = 1e-6
# Where coordinate ascent has stopped, Lemma 3 holds up to the square of what is left to move.
LEMMA = 1e-7
# "Strictly", in nats.
CLEARLY = 1e-3


def random_model(rng, kind):
    """A small model with cycles; `kind`: a number of labels, "zeros" for hard zeros, "unary" for those of single
    states, or "tables"."""
    n = 5 if kind in (2, "tables") else 4
    edges = random_edges(rng, n, 0.8)
    if kind == 2:
        return random_binary(rng, n, edges, scale=4.0)
    if kind == "tables":
        return as_general(random_binary(rng, n, edges, scale=4.0))
    if kind == "zeros":
        return random_tables(rng, rng.integers(2, 5, n), edges, scale=2.0, zeros=0.25)
    if kind == "unary":
        model = random_binary(rng, n, edges, scale=4.0)
        tables = [np.array(table) for table in model.unary]
        tables[int(rng.integers(n))][int(rng.integers(2))] = -np.inf
        return cz.Model(tables, dict(model.pairwise.items()))
    return random_tables(rng, rng.integers(2, kind + 1, n), edges, scale=2.0)


KINDS = (2, "tables", "unary", 3, 4, "zeros")
SEEDS = range(4)


# -- branches --------------------------------------------------------------------------------------------------------


def test_a_lane_for_every_joint_state():
    """The last variable's state changes fastest, and every other entry stays as it was."""
    model = random_tables(np.random.default_rng(0), [3, 2, 4], [(0, 1), (1, 2), (0, 2)])
    batch = cz.branches(model, [2, 0])
    assert batch.num_lanes == 12
    for lane, (c, a) in enumerate(itertools.product(range(4), range(3))):
        wanted = [np.full(3, -np.inf), np.array(model.unary[1]), np.full(4, -np.inf)]
        wanted[0][a], wanted[2][c] = model.unary[0][a], model.unary[2][c]
        np.testing.assert_array_equal(batch.unary[:, lane], np.concatenate(wanted))
    assert (batch.num_possible[[0, 2]] == 1).all() and (batch.num_possible[1] == 2).all()


def test_no_variables_make_one_branch():
    model = generators.cycle(4, rng=0)
    batch = cz.branches(model, [])
    assert batch.num_lanes == 1
    np.testing.assert_array_equal(batch.unary[:, 0], model.unary.flat)


def test_branches_are_evidence():
    model = generators.cycle(4, rng=0)
    evidence = cz.Batch.from_evidence(model, [{1: a, 3: b} for a in (0, 1) for b in (0, 1)])
    np.testing.assert_array_equal(cz.branches(model, [1, 3]).unary, evidence.unary)


def test_names_are_accepted():
    model = generators.barbell(2.0)
    np.testing.assert_array_equal(cz.branches(model, ["X6", "X1"]).unary, cz.branches(model, [5, 0]).unary)
    np.testing.assert_array_equal(cz.branches(model, [np.int64(5), "X1"]).unary, cz.branches(model, [5, 0]).unary)


@settings(max_examples=60)
@given(models(max_variables=4, max_states=3, elements=finite_or_hard), st.randoms(use_true_random=False))
def test_the_branches_sum_to_the_model(model, random):
    """For any variables, hard zeros and impossible models included."""
    chosen = random.sample(range(model.num_variables), random.randint(0, model.num_variables))
    log_z, _, _ = enumerate_model(model)
    lanes = cz.exact(cz.branches(model, chosen))
    assert log_sum_exp(lanes.log_z) == pytest.approx(log_z, abs=EXACT)
    assert (cz.branches(model, chosen).num_possible[chosen] <= 1).all()


def test_states_that_are_ruled_out_make_no_branch():
    model = cz.Model([[0.0, -np.inf, 1.0], [0.0, 0.5]], {(0, 1): np.arange(6.0).reshape(3, 2)})
    batch = cz.branches(model, [0])
    assert batch.num_lanes == 2
    np.testing.assert_array_equal(batch.unary[:3].argmax(axis=0), [0, 2])
    assert cz.branches(model.flip([1]), [1, 0]).num_lanes == 4


def test_a_variable_without_states_leaves_one_branch():
    """Z = 0, and the sum says so."""
    model = cz.Model([[-np.inf, -np.inf], [0.0, 0.5]], {(0, 1): np.zeros((2, 2))})
    batch = cz.branches(model, [0, 1])
    assert log_sum_exp(cz.exact(batch).log_z) == -np.inf
    result = cz.clamp(model, "exact", variables=[0, 1])
    assert result.log_z == -np.inf
    np.testing.assert_allclose(result.weights, 1 / len(result.branches))


# -- split -----------------------------------------------------------------------------------------------------------


def test_split_clamps_each_lane_at_its_own_variable():
    model = random_tables(np.random.default_rng(1), [2, 3, 2], [(0, 1), (1, 2)])
    batch, parent = split(cz.branches(model, [0]), np.array([1, 2]))
    np.testing.assert_array_equal(parent, [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(batch.num_possible.T, [[1, 1, 2]] * 3 + [[1, 3, 1]] * 2)
    assert log_sum_exp(cz.exact(batch).log_z) == pytest.approx(cz.exact(model).log_z, abs=EXACT)


def test_split_leaves_lanes_alone():
    batch = cz.branches(generators.cycle(4, rng=0), [0])
    same, parent = split(batch, np.array([-1, 2]))
    np.testing.assert_array_equal(parent, [0, 1, 1])
    np.testing.assert_array_equal(same.unary[:, 0], batch.unary[:, 0])


def test_splitting_twice_changes_nothing():
    batch = cz.branches(generators.cycle(4, rng=0), [0])
    again, parent = split(batch, np.zeros(2, dtype=int))
    np.testing.assert_array_equal(again.unary, batch.unary)
    np.testing.assert_array_equal(parent, [0, 1])


# -- sums, weights and marginals -------------------------------------------------------------------------------------


def test_combined():
    assert log_sum_exp(np.array([0.0, 0.0])) == pytest.approx(np.log(2), abs=1e-15)
    assert log_sum_exp(np.array([-np.inf, 3.0])) == 3.0
    assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum_exp(np.array([2.0, np.inf])) == np.inf
    assert log_sum_exp(np.array([1e4, 1e4 - 1])) == pytest.approx(1e4 + np.log1p(np.exp(-1)), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_marginals_with_exact_branches_are_exact(kind):
    """Of clamped and of other variables."""
    rng = np.random.default_rng(5)
    for _ in SEEDS:
        model = random_model(rng, kind)
        log_z, wanted, pairs = enumerate_model(model)
        for chosen in ([0], [2, 1], list(range(model.num_variables))):
            result = cz.clamp(model, "exact", variables=chosen)
            assert result.log_z == pytest.approx(log_z, abs=EXACT)
            for i, table in enumerate(wanted):
                np.testing.assert_allclose(result.marginals[i], table, atol=EXACT)
                np.testing.assert_array_equal(result.marginal(i), result.marginals[i])
            for pair, table in pairs.items():
                np.testing.assert_allclose(result.pairwise_marginals[pair], table, atol=EXACT)


@pytest.mark.parametrize("method", ["exact", "trw", "bethe", "mf"])
def test_marginals_of_factors_are_mixed_from_the_branches(method):
    """With every variable clamped every method is exact; x0 = x1 = x2 = 0 is impossible."""
    rng = np.random.default_rng(8)
    table = rng.normal(size=(2, 3, 2))
    table[0, 0, 0] = -np.inf
    factors = [((0, 1, 2), table), ((1, 2, 3), rng.normal(size=(3, 2, 2))), ((0, 3), rng.normal(size=(2, 2)))]
    _, _, wanted = enumerate_factors([2, 3, 2, 2], factors)
    result = cz.clamp(cz.Model.from_factors([2, 3, 2, 2], factors), method, variables=[3, 0, 1, 2])
    for (scope, _), marginal in zip(factors, wanted, strict=True):
        np.testing.assert_allclose(result.marginal(scope), marginal, atol=EXACT)
        np.testing.assert_allclose(result.marginal(scope[::-1]), marginal.T, atol=EXACT)
    assert [found.scope for found in result.factor_marginals] == [(0, 1, 2), (1, 2, 3)]


def test_weights_are_probabilities_of_the_branches():
    model = random_model(np.random.default_rng(6), 3)
    result = cz.clamp(model, "exact", variables=[1, 3])
    log_z, _, _ = enumerate_model(model)
    wanted = [
        np.exp(
            log_sum_exp(
                np.array([_score(model, x) for x in all_configurations(model.num_states) if (x[1], x[3]) == (b, d)])
            )
            - log_z
        )
        for b in range(model.num_states[1])
        for d in range(model.num_states[3])
    ]
    np.testing.assert_allclose(result.weights, wanted, atol=EXACT)
    assert result.weights.sum() == pytest.approx(1, abs=1e-12)


def _score(model, x):
    return (
        model.constant
        + sum(model.unary[i][a] for i, a in enumerate(x))
        + sum(t[x[i], x[j]] for (i, j), t in model.pairwise.items())
    )


@pytest.mark.parametrize("method", ["trw", "bethe", "mf"])
def test_marginals_of_clamped_variables_are_shares_of_the_sum(method):
    """Section 4.8 of the design: p(x_i) = Z~(x_i) / sum Z~."""
    model = random_model(np.random.default_rng(7), 4)
    result = cz.clamp(model, method, variables=[2])
    np.testing.assert_allclose(result.marginals[2], branch_weights(result.branches), atol=EXACT)
    np.testing.assert_allclose(
        result.marginals[2], np.exp(result.branches.log_z - log_sum_exp(result.branches.log_z)), atol=EXACT
    )
    others = [i for i in range(model.num_variables) if i != 2]
    for i in others:
        start = model.unary.start
        mixed = result.branches.marginals_flat[start[i] : start[i + 1]] @ result.weights
        np.testing.assert_allclose(result.marginals[i], mixed, atol=EXACT)
        assert result.marginals[i].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", ["exact", "trw", "bethe", "mf"])
def test_impossible_branches_count_for_nothing(method):
    """X0 = X1 is forbidden: of four branches two have Z = 0, and no marginals."""
    model = cz.Model(
        [[0.0, 0.3], [0.0, -0.2], [0.0, 1.0]],
        {(0, 1): [[-np.inf, 0.0], [0.5, -np.inf]], (1, 2): [[1.0, 0.0], [0.0, 1.0]]},
    )
    result = cz.clamp(model, method, variables=[0, 1])
    log_z, wanted, _ = enumerate_model(model)
    assert result.log_z == pytest.approx(log_z, abs=1e-4)
    assert (result.weights == 0).sum() == 2
    np.testing.assert_allclose(np.concatenate(list(result.marginals)), np.concatenate(wanted), atol=1e-4)


# -- what is refused -------------------------------------------------------------------------------------------------


def test_refused_variables():
    model = generators.barbell(2.0)
    for twice in ([3, 1, 3], ["X4", 3], [0, "X1"]):
        with pytest.raises(cz.errors.EvidenceError, match=r"clamped twice"):
            cz.branches(model, twice)
    for unknown in (8, -1, "X9", 1.5):
        with pytest.raises(cz.errors.EvidenceError, match=r"variable"):
            cz.branches(model, [unknown])
    with pytest.raises(cz.errors.EvidenceError, match=r"names"):
        cz.branches(generators.cycle(4, rng=0), ["X1"])


def test_too_many_branches_for_memory():
    """Before anything is laid out: in bytes, and with what to do instead."""
    model = generators.complete(60, rng=0)
    with pytest.raises(
        cz.errors.OptionError,
        match=r"60 clamped variables make 1,152,921,504,606,846,976 branches, which need about [\d,]+ bytes",
    ) as refusal:
        cz.branches(model, range(60))
    assert "clamp fewer variables" in str(refusal.value)
    check_memory(model, 4, "2 clamped variables", limit=10**9)
    with pytest.raises(cz.errors.OptionError, match=r"4 branches.* 1,000 are allowed"):
        check_memory(model, 4, "2 clamped variables", limit=1000)


# -- Theorem 2: TRW --------------------------------------------------------------------------------------------------


def trw_sums(model, order, rho, tol=TRW_TOL):
    """The bound for 0, 1, ... clamps with the root's weights, restricted: nothing is carried over from one number of
    clamps to the next."""
    out = []
    for k in range(len(order) + 1):
        options = cz.options.TRWOptions(tol=tol, max_iter=100_000)
        solved = cz.trw.solve(cz.branches(model, order[:k]), options, weights=ForestWeights(rho))
        assert solved.converged.all()
        out.append(log_sum_exp(solved.upper))
    return np.array(out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["uniform", "sampled", "optimized"])
def test_clamping_never_loosens_trw(kind, weights):
    rng = np.random.default_rng(11)
    for _ in SEEDS if weights == "uniform" else range(2):
        model = random_model(rng, kind)
        log_z, _, _ = enumerate_model(model)
        rho = cz.trw(model, edge_weights=weights, num_trees=7, num_steps=4).state.rho
        sums = trw_sums(model, rng.permutation(model.num_variables).tolist(), rho)
        assert (np.diff(sums) <= 2 * TRW_TOL).all()
        assert (sums >= log_z - EXACT).all()
        assert sums[-1] == pytest.approx(log_z, abs=EXACT)


def test_clamping_tightens_trw_clearly_on_a_frustrated_cycle():
    """So that the test above could fail."""
    sums = trw_sums(generators.cycle(3, theta=0, weights=-4.0), [0, 1, 2], np.full((3, 1), 2 / 3))
    assert (np.diff(sums)[:1] < -CLEARLY).all()


def test_flipping_changes_nothing_for_trw():
    rng = np.random.default_rng(12)
    for _ in SEEDS:
        model = random_model(rng, 2)
        rho = cz.trw(model).state.rho
        order = rng.permutation(model.num_variables).tolist()
        flipped = model.flip(rng.random(model.num_variables) < 0.5)
        np.testing.assert_allclose(trw_sums(flipped, order, rho), trw_sums(model, order, rho), atol=2 * TRW_TOL)


# -- Theorem 1 -------------------------------------------------------------------------------------------------------


def best_mixture(model, rho, num_steps=4000, rate=0.3):
    """max over L^(i) of TRW's objective, for a triangle with any variable i clamped.

    What one clamp leaves of a triangle is one edge, whose local polytope is that of its joint distributions: so L^(i)
    is the marginals of all joint distributions p of the three variables, and the objective is concave in p.  Mirror
    ascent.
    """
    states = np.array(list(all_configurations(model.num_states)))
    scores = np.array([_score(model, x) for x in states])
    log_p = np.full(len(states), -np.log(len(states)))

    def marginal(scope):
        table = np.zeros([model.num_states[i] for i in scope])
        np.add.at(table, tuple(states[:, i] for i in scope), np.exp(log_p))
        return table, table[tuple(states[:, i] for i in scope)]

    for _ in range(num_steps):
        gradient = scores.copy()
        for i in range(3):
            gradient -= np.log(marginal([i])[1])
        for k, (i, j) in enumerate(model.pairwise):
            gradient -= rho[k] * (np.log(marginal([i, j])[1]) - np.log(marginal([i])[1]) - np.log(marginal([j])[1]))
        log_p += rate * gradient
        log_p -= log_sum_exp(log_p)
    return naive_objective(
        model, [marginal([i])[0] for i in range(3)], {pair: marginal(pair)[0] for pair in model.pairwise}, rho
    )


@pytest.mark.parametrize("weight", [-6.0, -3.0, -1.0, 2.0, 5.0])
def test_theorem_1_with_its_equality_mended(weight):
    """A_T^(i) <= max over L^(i) <= A_T.  The paper prints an equality on the left; mixing the branches gives the tree
    distributions more entropy than that."""
    model = generators.cycle(3, theta=(-0.5, 0.5), weights=weight, rng=3)
    rho = np.full((3, 1), 2 / 3)
    middle = best_mixture(model, rho[:, 0])
    whole = trw_sums(model, [], rho)[0]
    for i in range(3):
        clamped = trw_sums(model, [i], rho)[1]
        assert cz.exact(model).log_z - EXACT <= clamped <= middle + 2 * TRW_TOL
        if weight == -3.0:
            assert clamped < middle - CLEARLY
    assert middle <= whole + 2 * TRW_TOL
    if weight < -1:
        assert middle < whole - CLEARLY


def test_theorem_1_first_equality():
    """A_T^(i) = sum p~ A_T(x_i) + H(p~)."""
    model = random_model(np.random.default_rng(13), 3)
    solved = cz.trw(cz.branches(model, [1]), tol=TRW_TOL)
    shares = branch_weights(solved)
    assert log_sum_exp(solved.log_z) == pytest.approx(shares @ solved.log_z + entropy(shares), abs=EXACT)


# -- Theorem 4 and Lemma 3: mean field -------------------------------------------------------------------------------


def mean_field_sums(model, order):
    """The bound for 0, 1, ... clamps, every branch from its parent's solution alone."""
    batch = cz.branches(model, [])
    solved = cz.mean_field(batch, num_starts=3)
    out = [log_sum_exp(solved.lower)]
    for i in order:
        batch, parent = split(batch, np.full(batch.num_lanes, i))
        solved = cz.mean_field(batch, start=solved.take(parent), num_starts=0)
        out.append(log_sum_exp(solved.lower))
    return np.array(out)


@pytest.mark.parametrize("kind", KINDS)
def test_clamping_never_loosens_mean_field(kind):
    rng = np.random.default_rng(14)
    for _ in SEEDS:
        model = random_model(rng, kind)
        log_z, _, _ = enumerate_model(model)
        sums = mean_field_sums(model, rng.permutation(model.num_variables).tolist())
        assert (np.diff(sums) >= -EXACT).all()
        assert (sums <= log_z + EXACT).all()
        assert sums[-1] == pytest.approx(log_z, abs=EXACT)
        assert sums[0] < log_z - CLEARLY


@pytest.mark.parametrize("kind", KINDS)
def test_lemma_3(kind):
    """At an optimum F(mu) = log sum exp F(mu with X_i = x_i), for every variable; away from one it is less."""
    rng = np.random.default_rng(15)
    for _ in SEEDS:
        model = random_model(rng, kind)
        optimum = [np.array(table) for table in cz.mean_field(model, tol=1e-15).marginals]
        for i in range(model.num_variables):
            assert naive_mean_field_objective(model, optimum) == pytest.approx(
                clamped_objectives(model, optimum, i), abs=LEMMA
            )
        if kind in (2, 3, 4):
            elsewhere = [rng.dirichlet(np.ones(k)) for k in model.num_states]
            assert all(
                naive_mean_field_objective(model, elsewhere) < clamped_objectives(model, elsewhere, i)
                for i in range(model.num_variables)
            )


def clamped_objectives(model, q, i):
    """log sum over x_i of exp F(q with X_i = x_i)."""
    return log_sum_exp(
        np.array(
            [naive_mean_field_objective(model, [*q[:i], np.eye(len(q[i]))[a], *q[i + 1 :]]) for a in range(len(q[i]))]
        )
    )


def test_flipping_changes_nothing_for_mean_field():
    """If the starts are flipped too."""
    rng = np.random.default_rng(16)
    for _ in SEEDS:
        model = random_model(rng, 2)
        flip = rng.random(model.num_variables) < 0.5
        ups = rng.uniform(0.1, 0.9, model.num_variables)
        found = []
        for each, start in ((model, ups), (model.flip(flip), np.where(flip, 1 - ups, ups))):
            batch = cz.branches(each, [0, 1])
            found.append(
                log_sum_exp(
                    cz.mean_field(batch, num_starts=0, start=np.stack([1 - start, start], axis=1).ravel()).lower
                )
            )
        assert found[0] == pytest.approx(found[1], abs=EXACT)


# -- Bethe -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flipped", [False, True], ids=["attractive", "balanced"])
def test_clamping_never_worsens_bethe_on_attractive_and_balanced_models(flipped):
    rng = np.random.default_rng(17)
    for _ in range(6):
        n = 5
        edges = random_edges(rng, n, 0.8)
        model = cz.Model.from_binary(rng.uniform(-1, 1, n), rng.uniform(0, 4, len(edges)), np.array(edges))
        if flipped:
            model = model.flip([0, 2])
        log_z, _, _ = enumerate_model(model)
        order = rng.permutation(n).tolist()
        sums = []
        for k in range(n + 1):
            solved = cz.bethe(cz.branches(model, order[:k]))
            assert solved.converged.all()
            sums.append(log_sum_exp(solved.value))
        assert (np.diff(sums) >= -BETHE_TOL).all()
        assert (np.array(sums) <= log_z + BETHE_TOL).all()
        assert sums[-1] == pytest.approx(log_z, abs=EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_bethe_with_everything_clamped_is_exact(kind):
    model = random_model(np.random.default_rng(18), kind)
    solved = cz.bethe(cz.branches(model, range(model.num_variables)))
    assert log_sum_exp(solved.value) == pytest.approx(enumerate_model(model)[0], abs=EXACT)


# -- equation (1) ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_sandwich(kind):
    """MF <= Bethe <= TRW and MF <= exact <= TRW, branch by branch and in the sums."""
    rng = np.random.default_rng(19)
    for _ in SEEDS:
        model = random_model(rng, kind)
        for chosen in ([], [0], [1, 2]):
            batch = cz.branches(model, chosen)
            field, bethe, upper, exact = (
                cz.mean_field(batch).lower,
                cz.bethe(batch),
                cz.trw(batch).upper,
                cz.exact(batch).log_z,
            )
            assert (field <= exact + EXACT).all() and (exact <= upper + EXACT).all()
            assert bethe.converged.all()
            assert (field <= bethe.value + BETHE_TOL).all() and (bethe.value <= upper + BETHE_TOL).all()
            assert log_sum_exp(field) - EXACT <= log_sum_exp(exact) <= log_sum_exp(upper) + EXACT
