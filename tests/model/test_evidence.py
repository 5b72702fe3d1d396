"""Every form that evidence may have means the same, or is refused; likelihoods against the sum over configurations."""

import numpy as np
import pytest
from enumerated import brute_force, random_model

from clampz.errors import EvidenceError
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.variables import Variables

pytestmark = pytest.mark.nojit

NAMES = ["plain", "yes", "false", "spin", "numbered", "colour"]
STATES = [["0", "1"], ["yes", "no"], ["False", "True"], ["-1", "+1"], ["3", "1", "2"], ["red", "green", "blue"]]
VARIABLES = Variables(np.array([2, 2, 2, 2, 3, 3]), NAMES, STATES)
UNNAMED = Variables(np.array([2, 3]), None, None)


class Row:
    """What there is of a pandas row: values by label, and a place for each."""

    def __init__(self, values):
        self.values, self.iloc = values, None

    def items(self):
        return self.values.items()


class Frame:
    """What there is of a pandas frame: labels of columns, and a place for each."""

    def __init__(self, rows):
        self.columns, self.rows, self.iloc = list(rows[0].values), rows, self

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        rows, column = place
        assert rows == slice(None)
        return np.array([row.values[self.columns[column]] for row in self.rows], dtype=object)


class NAType:
    """What pandas has for a missing value that is no number."""


@pytest.mark.parametrize(
    ("variable", "state", "index"),
    [
        ("plain", 1, 1),
        ("plain", True, 1),
        ("plain", np.bool_(False), 0),
        (0, np.int8(1), 1),
        (np.int64(0), "1", 1),
        ("yes", True, 0),
        ("yes", False, 1),
        ("yes", 0, 0),
        ("yes", "no", 1),
        ("false", True, 1),
        ("spin", -1, 0),
        ("spin", np.int8(1), 1),
        ("spin", "+1", 1),
        ("numbered", 3, 0),
        ("numbered", 1, 1),
        ("numbered", 2, 2),
        ("colour", np.str_("blue"), 2),
        ("colour", 2, 2),
    ],
)
def test_a_state_by_name_index_number_or_truth(variable, state, index):
    assert VARIABLES.state_index(variable, state) == index
    assert VARIABLES.as_evidence({variable: state}) == {VARIABLES.variable_index(variable): index}


@pytest.mark.parametrize(
    ("variable", "state", "message"),
    [
        ("spin", 0, r"unknown state 0 of variable 'spin': its states are named by numbers, '-1', '\+1', so a number"),
        ("numbered", 0, r"unknown state 0 of variable 'numbered': its states are named by numbers"),
        (
            "spin",
            True,
            r"True does not say which of the 2 states of variable 'spin' is meant, which are '-1', '\+1': give",
        ),
        ("colour", False, r"False does not say which of the 3 states of variable 'colour' is meant"),
        ("plain", 1.0, r"unknown state 1.0 of variable 'plain': expected an index from 0 to 1"),
        ("plain", None, r"unknown state None of variable 'plain': .*; leave out what is not known"),
        ("plain", float("nan"), r"unknown state nan of variable 'plain': .*; leave out what is not known"),
        ("colour", {"red", "blue"}, r"unknown state \{.* of variable 'colour': expected an index"),
    ],
)
def test_what_does_not_say_which_state_is_refused(variable, state, message):
    with pytest.raises(EvidenceError, match=message):
        VARIABLES.findings({variable: state})


def test_truth_of_variables_without_state_names():
    assert UNNAMED.as_evidence({0: True}) == {0: 1}
    with pytest.raises(
        EvidenceError, match=r"True does not say which of the 3 states of variable 1 is meant: give a name"
    ):
        UNNAMED.as_evidence({1: True})


def test_a_row_of_a_frame_is_evidence_but_for_what_is_missing():
    row = Row(
        {"plain": 1.0, "yes": np.nan, "spin": np.float64(-1.0), "colour": None, "false": NAType(), "numbered": "1"}
    )
    wanted = {0: 1, 3: 0, 4: 1}
    assert VARIABLES.as_evidence(row) == wanted
    assert VARIABLES.as_evidence(Frame([row])) == wanted
    with pytest.raises(
        EvidenceError, match=r"evidence: expected a row, or a frame of one, found a frame of 2: .* and cz\.solve"
    ):
        VARIABLES.as_evidence(Frame([row, row]))
    with pytest.raises(EvidenceError, match=r"unknown state 0.5 of variable 'plain'"):
        VARIABLES.as_evidence(Row({"plain": 0.5}))
    model = Model(np.zeros((2, 2)), names="ab")
    assert model.condition(Row({"a": 1, "b": None})) == model.condition({"a": 1})
    with pytest.raises(EvidenceError, match=r"expected a list of evidence sets"):
        Batch.from_evidence(model, Row({"a": 1}))


def lanes(model, evidence):
    return Batch.from_evidence(model, evidence).unary.T.tolist()


def test_several_sets_are_a_list_a_frame_or_an_array():
    model = Model(np.zeros((3, 2)), names="abc")
    sets = [{"a": 1, "c": 0}, {"b": 1}]
    wanted = lanes(model, sets)
    rows = np.array([[1, np.nan, 0], [np.nan, 1, np.nan]])
    masked = np.ma.masked_array([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 1]])
    forms = [tuple(sets), iter(sets), {1: sets[0], 2: sets[1]}.values(), rows, list(rows), masked]
    forms += [np.array([[1, -1, 0], [-1, 1, -1]]), np.array([[1, None, 0], [None, 1, None]], dtype=object)]
    forms.append(Frame([Row({"a": 1.0, "c": 0, "b": None}), Row({"a": np.nan, "c": NAType(), "b": 1})]))
    forms.append(Frame([Row({0: 1, 2: 0, 1: -1}), Row({0: -1, 2: -1, 1: 1})]))
    for form in forms:
        assert lanes(model, form) == wanted
    assert lanes(model, Frame([Row({})] * 3)) == lanes(model, [{}] * 3)
    for row in (rows[0], rows[0].tolist(), list(sets)):
        if isinstance(row, list):
            with pytest.raises(
                EvidenceError, match=r"evidence: expected \{variable: state\}, a pandas row or an array of 3"
            ):
                model.condition(row)
        else:
            assert model.condition(row) == model.condition(sets[0])


def test_arrays_name_states_as_evidence_does():
    spins = Model(np.zeros((2, 2)), state_names=[["-1", "1"]] * 2)
    assert lanes(spins, np.array([[-1, 1], [1, -1]])) == lanes(spins, [{0: "-1", 1: "1"}, {0: "1", 1: "-1"}])
    assert lanes(spins, np.array([["-1", "1"]])) == lanes(spins, [{0: "-1", 1: "1"}])
    with pytest.raises(EvidenceError, match=r"^evidence set 1: unknown state 0 of variable 1: its states are named by"):
        Batch.from_evidence(spins, np.array([[-1, 1], [1, 0]]))


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (
            np.zeros((2, 3)),
            r"^evidence set 0: evidence: expected .* array of 2 states .*, found an array of shape \(3,\)",
        ),
        (np.array([[0.5, 1]]), r"^unknown state 0.5 of variable 0: expected an index from 0 to 1"),
        (np.array([[0, 2]]), r"^unknown state 2 of variable 1: expected an index from 0 to 1"),
        (np.zeros((0, 2)), r"^evidence: expected at least one evidence set, found none"),
        (np.zeros(2), r"^evidence: expected a list of evidence sets .*, found an array of shape \(2,\)"),
        (np.zeros((1, 2, 2)), r"^evidence: expected a list of evidence sets .*, found an array of shape \(1, 2, 2\)"),
        (
            "some.evid",
            r"found 'some.evid': evidence in a file is read with its model, cz.read\(model_file, evidence_file\)",
        ),
        (3, r"^evidence: expected a list of evidence sets .*, found int"),
        (None, r"^evidence: expected a list of evidence sets .*, found None"),
    ],
)
def test_what_are_no_sets_is_refused(evidence, message):
    with pytest.raises(EvidenceError, match=message):
        Batch.from_evidence(Model(np.zeros((2, 2))), evidence)


def test_a_variable_in_two_columns_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(EvidenceError, match=r"evidence: expected each variable in one column, found several of 'a'"):
        Batch.from_evidence(Model(np.zeros((2, 2)), names="ab"), pandas.DataFrame([[0, 1]], columns=["a", "a"]))


def test_rows_of_pandas_are_evidence():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"plain": [1, None], "yes": ["no", "yes"], "spin": [-1, 1], "colour": ["red", None]})
    assert VARIABLES.as_evidence(frame.iloc[0]) == {0: 1, 1: 1, 3: 0, 5: 0}
    assert VARIABLES.as_evidence(frame.iloc[[1]]) == {1: 0, 3: 1}
    flags = pandas.DataFrame({"plain": [True], "false": [False]}).convert_dtypes()
    assert VARIABLES.as_evidence(flags.iloc[0]) == {0: 1, 2: 0}


@pytest.mark.parametrize(
    "likelihoods", [[0.2, 0.8], (0.2, 0.8), np.array([0.2, 0.8]), [np.float32(0.25), 1], [1, 0], [True, True]]
)
def test_likelihoods_are_found(likelihoods):
    found = VARIABLES.findings({"yes": likelihoods, "plain": 1})
    assert found.states == {0: 1} and found.likelihoods[1].tolist() == [float(each) for each in likelihoods]
    with pytest.raises(EvidenceError, match=r"variable 1: expected a state, found likelihoods of 2"):
        VARIABLES.as_evidence({"yes": likelihoods})


@pytest.mark.parametrize(
    "said", [[1.0], [0, 0], [-1, 1], [1, np.nan], [1, np.inf], [[1, 1]], ["no", "yes"], [], [1, [2]]]
)
def test_what_are_no_likelihoods_is_refused(said):
    with pytest.raises(
        EvidenceError, match=r"likelihoods of variable 'yes': expected 2 finite numbers >= 0, one per st"
    ):
        VARIABLES.findings({"yes": said})


@pytest.mark.parametrize("evidence", [{"yes": [1, 1], 1: [1, 1]}, {"yes": [1, 1], 1: 0}, {"yes": 0, 1: [1, 1]}])
def test_likelihoods_beside_something_else_are_refused(evidence):
    with pytest.raises(EvidenceError, match=r"evidence is about variable 1 twice, with likelihoods"):
        VARIABLES.findings(evidence)


@pytest.mark.parametrize("seed", range(40))
def test_likelihoods_weigh_configurations(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    chosen = rng.permutation(model.num_variables)[:2].tolist()
    likelihoods = rng.random(model.num_states[chosen[0]]) * (rng.random(model.num_states[chosen[0]]) < 0.8)
    if not likelihoods.any():
        likelihoods[0] = 0.5
    evidence = {chosen[0]: likelihoods, chosen[1]: int(rng.integers(model.num_states[chosen[1]]))}
    scores = brute_force(model, evidence)
    try:
        conditional, lane = model.condition(evidence), Batch.from_evidence(model, [evidence]).lane(0)
    except EvidenceError as error:
        assert scores.max() == -np.inf and "Z = 0" in str(error)
        return
    for x in np.ndindex(*model.num_states):
        assert conditional.score(x) == pytest.approx(float(scores[x]), abs=1e-9)
        assert lane.score(x) == pytest.approx(float(scores[x]), abs=1e-9)


def test_likelihoods_that_leave_nothing_are_impossible():
    model = Model([[0.0, -np.inf], [0.0, 0.0]], names="ab")
    with pytest.raises(
        EvidenceError, match=r"evidence \{'a': \[0, 1\]\} is impossible: it leaves no state for variable 0"
    ):
        model.condition({"a": [0, 1]})
    with pytest.raises(EvidenceError, match=r"^evidence set 1: variable 0 is left no state by its likelihoods"):
        Batch.from_evidence(model, [{}, {"a": [0, 1]}])
