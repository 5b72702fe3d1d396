"""Every heuristic against its slow twin, the paper's examples, symmetries, ties, fallbacks and refusals."""

import itertools
import json
import subprocess
import sys

import naive
import numpy as np
import pytest
from random_models import random_tables, relabelled
from selector_models import WEIGHTS, random_model

from clampz import generators
from clampz.approximations.trw import trw
from clampz.clamping.clamp import clamp
from clampz.clamping.selectors import choose, scores, scores_of_all, scoring, selectors, singleton_entropies
from clampz.clamping.selectors.edge_strength import MAX_TANH, Remaining
from clampz.errors import EvidenceError, OptionError
from clampz.model import Model
from clampz.model.conditioning import without_known
from clampz.runtime.budget import UNLIMITED

EXACT = 1e-12
PLAIN = ["maxW0", "maxW", "Mpower", "frustCycles", "strongCycles"]


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
def test_clamping_scores_as_the_model_without_the_variables():
    rng = np.random.default_rng(5)
    for _ in range(30):
        model, _ = random_model(rng, "moderate")
        clamped = rng.choice(model.num_variables, size=3, replace=False)
        smaller = without_known(model, dict.fromkeys(clamped.tolist(), 0))
        free = np.delete(np.arange(model.num_variables), clamped)
        for name in PLAIN:
            found = scores(model, name, clamped=clamped)
            np.testing.assert_allclose(found[free], scores(smaller, name), rtol=EXACT)
            assert (found[clamped] == 0).all()


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


def test_the_graph_is_built_once_for_all_heuristics(monkeypatch):
    built = []
    build = Remaining.of.__func__

    def counted(cls, *given, core, **others):
        built.append(core)
        return build(cls, *given, core=core, **others)

    monkeypatch.setattr(Remaining, "of", classmethod(counted))
    model = generators.grid(4, 4, weights=(-4, 4), rng=0)
    result = clamp(model, "mf", k=5, select="pseudo-greedy")
    assert not any(step.note for step in result.steps)
    assert sorted(built) == 5 * [False] + 5 * [True]


def test_scores_of_all_are_those_of_each():
    model = generators.grid(3, 3, rng=0)
    entropy = np.linspace(0.1, 0.6, 9)
    for name, found in scores_of_all(model, list(selectors()), clamped=[4], entropy=entropy, budget=UNLIMITED).items():
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


@pytest.mark.parametrize("name", scoring.SELECTORS)
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
    with pytest.raises(EvidenceError, match="clamped: expected a list of variables, by index or name, found 'X1'"):
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


SCRIPT = """
import json
import clampz as cz
from clampz._kernels import graph
from clampz._kernels.clamping import cycles
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


def test_scores_by_several_selectors_are_those_of_each():
    model = generators.grid(3, 3, rng=0)
    found = scores(model)
    assert list(found) == list(selectors())
    for name, values in found.items():
        np.testing.assert_array_equal(values, scores(model, name))
    some = scores(model, ["maxW", "Mpower+TRE"], clamped=[4], entropy=np.ones(9))
    assert list(some) == ["maxW", "Mpower+TRE"] and some["maxW"][4] == 0.0
    assert repr(some) == "Scores(9 variables by maxW, Mpower+TRE)"


def test_all_selectors_are_those_that_are_defined():
    labels = generators.cycle(4, labels=3, potentials="table", rng=0)
    assert not {name for name in scores(labels) if "Cycles" in name} and "Mpower+TRE" in scores(labels)
    assert not any(name.endswith("+TRE") for name in scores(labels, clamped=[1]))
