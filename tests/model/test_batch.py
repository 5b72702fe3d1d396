"""Batch and Options: lanes, evidence sets, and what their errors say."""

import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clampz.errors import EvidenceError, ModelError, OptionError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.options import Options
from clampz.watch import Progress, Watch
from strategies import close, configurations, models

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
        ({"a": 0}, r"evidence: expected a list of evidence sets \{variable: state\}, found one set"),
        ([{"a": 0}, {"d": 0}], r"^evidence set 1: unknown variable 'd'"),
        ([{"a": 5}], r"^unknown state 5 of variable 'a'"),
        ([{"a": 0}, ["a"]], r"^evidence set 1: evidence: expected a mapping"),
        ([{}, {"b": 2}], r"^evidence set 1: variable 1 cannot be in state 2: .*Z = 0"),
        ([{"a": 1, "b": 1}], r"^variables 0 and 1 cannot be in states 1 and 1 together: .*Z = 0"),
    ],
)
def test_evidence_errors_name_the_set(evidence, message):
    with pytest.raises(EvidenceError, match=message):
        Batch.from_evidence(MODEL, evidence)


def test_allowed_pairs_of_a_model_with_hard_zeros_are_accepted():
    assert Batch.from_evidence(MODEL, [{"a": 1, "b": 0}, {"a": 0, "b": 1, "c": 1}]).num_lanes == 2


# -- options and limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": -1.0}, r"tol: expected a number of nats >= 0, found -1.0"),
        ({"tol": float("nan")}, r"tol: expected a number of nats >= 0, found nan"),
        ({"tol": "small"}, r"tol: expected a number of nats >= 0, found 'small'"),
        ({"max_iter": 0}, r"max_iter: expected a whole number >= 1, found 0"),
        ({"max_iter": 1.5}, r"max_iter: expected a whole number >= 1, found 1.5"),
        ({"max_iter": True}, r"max_iter: expected a whole number >= 1, found True"),
        ({"time": -1}, r"time: expected seconds >= 0, found -1"),
        ({"time": None}, r"time: expected seconds >= 0, found None"),
        ({"threads": 0}, r"threads: expected None or a whole number >= 1, found 0"),
        ({"threads": 1.5}, r"threads: expected None or a whole number >= 1, found 1.5"),
        (
            {"max_iters": 3},
            r"unknown option 'max_iters'; did you mean 'max_iter'\? The options are tol, max_iter, time, threads",
        ),
        ({"qwxyz": 3}, r"unknown option 'qwxyz'\. The options are tol, max_iter, time, threads"),
    ],
)
def test_option_errors_name_the_option(changes, message):
    with pytest.raises(OptionError, match=message):
        Options().with_changes(changes)


def test_options_are_changed_by_making_new_ones():
    options = Options()
    assert options.with_changes({"tol": 1e-3, "max_iter": np.int64(5), "threads": 2}).max_iter == 5
    assert options == Options()
    assert options.num_threads >= 1
    assert Options(threads=2).num_threads == 2


def test_a_watch_stops_on_time_and_on_the_callback():
    watch = Watch(0.0)
    assert watch.must_stop()
    assert watch.stopped_by == "time"

    def stop(progress):
        raise StopIteration

    watch = Watch(progress=stop)
    assert not watch.must_stop()
    watch.report(Progress(method="m", num_iter=1, residual=1.0, log_z=0.0, num_lanes=1, num_finished=0, seconds=0.0))
    assert watch.must_stop()
    assert watch.stopped_by == "callback"


def test_the_first_interrupt_stops_a_run_and_the_second_is_as_usual():
    watch = Watch()
    with pytest.raises(KeyboardInterrupt), watch.interruptible():
        signal.raise_signal(signal.SIGINT)
        assert watch.must_stop()
        assert watch.stopped_by == "interrupt"
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
