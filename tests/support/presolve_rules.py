"""How often each rule of the presolve applies to the models that the tests draw.

Kernels are seen from within only where they run uncompiled: `NUMBA_DISABLE_JIT=1 python presolve_rules.py 300`, in this
folder, prints a table for 300 examples, as JSON.
"""

import inspect
import json
import sys
from collections import Counter
from contextlib import suppress
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from presolve_cases import cases

import clampz as cz
from clampz._kernels.presolve import (
    containment,
    domain_reduction,
    factor_reduction,
    functional_dependence,
    sum_out,
    tables,
)
from clampz.errors import EvidenceError

# Calls that are a rule's: of a function, by another if that is said, with this value returned if there is one.
RULES = {
    "a state without support is ruled out": ("rule_out_state", "remove_unsupported_states", None),
    "a state is ruled out by a factor that became part of a unary table": ("rule_out_state", "add_to_unary", None),
    "impossible states are cut from a table": ("cut_axis", None, None),
    "a variable with one state left is fixed": ("fix_variable", None, None),
    "a factor of one variable becomes part of its unary table": ("dissolve_factor", None, None),
    "an axis is split off a factor": ("split_axis", None, True),
    "a factor is multiplied into a larger one": ("multiply_in", "multiply_into_superset", None),
    "a new factor takes in a smaller one": ("multiply_in", "absorb_subsets", None),
    "a variable is a function of another": ("substitute", None, None),
    "a function in a table that has both variables": ("take_diagonal", None, None),
    "a function in a table that has one of them": ("permute", None, None),
    "a variable is summed out": ("fill_sum", "sum_out", None),
    "a sum waits for room": ("sum_out", None, False),
    "a function waits for room": ("reduce_factor", None, False),
}
MODULES = (containment, domain_reduction, factor_reduction, functional_dependence, sum_out, tables)


class Calls:
    """A profiler, for `sys.setprofile`: calls of the presolve's parts by name, caller and value."""

    def __init__(self):
        self.files = {module.__file__ for module in MODULES}
        self.found = Counter()

    def __call__(self, frame, event, value):
        if event == "return" and frame.f_code.co_filename in self.files:
            called = bool(value) if isinstance(value, bool | np.bool_) else None
            self.found[frame.f_code.co_name, frame.f_back.f_code.co_name, called] += 1

    def of(self, function, caller, value):
        return sum(
            number
            for (name, by, returned), number in self.found.items()
            if name == function and caller in (None, by) and value in (None, returned)
        )


def count_rules(num_examples):
    """{rule: times} over this many examples, the same ones every time."""
    calls, counts = Calls(), Counter()

    @seed(0)
    @settings(
        max_examples=num_examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def draw(case):
        model = case.model
        with mock.patch("clampz.presolve.pools.SPARE", len(case.factors) % 3), suppress(EvidenceError):
            sys.setprofile(calls)
            try:
                found = cz.simplify(model, **case.options)
            finally:
                sys.setprofile(None)
            words = " ".join(found.words)
            counts["a constant factor is removed"] += "constant factor" in words
            counts["Z = 0 is found"] += bool(found.infeasibility)

    with np.errstate(all="ignore"):
        draw()
    return {name: calls.of(*rule) for name, rule in RULES.items()} | dict(counts)


if __name__ == "__main__":
    assert inspect.isfunction(sum_out.sum_out), "run with NUMBA_DISABLE_JIT=1"
    print(json.dumps(count_rules(int(sys.argv[1])), indent=2))
