"""The rules of the presolve: random models reach each of them, many times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from presolve_checks import check

import clampz as cz

EXAMPLES, LEAST = 300, 3


def test_every_rule_applies_to_some_of_the_models_that_are_drawn():
    """In a process without compilation, where calls within kernels are seen."""
    done = subprocess.run(
        [sys.executable, "presolve_rules.py", str(EXAMPLES)],
        cwd=Path(__file__).parents[2] / "support",
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    times = json.loads(done.stdout)
    assert len(times) >= 16
    assert not {rule: number for rule, number in times.items() if number < LEAST}, done.stdout


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
