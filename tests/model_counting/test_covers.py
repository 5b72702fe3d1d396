"""Cubes hold what they must, and nothing that they may not."""

import itertools

import numpy as np
import pytest

from clampz.model_counting.covers import cover

pytestmark = pytest.mark.nojit


def entries(cube, shape):
    """Of a cube, by looking at every entry of the table."""
    sides = list(zip(cube, range(len(shape)), strict=True))
    return {
        entry
        for entry in itertools.product(*map(range, shape))
        if all(side is None or (entry[k] == side if side >= 0 else entry[k] != ~side) for side, k in sides)
    }


@pytest.mark.parametrize("seed", range(30))
def test_cubes_hold_what_they_must_and_nothing_that_they_may_not(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, rng.integers(1, 5)))
    must = rng.random(shape) < rng.random()
    may = must | (rng.random(shape) < rng.random())
    cubes = [entries(cube, shape) for cube in cover(must, may)]
    assert set(zip(*map(list, np.nonzero(must)), strict=True)) <= set().union(*cubes)
    assert set().union(*cubes) <= set(zip(*map(list, np.nonzero(may)), strict=True))
    assert not any(one <= other for one, other in itertools.permutations(cubes, 2))


def test_a_function_of_some_variables_is_a_clause_per_value():
    allowed = np.zeros((2, 3, 4), dtype=bool)
    for a, b in itertools.product(range(2), range(3)):
        allowed[a, b, a + b] = True
    assert cover(~allowed, ~allowed) == [(a, b, ~(a + b)) for a in range(2) for b in range(3)]


def test_a_clause_is_one_cube():
    zero = np.zeros((2,) * 12, dtype=bool)
    zero[(0, 1) * 6] = True
    assert cover(zero, zero) == [(0, 1) * 6]
