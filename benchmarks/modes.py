"""The best configuration, side by side with toulbar2 (`pip install pytoulbar2`): the same optimum, and both times.

    python benchmarks/modes.py 10 model.uai ...

10 seconds for each model, with the evidence of model.uai.evid where that is there.  toulbar2 works in whole numbers:
costs are rounded to some decimals, and optima agree to that.  A score here that was called optimal and is less than the
one there, or a bound below that, is an error, and the exit code says so.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
import pytoulbar2

import clampz as cz

# Decimals of a cost in toulbar2, and by how much scores may differ for that, per table.
DECIMALS = 6


def by_toulbar2(model: cz.Model, seconds: float) -> tuple[float, bool, float]:
    """The best score there, whether it is said to be optimal, and the seconds it took."""
    began = time.perf_counter()
    tables = [((i,), table) for i, table in enumerate(model.unary)]
    tables += [(tuple(edge), model.pairwise[edge]) for edge in model.pairwise]
    tables += [(factor.scope, factor.table) for factor in model.factors]
    finite = [table[table > -np.inf] for _, table in tables]
    top = sum(float(each.max() - each.min()) for each in finite if each.size) + 1.0
    problem = pytoulbar2.CFN(top, resolution=DECIMALS)
    for i, size in enumerate(model.num_states.tolist()):
        problem.AddVariable(f"x{i}", range(size))
    offset = model.constant
    for (scope, table), each in zip(tables, finite, strict=True):
        if each.size:
            offset += float(each.max())
            costs = np.minimum(float(each.max()) - table, top)
            problem.AddFunction([f"x{i}" for i in scope], costs.ravel().tolist())
    problem.CFN.timer(max(1, math.ceil(seconds)))
    try:
        found = problem.Solve()
    except Exception:  # it raises what it likes at its time limit
        found = None
    taken = time.perf_counter() - began
    if not found:
        return -math.inf, False, taken
    states = np.array(found[0], dtype=np.int32)
    return model.score(states), taken < seconds, taken


def main(seconds: float, paths: list[Path]) -> int:
    wrong = 0
    for path in paths:
        known = path.with_name(f"{path.name}.evid")
        model = cz.read(path, known if known.exists() else None)
        ours = cz.mode(model, time=seconds)
        theirs, is_optimal, taken = by_toulbar2(model, seconds)
        near = 10.0**-DECIMALS * (model.num_variables + model.num_edges + len(model.factors))
        is_wrong = ours.upper < theirs - 1e-6 or (ours.is_optimal and ours.score < theirs - 1e-6)
        is_wrong = is_wrong or (is_optimal and ours.score > theirs + near)
        wrong += is_wrong
        here = f"{ours.score:14.6f} {'=' if ours.is_optimal else f'<= {ours.upper:.6f}':20} {ours.seconds:7.2f} s"
        there = f"{theirs:14.6f} {'=' if is_optimal else '':2} {taken:7.2f} s"
        print(f"{path.name:28} {here}   toulbar2 {there}  {'WRONG' if is_wrong else ''}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
