"""Generators: the graphs they promise, the potentials they draw, and what their errors say."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import configurations, graphs

from clampz import generators
from clampz.errors import ClampzError, ModelError, OptionError
from clampz.model import Model
from clampz.model.conditioning import without_known

pytestmark = pytest.mark.nojit

FAMILIES = {
    "grid": lambda **drawing: generators.grid(3, 4, **drawing),
    "erdos_renyi": lambda **drawing: generators.erdos_renyi(12, **drawing),
    "regular": lambda **drawing: generators.regular(12, **drawing),
    "complete": lambda **drawing: generators.complete(5, **drawing),
    "cycle": lambda **drawing: generators.cycle(5, **drawing),
    "lamp": generators.lamp,
    "from_graph": lambda **drawing: generators.from_graph(3, [(2, 1), (0, 1)], **drawing),
}
family = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)


def edge_set(graph):
    return {tuple(sorted(edge)) for edge in graph.edges}


def edges_of(model):
    return set(map(tuple, model.edges.tolist()))


# -- graphs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toroidal", [True, False])
@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (3, 5), (5, 4), (1, 4), (4, 1), (1, 1)])
def test_a_grid_is_networkx_grid(rows, cols, toroidal):
    twin = nx.grid_2d_graph(rows, cols, periodic=toroidal)
    numbered = nx.relabel_nodes(twin, {(r, c): r * cols + c for r, c in twin})
    numbered.remove_edges_from(list(nx.selfloop_edges(numbered)))
    assert edges_of(generators.grid(rows, cols, toroidal=toroidal, rng=0)) == edge_set(numbered)


@pytest.mark.parametrize(("rows", "cols", "degree"), [(2, 2, 2), (2, 5, 3), (5, 2, 3), (1, 2, 1), (5, 5, 4)])
def test_a_side_of_two_is_not_wrapped(rows, cols, degree):
    """Going around it would lead to the same neighbour again, over an edge of its own weight."""
    model = generators.grid(rows, cols, theta=0, weights=3.0)
    assert set(model.topology.degrees.tolist()) == {degree}
    assert set(model.binary.W.tolist()) == {3.0}


@given(st.integers(1, 12), st.data())
def test_regular_graphs_are_simple_and_regular(n, data):
    degree = data.draw(st.integers(0, n - 1).filter(lambda d: n * d % 2 == 0))
    model = generators.regular(n, degree, rng=data.draw(st.integers(0, 10)))
    assert set(model.topology.degrees.tolist()) == {degree}


def test_regular_graphs_come_in_all_shapes():
    """The 2-regular graphs of six variables: 60 hexagons and 10 pairs of triangles."""
    found = {frozenset(edges_of(generators.regular(6, 2, rng=seed))) for seed in range(1000)}
    assert len(found) == 70


def test_erdos_renyi_has_the_degree_it_was_given_on_average():
    degrees = [2 * generators.erdos_renyi(25, 4.0, rng=seed).num_edges / 25 for seed in range(200)]
    # the mean of 200 graphs: standard deviation sqrt(2 * 4 * (1 - 4/24) / 25 / 200), times five
    assert abs(np.mean(degrees) - 4.0) < 5 * np.sqrt(2 * 4 * (1 - 4 / 24) / 25 / 200)
    assert generators.erdos_renyi(6, 5.0, rng=0).num_edges == 15
    assert generators.erdos_renyi(6, 0, rng=0).num_edges == 0
    assert generators.erdos_renyi(1, 0, rng=0).num_edges == 0


def test_erdos_renyi_reaches_every_graph():
    found = {frozenset(edges_of(generators.erdos_renyi(4, 1.5, rng=seed))) for seed in range(2000)}
    assert len(found) == 2**6


def test_complete_graphs_and_cycles():
    assert edges_of(generators.complete(6, rng=0)) == edge_set(nx.complete_graph(6))
    assert edges_of(generators.cycle(6, rng=0)) == edge_set(nx.cycle_graph(6))
    assert generators.complete(1).num_edges == 0


def test_the_lamp_is_the_papers():
    model = generators.lamp(rng=0)
    assert model.names == tuple(f"X{i}" for i in range(1, 11))
    named = {(model.names[i], model.names[j]) for i, j in model.edges}
    assert named == {
        ("X1", "X2"), ("X1", "X3"), ("X1", "X4"), ("X2", "X3"), ("X2", "X4"), ("X3", "X4"),
        ("X4", "X5"), ("X5", "X6"), ("X6", "X7"), ("X6", "X8"), ("X6", "X9"), ("X6", "X10"),
    }  # fmt: skip
    assert np.flatnonzero(model.topology.core).tolist() == [0, 1, 2, 3]
    assert model.topology.degrees.argmax() == model.variable_index("X6")


def test_the_barbell_is_the_papers():
    model = generators.barbell(weight=5.0)
    assert model.names == tuple(f"X{i}" for i in range(1, 9))
    assert (model.num_edges, model.kind) == (14, "mixed")
    assert (model.binary.theta == 0).all()
    weights = dict(zip(map(tuple, model.edges.tolist()), model.binary.W.tolist(), strict=True))
    assert {pair for pair, w in weights.items() if w == -5.0} == {(6, 7)}
    assert {pair for pair, w in weights.items() if w == 5.0} == set(weights) - {(6, 7)}
    assert {pair for pair in weights if max(pair) < 5} == edge_set(nx.complete_graph(5))
    assert {pair for pair in weights if max(pair) >= 5} == {(0, 5), (5, 6), (5, 7), (6, 7)}
    assert without_known(model, {"X7": 0}).kind != "mixed"
    assert generators.barbell(theta=(-1, 1), rng=0) == generators.barbell(theta=(-1, 1), rng=0)


# -- potentials --------------------------------------------------------------------------------------------------------


@family
@pytest.mark.parametrize(
    "drawing", [{}, {"labels": 3}, {"labels": 3, "potentials": "table"}], ids=["binary", "potts", "table"]
)
def test_a_seed_makes_the_same_model_and_another_seed_another(make, drawing):
    assert make(rng=7, **drawing) == make(rng=7, **drawing) == make(rng=np.random.default_rng(7), **drawing)
    assert make(rng=7, **drawing) != make(rng=8, **drawing)
    rng = np.random.default_rng(7)
    assert make(rng=rng, **drawing) != make(rng=rng, **drawing)
    assert make(**drawing) != make(**drawing)


@family
def test_potentials_stay_in_their_ranges(make):
    form = make(theta=(-1.0, 0.5), weights=(2.0, 3.0), rng=0).binary
    assert ((form.theta >= -1.0) & (form.theta <= 0.5)).all()
    assert ((form.W >= 2.0) & (form.W <= 3.0)).all()
    assert len(set(form.theta.tolist())) == len(form.theta)
    assert len(set(form.W.tolist())) == len(form.W)


@family
def test_numbers_are_constant_values(make):
    form = make(theta=0, weights=-1.5, rng=0).binary
    assert set(form.theta.tolist()) == {0.0}
    assert set(form.W.tolist()) == {-1.5}


@family
def test_the_paper_draws_theta_from_minus_two_to_two(make):
    assert np.abs(make(rng=0).binary.theta).max() <= 2.0


@given(graphs(), st.integers(0, 5))
def test_potts_with_two_labels_is_the_binary_form(n_and_edges, seed):
    n, edges = n_and_edges
    rng = np.random.default_rng(seed)
    theta, W = rng.uniform(-2, 2, n), rng.uniform(-6, 6, len(edges))
    assert generators.from_graph(
        n, edges, weights=(-6, 6), labels=2, potentials="potts", rng=seed
    ) == Model.from_binary(theta, W, edges)


def test_potts_couples_equal_states():
    model = generators.cycle(3, labels=4, theta=0, weights=3.0)
    for x in configurations(model):
        assert model.score(x) == 1.5 * sum(x[i] == x[j] for i, j in model.edges)
    assert model.strength.tolist() == [3.0] * 3


def test_random_tables_fill_every_entry():
    model = generators.complete(4, labels=3, weights=(-1, 2), potentials="table", rng=0)
    assert len(set(model.pairwise.flat.tolist())) == 6 * 9
    assert len(set(model.unary.flat.tolist())) == 4 * 3
    assert ((model.pairwise.flat >= -0.5) & (model.pairwise.flat <= 1.0)).all()


def test_edges_listed_twice_add_up():
    assert generators.from_graph(2, [(0, 1), (1, 0)], theta=0, weights=1.0).binary.W.tolist() == [2.0]


def test_a_large_grid_is_made_of_arrays():
    model = generators.grid(300, 300, rng=0)
    assert (model.num_variables, model.num_edges) == (90_000, 180_000)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: generators.grid(0, 3), r"rows: expected a whole number >= 1, found 0"),
        (lambda: generators.grid(3, 2.5), r"cols: expected a whole number >= 1, found 2.5"),
        (lambda: generators.complete(-1), r"n: expected a whole number >= 1, found -1"),
        (lambda: generators.complete(True), r"n: expected a whole number >= 1, found True"),
        (lambda: generators.cycle(2), r"n: expected a whole number >= 3, found 2"),
        (lambda: generators.regular(5, 3), r"expected n \* degree to be even, .* found n = 5 and degree = 3"),
        (lambda: generators.regular(4, 4), r"degree: expected a whole number from 0 to n - 1 = 3, found 4"),
        (lambda: generators.regular(4, 1.5), r"degree: expected a whole number from 0 to n - 1 = 3, found 1.5"),
        (lambda: generators.erdos_renyi(4), r"degree: expected an average degree from 0 to n - 1 = 3, found 4.0"),
        (lambda: generators.erdos_renyi(4, -1), r"degree: expected an average degree from 0 to n - 1 = 3, found -1"),
        (
            lambda: generators.complete(3, weights=(2, 1)),
            r"weights: expected a number, or a range \(low, high\) .* low <= high, found \(2, 1\)",
        ),
        (
            lambda: generators.complete(3, theta=(0, np.inf)),
            r"theta: expected a number, or a range .*, found \(0, inf\)",
        ),
        (lambda: generators.complete(3, theta=np.nan), r"theta: expected a number, or a range .*, found nan"),
        (lambda: generators.complete(3, theta="ab"), r"theta: expected a number, or a range .*, found 'ab'"),
        (lambda: generators.complete(3, theta=None), r"theta: expected a number, or a range .*, found None"),
        (
            lambda: generators.complete(3, theta=(1, 2, 3)),
            r"theta: expected a number, or a range .*, found \(1, 2, 3\)",
        ),
        (lambda: generators.complete(3, labels=1), r"labels: expected a whole number >= 2, found 1"),
        (lambda: generators.complete(3, potentials="ising"), r"potentials: expected 'potts' or 'table', found 'ising'"),
        (
            lambda: generators.complete(3, potentials="table", weights=1.0),
            r"weights: expected a range .* found 1.0: a constant table couples nothing",
        ),
        (
            lambda: generators.complete(3, rng=-1),
            r"rng: expected a whole number >= 0, a numpy Generator or None, found -1",
        ),
        (
            lambda: generators.complete(3, rng="seed"),
            r"rng: expected a whole number >= 0, a numpy Generator or None, found 'seed'",
        ),
        (lambda: generators.barbell(weight=np.inf), r"weight: expected a finite number, found inf"),
        (lambda: generators.from_graph(2, [(0, 2)]), r"edges\[0\] = \(0, 2\): expected variables from 0 to 1"),
        (lambda: generators.from_graph(2, [(1, 1)]), r"edge \(1, 1\): a variable cannot have an edge to itself"),
    ],
)
def test_errors_say_what_was_expected_and_found(build, message):
    with pytest.raises(ClampzError, match=message) as raised:
        build()
    assert isinstance(raised.value, OptionError | ModelError)
