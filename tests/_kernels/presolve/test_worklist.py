"""The worklist of the presolve: whatever ends it, what is left is a model with the same sums, maxima and marginals; and
random models reach each of its rules, many times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from decimals import Oracle
from hypothesis import given, settings
from presolve_cases import cases
from presolve_checks import check

from clampz._kernels.presolve import pools as state
from clampz._kernels.presolve.pools import Pools
from clampz._kernels.presolve.worklist import FULL, INFEASIBLE, apply_rules
from clampz._kernels.statuses import DONE
from clampz.presolve import simplify
from clampz.presolve.pools import build_pools, grow_pools
from clampz.presolve.simplified import simplified_by

EXAMPLES, LEAST = 400, 3
GOES_ON = np.zeros(1, dtype=np.uint8)


def steps(model, case):
    """What the rules have made of a model whenever they have touched a table."""
    maximum = case.operation == "max"
    kept = np.isin(np.arange(model.num_variables), case.keep)
    pools = build_pools(model, kept, pairwise=case.pairwise, pins=case.marginals and not maximum, maximum=maximum)
    state.begin(pools, GOES_ON)
    status = None
    while status not in (DONE, INFEASIBLE):
        status = apply_rules(pools, pools.count[state.WORK], GOES_ON)
        pools = grow_pools(pools) if status == FULL else pools
        copy = Pools(*map(np.copy, pools))
        yield simplified_by(model, case.operation, copy, simplify._reduced(copy, model, kept), is_complete=False)


@pytest.mark.checked
@settings(max_examples=settings.default.max_examples // 2)
@given(cases(most=5, evidence=None))
def test_the_presolve_may_be_interrupted_after_every_step(case):
    whole = Oracle.of(case.model)
    for found in steps(case.model, case):
        check(found, case.keep, whole)


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
