"""Variables that are functions of others go where no table grows."""

import numpy as np
from presolve_checks import check

import clampz as cz


def parity_of_one_of_four():
    """log P of a variable of two states that says whether one of four has an odd state, and of nothing else."""
    return np.where(np.arange(4)[:, None] % 2 == np.arange(2), np.random.default_rng(0).normal(size=(4, 2)), -np.inf)


def test_a_function_stays_where_a_table_would_grow():
    """Its tables with five others, which are kept, have no axis for the variable that it is a function of."""
    others = [((1, k), np.random.default_rng(k).normal(size=(2, 2))) for k in range(2, 7)]
    model = cz.Model.from_factors([4] + [2] * 6, [((0, 1), parity_of_one_of_four()), *others])
    for keep in (range(2, 7), (0, *range(2, 7))):
        found = cz.simplify(model, keep=keep)
        check(found, keep)
        assert 1 in found.variables and not any("determined" in words for words in found.words)


def test_a_function_goes_where_all_of_its_tables_have_both_variables():
    table = np.random.default_rng(0).normal(size=(4, 2, 2))
    model = cz.Model.from_factors([4, 2, 2], [((0, 1), parity_of_one_of_four()), ((0, 1, 2), table)])
    found = cz.simplify(model, keep=(0, 2))
    check(found, (0, 2))
    assert "1 variable determined by others" in found.words
