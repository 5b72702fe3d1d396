"""Tables laid end to end: where they begin, pieces of them, and how they are shown."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clampz.errors import EdgeError, EvidenceError
from clampz.model import Model
from clampz.model.tables import PairTables, UnaryTables, lane_sums, offsets, ranges, take_lanes

pytestmark = pytest.mark.nojit


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=6))
def test_ranges_are_ranges_one_after_another(pieces):
    start, sizes = np.array(pieces, dtype=np.int64).reshape(-1, 2).T
    assert ranges(start, sizes).tolist() == [k for first, size in pieces for k in range(first, first + size)]
    assert np.diff(offsets(sizes)).tolist() == sizes.tolist()


def test_entries_know_their_edges_and_states():
    num_states, edges = np.array([2, 3, 2]), np.array([(0, 1), (0, 2), (1, 2)], dtype=np.int32)
    tables = PairTables.of(np.arange(16.0), edges, num_states)
    place, edge, a, b = tables.entries(np.array([2, 0]))
    for k, e, x, y in zip(place, edge, a, b, strict=True):
        assert tables.at(e)[x, y] == tables.flat[k]
    assert len(place) == 12 and set(edge.tolist()) == {0, 2}


def test_columns_keep_lanes_together():
    array = np.arange(12.0).reshape(3, 4)
    taken = take_lanes(array, np.array([3, 1, 1]))
    assert taken.flags.c_contiguous and np.array_equal(taken, array[:, [3, 1, 1]])


def test_sums_over_rows_do_not_drift():
    terms = np.full((10_000, 2), 0.1)
    assert np.abs(lane_sums(terms) - 1000.0).max() < np.abs(terms.sum(axis=0) - 1000.0).max()


def test_previews_are_short():
    assert repr(UnaryTables(np.zeros(12), np.arange(0, 13, 2))).endswith("and 2 more)")
    edges = np.array([(0, 1), (0, 2), (1, 2)], dtype=np.int32)
    assert repr(PairTables.of(np.zeros(12), edges, np.array([2, 2, 2]))).endswith("and 1 more)")


def named_tables():
    """Of a model with names, an edge from each variable to the next but none between the ends."""
    return Model(
        [[0.0, 1.0], [0.0, 0.5, 0.2], [0.0, 0.0]],
        {("a", "b"): [[0, 1, 0], [2, 0, 0]], ("c", "b"): [[0, 1, 2], [1, 0, 3]]},
        names=["a", "b", "c"],
    )


def test_tables_are_found_by_name():
    model = named_tables()
    np.testing.assert_array_equal(model.unary["b"], [0.0, 0.5, 0.2])
    np.testing.assert_array_equal(model.pairwise["c", "b"], [[0, 1, 2], [1, 0, 3]])
    np.testing.assert_array_equal(model.pairwise["b", 2], model.pairwise[1, 2])
    assert ("b", "a") in model.pairwise and ("a", "c") not in model.pairwise
    again = pickle.loads(pickle.dumps(model.pairwise))
    np.testing.assert_array_equal(again["b", "a"], [[0, 2], [1, 0], [0, 0]])
    with pytest.raises(EvidenceError, match="unknown variable 'd'; this model has 'a', 'b', 'c'"):
        model.unary["d"]


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("a", "c"), r"^no edge of the model joins 'a' and 'c'; .* joint\(\['a', 'c'\]\)$"),
        (("a", "d"), "unknown variable 'd'"),
        ((0, 7), "expected an index from 0 to 2"),
        (("b", 1), "one twice"),
        ("ab", "expected two variables"),
        ((0, 1, 2), "expected two variables"),
        (0, "expected two variables"),
    ],
)
def test_a_pair_that_is_no_edge_is_refused_in_words(pair, said):
    with pytest.raises(EdgeError, match=said):
        named_tables().pairwise[pair]
    assert issubclass(EdgeError, KeyError)


def test_tables_of_edges_as_one_array():
    model = Model.from_binary([0.0, 1.0, 2.0], [1.0, -1.0], [(0, 1), (1, 2)])
    array = np.asarray(model.pairwise)
    assert array.shape == (2, 2, 2)
    for k, table in enumerate(model.pairwise.values()):
        np.testing.assert_array_equal(array[k], table)
    assert np.asarray(Model([[0.0, 1.0]]).pairwise).shape == (0, 0, 0)
    with pytest.raises(ValueError, match=r"shapes from \(2, 3\) to \(3, 2\)"):
        np.asarray(named_tables().pairwise)
