"""Other libraries' models: there and back, their own log Z and marginals, and what is refused.  Tests of a library that
is not installed are skipped."""

import importlib
import itertools
import logging
import sys
import warnings

import numpy as np
import pytest
from random_models import random_binary, random_edges, random_tables

import clampz as cz

CLOSE = 1e-9
NUM_MODELS = 12
# Its modules are loaded one by one as they are used; made an error, what Python says of the older ones' types would
# crash the process.
pyagrum_test = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")


def installed(module):
    """A library, or a skip; what it warns of while it is imported is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module)


@pytest.fixture
def dimod():
    return installed("dimod")


@pytest.fixture
def nx():
    return installed("networkx")


@pytest.fixture
def pgmpy():
    installed("pgmpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models, factors, inference = (
            importlib.import_module(f"pgmpy.{part}") for part in ("models", "factors.discrete", "inference")
        )
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    return type("pgmpy", (), {"models": models, "factors": factors, "inference": inference})


@pytest.fixture
def gum():
    return installed("pyagrum")


def named(model):
    """The same model with names that sort otherwise than the indices."""
    names = [f"{'zyxwvutsrq'[i]} {i}" for i in range(model.num_variables)]
    states = [[f"{name[0].upper()}{a}" for a in range(k)] for name, k in zip(names, model.num_states, strict=True)]
    factors = [*(((i, j), table) for (i, j), table in model.pairwise.items()), *model.factors]
    return cz.Model(list(model.unary), factors=factors, constant=model.constant, names=names, state_names=states)


def random_larger(rng, zeros=0.0):
    """Factors of one to four variables, of two to three states."""
    num_states = rng.integers(2, 4, size=5)
    factors = []
    for size in [1, 2, 2, 3, 3, 4]:
        scope = tuple(rng.permutation(5)[:size].tolist())
        table = rng.normal(size=num_states[list(scope)])
        table[(rng.random(table.shape) < zeros) & (np.arange(table.size).reshape(table.shape) > 0)] = -np.inf
        factors.append((scope, table))
    return cz.Model.from_factors(num_states, factors, constant=0.7)


def random_model(seed):
    """Binary, of more labels, with larger factors, with zeros: one kind after the other."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 6, 0.5)
    kinds = [
        lambda: random_binary(rng, 6, edges),
        lambda: random_tables(rng, rng.integers(1, 4, size=6), edges, zeros=0.2),
        lambda: random_larger(rng),
        lambda: random_larger(rng, zeros=0.2),
    ]
    return named(kinds[seed % 4]())


def configurations(model):
    return itertools.product(*map(range, model.num_states))


def assert_same(model, other, order=None):
    """The same names and scores, the variables of the other perhaps in another order."""
    place = [other.variable_index(name) for name in model.names] if model.names else range(model.num_variables)
    assert model.state_names is None or tuple(other.state_names[i] for i in place) == model.state_names
    assert other.num_variables == model.num_variables
    for x in configurations(model):
        y = np.empty(len(x), dtype=int)
        y[list(place)] = x
        assert other.score(y) == pytest.approx(model.score(x), abs=CLOSE)


# -- dimod -------------------------------------------------------------------------------------------------------------


def random_bqm(dimod, seed, vartype):
    rng = np.random.default_rng(seed)
    labels = [(0, 1), "b", 7, ("a", "b"), "e"]
    linear = {label: float(rng.normal()) for label in labels}
    quadratic = {pair: float(rng.normal()) for pair in itertools.combinations(labels, 2) if rng.random() < 0.7}
    return dimod.BinaryQuadraticModel(linear, quadratic, float(rng.normal()), vartype)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("beta", [1.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_dimod_energies_and_log_z(dimod, vartype, beta, seed):
    bqm = random_bqm(dimod, seed, vartype)
    model = cz.from_dimod(bqm, beta)
    sampled = dimod.ExactSolver().sample(bqm)
    for sample, energy in sampled.data(["sample", "energy"]):
        assert model.score({str(label): int(value) for label, value in sample.items()}) == pytest.approx(
            -beta * energy, abs=CLOSE
        )
    estimate = cz.exact(model)
    weights = np.exp(-beta * sampled.record.energy)
    assert estimate.log_z == pytest.approx(np.log(weights.sum()), abs=CLOSE)
    for label, column in zip(sampled.variables, sampled.record.sample.T, strict=True):
        assert estimate.marginal(str(label))[1] == pytest.approx(weights[column > 0].sum() / weights.sum(), abs=CLOSE)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_dimod_there_and_back(dimod, vartype):
    bqm = random_bqm(dimod, 3, vartype)
    bqm.relabel_variables({label: str(label) for label in bqm.variables})
    back = cz.to_dimod(cz.from_dimod(bqm))
    assert back.vartype is bqm.vartype and list(back.variables) == list(bqm.variables)
    assert back.is_almost_equal(bqm, places=12)
    assert cz.to_dimod(cz.from_dimod(bqm, 0.3), 0.3).is_almost_equal(bqm, places=12)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("seed", range(4))
def test_any_binary_model_to_dimod(dimod, vartype, seed):
    rng = np.random.default_rng(seed)
    model = random_tables(rng, [2] * 5, random_edges(rng, 5, 0.6))
    bqm = cz.to_dimod(model, beta=2.0, vartype=vartype)
    assert list(bqm.variables) == list(range(5))
    for x in configurations(model):
        values = x if vartype == "BINARY" else [2 * a - 1 for a in x]
        assert bqm.energy(dict(enumerate(values))) == pytest.approx(-model.score(x) / 2, abs=CLOSE)
    assert cz.from_dimod(bqm, 2.0).names is None
    assert_same(model, cz.from_dimod(bqm, 2.0))


def test_dimod_numbers_are_indices(dimod):
    bqm = dimod.BinaryQuadraticModel.from_ising({2: 5.0}, {(2, 0): 1.0, (1, 0): -1.0})
    assert list(bqm.variables) != [0, 1, 2]
    model = cz.from_dimod(bqm)
    assert model.names is None and model.unary[2].tolist() == [5.0, -5.0]
    assert model.state_names == (("-1", "1"),) * 3
    assert cz.from_dimod(bqm, evidence={2: -1}) == model.condition({2: -1}) == model.condition({2: "-1"})


def test_dimod_evidence_is_in_its_labels(dimod):
    bqm = random_bqm(dimod, 1, "SPIN")
    model = cz.from_dimod(bqm, evidence={(0, 1): -1, 7: 1})
    assert model == cz.from_dimod(bqm).condition({"(0, 1)": "-1", "7": "1"})
    with pytest.raises(cz.errors.EvidenceError, match=r"unknown state 0 of variable 7; it has -1, 1"):
        cz.from_dimod(bqm, evidence={7: 0})
    with pytest.raises(cz.errors.EvidenceError, match=r"unknown variable '7'; there are \(0, 1\), 'b', 7"):
        cz.from_dimod(bqm, evidence={"7": 1})
    with pytest.raises(
        cz.errors.EvidenceError, match=r"evidence: expected \{variable: state\}, a pandas row, found \[7\]$"
    ):
        cz.from_dimod(bqm, evidence=[7])


def test_dimod_of_other_types(dimod):
    for dtype in (object, np.float32):
        bqm = dimod.BinaryQuadraticModel({"a": 1, "b": 0}, {("a", "b"): 2}, 3, "BINARY", dtype=dtype)
        assert cz.from_dimod(bqm).score([1, 1]) == -6
        assert cz.from_dimod(bqm.spin).score([1, 1]) == -6
    empty = cz.from_dimod(dimod.BinaryQuadraticModel("SPIN"))
    assert empty.num_variables == 0 and cz.to_dimod(empty).num_variables == 0


def test_dimod_refusals(dimod):
    bqm = dimod.BinaryQuadraticModel({1: 1.0, "1": 1.0}, {}, 0, "SPIN")
    with pytest.raises(cz.errors.ModelError, match="variables 1 and '1' would both be called '1'"):
        cz.from_dimod(bqm)
    with pytest.raises(cz.errors.ModelError, match="expected dimod's BinaryQuadraticModel, found dict"):
        cz.from_dimod({})
    with pytest.raises(cz.errors.ModelError, match=r"linear biases\[0\]: expected finite numbers"):
        cz.from_dimod(dimod.BinaryQuadraticModel({"a": np.inf}, {}, 0, "BINARY"))
    for beta in (-1.0, np.nan, "1"):
        with pytest.raises(cz.errors.OptionError, match="beta: expected a finite number >= 0"):
            cz.from_dimod(bqm, beta)
    pair = cz.Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])
    with pytest.raises(cz.errors.OptionError, match="beta: expected a finite number > 0"):
        cz.to_dimod(pair, 0.0)
    with pytest.raises(cz.errors.OptionError, match="vartype: expected 'SPIN' or 'BINARY', found 'INTEGER'"):
        cz.to_dimod(pair, vartype="INTEGER")
    for model, message in [
        (cz.Model.from_factors([2] * 3, [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))]), "a factor of 3 variables"),
        (cz.Model([[0.0, 0.0], [0.0] * 3], names=["a", "b"]), "variable 'b' of 3 states"),
        (cz.Model([[0.0, -np.inf]]), "a hard zero"),
    ]:
        with pytest.raises(cz.errors.ModelError, match=message):
            cz.to_dimod(model)


# -- networkx ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [s for s in range(2 * NUM_MODELS) if s % 4 < 2])
def test_networkx_there_and_back(nx, seed):
    model = random_model(seed)
    graph = cz.to_networkx(model)
    assert list(graph.nodes) == list(model.names)
    assert {frozenset(edge) for edge in graph.edges} == {
        frozenset((model.names[i], model.names[j])) for i, j in model.edges
    }
    assert_same(model, cz.from_networkx(graph))


def test_networkx_binary_form_is_kept_as_it_is(nx):
    model = cz.generators.grid(3, 3, rng=1)
    graph = cz.to_networkx(model)
    assert set(graph.nodes[0]) == {"theta"} and set(graph.edges[0, 1]) == {"W"}
    assert cz.from_networkx(graph) == model


def test_networkx_ising_graphs(nx):
    graph = nx.cycle_graph(5)
    nx.set_edge_attributes(graph, -0.5, "J")
    nx.set_node_attributes(graph, 0.2, "h")
    model = cz.from_networkx(graph)
    assert model.kind == "mixed" and model.names is None
    for x in configurations(model):
        s = [2 * a - 1 for a in x]
        assert model.score(x) == pytest.approx(
            0.2 * sum(s) - 0.5 * sum(s[i] * s[(i + 1) % 5] for i in range(5)), abs=CLOSE
        )
    weighted = nx.Graph()
    weighted.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", -1.0)])
    assert cz.from_networkx(weighted).binary.W.tolist() == [2.0, -1.0]


def test_networkx_tables_and_directions(nx):
    table = np.arange(6.0).reshape(3, 2)
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"])
    graph.add_edge("b", "a", pairwise=table)  # a comes first in the graph, so the rows are its states
    model = cz.from_networkx(graph)
    assert model.num_states.tolist() == [3, 2] and model.score({"a": 2, "b": 0}) == 4.0
    directed = nx.MultiDiGraph()
    directed.add_nodes_from([1, 0])
    directed.add_edge(0, 1, pairwise=table)
    directed.add_edge(1, 0, pairwise=table.T)
    model = cz.from_networkx(directed)
    assert model.num_states.tolist() == [3, 2] and model.score([2, 0]) == 8.0


def test_networkx_labels_and_states(nx):
    graph = nx.grid_2d_graph(2, 2)
    nx.set_edge_attributes(graph, 1.0, "W")
    graph.nodes[0, 1]["states"] = [True, False]
    model = cz.from_networkx(graph, evidence={(0, 1): True})
    assert model.names == ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)")
    assert model.unary[1].tolist() == [0.0, -np.inf]
    assert model == cz.from_networkx(graph).condition({"(0, 1)": "True"})
    assert cz.from_networkx(nx.Graph([])).num_variables == 0
    alone = nx.Graph()
    alone.add_node("x", states=3)
    assert cz.from_networkx(alone).num_states.tolist() == [3]


@pytest.mark.parametrize(
    ("node", "edge", "message"),
    [
        ({}, {}, r"edge \('a', 'b'\): expected one of the attributes pairwise, W, J and weight, found none"),
        ({}, {"W": 1.0, "J": 1.0}, "found W and J"),
        ({}, {"W": "x"}, r"edge \('a', 'b'\), attribute W: expected a finite number, found 'x'"),
        ({}, {"W": np.inf}, "expected a finite number, found inf"),
        ({}, {"pairwise": [[np.inf, 0], [0, 0]]}, "expected a table of log potentials"),
        ({}, {"pairwise": [0.0, 1.0]}, "expected a table of log potentials"),
        (
            {"unary": [0, 0, 0]},
            {"W": 1.0},
            r"pairwise potentials of \('a', 'b'\): expected shape \(3, 2\), found \(2, 2\)",
        ),
        (
            {"unary": [0, 0], "theta": 1.0},
            {"W": 1.0},
            "node 'a': expected at most one of the attributes unary, theta and h",
        ),
        (
            {"theta": 1.0, "states": ["x", "y", "z"]},
            {"W": 1.0},
            "node 'a': expected as many states as log potentials, found 3 and 2",
        ),
        (
            {"states": "xy"},
            {"W": 1.0},
            "node 'a', attribute states: expected the names of the states or their number, found 'xy'",
        ),
        ({"states": ["1", 1]}, {"W": 1.0}, "states of variable 'a', '1' and 1 would both be called '1'"),
    ],
)
def test_networkx_refusals(nx, node, edge, message):
    graph = nx.Graph()
    graph.add_node("a", **node)
    graph.add_edge("a", "b", **edge)
    with pytest.raises(cz.errors.ModelError, match=message):
        cz.from_networkx(graph)


def test_networkx_holds_pairs_only(nx):
    with pytest.raises(cz.errors.ModelError, match="this model has a factor of"):
        cz.to_networkx(random_model(2))
    with pytest.raises(cz.errors.ModelError, match="expected a networkx graph, found list"):
        cz.from_networkx([])


# -- pgmpy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["markov", "factor graph"])
@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_pgmpy_there_and_back(pgmpy, kind, seed):
    model = random_model(seed)
    network = cz.to_pgmpy(model, kind)
    assert network.check_model()
    assert_same(model, cz.from_pgmpy(network))
    if kind == "markov":
        assert_same(model, cz.from_pgmpy(network.to_factor_graph()))


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_pgmpy_finds_the_same(pgmpy, seed):
    model = random_model(seed)
    network = cz.to_pgmpy(model)
    estimate = cz.exact(model)
    assert np.log(network.get_partition_function()) == pytest.approx(estimate.log_z, abs=CLOSE)
    inference = pgmpy.inference.VariableElimination(network)
    for i, name in enumerate(model.names):
        found = inference.query([name], show_progress=False)
        assert tuple(found.state_names[name]) == model.state_names[i]
        np.testing.assert_allclose(found.values / found.values.sum(), estimate.marginals[i], atol=CLOSE)


def sprinkler(pgmpy):
    """Rain, a sprinkler that depends on it, wet grass; one variable has truth values for states, in the order that is
    not theirs."""
    cpd = pgmpy.factors.TabularCPD
    states = {"rain": [True, False], "sprinkler": ["on", "off"], "grass": [0, 1]}
    network = next(
        getattr(pgmpy.models, name)
        for name in ("DiscreteBayesianNetwork", "BayesianNetwork")
        if hasattr(pgmpy.models, name)
    )([("rain", "sprinkler"), ("rain", "grass"), ("sprinkler", "grass")])
    network.add_cpds(
        cpd("rain", 2, [[0.2], [0.8]], state_names={"rain": states["rain"]}),
        cpd(
            "sprinkler",
            2,
            [[0.01, 0.4], [0.99, 0.6]],
            ["rain"],
            [2],
            state_names={v: states[v] for v in ("sprinkler", "rain")},
        ),
        cpd(
            "grass",
            2,
            [[0.01, 0.2, 0.1, 1.0], [0.99, 0.8, 0.9, 0.0]],
            ["rain", "sprinkler"],
            [2, 2],
            state_names=states,
        ),
    )
    return network


def test_pgmpy_bayesian_network(pgmpy):
    network = sprinkler(pgmpy)
    assert network.check_model()
    model = cz.from_pgmpy(network)
    assert model.names == tuple(network.nodes()) and model.state_names[model.variable_index("rain")] == (
        "True",
        "False",
    )
    assert cz.exact(model).log_z == pytest.approx(0.0, abs=CLOSE)
    given = cz.exact(cz.from_pgmpy(network, evidence={"grass": 1}))
    assert np.exp(given.log_z) == pytest.approx(0.2 * 0.01 * 0.99 + 0.2 * 0.99 * 0.8 + 0.8 * 0.4 * 0.9, abs=CLOSE)
    posterior = pgmpy.inference.VariableElimination(network).query(["rain"], evidence={"grass": 1}, show_progress=False)
    np.testing.assert_allclose(given.marginal("rain"), posterior.values, atol=CLOSE)
    assert cz.from_pgmpy(network, evidence={"rain": True}) == model.condition({"rain": "True"})
    assert_same(model, cz.from_pgmpy(network.to_markov_model()))
    assert_same(model, cz.from_pgmpy(network.to_junction_tree()))


def test_pgmpy_labels_that_are_no_strings(pgmpy):
    factor = pgmpy.factors.DiscreteFactor
    network = next(
        getattr(pgmpy.models, name)
        for name in ("DiscreteMarkovNetwork", "MarkovNetwork")
        if hasattr(pgmpy.models, name)
    )([(1, 0)])
    network.add_factors(factor([1, 0], [3, 2], [1, 2, 3, 4, 0, 6]))
    model = cz.from_pgmpy(network)
    assert model.names is None and model.state_names is None and model.num_states.tolist() == [2, 3]
    assert model.score([1, 1]) == pytest.approx(np.log(4)) and model.score([0, 2]) == -np.inf
    back = cz.from_pgmpy(cz.to_pgmpy(model))
    assert back.names == ("0", "1") and back.state_names is None


def test_pgmpy_takes_large_constants(pgmpy):
    model = cz.Model.from_binary(np.zeros(10), np.ones(9), [(i, i + 1) for i in range(9)], constant=3000.0)
    assert cz.exact(cz.from_pgmpy(cz.to_pgmpy(model))).log_z == pytest.approx(cz.exact(model).log_z, abs=CLOSE)


def test_pgmpy_refusals(pgmpy):
    factor, cpd = pgmpy.factors.DiscreteFactor, pgmpy.factors.TabularCPD
    markov = type(cz.to_pgmpy(random_model(0)))
    bayesian = type(sprinkler(pgmpy))

    def network(*factors, edges=(("a", "b"),)):
        found = markov(edges)
        found.add_factors(*factors)
        return found

    one, two = factor(["a"], [2], [1, 1]), factor(["a", "b"], [2, 2], np.ones(4))
    unfinished = bayesian([("a", "b")])
    unfinished.add_cpds(cpd("b", 2, np.full((2, 2), 0.5), ["a"], [2]))
    for refused, message in [
        (network(one), "variable 'b' has no factor"),
        (unfinished, "variable 'a' has no CPD"),
        (
            network(factor(["a"], [3], [1, 1, 1]), two),
            r"factor over \('a', 'b'\): variable 'a' has states \[0, 1\], and \[0, 1, 2\] in another factor",
        ),
        (
            network(
                two,
                factor(["a"], [2], [1, 1], state_names={"a": ["x", "y"]}),
                factor(["a"], [2], [1, 1], state_names={"a": ["y", "x"]}),
            ),
            r"variable 'a' has states \['y', 'x'\], and \['x', 'y'\]",
        ),
        (network(two, factor(["a"], [2], [1, -1])), r"factor over \('a',\): expected finite values >= 0, found -1"),
        (network(two, factor(["a"], [2], [1, np.inf])), "expected finite values >= 0, found inf"),
        (
            pgmpy.models.MarkovChain(),
            "expected a discrete Markov network, factor graph or Bayesian network of pgmpy, found MarkovChain",
        ),
        (pgmpy.models.LinearGaussianBayesianNetwork([("a", "b")]), "found LinearGaussianBayesianNetwork"),
    ]:
        with pytest.raises(cz.errors.ModelError, match=message):
            cz.from_pgmpy(refused)
    with pytest.raises(
        cz.errors.ModelError,
        match=r"factor over \('a',\): pgmpy keeps values, and exp\(-800\) is none a float can hold",
    ):
        cz.to_pgmpy(cz.Model([[0.0, -800.0]], names=["a"]))
    with pytest.raises(cz.errors.ModelError, match="without variables"):
        cz.to_pgmpy(cz.Model([]))
    with pytest.raises(cz.errors.OptionError, match="kind: expected 'markov' or 'factor graph'"):
        cz.to_pgmpy(random_model(0), "bayesian")


# -- pyAgrum -----------------------------------------------------------------------------------------------------------


def pyagrum_answers(gum, network, names):
    """Z and the posteriors.  Tensors and inference refer to the network's variables, and must not outlive it."""
    product = gum.Tensor()
    for scope in network.factors():
        product = product * network.factor(scope)
    inference = gum.ShaferShenoyMRFInference(network)
    return product.sum(), [inference.posterior(name).toarray() for name in names]


@pyagrum_test
@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_pyagrum_there_and_back_finds_the_same(gum, seed):
    model = random_model(seed)
    network = cz.to_pyagrum(model)
    assert_same(model, cz.from_pyagrum(network))
    estimate = cz.exact(model)
    total, posteriors = pyagrum_answers(gum, network, model.names)
    assert np.log(total) == pytest.approx(estimate.log_z, abs=CLOSE)
    for found, wanted in zip(posteriors, estimate.marginals, strict=True):
        np.testing.assert_allclose(found.ravel(), wanted, atol=1e-6)


@pyagrum_test
def test_pyagrum_bayes_net(gum):
    gum.initRandom(1)
    network = gum.fastBN("a{no|maybe|yes}->b[3]->d<-c[1,4]<-a;c->e")
    model = cz.from_pyagrum(network)
    assert model.names == ("a", "b", "d", "c", "e") and model.state_names[0] == ("no", "maybe", "yes")
    assert model.state_names[3] == ("1", "2", "3", "4")
    assert cz.exact(model).log_z == pytest.approx(0.0, abs=1e-6)
    inference = gum.LazyPropagation(network)
    inference.setEvidence({"d": "1", "a": "maybe"})
    given = cz.exact(cz.from_pyagrum(network, evidence={"d": "1", "a": "maybe"}))
    assert given.log_z == pytest.approx(np.log(inference.evidenceProbability()), abs=1e-6)
    np.testing.assert_allclose(given.marginal("c"), inference.posterior("c").toarray(), atol=1e-6)


@pyagrum_test
def test_pyagrum_names_and_refusals(gum):
    model = cz.from_pyagrum(cz.to_pyagrum(cz.Model([[0.0, 1.0], [0.0] * 3], {(0, 1): np.arange(6.0).reshape(2, 3)})))
    assert model.names == ("0", "1") and model.state_names == (("0", "1"), ("0", "1", "2"))
    with pytest.raises(
        cz.errors.ModelError, match="expected pyAgrum's MarkovRandomField or BayesNet, found InfluenceDiagram"
    ):
        cz.from_pyagrum(gum.InfluenceDiagram())


# -- libraries that are not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["dimod", "networkx", "pgmpy", "pyagrum"])
def test_a_missing_library_is_one_line(package, monkeypatch):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)

    class Nowhere:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(sys, "meta_path", [Nowhere, *sys.meta_path])
    model = cz.Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])
    for call, argument in [(f"to_{package}", model), (f"from_{package}", None)]:
        with pytest.raises(
            cz.errors.MissingLibraryError, match=f"^{package} is not installed: pip install {package}$"
        ) as caught:
            getattr(cz, call)(argument)
        assert isinstance(caught.value, ImportError) and caught.value.name == package


def test_importing_clampz_imports_none_of_them():
    import subprocess

    libraries = "dimod", "networkx", "pgmpy", "pyagrum", "matplotlib"
    code = f"import sys, clampz; print([name for name in {libraries} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
