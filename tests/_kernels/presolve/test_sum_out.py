"""Sums of the presolve: those that are too large are left, and one without a term is a contradiction."""

import itertools

import numpy as np
import pytest

import clampz as cz


@pytest.mark.parametrize(("num_factors", "stays"), [(64, False), (65, True)])
def test_a_sum_uses_up_no_more_factors_than_there_is_room_for(num_factors, stays):
    rng = np.random.default_rng(0)
    scopes = [(0, *scope) for scope in itertools.combinations(range(1, 9), 4)][:num_factors]
    factors = [(scope, rng.normal(size=[2] * len(scope))) for scope in [*scopes, range(9, 17)]]
    found = cz.simplify(cz.Model.from_factors([2] * 17, factors), keep=range(1, 17))
    assert (0 in found.variables) == stays


@pytest.mark.parametrize(("num_neighbours", "stays"), [(4, False), (5, True)])
def test_a_sum_leaves_no_larger_table_than_it_replaces(num_neighbours, stays):
    """Tables of four entries each; another of the model is as large as any of the sums."""
    rng = np.random.default_rng(0)
    factors = [((0, i), rng.normal(size=(2, 2))) for i in range(1, num_neighbours + 1)]
    wide = list(range(num_neighbours + 1, num_neighbours + 7))
    model = cz.Model.from_factors([2] * (num_neighbours + 7), [*factors, (wide, rng.normal(size=[2] * 6))])
    assert (0 in cz.simplify(model, keep=range(1, model.num_variables)).variables) == stays


@pytest.mark.parametrize(("num_states", "stays"), [(130, True), (120, False)])
def test_products_of_large_matrices_are_left_to_exact_sums(num_states, stays):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(num_states, num_states))
    model = cz.Model.from_factors([num_states] * 4, [((0, 1), table), ((0, 2), table), ((1, 3), table)])
    assert (0 in cz.simplify(model, keep=(1, 2, 3)).variables) == stays


def test_a_sum_without_a_term_is_infeasible():
    """Two factors agree with each state of each variable, and with none of those that both are about."""
    same_half = np.arange(4)[:, None] // 2 == np.arange(4) // 2
    tables = [np.where(half[:, :, None], [0.0, 0.5], -np.inf) for half in (same_half, ~same_half)]
    model = cz.Model.from_factors([4, 4, 2, 2], [((0, 1, 2), tables[0]), ((0, 1, 3), tables[1])])
    found = cz.simplify(model)
    assert "(0, 1, 2), (0, 1, 3)" in found.infeasibility
    assert cz.exact(found.model).log_z == -np.inf
