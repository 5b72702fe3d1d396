"""Local search: kicks, and annealing."""

import numpy as np
import pytest
from random_factors import random_factors

import clampz as cz
from clampz.map_inference.local_search import Terms, first_states, score_of
from clampz.runtime.budget import UNLIMITED, Budget


def glass(seed):
    """Spins on a cubic lattice, coupled by +-1: good configurations are many flips apart."""
    rng, n = np.random.default_rng(seed), 8
    number = np.arange(n**3).reshape(n, n, n)
    edges = np.concatenate([np.stack([number, np.roll(number, 1, axis)], axis=-1).reshape(-1, 2) for axis in range(3)])
    return cz.Model.from_binary(np.zeros(n**3), 4.0 * rng.choice([-1, 1], size=len(edges)), edges)


def test_annealing_gets_where_kicks_do_not():
    """The same number of visits to variables, about; kicks visit a variable, its neighbours, and theirs."""
    gains = []
    for seed in range(3):
        model = glass(seed)
        terms = Terms.of(model, budget=UNLIMITED)
        settled = terms.climb(first_states(model), 20_000, np.random.default_rng(0), Budget())
        annealed = terms.anneal(settled, 800, np.random.default_rng(0), Budget())
        gains.append(score_of(model, annealed) - score_of(model, settled))
    assert sum(gains) > 40.0


@pytest.mark.parametrize("seed", range(40))
def test_what_annealing_ends_with_is_settled(seed):
    """No variable alone can do better; hard zeros and larger factors included."""
    model = random_factors(np.random.default_rng(seed))
    terms = Terms.of(model, budget=UNLIMITED)
    states = terms.anneal(first_states(model), 20, np.random.default_rng(seed), Budget())
    score = score_of(model, states)
    for i, size in enumerate(model.num_states.tolist() if score > -np.inf else ()):
        for a in range(size):
            other = states.copy()
            other[i] = a
            assert score_of(model, other) <= score + 1e-9 * max(1.0, abs(score))


def test_annealing_without_time_or_stakes_leaves_a_configuration_as_it_is():
    model = glass(0)
    begin = first_states(model)
    assert (Terms.of(model, budget=UNLIMITED).anneal(begin, 100, np.random.default_rng(0), Budget(0.0)) == begin).all()
    flat = cz.Model([[0.0, 0.0], [1.0]])
    assert (
        Terms.of(flat, budget=UNLIMITED).anneal(first_states(flat), 100, np.random.default_rng(0), Budget()) == 0
    ).all()
