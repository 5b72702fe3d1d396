"""networkx graphs: nodes are variables, edges are pairwise potentials, attributes say which (see `from_networkx`)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import ModelError, library, shown
from clampz.interop.common import as_names, as_state_names, conditioned, in_order
from clampz.model import Evidence, Model
from clampz.model.checks import as_log_potentials
from clampz.model.model_checks import check_model
from clampz.numerics import Floats
from clampz.runtime.options import knows_its_options

BINARY_EDGES = {"W": np.array([[0.5, 0.0], [0.0, 0.5]]), "J": np.array([[1.0, -1.0], [-1.0, 1.0]])}
BINARY_EDGES["weight"] = BINARY_EDGES["W"]
BINARY_NODES = {"theta": np.array([0.0, 1.0]), "h": np.array([-1.0, 1.0])}


@knows_its_options
def from_networkx(graph: Any, *, evidence: Evidence | None = None) -> Model:
    """The model on a graph, from the attributes of its nodes and edges.

    A node may have

    - `unary`, a log potential per state; or `theta`, a number: log potentials [0, theta]; or `h`, an Ising field:
      [-h, h];
    - `states`, the names of its states, or their number; two where nothing says otherwise;

    an edge has one of

    - `pairwise`, a table of log potentials;
    - `W` (or `weight`), the paper's weight: W / 2 where the two states agree, else 0;
    - `J`, an Ising coupling: J where they agree, else -J;

    and the graph may have a `constant`.  Rows of a table belong to the edge's first node: in a directed graph its tail,
    else the one that comes first in the graph.  Parallel edges add up.

    Parameters
    ----------
    graph
        A networkx graph.
    evidence
        `{variable: state}` in the labels and states of the graph: the model is conditioned on it at once.

    Returns
    -------
    Model
        A variable for each node, in the order of the graph, or of their numbers where these are 0 to n - 1.

    Raises
    ------
    MissingLibraryError
        Where networkx is not installed.
    ModelError
        Where an edge has no potential, or attributes do not fit together; it names the edge or node.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.Graph()
    >>> graph.add_node("a", theta=1.0)
    >>> graph.add_edge("a", "b", W=2.0)
    >>> from_networkx(graph).score({"a": 1, "b": 1})
    2.0
    """
    nx = library("networkx")
    if not isinstance(graph, nx.Graph):
        raise ModelError(f"expected a networkx graph, found {type(graph).__name__}")
    labels = in_order(list(graph.nodes))
    index_of = {label: i for i, label in enumerate(labels)}
    names = as_names(labels)
    pairwise: list[tuple[tuple[Any, Any], Floats]] = []
    num_states: dict[Any, int] = {}
    for u, v, attributes in graph.edges(data=True):  # of an undirected graph, u is the one that comes first in it
        table = _edge_table(attributes, f"edge {(u, v)!r}")
        i, j = index_of[u], index_of[v]
        pairwise.append(((names[i], names[j]) if names else (i, j), table))
        for label, size in zip((u, v), table.shape, strict=True):
            num_states.setdefault(label, size)
    nodes = [_node(graph.nodes[label], num_states.get(label, 2), f"node {label!r}") for label in labels]
    states = [known for _, known in nodes]
    model = Model(
        [table for table, _ in nodes],
        pairwise,
        constant=graph.graph.get("constant", 0.0),
        names=names,
        state_names=as_state_names(states, labels),
    )
    return conditioned(model, evidence, labels, states)


def to_networkx(model: Model) -> Any:
    """Convert to a graph: theta and W where the model is binary and finite, else unary and pairwise; state names; the
    constant.

    Parameters
    ----------
    model
        Without factors of more than two variables.

    Returns
    -------
    networkx.Graph
        That `from_networkx` reads.

    Raises
    ------
    MissingLibraryError
        Where networkx is not installed.
    ModelError
        Where the model has larger factors.

    Examples
    --------
    >>> to_networkx(Model.from_binary([0.0, 1.0], [2.0], [(0, 1)])).edges[0, 1]
    {'W': 2.0}
    """
    check_model(model)
    nx = library("networkx")
    if model.factors:
        raise ModelError(
            "a graph has pairwise potentials; "
            f"this model has a factor of {len(model.factors[0].scope)} variables (to_pgmpy keeps it)"
        )
    form = model.binary
    labels = model.names or range(model.num_variables)
    graph = nx.Graph(constant=model.constant if form is None else form.constant)
    for i, label in enumerate(labels):
        graph.add_node(label, **({"unary": model.unary[i].copy()} if form is None else {"theta": float(form.theta[i])}))
        if model.state_names is not None:
            graph.nodes[label]["states"] = model.state_names[i]
    for k, (i, j) in enumerate(model.edges.tolist()):
        graph.add_edge(
            labels[i],
            labels[j],
            **({"pairwise": model.pairwise.at(k).copy()} if form is None else {"W": float(form.W[k])}),
        )
    return graph


def _edge_table(attributes: dict[str, Any], where: str) -> Floats:
    """Return an edge's table of log potentials, from the one attribute that gives it."""
    found: list[str] = [name for name in ("pairwise", "W", "J") if name in attributes] or ["weight"] * (
        "weight" in attributes
    )
    if len(found) != 1:
        raise ModelError(
            f"{where}: expected one of the attributes pairwise, W, J and weight, found {' and '.join(found) or 'none'}"
        )
    value = _numbers(attributes[found[0]], f"{where}, attribute {found[0]}", 2 if found[0] == "pairwise" else 0)
    return value if found[0] == "pairwise" else value * BINARY_EDGES[found[0]]


def _node(attributes: dict[str, Any], num_states: int, where: str) -> tuple[Floats, list[Any]]:
    """Return a node's log potentials and the labels of its states, which its edges take to be `num_states`."""
    found = [name for name in ("unary", "theta", "h") if name in attributes]
    if len(found) > 1:
        raise ModelError(
            f"{where}: expected at most one of the attributes unary, theta and h, found {' and '.join(found)}"
        )
    states = attributes.get("states", num_states if "unary" not in found else np.size(attributes["unary"]))
    if isinstance(states, str) or not isinstance(states, int | np.integer | Iterable):
        raise ModelError(
            f"{where}, attribute states: expected the names of the states or their number, found {shown(states)}"
        )
    known: list[Any] = list(range(states)) if isinstance(states, int | np.integer) else list(states)
    if not found:
        return np.zeros(len(known)), known
    table = _numbers(attributes[found[0]], f"{where}, attribute {found[0]}", 1 if found[0] == "unary" else 0)
    table = table if found[0] == "unary" else table * BINARY_NODES[found[0]]
    if len(table) != len(known):
        raise ModelError(f"{where}: expected as many states as log potentials, found {len(known)} and {len(table)}")
    return table, known


def _numbers(value: ArrayLike, where: str, num_axes: int) -> Floats:
    try:
        array = as_log_potentials(value, where, finite=num_axes == 0)
    except ModelError:
        array = None
    if array is None or array.ndim != num_axes:
        expected = ["a finite number", "a log potential for each state", "a table of log potentials"][num_axes]
        raise ModelError(f"{where}: expected {expected}, found {shown(value)}")
    return array
