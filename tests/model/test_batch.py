"""Batch: lanes, evidence sets, and what their errors say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import close, configurations, models

from clampz.errors import EvidenceError, ModelError
from clampz.model import Model
from clampz.model.batch import Batch

pytestmark = pytest.mark.nojit

MODEL = Model(
    [[0.0, 1.0], [0.0, 0.0, -np.inf], [0.0, 0.0]],
    {(0, 1): [[0, 0, 0], [0, -np.inf, 0]], (1, 2): [[0, 0]] * 3},
    names="abc",
)


@given(models(), st.data())
def test_a_lane_is_the_model_with_everything_else_ruled_out(model, data):
    sets = data.draw(
        st.lists(st.dictionaries(st.sampled_from(range(model.num_variables)), st.just(0)), min_size=1, max_size=4)
    )
    batch = Batch.from_evidence(model, sets)
    assert batch.num_lanes == len(sets)
    for b, evidence in enumerate(sets):
        lane = batch.lane(b)
        assert (batch.num_possible[:, b] == [1 if i in evidence else k for i, k in enumerate(model.num_states)]).all()
        for x in configurations(model):
            agrees = all(x[i] == a for i, a in evidence.items())
            assert close(lane.score(x), model.score(x) if agrees else -np.inf)


@given(models(max_states=2, min_states=2), st.integers(1, 3))
def test_rectangular_tables_are_the_same_batch(model, num_lanes):
    unary = np.arange(model.num_variables * 2 * num_lanes, dtype=float).reshape(model.num_variables, 2, num_lanes)
    batch = Batch(model, unary)
    assert np.array_equal(batch.unary, Batch(model, unary.reshape(-1, num_lanes)).unary)
    assert batch.lane(num_lanes - 1).unary[0].tolist() == unary[0, :, -1].tolist()


def test_lanes_are_contiguous_and_closed_to_writing():
    unary = np.zeros((7, 3), order="F")
    batch = Batch(MODEL, unary)
    assert batch.unary.flags.c_contiguous
    assert not batch.unary.flags.writeable
    assert unary.flags.writeable
    assert repr(batch) == f"Batch(3 lanes of {MODEL!r})"


def test_states_ruled_out_by_the_model_are_not_possible():
    batch = Batch.from_evidence(MODEL, ({"b": a} for a in (0, 1)))
    assert batch.num_possible.tolist() == [[2, 2], [1, 1], [2, 2]]
    assert Batch.from_evidence(MODEL, [{}]).num_possible.tolist() == [[2], [2], [2]]


@pytest.mark.parametrize(
    ("unary", "message"),
    [
        (
            np.zeros((6, 1)),
            r"unary of a batch: expected shape \(7, lanes\), a row per state of each variable in turn, found \(6, 1\)",
        ),
        (np.zeros(7), r"expected shape \(7, lanes\), .* found \(7,\)"),
        (np.zeros((7, 0)), r"expected shape \(7, lanes\), .* found \(7, 0\)"),
        (np.zeros((3, 2, 1)), r"expected shape \(7, lanes\), .* found \(3, 2, 1\)"),
        ([["x"]] * 7, r"unary of a batch: expected numbers in a rectangular array, found \[\['x'\]"),
        (
            [[0, 0]] * 4 + [[0, np.nan]] + [[0, 0]] * 2,
            r"variable 1, state 2, lane 1: expected a finite number, at most 1e\+20 in size, or -inf, found nan",
        ),
        (
            [[np.inf]] + [[0]] * 6,
            r"variable 0, state 0, lane 0: expected a finite number, at most 1e\+20 in size, or -inf, found inf",
        ),
    ],
)
def test_errors_name_variable_state_and_lane(unary, message):
    with pytest.raises(ModelError, match=message):
        Batch(MODEL, unary)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ([], r"evidence: expected at least one evidence set, found none"),
        ({"a": 0}, r"evidence: expected a list of evidence sets \{variable: state\}, .*, found one set"),
        ([{"a": 0}, {"d": 0}], r"^evidence set 1: unknown variable 'd'"),
        ([{"a": 5}], r"^unknown state 5 of variable 'a'"),
        ([{"a": 0}, ["a"]], r"^evidence set 1: evidence: expected \{variable: state\}, .* found \['a'\]$"),
        ([{}, {"b": 2}], r"^evidence set 1: variable 1 cannot be in state 2: .*Z = 0"),
        ([{"a": 1, "b": 1}], r"^variables 0 and 1 cannot be in states 1 and 1 together: .*Z = 0"),
    ],
)
def test_evidence_errors_name_the_set(evidence, message):
    with pytest.raises(EvidenceError, match=message):
        Batch.from_evidence(MODEL, evidence)


def test_allowed_pairs_of_a_model_with_hard_zeros_are_accepted():
    assert Batch.from_evidence(MODEL, [{"a": 1, "b": 0}, {"a": 0, "b": 1, "c": 1}]).num_lanes == 2
