"""Topology: its index arrays against networkx, and what its docstring promises the kernels."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from clampz._kernels import graph
from clampz.model.topology import Topology

pytestmark = pytest.mark.nojit


def as_networkx(n, edges):
    twin = nx.Graph()
    twin.add_nodes_from(range(n))
    twin.add_edges_from(edges.tolist())
    return twin


def head_of(topology):
    """The slot each message ends in."""
    return np.repeat(np.arange(topology.num_variables), np.diff(topology.start))


@given(graphs())
def test_core_and_components_are_those_of_networkx(n_and_edges):
    n, edges = n_and_edges
    topology, twin = Topology.from_edges(n, edges), as_networkx(n, edges)
    assert set(np.flatnonzero(topology.core)) == set(nx.k_core(twin, 2))
    assert topology.num_core == topology.core.sum()
    components = sorted(map(sorted, nx.connected_components(twin)))
    assert [np.flatnonzero(topology.components == c).tolist() for c in range(topology.num_components)] == components
    assert topology.degrees.tolist() == [twin.degree(i) for i in range(n)]


@given(graphs())
def test_slots_renumber_the_variables(n_and_edges):
    n, edges = n_and_edges
    topology = Topology.from_edges(n, edges)
    assert sorted(topology.variable_of.tolist()) == list(range(n))
    assert (topology.slot_of[topology.variable_of] == np.arange(n)).all()


@given(graphs())
def test_messages_know_their_ends(n_and_edges):
    n, edges = n_and_edges
    topology = Topology.from_edges(n, edges)
    head = head_of(topology)
    assert len(head) == 2 * topology.num_edges == len(topology.tail)
    assert (topology.reverse[topology.reverse] == np.arange(len(head))).all()
    assert (topology.tail == head[topology.reverse]).all()
    for k, (i, j) in enumerate(edges):
        there, back = topology.message_of_edge[k]
        assert (topology.variable_of[topology.tail[there]], topology.variable_of[head[there]]) == (i, j)
        assert topology.reverse[there] == back
        assert topology.edge_of_message[there] == topology.edge_of_message[back] == k


@given(graphs())
def test_no_edge_joins_two_slots_of_one_colour_class(n_and_edges):
    topology = Topology.from_edges(*n_and_edges)
    class_of = np.searchsorted(topology.class_start, np.arange(topology.num_variables), side="right") - 1
    assert class_of[: topology.num_core].tolist() == sorted(class_of[: topology.num_core].tolist())
    assert (np.diff(topology.class_start) > 0).all()
    for i, j in topology.slot_of[topology.edges]:
        if max(i, j) < topology.num_core:
            assert class_of[i] != class_of[j]


@given(graphs())
def test_pendant_messages_come_in_an_order_that_needs_no_iteration(n_and_edges):
    """When a pendant slot sends towards the core, all its other neighbours have sent to it; every edge outside the core
    is used once."""
    topology = Topology.from_edges(*n_and_edges)
    head = head_of(topology)
    sent = set()
    for message in topology.pendant_up:
        slot = topology.tail[message]
        assert slot >= topology.num_core
        arriving = set(range(topology.start[slot], topology.start[slot + 1]))
        assert arriving - {topology.reverse[message]} <= sent
        assert head[message] > slot or head[message] < topology.num_core
        sent.add(message)
    assert topology.tail[topology.pendant_up].tolist() == sorted(topology.tail[topology.pendant_up].tolist())
    outside = [k for k, edge in enumerate(topology.slot_of[topology.edges]) if edge.max() >= topology.num_core]
    assert sorted(topology.edge_of_message[topology.pendant_up].tolist()) == outside


@given(graphs(), st.data())
def test_a_spanning_forest_takes_the_heaviest_edges(n_and_edges, data):
    n, edges = n_and_edges
    weights = data.draw(st.lists(st.integers(0, 9), min_size=len(edges), max_size=len(edges)))
    taken = graph.spanning_forest(
        n, edges, np.argsort(-np.array(weights, dtype=np.int64), kind="stable"), np.zeros(1, dtype=np.uint8)
    )
    twin = as_networkx(n, edges)
    for (i, j), weight in zip(edges.tolist(), weights, strict=True):
        twin[i][j]["weight"] = weight
    assert sum(w for w, t in zip(weights, taken, strict=True) if t) == sum(
        d["weight"] for *_, d in nx.maximum_spanning_edges(twin)
    )
    assert nx.is_forest(as_networkx(n, edges[taken.astype(bool)]))
    assert taken.sum() == n - nx.number_connected_components(twin)


def test_arrays_are_closed_to_writing_and_the_callers_are_not():
    edges = np.array([[0, 1], [1, 2]], dtype=np.int32)
    topology = Topology.from_edges(3, edges)
    assert edges.flags.writeable
    for array in [topology.edges, topology.slot_of, topology.start, topology.tail, topology.pendant_up]:
        assert not array.flags.writeable


@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_edges(n):
    topology = Topology.from_edges(n, np.empty((0, 2), dtype=np.int32))
    assert (topology.num_core, len(topology.class_start), topology.num_components) == (0, 1, n)
    assert not len(topology.pendant_up)
