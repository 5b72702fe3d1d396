"""What fixing variables leaves of a model, against the sum over all configurations before and after."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import close, configurations, finite_or_hard, models

from clampz.errors import EvidenceError
from clampz.model import Model, components, conditioning
from clampz.model.batch import Batch
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets

pytestmark = pytest.mark.nojit


def log_z(model):
    """By enumeration."""
    return float(np.logaddexp.reduce([model.score(x) for x in configurations(model)]))


def log_z_given(model, known):
    """By enumeration: the sum over the configurations that agree."""
    scores = [model.score(x) for x in configurations(model) if all(x[i] == a for i, a in known.items())]
    return float(np.logaddexp.reduce(scores))


def factor_model(seed):
    """Factors of one to four variables, some entries of the larger ones hard zeros, with names."""
    rng = np.random.default_rng(seed)
    num_states = rng.integers(1, 4, size=5)
    factors = []
    for arity in (1, 1, 2, 2, 3, 3, 4):
        scope = rng.permutation(5)[:arity]
        table = rng.normal(size=num_states[scope])
        table[rng.random(table.shape) < 0.1 * (seed % 2) * (arity > 1)] = -np.inf
        factors.append((scope, table))
    return Model.from_factors(num_states, factors, constant=0.5, names="abcde")


@pytest.mark.parametrize("seed", range(30))
def test_with_variables_in_place_or_without_them_the_sum_is_that_of_the_evidence(seed):
    rng = np.random.default_rng(100 + seed)
    model = factor_model(seed)
    chosen = rng.permutation(5)[: rng.integers(1, 5)]
    known = {int(i): int(rng.integers(model.num_states[i])) for i in chosen}
    wanted = log_z_given(model, known)
    if wanted == -np.inf:
        for fix in (Model.condition, conditioning.without_known):
            try:
                assert log_z(fix(model, known)) == -np.inf
            except EvidenceError as error:
                assert "is impossible" in str(error)
        return
    gone, there = conditioning.without_known(model, known), model.condition(known)
    assert close(log_z(gone), wanted) and close(log_z(there), wanted)
    assert gone.names == tuple(name for i, name in enumerate(model.names) if i not in known)
    assert there.names == model.names and np.array_equal(there.num_states, model.num_states)
    assert not np.isin(there.factors.variables, list(known)).any() and not np.isin(there.edges, list(known)).any()


@pytest.mark.parametrize("seed", range(30))
def test_a_model_without_its_fixed_variables_has_the_same_sum(seed):
    rng = np.random.default_rng(200 + seed)
    model = factor_model(seed)
    unary = np.where(rng.random(len(model.unary.flat)) < 0.4, -np.inf, model.unary.flat)
    lane = Batch(model, unary[:, None]).lane(0)
    smaller = conditioning.without_fixed(model, unary)
    if smaller is None:
        assert log_z(lane) == -np.inf
        return
    left = conditioning.states_left(unary > -np.inf, model.unary.start)
    assert smaller.num_variables == np.count_nonzero(left > 1)
    assert close(log_z(smaller), log_z(lane))


@given(models(elements=finite_or_hard), st.data())
def test_keeping_some_states_rules_out_the_others(model, data):
    i = data.draw(st.sampled_from(range(model.num_variables)))
    states = data.draw(st.lists(st.sampled_from(range(model.num_states[i])), min_size=1, unique=True))
    start, single = model.unary.start, model.unary.flat.copy()
    lanes = np.repeat(model.unary.flat[:, None], 3, axis=1)
    conditioning.keep_only(single, start, i, states)
    conditioning.keep_only(lanes[:, 1:], start, i, np.array(states))
    assert np.array_equal(lanes[:, 0], model.unary.flat)
    assert np.array_equal(lanes[:, 1], single) and np.array_equal(lanes[:, 2], single)
    for j, table in enumerate(model.unary):
        for a, value in enumerate(table):
            assert single[start[j] + a] == (value if j != i or a in states else -np.inf)


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), max_size=5))
def test_states_left_are_counted(variables):
    start = offsets(np.array([len(states) for states in variables], dtype=np.int64))
    possible = np.array([state for states in variables for state in states], dtype=np.bool_)
    assert conditioning.states_left(possible, start).tolist() == [sum(states) for states in variables]
    lanes = np.stack([possible, ~possible], axis=1)
    assert conditioning.states_left(lanes, start).tolist() == [[sum(s), len(s) - sum(s)] for s in variables]


@given(models(elements=finite_or_hard), st.sampled_from([0.0, 2.0]))
def test_components_multiply_to_the_model(model, small):
    parts = components.components(model, small=small)
    assert sum(part.num_variables for part in parts) == model.num_variables
    assert close(model.constant + sum(map(log_z, parts)), log_z(model))


def test_evidence_against_a_larger_factor_is_seen_also_where_it_fixes_the_first_variable():
    """What is left of the factor is a zero over nothing, which must not be put where evidence is written after."""
    table = np.zeros((2, 2, 2))
    table[1, 1, 1] = -np.inf
    model = Model.from_factors([2, 2, 2, 2], [((0, 1, 2), table), ((2, 3), [[0.0, 1.0], [1.0, 0.0]])])
    for fix in (Model.condition, conditioning.without_known):
        with pytest.raises(EvidenceError, match="is impossible"):
            fix(model, {0: 1, 1: 1, 2: 1})


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_of_a_factor_is_added_to_one_that_is_over_the_same_variables(seed):
    """Factors of four with a variable fixed, beside all that there are of three."""
    rng = np.random.default_rng(seed)
    scopes = [s for size in (3, 4) for s in itertools.combinations(range(5), size) if rng.random() < 0.7]
    model = Model.from_factors([2] * 5, [(scope, rng.normal(size=(2,) * len(scope))) for scope in scopes])
    known = {int(i): int(rng.integers(2)) for i in rng.permutation(5)[: rng.integers(1, 3)]}
    left = model.condition(known)
    assert len({factor.scope for factor in left.factors}) == len(left.factors)
    for x in configurations(model):
        if all(x[i] == a for i, a in known.items()):
            assert close(left.score(x), model.score(x))


def test_evidence_is_worked_in_all_at_once(monkeypatch):
    """Nothing is done for factors, or for states given by index, one by one: there may be millions."""
    model = Model.from_factors([2] * 30, [((i, i + 1, i + 2), np.eye(8)[i % 8].reshape(2, 2, 2)) for i in range(28)])
    expected = model.condition({3: 1, 4: 0}).factors

    def one_by_one(*args):
        raise AssertionError("one by one")

    monkeypatch.setattr(FactorTables, "item", one_by_one)
    monkeypatch.setattr(Model, "state_index", one_by_one)
    left = model.condition({3: 1, 4: 0})
    assert left.factors == expected
    assert len(left.factors) == 28 - 4
