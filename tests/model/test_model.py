"""Model: construction, the binary form, flips, evidence, and what its errors say."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from strategies import (
    EXACT,
    binary_models,
    close,
    configurations,
    finite,
    finite_or_hard,
    model_score,
    models,
    parts,
    score,
)

from clampz.errors import EvidenceError, ModelError
from clampz.model import Model
from clampz.model.couplings import HARD_STRENGTH

pytestmark = pytest.mark.nojit

NAMED = {
    "unary": [[0.0, 1.0], [0.5, -0.5, 2.0]],
    "pairwise": {("a", "b"): [[0, 0, 1], [1, 0, 0]]},
    "names": ["a", "b"],
    "state_names": [["no", "yes"], ["low", "mid", "high"]],
}


@given(parts(elements=finite_or_hard), finite)
def test_scores_are_those_of_the_parts(built_from, constant):
    """Parallel edges, in either direction, are merged by adding their tables."""
    unary, pairwise = built_from
    model = Model(unary, pairwise, constant=constant)
    assert model.num_edges == len({frozenset(pair) for pair, _ in pairwise})
    for x in configurations(model):
        assert close(model.score(x), score(unary, pairwise, constant, x))
        assert close(model.score(x), model_score(model, x))


@given(parts(elements=finite_or_hard), finite)
def test_flat_tables_make_the_same_model(built_from, constant):
    unary, pairwise = built_from
    flat = np.concatenate([table.ravel() for _, table in pairwise] + [[]])
    edges = [pair for pair, _ in pairwise]
    assert Model.from_flat([len(t) for t in unary], np.concatenate(unary), edges, flat, constant=constant) == Model(
        unary, pairwise, constant=constant
    )


@given(st.data())
def test_arrays_make_the_same_model(data):
    n, m, num_labels = data.draw(st.integers(2, 4)), data.draw(st.integers(0, 5)), data.draw(st.integers(1, 3))
    unary = data.draw(arrays.arrays(np.float64, (n, num_labels), elements=finite_or_hard))
    edges = [tuple(data.draw(st.permutations(range(n)))[:2]) for _ in range(m)]
    tables = data.draw(arrays.arrays(np.float64, (m, num_labels, num_labels), elements=finite_or_hard))
    assert Model.from_arrays(unary, edges, tables) == Model(unary, list(zip(edges, tables, strict=True)))


def test_a_model_without_edges_or_without_variables():
    assert Model([[0.0, 1.0]]).score([1]) == 1.0
    assert Model.from_arrays([[0.0, 1.0]], [], []).num_edges == 0
    empty = Model([], constant=2.0)
    assert (empty.score([]), empty.num_variables, empty.kind, empty.binary.constant) == (2.0, 0, "attractive", 2.0)
    assert np.asarray(empty.unary).shape == (0, 0)
    assert repr(empty) == "Model(0 variables of 0 states, 0 edges)"


def test_repr_says_what_kind_of_model_it_is():
    assert repr(Model.from_binary([0.0, 0.0], [-1.0], [(0, 1)])) == "Model(2 variables of 2 states, 1 edge, balanced)"
    assert repr(Model([[0.0, 0.0, 0.0]])) == "Model(1 variable of 3 states, 0 edges)"


# -- data --------------------------------------------------------------------------------------------------------------


@given(models(elements=finite_or_hard))
def test_tables_can_be_read_and_not_written(model):
    for i, j in model.pairwise:
        assert i < j
        assert np.array_equal(model.pairwise[i, j], model.pairwise[j, i].T)
    for array in [model.unary.flat, model.pairwise.flat, model.edges, model.num_states]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@given(models(elements=finite_or_hard))
def test_copies_are_equal_and_closed_to_writing(model):
    for twin in [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]:
        assert twin == model
        assert hash(twin) == hash(model)
        assert not twin.unary.flat.flags.writeable
        assert not twin.pairwise.flat.flags.writeable


def test_models_differ_by_any_part():
    model = Model(**NAMED)
    assert model == Model(**NAMED)
    assert model != Model(**{**NAMED, "state_names": None})
    assert model != Model(**NAMED, constant=1.0)
    assert model != Model(**{**NAMED, "unary": [[0.0, 1.0], [0.5, -0.5, 2.5]]})
    assert model != "model"


def test_tables_behave_like_a_list_and_a_mapping():
    model = Model(**NAMED)
    assert len(model.unary) == 2
    assert [t.tolist() for t in model.unary[:1]] == [[0.0, 1.0]]
    assert model.unary[-1].tolist() == [0.5, -0.5, 2.0]
    assert list(model.pairwise) == [(0, 1)]
    for missing in [(0, 0), (0, 2), (-1, 0), ("a", "x"), 3, (0, 1, 2)]:
        assert missing not in model.pairwise
    assert repr(model.unary) == "UnaryTables([0. 1.], [ 0.5 -0.5  2. ])"
    assert "(0, 1): [[0. 0. 1.]" in repr(model.pairwise)
    with pytest.raises(IndexError):
        model.unary[2]
    with pytest.raises(ValueError, match="2 to 3 states: no rectangular array"):
        np.asarray(model.unary)
    assert np.asarray(Model([[0, 1], [2, 3]]).unary, dtype=np.float32).tolist() == [[0, 1], [2, 3]]


def test_names_may_be_used_wherever_an_index_may():
    model = Model(**NAMED)
    assert model.variable_index("b") == model.variable_index(np.int64(1)) == 1
    assert model.state_index("b", "high") == model.state_index(1, 2) == 2
    assert (
        model.score(["yes", "low"])
        == model.score([1, 0])
        == model.score({"b": "low", 0: True})
        == model.score(np.array([1, 0]))
        == 2.5
    )


# -- the binary form ---------------------------------------------------------------------------------------------------


@given(models(max_states=2, min_states=2))
def test_every_finite_binary_model_has_the_papers_form(model):
    theta, W, constant = model.binary
    for x in configurations(model):
        expected = constant + theta @ x + sum(w / 2 for (i, j), w in zip(model.edges, W, strict=True) if x[i] == x[j])
        assert close(model.score(x), expected)


@given(binary_models())
def test_the_papers_form_comes_back_as_it_was_given(model):
    theta, W, constant = model.binary
    again = Model.from_binary(theta, W, model.edges, constant=constant)
    for x in configurations(model):
        assert close(again.score(x), model.score(x))
    matrix = np.zeros((model.num_variables,) * 2)
    matrix[tuple(model.edges.T)] = W
    from_matrix = Model.from_binary(theta, matrix + matrix.T, constant=constant)
    for x in configurations(model):
        assert close(from_matrix.score(x), model.score(x))


def test_models_without_a_binary_form():
    assert Model([[0.0, 0.0, 0.0]]).binary is None
    assert Model([[0.0, -np.inf]]).binary is None
    assert Model([[0.0, 0.0]] * 2, {(0, 1): [[0, -np.inf], [0, 0]]}).pair_form is None
    clamped = Model([[0.0, -np.inf], [0.0, 0.0]], {(0, 1): [[1, 0], [0, 1]]})
    assert clamped.binary is None
    assert clamped.pair_form.W.tolist() == [2.0]
    with pytest.raises(ModelError, match="defined for binary models"):
        _ = Model([[0.0, 0.0, 0.0]]).kind


@given(models(elements=finite_or_hard))
def test_strength_is_the_largest_interaction(model):
    for (i, j), strength in zip(model.edges, model.strength, strict=True):
        t = model.pairwise[i, j]
        if np.isfinite(t).all():
            cross = t[:, :, None, None] + t[None, None] - t[:, None, None, :] - t.T[None, :, :, None]
            assert close(strength, np.abs(cross).max())
        else:
            assert strength == HARD_STRENGTH


@given(binary_models())
def test_strength_of_a_binary_model_is_its_weight(model):
    assert np.array_equal(model.strength, np.abs(model.binary.W))


@given(models(), st.data())
def test_a_flip_relabels_and_changes_nothing_else(model, data):
    two = np.flatnonzero(model.num_states == 2)
    mask = np.zeros(model.num_variables, dtype=bool)
    mask[two] = data.draw(arrays.arrays(np.bool_, len(two)))
    flipped = model.flip(mask)
    assert flipped == model.flip(np.flatnonzero(mask))
    assert flipped.flip(mask) == model
    for x in configurations(model):
        assert close(flipped.score(np.where(mask, 1 - np.array(x), x)), model.score(x))


def test_a_flip_takes_the_state_names_along():
    model = Model(**NAMED).flip("a")
    assert model.state_names == (("yes", "no"), ("low", "mid", "high"))
    assert model.score({"a": "yes", "b": "low"}) == Model(**NAMED).score({"a": "yes", "b": "low"})


@given(binary_models(weights=st.sampled_from([-2.0, 0.0, 1.0])))
def test_balanced_if_and_only_if_some_flip_makes_it_attractive(model):
    flips = [np.array(x, dtype=bool) for x in configurations(model)]
    possible = any((model.flip(f).binary.W >= 0).all() for f in flips)
    assert model.kind == ("attractive" if (model.binary.W >= 0).all() else "balanced" if possible else "mixed")
    if possible:
        assert model.flip(model.balancing_flip()).kind == "attractive"
    else:
        with pytest.raises(ModelError, match="mixed: a cycle has an odd number of repulsive edges"):
            model.balancing_flip()


# -- evidence ----------------------------------------------------------------------------------------------------------


@given(models(), st.data())
def test_conditioning_keeps_the_scores(model, data):
    given_variables = data.draw(st.lists(st.sampled_from(range(model.num_variables)), unique=True))
    evidence = {i: data.draw(st.integers(0, int(model.num_states[i]) - 1)) for i in given_variables}
    conditional = model.condition(evidence)
    assert conditional.num_states.tolist() == model.num_states.tolist()
    for x in configurations(model):
        agrees = all(x[i] == a for i, a in evidence.items())
        assert conditional.score(x) == pytest.approx(model.score(x) if agrees else -np.inf, abs=EXACT)


def test_conditioning_keeps_names_and_hard_zeros():
    model = Model(
        [[0, 0], [0, 0], [0, 0]],
        {(0, 1): [[0, -np.inf], [0, 0]], (1, 2): [[0, 1], [2, 3]]},
        names="abc",
        state_names=[["f", "t"]] * 3,
    )
    conditional = model.condition({"a": "f"})
    assert conditional.names == ("a", "b", "c")
    assert conditional.state_names == (("f", "t"),) * 3
    assert [table.tolist() for table in conditional.unary] == [[0, -np.inf], [0, -np.inf], [0, 0]]
    with pytest.raises(EvidenceError, match=r"evidence \{'a': 'f', 1: 1\} is impossible: .*Z = 0"):
        model.condition({"a": "f", 1: 1})


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"d": 0}, r"unknown variable 'd'; this model has 'a', 'b'"),
        ({2: 0}, r"unknown variable 2: expected an index from 0 to 1"),
        ({-1: 0}, r"unknown variable -1"),
        ({True: 0}, r"unknown variable True"),
        ({"a": 2}, r"unknown state 2 of variable 'a': expected an index from 0 to 1"),
        ({"a": 1.0}, r"unknown state 1.0 of variable 'a'"),
        ({"a": "maybe"}, r"unknown state 'maybe' of variable 'a'; it has 'no', 'yes'$"),
        ({"a": "yess"}, r"unknown state 'yess' of variable 'a'; it has 'no', 'yes': did you mean 'yes'\?$"),
        ({"a": 0, 0: 1}, r"evidence gives variable 0 two states, 0 and 1"),
        ([("a", 0)], r"evidence: expected \{variable: state\}, a pandas row or an array .*, found \[\('a', 0\)\]$"),
        ([{"a": 0}], r"an array .*, found a list: several sets are for the methods and cz.solve$"),
    ],
)
def test_evidence_errors_name_the_variable(evidence, message):
    with pytest.raises(EvidenceError, match=message):
        Model(**NAMED).condition(evidence)


def test_errors_of_models_without_names():
    model = Model([[0.0, 1.0]])
    with pytest.raises(
        EvidenceError, match=r"variable 'a': this model's variables have no names; use an index from 0 to 0"
    ):
        model.variable_index("a")
    with pytest.raises(EvidenceError, match=r"unknown state 'yes' of variable 0; it has no state names"):
        model.state_index(0, "yes")
    with pytest.raises(EvidenceError, match=r"unknown variable 0: there are none$"):
        Model([]).variable_index(0)
    many = Model([[0.0]] * 12, names=[f"v{i}" for i in range(12)])
    with pytest.raises(EvidenceError, match=r"'v7' and 4 more"):
        many.variable_index("w")
    with pytest.raises(EvidenceError, match=r" and 4 more: did you mean 'v11' or .*\?$"):
        many.variable_index("v111")


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ([0], r"configuration: expected a state for each of 2 variables, found shape \(1,\)"),
        ({"a": 0}, r"expected a state for each of 2 variables, found none for variable 'b'"),
        ([0, 3], r"unknown state 3 of variable 1: expected an index from 0 to 2"),
        ([-1, 0], r"unknown state -1 of variable 0"),
        ([0.0, 1.0], r"unknown state 0.0 of variable 0"),
    ],
)
def test_configuration_errors_name_the_variable(configuration, message):
    with pytest.raises(EvidenceError, match=message):
        Model(**NAMED).score(configuration)


# -- errors ------------------------------------------------------------------------------------------------------------

TWO = [[0.0, 0.0], [0.0, 0.0]]
EYE = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Model([[0, np.nan]]),
            r"variable 0\[1\]: expected finite log potentials or -inf \(a hard zero\), at most 1e\+20 in size, "
            r"found nan",
        ),
        (lambda: Model([[0, 1], [0, np.inf]]), r"unary potentials of variable 1\[1\]: .* found inf"),
        (
            lambda: Model([0.0, 1.0]),
            r"unary potentials of variable 0: expected a list with one number per state, found shape \(\)",
        ),
        (
            lambda: Model([[0.0], []]),
            r"unary potentials of variable 1: expected a list with one number per state, found shape \(0,\)",
        ),
        (
            lambda: Model([["x", "y"]]),
            r"unary potentials of variable 0: expected numbers in a rectangular array, found \['x', 'y'\]",
        ),
        (
            lambda: Model(np.zeros(3)),
            r"unary: expected one list of numbers per variable, found an array of shape \(3,\)",
        ),
        (
            lambda: Model({"a": [0, 1]}),
            r"per variable, found dict: names of variables are an option, names=\[\.\.\.\]$",
        ),
        (lambda: Model(3), r"unary: expected one list of numbers per variable, found int"),
        (lambda: Model(TWO, {(0, 2): EYE}), r"edge \(0, 2\): unknown variable 2: expected an index from 0 to 1"),
        (lambda: Model(TWO, {("a", 1): EYE}), r"edge \('a', 1\): variable 'a': this model's variables have no names"),
        (lambda: Model(TWO, {(1, 1): EYE}), r"edge \(1, 1\): a variable cannot have an edge to itself"),
        (lambda: Model(TWO, {"ab": EYE}), r"edge 'ab': expected a pair of variables"),
        (lambda: Model(TWO, [((0, 1, 1), EYE)]), r"edge \(0, 1, 1\): expected a pair of variables"),
        (lambda: Model(TWO, [3]), r"pairwise 3: expected a pair of variables and their table"),
        (
            lambda: Model(TWO, {(0, 1): [1.0, 2.0]}),
            r"pairwise potentials of \(0, 1\): expected shape \(2, 2\), found \(2,\)",
        ),
        (
            lambda: Model(TWO, {(0, 1): [[0, np.nan], [0, 0]]}),
            r"pairwise potentials of \(0, 1\)\[0, 1\]: expected finite log potentials",
        ),
        (
            lambda: Model(TWO, constant=-np.inf),
            r"constant: expected a finite number, .* found -inf",
        ),
        (lambda: Model(TWO, constant="x"), r"constant: expected a finite number, .* found 'x'"),
        (lambda: Model.from_arrays(TWO, [], [], constant=np.nan), r"constant: expected a finite number, .* found nan"),
        (lambda: Model.from_flat([2], [0, 0], [], [], constant=np.inf), r"constant: expected a finite .* found inf"),
        (lambda: Model.from_binary([0.0], [], [], constant=1e300), r"constant: expected a finite .* found 1e\+300"),
        (
            lambda: Model(TWO, names=["a"]),
            r"names: expected 2 distinct strings, one per variable, found 1 with 1 distinct",
        ),
        (
            lambda: Model(TWO, names=["a", "a"]),
            r"names: expected 2 distinct strings, one per variable, found 2 with 1 distinct",
        ),
        (lambda: Model(TWO, names=["a", 3]), r"names: expected strings, found 3"),
        (
            lambda: Model(TWO, state_names=[["a", "b"]]),
            r"state_names: expected one list per variable, 2 in all, found 1",
        ),
        (
            lambda: Model(TWO, state_names=[["a", "b"], ["a"]]),
            r"state_names of variable 1: expected 2 distinct strings, found \['a'\]",
        ),
        (
            lambda: Model(TWO, state_names=[["a", "b"], [0, 1]]),
            r"state_names of variable 1: expected 2 distinct strings, found \[0, 1\]",
        ),
        (lambda: Model.from_arrays([0.0, 1.0], [], []), r"unary: expected shape \(variables, states\), found \(2,\)"),
        (
            lambda: Model.from_arrays(TWO, [(0, 1)], [0.0]),
            r"pairwise: expected shape \(1, 2, 2\) for 1 edges of 2 states, found \(1,\)",
        ),
        (lambda: Model.from_arrays(TWO, [(0, 2)], [EYE]), r"edges\[0\] = \(0, 2\): expected variables from 0 to 1"),
        (
            lambda: Model.from_arrays(TWO, [0, 1], [EYE]),
            r"edges: expected integers of shape \(edges, 2\), found int64 of shape \(2,\)",
        ),
        (
            lambda: Model.from_arrays(TWO, [(0, 1), (1,)], [EYE]),
            r"edges: expected pairs of variables, found \[\(0, 1\), \(1,\)\]",
        ),
        (
            lambda: Model.from_arrays(TWO, [(0.0, 1.0)], [EYE]),
            r"edges: expected integers of shape \(edges, 2\), found float64",
        ),
        (lambda: Model.from_flat([2, 0], [0, 0], [], []), r"num_states\[1\]: expected a whole number >= 1, found 0"),
        (
            lambda: Model.from_flat([2.0], [0, 0], [], []),
            r"num_states: expected a whole number per variable, found float64 of shape \(1,\)",
        ),
        (
            lambda: Model.from_flat([2, 2], [0, 0], [], []),
            r"unary: expected shape \(4,\), a number per state of each variable in turn, found \(2,\)",
        ),
        (
            lambda: Model.from_flat([1, 2], [0] * 3, [(0, 1)], [0]),
            r"pairwise: expected shape \(2,\), the tables of 1 edges in turn, found \(1,\)",
        ),
        (lambda: Model.from_binary([[0.0]], []), r"theta: expected shape \(variables,\), found \(1, 1\)"),
        (
            lambda: Model.from_binary([0.0, -np.inf], [], []),
            r"theta\[1\]: expected finite numbers, at most 1e\+20 in size, found -inf",
        ),
        (
            lambda: Model.from_binary([0.0, 0.0], [1.0, 2.0], [(0, 1)]),
            r"W: expected one weight per edge, shape \(1,\), found \(2,\)",
        ),
        (
            lambda: Model.from_binary([0.0, 0.0], [1.0]),
            r"W without edges: expected a symmetric \(2, 2\) matrix, found shape \(1,\)",
        ),
        (
            lambda: Model.from_binary([0.0, 0.0], [[0, 1], [2, 0]]),
            r"W\[0, 1\] = 1.0: expected a symmetric matrix .*, here W\[1, 0\] = 2.0",
        ),
        (
            lambda: Model.from_binary([0.0, 0.0], [[0, 1], [1, 3]]),
            r"W\[1, 1\] = 3.0: expected a symmetric matrix with a zero diagonal",
        ),
        (lambda: Model([[0.0] * 3]).flip([0]), r"only variables of two states can be flipped; variable 0 has 3"),
        (lambda: Model(TWO).flip([True]), r"mask of variables: expected shape \(2,\), found \(1,\)"),
        (lambda: Model(TWO).flip([2]), r"unknown variable 2: expected an index from 0 to 1"),
    ],
)
def test_errors_say_where(build, message):
    with pytest.raises(ValueError, match=message) as raised:
        build()
    assert isinstance(raised.value, ModelError | EvidenceError)
