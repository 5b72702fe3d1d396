"""Counting is for models full of zeros whose sums take long."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.model_counting import choice
from clampz.model_counting.choice import worth_counting

pytestmark = pytest.mark.nojit
IMPLIES = np.array([[0.0, 0.0], [-math.inf, 0.0]])


def chain(n, num_hard):
    soft = {(i, i + 1): np.eye(2) for i in range(n - 1)}
    return cz.Model(np.zeros((n, 2)), soft | {(i, i + 1): IMPLIES for i in range(num_hard)})


def test_by_the_tables_that_have_zeros():
    assert worth_counting(chain(11, 5), math.inf)
    assert not worth_counting(chain(11, 4), math.inf)


def test_before_anything_else_if_next_to_all_of_it_is_constraints():
    """Tables with zeros that say more than which states may be together are no clauses."""
    assert worth_counting(chain(11, 9), math.inf, first=True)
    assert not worth_counting(chain(11, 8), math.inf, first=True)
    says_more = np.array([[0.0, 0.5], [-math.inf, 0.0]])
    soft = cz.Model(np.zeros((11, 2)), {(i, i + 1): says_more for i in range(10)})
    assert worth_counting(soft, math.inf) and not worth_counting(soft, math.inf, first=True)


def test_factors_are_tables_too():
    clause = np.zeros((2,) * 5)
    clause[(0,) * 5] = -math.inf
    model = cz.Model.from_factors([2] * 8, [(range(i, i + 5), clause) for i in range(4)] + [((0, 1), np.eye(2))] * 3)
    assert worth_counting(model, 60.0)


def test_not_for_what_is_summed_soon():
    assert not worth_counting(chain(11, 10), choice.SOON / 2)


@pytest.mark.parametrize("model", [cz.Model([]), cz.Model([[0.0, -math.inf]]), cz.Model([[0.0]] * 3)])
def test_not_without_tables(model):
    assert not worth_counting(model, math.inf)


def test_not_for_more_tables_than_can_be_counted(monkeypatch):
    monkeypatch.setattr(choice, "MOST_TABLES", 10)
    assert worth_counting(chain(11, 10), math.inf)
    assert not worth_counting(chain(12, 11), math.inf)
