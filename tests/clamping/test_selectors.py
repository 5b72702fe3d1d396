"""Selectors: each heuristic against its slow twin, the paper's examples, symmetries, ties, fallbacks and refusals."""

import itertools
import json
import math
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

import naive
from clampz import generators
from clampz._kernels import cycles as kernels
from clampz._kernels import graph as graphs
from clampz.approximations.trw import trw
from clampz.clamping.growth import clamp
from clampz.clamping.selectors import choose, registry, scores, scores_of_all, selectors, singleton_entropies
from clampz.clamping.selectors import cycles as cycle_scores
from clampz.clamping.selectors.strength import MAX_TANH, Remaining, _all_walks, _short_walks, m_power
from clampz.errors import EvidenceError, ModelError, OptionError
from clampz.model import Model
from random_models import random_edges, random_tables, relabelled, tree_edges

EXACT = 1e-12
PLAIN = ["maxW0", "maxW", "Mpower", "frustCycles", "strongCycles"]
CYCLES = ["frustCycles", "strongCycles"]

# How the weights of a random model are drawn; digits that the twin needs to see 1 - tanh of the strongest.
WEIGHTS = {
    "moderate": (lambda rng, m: rng.uniform(-6, 6, m), 60),
    "attractive": (lambda rng, m: rng.uniform(0, 3, m), 60),
    "equal": (lambda rng, m: rng.choice([-2.0, 2.0], m), 60),
    "weak": (lambda rng, m: rng.uniform(-1e-3, 1e-3, m), 60),
    "very weak": (lambda rng, m: rng.choice([-1, 1], m) * 10.0 ** rng.uniform(-12, -8, m), 120),
    "strong": (lambda rng, m: rng.choice([-1000.0, 1000.0], m), 260),
    "any": (lambda rng, m: rng.choice([-1, 1], m) * 10.0 ** rng.uniform(-6, 3, m), 300),
    "beyond underflow": (
        lambda rng, m: rng.choice([-1, 1], m) * rng.choice([5.0, 1400.0, 1500.0, 2001.0, 3000.0], m),
        700,
    ),
}


def random_model(rng, weights):
    """Up to three parts of up to seven variables, trees hanging from them, some weights zero, in any order."""
    edges, n = [], 0
    for _ in range(rng.integers(1, 4)):
        size = int(rng.integers(1, 8))
        edges += [(n + i, n + j) for i, j in random_edges(rng, size, rng.uniform(0.2, 1.0))]
        n += size
    for i, j in tree_edges(rng, int(rng.integers(1, 5))):
        edges.append((i if i else int(rng.integers(n)), n + j))
    n += 5
    W = WEIGHTS[weights][0](rng, len(edges))
    W[rng.random(len(edges)) < 0.1] = 0.0
    place = rng.permutation(n)
    clamped = rng.choice(n, size=int(rng.integers(0, 3)), replace=False).tolist()
    return Model.from_binary(rng.normal(size=n), W, place[np.array(edges, dtype=np.int64).reshape(-1, 2)]), clamped


@pytest.mark.nojit
@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_heuristic_equals_its_twin(weights):
    rng = np.random.default_rng(sum(map(ord, weights)))
    num_cycles = 0
    for _ in range(60):
        model, clamped = random_model(rng, weights)
        frustrated, signed, absolute = naive.naive_cycle_scores(model, clamped, WEIGHTS[weights][1])
        num_cycles += sum(a > 0 for a in absolute)
        np.testing.assert_allclose(
            scores(model, "maxW0", clamped=clamped), naive.naive_max_w(model, clamped, core=False), rtol=EXACT, atol=0
        )
        np.testing.assert_allclose(
            scores(model, "maxW", clamped=clamped), naive.naive_max_w(model, clamped), rtol=EXACT, atol=0
        )
        np.testing.assert_allclose(
            scores(model, "Mpower", clamped=clamped), naive.naive_m_power(model, clamped, MAX_TANH), rtol=1e-6, atol=0
        )
        np.testing.assert_allclose(scores(model, "frustCycles", clamped=clamped), frustrated, rtol=EXACT, atol=1e-300)
        # signs cancel in this one by definition: rounding is measured against what was added up
        assert (np.abs(scores(model, "strongCycles", clamped=clamped) - signed) <= EXACT * np.array(absolute)).all()
    assert num_cycles > 100


@pytest.mark.nojit
def test_m_power_loses_nothing_to_cancellation():
    """Away from saturation its digits are all right, also where the definition's two terms agree to most of theirs."""
    rng = np.random.default_rng(3)
    for weights in ("moderate", "weak", "very weak", "attractive"):
        for _ in range(30):
            model, clamped = random_model(rng, weights)
            np.testing.assert_allclose(
                scores(model, "Mpower", clamped=clamped), naive.naive_m_power(model, clamped), rtol=1e-11, atol=0
            )


@pytest.mark.nojit
def test_clamping_scores_as_the_model_without_the_variables():
    rng = np.random.default_rng(5)
    for _ in range(30):
        model, _ = random_model(rng, "moderate")
        clamped = rng.choice(model.num_variables, size=3, replace=False)
        smaller = model.condition(dict.fromkeys(clamped.tolist(), 0))
        free = np.delete(np.arange(model.num_variables), clamped)
        for name in PLAIN:
            found = scores(model, name, clamped=clamped)
            np.testing.assert_allclose(found[free], scores(smaller, name), rtol=EXACT)
            assert (found[clamped] == 0).all()


# -- large graphs ----------------------------------------------------------------------------------------------------


def slow_cycle_scores(model):
    """frustCycles by walking every cycle in networkx's rooted maximum spanning tree; sums by fsum."""
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (int(i), int(j), float(w)) for (i, j), w in zip(model.edges, model.pair_form.W, strict=True)
    )
    tree = nx.maximum_spanning_tree(
        nx.Graph((i, j, {"weight": abs(d["weight"])}) for i, j, d in graph.edges(data=True))
    )
    parent, depth = {}, {}
    for root in (min(part) for part in nx.connected_components(tree)):
        depth[root] = 0
        for i, j in nx.bfs_edges(tree, root):
            parent[j], depth[j] = i, depth[i] + 1
    added = {i: [] for i in graph}
    for i, j, data in graph.edges(data=True):
        if tree.has_edge(i, j):
            continue
        visited, used, u, v = {i, j}, [data["weight"]], i, j
        while u != v:
            if depth[u] < depth[v]:
                u, v = v, u
            used.append(graph[u][parent[u]]["weight"])
            u = parent[u]
            visited.add(u)
        if math.prod(np.sign(used)) < 0:
            t = math.fsum(-math.log(math.tanh(abs(W) / 4)) for W in used)
            for k in visited:
                added[k].append(math.log1p(-math.exp(-t)))
    return [abs(math.fsum(added.get(i, []))) for i in range(model.num_variables)]


@pytest.mark.parametrize(
    "model",
    [
        generators.grid(25, 25, weights=(-6, 6), rng=1),
        generators.erdos_renyi(600, 3.0, weights=(-3, 3), rng=2),
        generators.from_graph(
            500, [(i, i + 1) for i in range(499)] + [(i, i + 37) for i in range(0, 463, 3)], weights=(-9, 9), rng=3
        ),  # deep trees
    ],
    ids=["grid", "erdos_renyi", "ladder"],
)
def test_cycles_of_larger_graphs(model):
    core = model.topology.core
    expected = np.where(core, slow_cycle_scores(model), 0.0)
    np.testing.assert_allclose(scores(model, "frustCycles"), expected, rtol=1e-10, atol=0)


def test_paths_of_a_deep_forest():
    """Sums along, and scores added to, paths of two long trees, against walking them."""
    rng = np.random.default_rng(0)
    n = 700
    edges = np.array([(i, i + 1 + int(rng.integers(3))) for i in range(n - 4)] + [(n - 4, n - 3)], dtype=np.int32)
    # child i + something may have several parents: keep a forest
    edges = edges[graphs.spanning_forest(n, edges.copy(), np.arange(len(edges))).astype(bool)]
    tree = nx.Graph()
    tree.add_nodes_from(range(n))
    tree.add_edges_from(edges.tolist())
    cost = 10.0 ** rng.uniform(-12, 2, len(edges))
    cost_of = {tuple(sorted(pair)): c for pair, c in zip(edges.tolist(), cost, strict=True)}
    pairs = [(i, j) for i, j in rng.integers(0, n, (400, 2)) if nx.has_path(tree, i, j)]
    assert len(pairs) > 50
    walks = [nx.shortest_path(tree, i, j) for i, j in pairs]
    forest = kernels.root_forest(*graphs.neighbour_lists(n, edges))
    assert forest.depth.max() > 60
    paths = np.array(pairs, dtype=np.int32)
    sums = [math.fsum(cost_of[tuple(sorted(step))] for step in itertools.pairwise(walk)) for walk in walks]
    np.testing.assert_allclose(kernels.path_sums(forest, paths, cost, False), sums, rtol=1e-13)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            kernels.path_sums(forest, paths, np.log(cost), True), np.log(sums), rtol=1e-12, atol=1e-12
        )
    score = 10.0 ** rng.uniform(-12, 2, len(paths))
    added = np.zeros(n)
    for walk, s in zip(walks, score, strict=True):
        added[walk] += s
    np.testing.assert_allclose(kernels.add_along_paths(forest, paths, score), added, rtol=1e-13)


def test_jumps_are_few():
    """A path of n edges is cut into at most about 2 log2 n pieces, wherever it begins and ends."""
    n = 5000
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)
    forest = kernels.root_forest(*graphs.neighbour_lists(n, chain))
    for low, high in np.sort(np.random.default_rng(0).integers(0, n, (200, 2)), axis=1):
        steps = 0
        while high > low:
            high = forest.jump[high] if forest.jump[high] >= low else forest.parent[high]
            steps += 1
        assert steps <= 2 * math.log2(n) + 2


@pytest.mark.parametrize(
    "model",
    [generators.grid(13, 11, rng=0), generators.erdos_renyi(150, 5.0, rng=1), generators.regular(200, 3, rng=2)],
    ids=repr,
)
def test_short_walks_are_the_first_powers(model):
    graph = Remaining.of(model, np.ones(model.num_variables, dtype=bool), core=True)
    n = graph.num_variables
    weight = np.tanh(graph.strength / 4) / (n - 1)
    M = np.zeros((n, n))
    M[graph.edges[:, 0], graph.edges[:, 1]] = weight
    M += M.T
    s = np.diagonal(M @ M)
    powers = [np.diagonal(np.linalg.matrix_power(M, k)) for k in range(7)]
    short = _short_walks(n, graph.edges, weight)
    # walks of 3 to 6 edges, and whatever of 7 and more comes with them
    first = powers[3] + powers[4] + powers[5] + powers[6] - s**2 - s**3
    np.testing.assert_allclose(short, first, rtol=1e-4)
    every = _all_walks(n, graph.edges, weight)
    assert (short <= every * (1 + 1e-9)).all()
    np.testing.assert_allclose(short, every, rtol=2e-3)


def test_long_walks_are_left_out_where_they_take_too_long(monkeypatch):
    model = generators.grid(25, 25, rng=0)
    before = scores(model, "Mpower")
    monkeypatch.setattr("clampz.clamping.selectors.strength.MAX_STEPS", 1.0)
    after = scores(model, "Mpower")
    assert (after < before).all()
    np.testing.assert_allclose(after, before, rtol=1e-3)


def test_dense_graphs_beyond_the_dense_limit_are_summed_to_the_end():
    model = generators.complete(510, weights=(0, 4), rng=0)
    graph = Remaining.of(model, np.ones(510, dtype=bool), core=True)
    every = _all_walks(510, graph.edges, np.tanh(graph.strength / 4) / 509)
    np.testing.assert_allclose(m_power(graph), every, rtol=1e-12)


# -- the paper's examples --------------------------------------------------------------------------------------------


def averaged_entropies(model, clamped):
    evidence = [dict(zip(clamped, states, strict=True)) for states in itertools.product((0, 1), repeat=len(clamped))]
    return singleton_entropies(trw(model, evidence=evidence))


def sequence(model, selector, length):
    """Names of the variables that a selector clamps one after another, in one sequence shared by all branches."""
    clamped = []
    for _ in range(length):
        entropy = averaged_entropies(model, clamped) if selector.endswith("+TRE") else None
        clamped.append(
            model.names[
                choose(model, scores(model, selector, clamped=clamped, entropy=entropy), clamped=clamped).variable
            ]
        )
    return clamped


def test_lamp():
    """Figure 1: the variable with most neighbours lies on no cycle, and stripping to the core sees it."""
    model = generators.lamp(theta=0, weights=2.0)
    assert sequence(model, "maxW0", 1) == ["X6"]
    for name in ("maxW", "Mpower", "strongCycles"):
        assert sequence(model, name, 1)[0] in {"X1", "X2", "X3", "X4"}
    mixed = generators.lamp(theta=0, weights=(-2, 2), rng=4)
    assert set(np.flatnonzero(scores(mixed, "maxW"))) == {0, 1, 2, 3}


@pytest.mark.parametrize("weight", [4.0, 6.0, 8.0])
def test_barbell(weight):
    """Figure 3: maxW and Mpower stay in the clump X1 to X5, where the first clamp has fixed all; with entropies they
    leave it."""
    model = generators.barbell(weight)
    clump, triangle = {"X1", "X2", "X3", "X4", "X5"}, {"X6", "X7", "X8"}
    for name in ("maxW", "Mpower"):
        assert set(sequence(model, name, 2)) <= clump
        assert sequence(model, f"{name}+TRE", 2)[1] in triangle or sequence(model, f"{name}+TRE", 1)[0] in triangle
    for name in ("frustCycles", "frustCycles+TRE"):
        assert sequence(model, name, 1)[0] in triangle
    assert set(np.flatnonzero(scores(model, "frustCycles"))) == {5, 6, 7}


# -- symmetries ------------------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("name", PLAIN)
def test_flipping_changes_no_score(name):
    rng = np.random.default_rng(11)
    for weights in ("moderate", "equal", "strong"):
        for _ in range(10):
            model, clamped = random_model(rng, weights)
            flipped = model.flip(rng.random(model.num_variables) < 0.5)
            np.testing.assert_allclose(
                scores(flipped, name, clamped=clamped), scores(model, name, clamped=clamped), rtol=EXACT, atol=0
            )


@pytest.mark.nojit
@pytest.mark.parametrize("name", PLAIN)
def test_tables_that_mean_the_same_score_the_same(name):
    """Equal weights stay equal when rounding has touched them."""
    rng = np.random.default_rng(12)
    for _ in range(20):
        model, _ = random_model(rng, "equal")
        noisy = {}
        for pair, table in model.pairwise.items():
            noisy[pair] = table + rng.normal(size=(2, 1)) + rng.normal(size=(1, 2)) if table.any() else table
        twin = Model(list(model.unary), noisy)
        np.testing.assert_allclose(scores(twin, name), scores(model, name), rtol=1e-11, atol=1e-11)


@pytest.mark.nojit
@pytest.mark.parametrize("name", PLAIN)
def test_relabelling_permutes_the_scores(name):
    rng = np.random.default_rng(13)
    for _ in range(20):
        model, _ = random_model(rng, "moderate")  # no two weights are equal, so that the spanning tree is the same
        order = rng.permutation(model.num_variables)
        np.testing.assert_allclose(
            scores(relabelled(model, order), name), scores(model, name)[order], rtol=1e-11, atol=1e-13
        )


# -- entropies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_tre_multiplies_by_the_entropy(name):
    model = generators.grid(4, 4, rng=0)
    plain = scores(model, name)
    given = np.random.default_rng(0).random(16)
    np.testing.assert_array_equal(scores(model, f"{name}+TRE", entropy=given), plain * given)
    np.testing.assert_array_equal(scores(model, name, entropy=given), plain)
    np.testing.assert_allclose(scores(model, f"{name}+TRE"), plain * singleton_entropies(trw(model)), rtol=1e-3)
    np.testing.assert_array_equal(
        scores(model, f"{name}+TRE", clamped=[3], entropy=given), scores(model, name, clamped=[3]) * given
    )


def test_entropies_are_averaged_with_the_weights_of_the_branches():
    model = generators.grid(3, 3, rng=0)
    estimates = trw(model, evidence=[{4: 0}, {4: 1}])
    weight = np.exp(estimates.log_z - estimates.log_z.max())
    weight /= weight.sum()
    expected = sum(
        w * np.array([naive.entropy(table) for table in estimate.marginals])
        for w, estimate in zip(weight, estimates, strict=True)
    )
    found = singleton_entropies(estimates)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert found[4] == 0


def test_entropies_of_any_labels():
    model = Model([np.zeros(3), np.zeros(2), np.zeros(4)])
    np.testing.assert_allclose(singleton_entropies(trw(model)), np.log([3, 2, 4]), rtol=1e-9)


# -- choosing --------------------------------------------------------------------------------------------------------


def test_the_graph_is_built_once_for_all_heuristics(monkeypatch):
    built = []
    build = Remaining.of.__func__
    monkeypatch.setattr(
        Remaining, "of", classmethod(lambda cls, *given, core: built.append(core) or build(cls, *given, core=core))
    )
    model = generators.grid(4, 4, weights=(-4, 4), rng=0)
    result = clamp(model, "mf", k=5, select="pseudo-greedy")
    assert not any(step.note for step in result.steps)
    assert sorted(built) == 5 * [False] + 5 * [True]


def test_scores_of_all_are_those_of_each():
    model = generators.grid(3, 3, rng=0)
    entropy = np.linspace(0.1, 0.6, 9)
    for name, found in scores_of_all(model, list(selectors()), clamped=[4], entropy=entropy).items():
        np.testing.assert_array_equal(found, scores(model, name, clamped=[4], entropy=entropy))


def test_ties_go_to_the_first():
    model = generators.cycle(6, theta=0, weights=1.0)
    assert choose(model, [0.0, 3.0, 3.0 * (1 + 1e-14), 3.0 * (1 - 1e-14), 0.0, 0.0]).variable == 1
    assert choose(model, [0.0, 3.0, 3.0 * (1 + 1e-9), 0.0, 0.0, 0.0]).variable == 2
    assert choose(model, [9.0, 3.0, 3.0, 0.0, 0.0, 0.0], clamped=[0, 1]).variable == 2
    for name in PLAIN[:3]:
        assert choose(model, scores(model, name)).variable == 0
    assert choose(model, scores(model, "frustCycles")).note


@pytest.mark.parametrize("n", [3, 4, 7])
@pytest.mark.parametrize("weight", [0.1, 6.0, 50.0, 1000.0, -1000.0])
@pytest.mark.parametrize("name", ["maxW", "Mpower"])
def test_ties_of_symmetric_models(n, weight, name):
    model = generators.complete(n, theta=0, weights=weight)
    found = scores(model, name)
    assert np.isfinite(found).all() and (found > 0).all()
    assert choose(model, found).variable == 0


@pytest.mark.nojit
def test_without_a_positive_score_the_choice_falls_back():
    tree = Model.from_binary(np.zeros(4), [1.0, -2.0, 0.0], [(0, 1), (1, 2), (2, 3)])
    choice = choose(tree, scores(tree, "maxW"))
    assert choice.variable == 1 and choice.score == 3.0 and "maxW0" in choice.note
    assert choose(tree, scores(tree, "maxW", clamped=[1]), clamped=[1]).variable == 0
    assert choose(tree, scores(tree, "maxW"), entropy=[0.6, 0.1, 0.6, 0.6]).variable == 2
    loose = Model([np.zeros(2), np.zeros(3), np.array([0.0, -np.inf, -np.inf, -np.inf]), np.zeros(3)])
    choice = choose(loose, scores(loose, "maxW0"))
    assert choice.variable == 1 and choice.score == 0.0 and "states" in choice.note
    choice = choose(loose, scores(loose, "maxW0"), entropy=[0.7, 0.5, 0.0, 1.0])
    assert choice.variable == 3 and "entropy" in choice.note
    assert choose(loose, scores(loose, "maxW0"), clamped=[1, 3]).variable == 0
    assert choose(loose, scores(loose, "maxW0"), clamped=[0, 1, 3]).variable == 2


@pytest.mark.nojit
def test_no_frustrated_cycle_scores_nothing():
    model = generators.grid(3, 3, weights=(0, 3), rng=0)
    assert (scores(model, "frustCycles") == 0).all()
    assert (scores(model, "strongCycles") > 0).all()
    assert "maxW0" in choose(model, scores(model, "frustCycles")).note


@pytest.mark.nojit
def test_a_variable_with_one_possible_state_is_clamped_already():
    model = Model(
        [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, -np.inf]],
        {pair: [[1.0, 0.0], [0.0, 1.0]] for pair in itertools.combinations(range(4), 2)},
    )
    for name in PLAIN:
        np.testing.assert_allclose(scores(model, name), scores(model, name, clamped=[3]))
        assert scores(model, name)[3] == 0


@pytest.mark.nojit
@pytest.mark.parametrize("name", PLAIN)
def test_small_models(name):
    for model in (
        Model([[0.0, 1.0]]),
        Model(np.zeros((3, 2)), {(0, 1): np.eye(2)}),
        Model(np.zeros((3, 2)), {(0, 1): np.ones((2, 2))}),
    ):
        found = scores(model, name)
        assert found.shape == (model.num_variables,) and np.isfinite(found).all()
        assert 0 <= choose(model, found).variable < model.num_variables
        assert (scores(model, name, clamped=range(model.num_variables)) == 0).all()


# -- contracts and refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.SELECTORS)
def test_every_selector_keeps_the_contract(name):
    model = generators.erdos_renyi(30, 3.0, rng=5)
    found = scores(model, name)
    assert found.shape == (30,) and found.dtype == np.float64 and (found >= 0).all() and found.max() > 0
    assert not name.startswith("maxW0") or (found[model.topology.degrees > 0] > 0).all()
    if not name.startswith("maxW0"):
        assert (found[~model.topology.core] == 0).all()
    assert selectors()[name]
    np.testing.assert_array_equal(found, scores(model, name))


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["maxW0", "maxW", "Mpower"])
def test_strength_selectors_take_any_model(name):
    rng = np.random.default_rng(0)
    model = random_tables(rng, [2, 3, 4, 2, 3], [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], zeros=0.2)
    found = scores(model, name)
    assert np.isfinite(found).all() and found[2] > 0
    if name != "Mpower":
        np.testing.assert_allclose(found, naive.naive_max_w(model, core=name == "maxW"), rtol=EXACT)
    else:
        np.testing.assert_allclose(found, naive.naive_m_power(model, max_tanh=MAX_TANH), rtol=1e-6)


@pytest.mark.nojit
@pytest.mark.parametrize("name", CYCLES)
def test_cycle_selectors_refuse_what_has_no_sign(name):
    triangle = [(0, 1), (1, 2), (0, 2)]
    for model in (
        generators.cycle(4, labels=3, rng=0),
        Model(np.zeros((3, 2)), {pair: [[0.0, -np.inf], [0.0, 0.0]] for pair in triangle}),
    ):
        with pytest.raises(ModelError, match="defined for binary models with finite pairwise potentials"):
            scores(model, name)


@pytest.mark.nojit
def test_refusals():
    model = generators.barbell()
    with pytest.raises(OptionError, match="unknown selector 'frustcycles'; did you mean 'frustCycles'"):
        scores(model, "frustcycles")
    with pytest.raises(OptionError, match=r"unknown selector 'zzz'. The selectors are maxW0, maxW, Mpower"):
        scores(model, "zzz")
    with pytest.raises(OptionError, match="maxW\\+TRE with clamped variables: expected `entropy`"):
        scores(model, "maxW+TRE", clamped=["X1"])
    with pytest.raises(OptionError, match=r"entropy: expected a number per variable, shape \(8,\), found shape \(3,\)"):
        scores(model, "maxW+TRE", entropy=np.ones(3))
    with pytest.raises(OptionError, match="entropy of variable 2: expected a number of nats >= 0, found nan"):
        scores(model, "maxW+TRE", entropy=[1, 1, np.nan, 1, 1, 1, 1, 1])
    with pytest.raises(OptionError, match="entropy: expected a number per variable"):
        scores(model, "maxW+TRE", entropy="high")
    with pytest.raises(EvidenceError, match="unknown variable 'X9'"):
        scores(model, "maxW", clamped=["X9"])
    with pytest.raises(OptionError, match="clamped: expected a collection of variables, found the string 'X1'"):
        scores(model, "maxW", clamped="X1")
    with pytest.raises(OptionError, match="found all 8 clamped"):
        choose(model, np.ones(8), clamped=range(8))
    with pytest.raises(OptionError, match=r"scores: expected a number per variable, shape \(8,\)"):
        choose(model, np.ones(7))
    with pytest.raises(OptionError, match="score of variable 1: expected a number, found nan"):
        choose(model, [1, np.nan, 1, 1, 1, 1, 1, 1])


def test_names_and_indices_are_the_same_variables():
    model = generators.barbell()
    np.testing.assert_array_equal(
        scores(model, "maxW", clamped=["X1", "X6"]), scores(model, "maxW", clamped=np.array([0, 5]))
    )


# -- compilation -----------------------------------------------------------------------------------------------------

SCRIPT = """
import json
import clampz as cz
from clampz._kernels import cycles, graph
from clampz.clamping.selectors import scores, selectors

large = cz.generators.grid(25, 25, rng=0)
saturated = cz.generators.grid(4, 4, weights=(-9000, 9000), rng=0)
for model in (large, saturated, cz.generators.lamp(rng=0), cz.generators.barbell(), cz.Model([[0.0, 1.0]])):
    model.kind
    model.topology
    for name in selectors():
        scores(model, name)
        if "TRE" not in name:
            scores(model, name, clamped=[0])
kernels = [value for module in (cycles, graph) for value in vars(module).values() if hasattr(value, "signatures")]
print(json.dumps({kernel.__name__: [str(s) for s in kernel.signatures] for kernel in kernels}))
"""


def test_every_kernel_is_compiled_once():
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    several = {name: signatures for name, signatures in found.items() if len(signatures) > 1}
    assert not several
    assert all(found[name] for name in ("root_forest", "parities", "path_sums", "add_along_paths", "closed_walks"))


def test_costs_keep_their_digits():
    """-log tanh(w / 4) where it is tiny, and where it is large."""
    np.testing.assert_allclose(
        cycle_scores._cost(np.array([1000.0, 1e-9])), [2 * math.exp(-500.0), -math.log(0.25e-9)], rtol=1e-14
    )
    assert cycle_scores._cost(np.array([5e-324]))[0] > 700
