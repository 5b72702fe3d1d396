"""The weighted clauses of a model have its Z: every assignment of their booleans is looked at."""

import math

import numpy as np
import pytest
from budgets import Asked
from naive import enumerate_factors

import clampz as cz
from clampz.model_counting.encoding import MOST_IN_PAIRS, TooMuch, encode
from clampz.runtime.budget import Cancelled

pytestmark = pytest.mark.nojit
EXACT = 1e-12


def assignments(clauses):
    """Each assignment that satisfies all clauses, with the product of its weights."""
    ends = np.flatnonzero(clauses.literals == 0)
    parts = [part[part != 0].tolist() for part in np.split(clauses.literals, ends + 1)[:-1]]
    weights = clauses.weights.tolist()

    def extended(taken, weight):
        for part in parts:  # no clause may be false already
            if all(abs(literal) <= len(taken) and taken[abs(literal) - 1] != (literal > 0) for literal in part):
                return
        if len(taken) == len(weights):
            yield taken, weight
            return
        for value in (True, False):
            yield from extended((*taken, value), weight * weights[len(taken)][0 if value else 1])

    return list(extended((), 1.0))


def random_factors(rng, num_states, values):
    factors = [((i,), rng.choice(values, k)) for i, k in enumerate(num_states)]
    for _ in range(rng.integers(1, 5)):
        scope = tuple(rng.choice(len(num_states), rng.integers(1, min(4, len(num_states) + 1)), replace=False).tolist())
        factors.append((scope, rng.choice(values, [num_states[i] for i in scope])))
    return factors


@pytest.mark.parametrize("seed", range(25))
def test_clauses_have_the_sum_and_the_marginals_of_their_model(seed):
    rng = np.random.default_rng(seed)
    num_states = rng.choice([1, 2, 2, 3], rng.integers(1, 5))
    factors = random_factors(rng, num_states, [0.0, 0.0, 0.5, -1.5, -math.inf])
    log_z, marginals, _ = enumerate_factors(num_states, factors, 0.25)
    clauses = encode(cz.Model.from_factors(num_states, factors, constant=0.25))
    found = assignments(clauses)
    total = math.fsum(weight for _, weight in found)
    if log_z == -math.inf:
        assert total == 0.0
        return
    assert clauses.scale + math.log(total) == pytest.approx(log_z, abs=clauses.error + EXACT)
    assert clauses.lowest - EXACT <= math.log(total) <= clauses.highest + EXACT
    for literal, marginal in zip(clauses.literal_of_state.tolist(), np.concatenate(marginals), strict=True):
        held = [w for taken, w in found if literal == 0 or taken[abs(literal) - 1] == (literal > 0)]
        assert math.fsum(held) / total == pytest.approx(marginal, abs=EXACT)


@pytest.mark.parametrize("states", [3, MOST_IN_PAIRS, MOST_IN_PAIRS + 1, MOST_IN_PAIRS + 3])
def test_a_variable_has_one_of_its_states(states):
    clauses = encode(cz.Model([np.log(np.arange(1.0, states + 1))]))
    found = assignments(clauses)
    assert len(found) == states
    assert clauses.scale + math.log(sum(weight for _, weight in found)) == pytest.approx(
        math.log(states * (states + 1) / 2), abs=EXACT
    )


def test_equal_entries_share_a_boolean_and_zeros_widen_their_cubes():
    table = np.array([[0.0, -1.0, -1.0], [0.0, -math.inf, -1.0]])
    clauses = encode(cz.Model([[0.0] * 2, [0.0] * 3], {(0, 1): table}))
    assert clauses.num_booleans == 1 + 3 + 1
    # one of three (four clauses), the zero, and "not the first state, so the weight": a clause of two literals
    assert clauses.num_clauses == 4 + 1 + 1


def test_a_table_of_zeros_is_an_empty_clause():
    assert encode(cz.Model([[-math.inf] * 2, [0.0] * 2])).has_empty
    assert not encode(cz.Model([[0.0] * 2])).has_empty


def test_what_no_weight_can_hold_is_refused():
    encode(cz.Model([[0.0, -699.0]]))
    with pytest.raises(TooMuch, match=r"1e\+15 nats"):
        encode(cz.Model([[0.0, -1e15]]))


def test_too_many_literals_are_refused(monkeypatch):
    monkeypatch.setattr("clampz.model_counting.encoding.MOST_LITERALS", 100)
    with pytest.raises(TooMuch, match="more than 100 literals"):
        encode(cz.generators.grid(8, 8, rng=0))


def test_it_ends_with_the_watch():
    with pytest.raises(Cancelled):
        encode(cz.generators.grid(8, 8, rng=0), Asked(2))
