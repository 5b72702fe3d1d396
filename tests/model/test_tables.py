"""Tables laid end to end: where they begin, pieces of them, and how they are shown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clampz.model.tables import PairTables, UnaryTables, columns, lane_sums, offsets, ranges

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
    taken = columns(array, np.array([3, 1, 1]))
    assert taken.flags.c_contiguous and np.array_equal(taken, array[:, [3, 1, 1]])


def test_sums_over_rows_do_not_drift():
    terms = np.full((10_000, 2), 0.1)
    assert np.abs(lane_sums(terms) - 1000.0).max() < np.abs(terms.sum(axis=0) - 1000.0).max()


def test_previews_are_short():
    assert repr(UnaryTables(np.zeros(12), np.arange(0, 13, 2))).endswith("and 2 more)")
    edges = np.array([(0, 1), (0, 2), (1, 2)], dtype=np.int32)
    assert repr(PairTables.of(np.zeros(12), edges, np.array([2, 2, 2]))).endswith("and 1 more)")
