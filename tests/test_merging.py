"""Merging: the same distribution with larger variables, every method over blocks, and blocks found by strength."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clampz as cz
import naive
import random_models
from clampz.merging import MergedState
from strategies import finite_or_hard, models

CLOSE = 1e-9
# What a method leaves undone when its tolerance is met.
CONVERGED = 1e-6
NUM_MODELS = 24


def random_model(seed, max_variables=6):
    """2 to 4 labels; by seed plain, with hard zeros, with larger factors, with both."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, max_variables + 1))
    num_states = rng.integers(2, 5, size=n)
    hard, larger = seed % 2 == 1, seed % 4 >= 2
    scopes = [(i,) for i in range(n)] + random_models.random_edges(rng, n, 0.6)
    if larger:
        scopes += [tuple(rng.permutation(n)[: rng.integers(3, min(n, 4) + 1)].tolist()) for _ in range(3)]
    factors = []
    for scope in scopes:
        table = 2 * rng.normal(size=num_states[list(scope)])
        if hard:
            table[rng.random(table.shape) < 0.2] = -np.inf
            table[(0,) * len(scope)] = 0.5
        factors.append((scope, table))
    return cz.Model.from_factors(num_states, factors, constant=float(rng.normal()))


def random_labels(seed, model):
    rng = np.random.default_rng(seed + 1000)
    return rng.integers(0, int(rng.integers(1, model.num_variables + 1)), size=model.num_variables)


def enumerated(model):
    """log Z, marginals of the variables and of the edges, by visiting every configuration."""
    scopes = [((i,), model.unary[i]) for i in range(model.num_variables)]
    pairs = [(pair, model.pairwise[pair]) for pair in model.pairwise]
    log_z, unary, every = naive.enumerate_factors(model.num_states, [*pairs, *scopes, *model.factors], model.constant)
    return log_z, unary, dict(zip(model.pairwise, every, strict=False))


def configuration(merged, x):
    """The joint state of every block in a configuration of the user's variables, or None where one was left out."""
    found = []
    for block, states in zip(merged.blocks, merged.states, strict=True):
        here = np.flatnonzero((states == [x[i] for i in block]).all(axis=1))
        if not here.size:
            return None
        found.append(int(here[0]))
    return found


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_scores_are_the_same(seed):
    model = random_model(seed)
    merged = cz.merge(model, random_labels(seed, model))
    for x in itertools.product(*map(range, model.num_states)):
        joint, score = configuration(merged, x), model.score(list(x))
        if joint is None:
            assert score == -np.inf
        else:
            assert merged.model.score(joint) == score or merged.model.score(joint) == pytest.approx(score, abs=CLOSE)
    assert merged.model.num_variables == len(merged.blocks) == len(np.unique(random_labels(seed, model)))
    assert sorted(i for block in merged.blocks for i in block) == list(range(model.num_variables))


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_results_are_those_of_the_users_model(seed):
    model = random_model(seed)
    merged = cz.merge(model, random_labels(seed, model))
    log_z, unary, pairs = enumerated(model)
    found = merged.solve(cz.exact)
    assert found.model is model and found.bound == "exact"
    assert found.lower <= log_z + CLOSE and log_z - CLOSE <= found.upper < found.lower + CLOSE
    assert found.log_z == pytest.approx(log_z, abs=CLOSE)
    for i in range(model.num_variables):
        np.testing.assert_allclose(found.marginals[i], unary[i], atol=CLOSE)
    for pair in model.pairwise:
        np.testing.assert_allclose(found.pairwise_marginals[pair], pairs[pair], atol=CLOSE)
    alone = merged.back(cz.exact(merged.model))
    assert (alone.lower, alone.upper) == (found.lower, found.upper)
    np.testing.assert_array_equal(alone.pairwise_marginals.flat, found.pairwise_marginals.flat)


@given(models(max_variables=4, elements=finite_or_hard), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_any_model_has_the_same_log_z(model, labels):
    """Also where Z = 0."""
    found, wanted = cz.merge(model, labels[: model.num_variables]).solve(cz.exact), cz.exact(model)
    assert found.log_z == wanted.log_z == -np.inf or found.log_z == pytest.approx(wanted.log_z, abs=CLOSE)
    assert found.lower <= wanted.upper and wanted.lower <= found.upper
    np.testing.assert_allclose(found.marginals.flat, wanted.marginals.flat, atol=CLOSE)


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_bounds_over_blocks_hold(seed):
    model = random_model(seed)
    merged = cz.merge(model, random_labels(seed, model))
    log_z = cz.exact(model)
    before = cz.mean_field(model)
    lower = merged.solve(cz.mean_field, start=before, num_starts=0)
    assert before.lower - CLOSE <= lower.lower <= log_z.upper
    for options in ({}, {"max_iter": 1}, {"edge_weights": "optimized", "num_steps": 3}):
        upper = merged.solve(cz.trw, **options)
        assert upper.upper >= log_z.lower and upper.bound == "upper" and upper.log_z == upper.upper
    for i, j in model.pairwise:
        for estimate in (lower, merged.solve(cz.trw, tol=1e-8), merged.solve(cz.bethe)):
            np.testing.assert_allclose(estimate.pairwise_marginals[i, j].sum(axis=1), estimate.marginals[i], atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_one_block_is_exact(seed):
    model = random_model(seed, max_variables=5)
    merged = cz.merge(model, [range(model.num_variables)])
    assert len(merged.blocks) == 1 and not merged.model.num_edges
    wanted = cz.exact(model)
    for method in ("trw", "bethe", "mean_field"):
        found = merged.solve(method, **({"tol": 1e-12} if method != "mean_field" else {}))
        assert found.log_z == pytest.approx(wanted.log_z, abs=CONVERGED)
        np.testing.assert_allclose(found.marginals.flat, wanted.marginals.flat, atol=CONVERGED)
        np.testing.assert_allclose(found.pairwise_marginals.flat, wanted.pairwise_marginals.flat, atol=CONVERGED)


def test_blocks_tighten_both_bounds_on_a_torus():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=3)
    row, column = np.divmod(np.arange(36), 6)
    merged = cz.merge(model, row // 2 * 3 + column // 2)
    before = cz.mean_field(model)
    assert merged.solve(cz.mean_field, start=before).lower > before.lower + 0.1
    assert merged.solve(cz.trw).upper < cz.trw(model).upper - 1
    assert repr(merged) == "Merged(36 variables in 9 blocks of 16 joint states)"


@pytest.mark.parametrize("seed", range(8))
def test_clamping_inside_a_block_rules_out_joint_states(seed):
    model = random_model(seed)
    merged = cz.merge(model, random_labels(seed, model))
    for i in range(model.num_variables):
        lanes = cz.branches(model, [i])
        batch = merged.batch(lanes)
        block = next(k for k, members in enumerate(merged.blocks) if i in members)
        rows = slice(*merged.model.unary.start[block : block + 2])
        for b in range(lanes.num_lanes):
            state = int(np.argmax(lanes.possible[model.unary.start[i] : model.unary.start[i + 1], b]))
            allowed = merged.states[block][:, merged.blocks[block].index(i)] == state
            np.testing.assert_array_equal(batch.unary[:, b] > -np.inf, np.r_[tuple(_possible(merged, rows, allowed))])
            np.testing.assert_array_equal(batch.unary[rows, b][allowed], merged.model.unary[block][allowed])
        whole = merged.solve(cz.exact, lanes)
        np.testing.assert_allclose(whole.log_z, cz.exact(lanes).log_z, atol=CLOSE)
        np.testing.assert_allclose(whole.marginals_flat, cz.exact(lanes).marginals_flat, atol=CLOSE)


def _possible(merged, rows, allowed):
    possible = merged.model.unary.flat > -np.inf
    return possible[: rows.start], possible[rows] & allowed, possible[rows.stop :]


def test_splitting_a_block_tightens_both_bounds():
    """Theorems 2 and 4 of the paper hold for groups of states: clamping inside a block only tightens."""
    model = cz.generators.grid(4, 4, weights=(-6, 6), rng=1)
    merged = cz.merge(model, np.arange(16) // 4)
    whole = merged.solve(cz.trw, tol=1e-6)
    before = merged.solve(cz.mean_field)
    for i in (0, 5):
        lanes = cz.branches(model, [i])
        rho = whole.state.rho
        assert np.logaddexp.reduce(merged.solve(cz.trw, lanes, tol=1e-6, edge_weights=rho[:, 0]).upper) <= whole.upper + CONVERGED
        assert np.logaddexp.reduce(merged.solve(cz.mean_field, lanes, start=before).lower) >= before.lower - CONVERGED


def test_names_survive():
    model = cz.Model.from_factors(
        [2, 2, 3],
        [((0, 1), [[0.0, 1.0], [-np.inf, 2.0]]), ((1, 2), np.arange(6.0).reshape(2, 3))],
        names=["x", "y", "z"],
        state_names=[["no", "yes"], ["off", "on"], ["a", "b", "c"]],
    )
    merged = cz.merge(model, [["y", "x"]])
    assert merged.blocks == ((0, 1), (2,)) and merged.model.names == ("x+y", "z")
    assert merged.model.state_names == (("no,off", "no,on", "yes,on"), ("a", "b", "c"))
    found = merged.solve(cz.exact, evidence={"z": "b"})
    np.testing.assert_allclose(found.marginal("x"), cz.exact(model, evidence={"z": "b"}).marginal("x"), atol=CLOSE)
    clash = cz.Model([[0.0, 1.0]] * 3, names=["a", "b", "a+b"])
    assert cz.merge(clash, [["a", "b"]]).model.names is None
    unclear = cz.Model([[0.0, 1.0]] * 2, state_names=[["a", "a,b"], ["b,c", "c"]])
    assert cz.merge(unclear, [[0, 1]]).model.state_names is None


def test_ways_to_say_which():
    model = cz.generators.grid(2, 3, weights=1.0, rng=0)
    wanted = ((0, 1), (2,), (3,), (4, 5))
    for blocks in ([[5, 4], [0, 1]], [(0, 1), np.array([4, 5])], [0, 0, 1, 2, 7, 7], np.array([4, 4, 1, 2, 0, 0]), np.array([[1, 0], [5, 4]])):
        assert cz.merge(model, blocks).blocks == wanted
    alone = cz.merge(model, [])
    assert alone.model == model and alone.rounding == 0
    assert cz.merge(cz.Model([]), []).model.num_variables == 0


def test_starts_and_lanes():
    model = cz.generators.grid(4, 4, weights=(-4, 4), rng=2)
    merged = cz.merge(model, np.arange(16) // 2)
    lanes = cz.branches(model, [0, 3])
    upper = merged.solve(cz.trw, tol=1e-6)
    assert isinstance(upper.state, MergedState)
    assert merged.solve(cz.trw, start=upper, tol=1e-5).num_iter < upper.num_iter / 2
    several = merged.solve(cz.trw, lanes, start=upper)
    assert len(several) == 4 and len(merged.solve(cz.trw, lanes, start=several)) == 4
    assert len(merged.solve(cz.mean_field, lanes, start=cz.mean_field(lanes))) == 4
    assert merged.solve(cz.mean_field, start=upper.marginals.flat).bound == "lower"
    some = merged.solve(cz.trw, evidence=[{0: 1}, {}, {3: 0}])
    assert [some.take(np.array([1, 0]))[k].log_z for k in (0, 1)] == [some[1].log_z, some[0].log_z]
    joined = some.join([several])
    np.testing.assert_array_equal(joined[4].pairwise_marginals.flat, several[1].pairwise_marginals.flat)
    clamped = merged.back(cz.trw(merged.model, evidence=[{}, {0: 1}])[1])  # joint state 1: variable 0 in state 0, variable 1 in state 1
    np.testing.assert_allclose(clamped.pairwise_marginals[0, 1], [[0, 1], [0, 0]], atol=CLOSE)


def test_starts_are_products():
    model = random_model(1)
    merged = cz.merge(model, [[0, 1, 2]])
    q = cz.exact(model).marginals
    joint = merged.start(q.flat)
    weight = np.array([np.prod([q[i][a] for i, a in enumerate(row)]) for row in merged.states[0]])
    np.testing.assert_allclose(joint[: len(weight), 0], weight / weight.sum(), atol=CLOSE)
    np.testing.assert_allclose(np.add.reduceat(merged.start(np.zeros(len(q.flat))), merged.model.unary.start[:-1]), 1.0)


def test_large_potentials_widen_the_bounds():
    """|W| of 1000 and more: the rounding of adding up shows, and the bounds keep clear of it, also in lanes with potentials of their own."""
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(6), 2))
    model = cz.Model.from_binary(rng.normal(size=6), 1e9 * rng.normal(size=15), edges)
    merged = cz.merge(model, [[0, 1, 2], [3, 4, 5]])
    found, wanted = merged.solve(cz.exact), cz.exact(model)
    assert merged.rounding > 1e-7 and found.lower <= wanted.upper and wanted.lower <= found.upper
    assert found.upper - found.lower >= 2 * merged.rounding
    lanes = cz.Batch(model, 1e12 * rng.normal(size=(12, 2)))
    several, own = merged.solve(cz.exact, lanes), cz.exact(lanes)
    assert (several.lower <= own.upper).all() and (own.lower <= several.upper).all()
    assert (several.upper - several.lower > 1e-4).all()


def test_merged_models_pickle():
    merged = cz.merge(random_model(2), [[0, 1]])
    again = pickle.loads(pickle.dumps(merged))
    assert again.model == merged.model and again.solve(cz.trw).log_z == merged.solve(cz.trw).log_z


# -- partitions --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("max_states", [1, 4, 30, 10_000])
def test_partitions_keep_to_the_limit(seed, max_states):
    model = random_model(seed)
    blocks = cz.partition(model, max_states)
    assert sorted(i for block in blocks for i in block) == list(range(model.num_variables)) and blocks == cz.partition(model, max_states)
    merged = cz.merge(model, blocks)
    tied = {frozenset(pair) for pair in model.couplings[0].tolist()}
    for block, states in zip(blocks, merged.states, strict=True):
        assert len(block) == 1 or len(states) <= max_states
        reached = {block[0]}
        for _ in block:
            reached |= {j for j in block for i in reached if frozenset((i, j)) in tied}
        assert reached == set(block)


def test_partitions_follow_strength():
    """Pairs of strongly tied variables in a weakly tied cycle end up together; a weightless edge ties nothing."""
    weights = [5.0, 0.5, -6.0, 0.5, 4.0, 0.5]
    model = cz.Model.from_binary(np.zeros(7), [*weights, 0.0], [(i, (i + 1) % 6) for i in range(6)] + [(5, 6)])
    assert cz.partition(model, 4) == [[0, 1], [2, 3], [4, 5], [6]]
    assert cz.partition(model, 2**7) == [[0, 1, 2, 3, 4, 5], [6]]


def test_partitions_of_an_impossible_model_keep_to_the_limit():
    model = cz.Model([[-np.inf, -np.inf]] + [[0.0, 0.0]] * 5, {(0, i): [[0.0, 1.0], [1.0, 0.0]] for i in range(1, 6)})
    assert max(map(len, cz.partition(model, 4))) <= 3
    assert cz.merge(model, cz.partition(model, 4)).solve("trw").upper == -np.inf


def test_partitions_cut_less_than_squares():
    model = cz.generators.grid(9, 9, weights=(-6, 6), rng=0)
    row, column = np.divmod(np.arange(81), 9)
    labels = np.empty(81, dtype=int)
    for number, block in enumerate(cz.partition(model, 512)):
        labels[block] = number

    def cut(labels):
        i, j = model.edges.T
        return np.tanh(model.strength / 4)[labels[i] != labels[j]].sum()

    assert cut(labels) < cut(row // 3 * 3 + column // 3)


# -- refused ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        ([[0, 1], [1, 2]], {}, r"blocks\[1\]: variable 1 is in blocks\[0\] already"),
        ([[0, 0]], {}, r"blocks\[0\]: variable 0 is in blocks\[0\] already"),
        ([[0, 99]], {}, r"blocks\[0\]: unknown variable 99"),
        ([["a"]], {}, r"blocks\[0\]: variable 'a': this model's variables have no names"),
        (["ab"], {}, r"blocks\[0\]: expected a list of variables, found 'ab'"),
        ([0, 1], {}, r"a whole number for each of 36 variables, found 2 numbers"),
        (3, {}, r"blocks: expected lists of variables"),
        ([range(36)], {}, r"36 variables \(0, 1, 2, 3, 4, 5, \.\.\.\) has 68,719,476,736 joint states, and 65,536 are allowed.*max_states="),
        ([range(4)], {"max_states": 8}, r"16 joint states, and 8 are allowed"),
        ([range(4)], {"max_states": 0}, r"max_states: expected a whole number >= 1, found 0"),
        ([range(16), range(16, 32)], {"memory": 10**9}, r"tables between blocks, of up to 4,294,967,296 entries, need 68,\d+,\d+,\d+ bytes, and 1,000,000,000"),
        ([range(16)], {"memory": 1000}, r"the joint states need .* memory="),
    ],
)
def test_refused_blocks(blocks, options, message):
    with pytest.raises(cz.OptionError, match=message):
        cz.merge(cz.generators.grid(6, 6, weights=1.0, rng=0), blocks, **options)


def test_refused_everything_else():
    model, other = cz.generators.grid(3, 3, weights=1.0, rng=0), cz.generators.grid(4, 4, weights=1.0, rng=0)
    merged = cz.merge(model, [[0, 1, 2]])
    with pytest.raises(cz.OptionError, match="expected lanes of the model that was merged"):
        merged.batch(cz.branches(other, [0]))
    with pytest.raises(cz.OptionError, match="expected one of the merged model"):
        merged.back(cz.trw(model))
    with pytest.raises(cz.OptionError, match="start: expected an estimate of the model that was merged"):
        merged.start(cz.trw(other))
    with pytest.raises(cz.OptionError, match=r"start: .* found shape \(3,\)"):
        merged.start(np.ones(3))
    with pytest.raises(cz.OptionError, match="evidence goes with a model"):
        merged.solve("trw", cz.branches(model, [0]), evidence=[{0: 1}])
    with pytest.raises(cz.OptionError, match="unknown method 'twr'"):
        merged.solve("twr")
    with pytest.raises(cz.OptionError, match="max_states"):
        cz.partition(model, 0)
    with pytest.raises(cz.ModelError, match=r"add up to 2e\+20"):
        cz.merge(cz.Model([[0.0, 1e20]] * 2), [[0, 1]])
    hard = cz.Model([[0.0, -np.inf], [0.0, 0.0]])
    with pytest.raises(cz.ModelError, match="lane 1 allows state 1 of variable 0, which the model that was merged rules out"):
        cz.merge(hard, [[0, 1]]).batch(cz.Batch(hard, [[0, 0], [-np.inf, 0], [0, 0], [0, 0]]))
