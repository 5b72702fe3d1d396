"""The small examples of [WD16]: the lamp (Figure 1), uniform cycles and complete graphs (Figure 2) and the barbell
(Figure 3)."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz import generators

# Of TRW and Bethe, in nats: well below anything that is compared here.
TOL = 1e-7
# What a curve of Figure 2 may be off its limit at |W| = 8, in nats: cycles approach it slowest, as 1 - tanh(2)^4.
NEAR_LIMIT = 0.08
# "Almost exact" after one clamp, in nats, at |W| of 4 and more; at moderate weights the paper's curves dip by a little
# more.
ALMOST = 0.06
DIP = 0.16

CLUMP = {"X1", "X2", "X3", "X4", "X5"}
TRIANGLE = {"X6", "X7", "X8"}
WEIGHTS = (1.0, 2.0, 4.0, 6.0, 8.0)


# The paper's TRW: uniform edge weights, those of the model restricted to its branches.
UNIFORM = {"trw": {"edge_weights": "uniform"}, "bethe": {}, "mf": {}}


def names(model, method, k, select, **options):
    options |= UNIFORM[method]
    return [model.names[i] for i in cz.clamp(model, method, k=k, select=select, **options).variables]


# -- Figure 1: the lamp -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 2.0, 5.0])
def test_only_the_core_of_a_lamp_is_worth_clamping(weight):
    """X6 has the most neighbours and lies on no cycle: clamping it gains less than a variable of the core."""
    model = generators.lamp(theta=0, weights=weight)
    assert names(model, "trw", 1, "maxW0", tol=TOL) == ["X6"]
    for select in ("maxW", "Mpower", "strongCycles", "greedy"):
        assert names(model, "trw", 1, select, tol=TOL)[0] in {"X1", "X2", "X3", "X4"}
    before = cz.trw(model, tol=TOL).upper
    gain = {
        name: before - cz.clamp(model, "trw", variables=[name], tol=TOL, **UNIFORM["trw"]).upper
        for name in ("X1", "X6")
    }
    assert gain["X1"] > gain["X6"] + 1e-3


# -- Figure 3: the barbell --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [4.0, 6.0, 8.0])
@pytest.mark.parametrize("method", ["trw", "bethe", "mf"])
def test_heuristics_on_the_barbell(weight, method):
    model = generators.barbell(weight)
    for select in ("maxW", "Mpower"):
        assert set(names(model, method, 2, select)) <= CLUMP
        first, second = names(model, method, 2, f"{select}+TRE")
        assert first in TRIANGLE or second in TRIANGLE
    for select in ("frustCycles", "frustCycles+TRE"):
        assert names(model, method, 1, select)[0] in TRIANGLE


@pytest.mark.parametrize("weight", [4.0, 6.0, 8.0])
def test_greedy_begins_on_the_frustrated_cycle(weight):
    model = generators.barbell(weight)
    assert names(model, "trw", 1, "greedy", tol=TOL)[0] in TRIANGLE
    assert names(model, "trw", 1, "pseudo-greedy", tol=TOL)[0] in TRIANGLE
    assert set(names(model, "trw", 2, "optimal", tol=TOL)) & TRIANGLE


@pytest.mark.parametrize("weight", [4.0, 6.0, 8.0])
def test_entropies_pay_on_the_barbell(weight):
    """Two clamps with entropies gain more than two without: the second of those falls on what the first has settled."""
    model = generators.barbell(weight)
    with_entropy, without = (
        cz.clamp(model, "trw", k=2, select=select, **UNIFORM["trw"]) for select in ("maxW+TRE", "maxW")
    )
    assert with_entropy.upper < without.upper - 0.3
    assert without.steps[1].upper - without.steps[2].upper < 0.02


# -- Figure 2: uniform weights, no singleton potentials ---------------------------------------------------------------


GRAPHS = {
    "C3": lambda W: generators.cycle(3, theta=0, weights=W),
    "C4": lambda W: generators.cycle(4, theta=0, weights=W),
    "K3": lambda W: generators.complete(3, theta=0, weights=W),
    "K4": lambda W: generators.complete(4, theta=0, weights=W),
    "K5": lambda W: generators.complete(5, theta=0, weights=W),
}
FRUSTRATED = ("C3", "K3", "K4", "K5")  # at negative weights; C4 is balanced


def errors(graph, weight, method, **options):
    """Error of a method before and after clamping one variable."""
    model = GRAPHS[graph](weight)
    exact = cz.exact(model).log_z
    options |= UNIFORM[method] | ({} if method == "mf" else {"tol": TOL})
    result = cz.clamp(model, method, variables=[0], **options)
    assert result.steps[0].converged and result.converged
    return [step.log_z - exact for step in result.steps]


@pytest.fixture(scope="module")
def figure():
    """figure[method][graph][W]: the errors with 0 and 1 clamps."""
    every = [*(-W for W in WEIGHTS), *WEIGHTS]
    return {
        method: {graph: {W: errors(graph, W, method) for W in every} for graph in GRAPHS}
        for method in ("mf", "bethe", "trw")
    }


@pytest.mark.parametrize("graph", GRAPHS)
def test_attraction_before_clamping(figure, graph):
    """Mean field and Bethe miss one of the two heaps of probability, log 2; TRW tends to the right value."""
    for W in WEIGHTS:
        assert -math.log(2) - DIP < figure["mf"][graph][W][0] <= figure["bethe"][graph][W][0] + TOL <= 2 * TOL
        assert figure["trw"][graph][W][0] >= 0
    for method, limit in (("mf", -math.log(2)), ("bethe", -math.log(2)), ("trw", 0.0)):
        assert figure[method][graph][8.0][0] == pytest.approx(limit, abs=NEAR_LIMIT)
        assert abs(figure[method][graph][8.0][0] - limit) <= abs(figure[method][graph][4.0][0] - limit)


@pytest.mark.parametrize("graph", FRUSTRATED)
def test_frustration_before_clamping(figure, graph):
    """Bethe and TRW grow without bound, about linearly in W; mean field stays within the logarithm of the number of
    best configurations."""
    heights = {"C3": 6, "K3": 6, "K4": 6, "K5": 20}[graph]
    for method in ("bethe", "trw"):
        curve = [figure[method][graph][-W][0] for W in WEIGHTS]
        assert (np.diff(curve) > 0).all()
        assert curve[-1] - curve[-2] > 0.9 * (curve[-2] - curve[-3]) > 0.5
    for W in WEIGHTS:
        assert -math.log(heights) < figure["mf"][graph][-W][0] < 0
        assert figure["bethe"][graph][-W][0] < figure["trw"][graph][-W][0]
    slowing = [figure["mf"][graph][-W][0] for W in (4.0, 6.0, 8.0)]
    assert slowing[1] - slowing[2] < slowing[0] - slowing[1]


def test_a_cycle_has_a_closed_form(figure):
    """Bethe's error on a ring without singleton potentials is -log(1 + tanh(W/4)^n)."""
    for graph, n in (("C3", 3), ("C4", 4)):
        for W, (before, _) in figure["bethe"][graph].items():
            assert before == pytest.approx(-math.log1p(math.tanh(W / 4) ** n), abs=10 * TOL)


def test_four_in_a_ring_are_balanced(figure):
    for method in ("mf", "bethe", "trw"):
        for W in WEIGHTS:
            np.testing.assert_allclose(figure[method]["C4"][-W], figure[method]["C4"][W], atol=10 * TOL)


@pytest.mark.parametrize("method", ["mf", "bethe", "trw"])
def test_three_in_a_ring_are_complete(figure, method):
    for W, found in figure[method]["C3"].items():
        assert figure[method]["K3"][W] == found


@pytest.mark.parametrize("method", ["mf", "bethe", "trw"])
def test_one_clamp_is_almost_exact_without_frustrated_cycles(figure, method):
    """With W > 0, and on C4 with any: what one clamp leaves is nearly nothing, and vanishes at strong weights."""
    for graph in GRAPHS:
        for W in (*WEIGHTS, *((-W for W in WEIGHTS) if graph == "C4" else ())):
            before, after = figure[method][graph][W]
            assert abs(after) <= max(TOL, abs(before))
            assert abs(after) < (ALMOST if abs(W) >= 4 else DIP)
        assert abs(figure[method][graph][8.0][1]) < 0.01


def test_one_clamp_leaves_a_cycle_exact(figure):
    """A ring with a variable clamped is a chain: exact for Bethe, and for TRW with the weights of what is left,
    frustrated or not."""
    for graph in ("C3", "C4"):
        for W, (_, after) in figure["bethe"][graph].items():
            assert after == pytest.approx(0, abs=10 * TOL)
            assert errors(graph, W, "trw", reweight=True)[1] == pytest.approx(0, abs=10 * TOL)


@pytest.mark.parametrize("graph", ["K4", "K5"])
def test_one_clamp_leaves_frustrated_cycles_of_complete_graphs(figure, graph):
    for method in ("bethe", "trw"):
        curve = [figure[method][graph][-W][1] for W in WEIGHTS]
        assert (np.diff(curve) > 0).all() and curve[-1] > 1
        assert all(figure[method][graph][-W][1] < figure[method][graph][-W][0] / 1.8 for W in WEIGHTS)


@pytest.mark.parametrize("graph", GRAPHS)
def test_any_variable_does(graph):
    """The models are symmetric: it does not matter which variable is clamped."""
    for W in (-3.0, 3.0):
        model = GRAPHS[graph](W)
        for method in ("trw", "bethe"):
            options = {"tol": TOL} | UNIFORM[method]
            found = [cz.clamp(model, method, variables=[i], **options).log_z for i in range(model.num_variables)]
            np.testing.assert_allclose(found, found[0], atol=10 * TOL)
