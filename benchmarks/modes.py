"""The best configuration, side by side with toulbar2 (`pip install pytoulbar2`): the same optimum, and both times.

    python benchmarks/modes.py [--quick]

The reference models, tori of the paper's kind, and the models of the folder that CLAMPZ_UAI names, ten seconds for each
on either side, toulbar2 in a process of its own, which it ends as it likes.  It works in whole numbers: costs are
rounded to some decimals, and optima agree to that.  A score here that was called optimal and is less than the one
there, or a bound below that, is wrong.  Ratios are toulbar2's seconds over ours, of models that both have proven: above
1, clampz is quicker.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import clampz as cz
from timing import (
    REFERENCE,
    Claim,
    alone,
    in_fresh_process,
    peer,
    print_table,
    read_with_evidence,
    uai_files,
    worst,
)

# Decimals of a cost in toulbar2, and by how much scores may differ for that, per table.
DECIMALS = 6
SECONDS = 10.0
TORI = (10, 14, 18)


def files(quick: bool, folder: Path) -> Iterator[Path]:
    yield from sorted(REFERENCE.glob("*81*.uai" if quick else "*.uai"))
    for side in TORI[: 1 if quick else None]:
        path = folder / f"torus {side}x{side} [-6,6].uai"
        cz.write(cz.generators.grid(side, side, weights=(-6, 6), rng=0), path)
        yield path
    yield from uai_files("Promedus" if quick else "")


def by_toulbar2(path: str, seconds: float) -> tuple[float, bool, float]:
    """The best score there, whether it is said to be optimal, and the seconds it took."""
    model, pytoulbar2 = read_with_evidence(Path(path)), peer("pytoulbar2")
    began = time.perf_counter()
    tables = [((i,), table) for i, table in enumerate(model.unary)]
    tables += [(tuple(edge), model.pairwise[edge]) for edge in model.pairwise]
    tables += [(factor.scope, factor.table) for factor in model.factors]
    finite = [table[table > -np.inf] for _, table in tables]
    top = sum(float(each.max() - each.min()) for each in finite if each.size) + 1.0
    problem = pytoulbar2.CFN(top, resolution=DECIMALS)
    for i, size in enumerate(model.num_states.tolist()):
        problem.AddVariable(f"x{i}", range(size))
    for (scope, table), each in zip(tables, finite, strict=True):
        if each.size:
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
    return model.score(np.array(found[0], dtype=np.int32)), taken < seconds, taken


def main(quick: bool) -> list[Claim]:
    peer("pytoulbar2")
    seconds = SECONDS / 5 if quick else SECONDS
    rows: list[list[object]] = []
    ratios: dict[str, float] = {}
    wrong = only_here = only_there = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = list(files(quick, Path(folder)))
        cz.mode(read_with_evidence(paths[0]))  # compiles
        for path in paths:
            name, model = path.stem, read_with_evidence(path)
            ours = cz.mode(model, time=seconds)
            asked = json.dumps([str(path), seconds])
            try:
                theirs, is_optimal, taken = in_fresh_process(__file__, "--measure", asked, seconds=3 * seconds + 60)
            except RuntimeError:  # it ends the process at its time limit where it has found nothing
                theirs, is_optimal, taken = -math.inf, False, seconds
            near = 10.0**-DECIMALS * (model.num_variables + model.num_edges + len(model.factors))
            is_wrong = ours.upper < theirs - 1e-6 or (ours.is_optimal and ours.score < theirs - 1e-6)
            is_wrong = is_wrong or (is_optimal and ours.score > theirs + near)
            wrong, only_here = wrong + is_wrong, only_here + (ours.is_optimal and not is_optimal)
            only_there += is_optimal and not ours.is_optimal
            if ours.is_optimal and is_optimal:
                ratios[name] = taken / ours.seconds
            here = [f"{ours.score:.6f}", "optimal" if ours.is_optimal else f"<= {ours.upper:.6f}", ours.seconds]
            there = [f"{theirs:.6f}", "optimal" if is_optimal else "", taken, ratios.get(name, "")]
            rows.append([name, *here, *there, "WRONG" if is_wrong else ""])
            print(*rows[-1], sep=" | ", flush=True)
    header = ["model", "score", "", "s", "toulbar2's", "", "s", "ratio", ""]
    print_table(f"Best configurations, {seconds:g} s each", header, rows)
    return [
        Claim("modes: wrong", float(wrong), "<=", 0.0),
        Claim("modes: proven there alone, less those proven here alone", float(only_there - only_here), "<=", 0.0),
        Claim("modes: toulbar2's seconds / ours, median", float(np.median([*ratios.values()]))),
        *worst("modes: toulbar2's seconds / ours", ratios, ">=", 1.0),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print("\n" + json.dumps(by_toulbar2(*json.loads(sys.argv[2]))))
    else:
        alone(main)
