"""Presolve: what it costs, and that it never makes exact or bound slower than they were by more than a tenth.

    python benchmarks/presolve.py [--quick]

The 44 reference models and a model of each of the paper's families are summed and bracketed as they are, and as `exact`
and `bound` do it, which simplify first where that may pay; the two take turns, model by model, and the quickest times
count.  What presolve costs per table entry is measured on large models of several shapes.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import patch

import clampz as cz
from clampz.bounding.tree import branch_and_bound
from clampz.exact_inference import plans
from clampz.presolve.simplified import unchanged
from limits import SHAPES
from timing import REFERENCE, Claim, alone, interleaved, print_table

QUICK = ("K10", "er25", "grid49", "complete15", "regular25")
# Shapes of `limits.py` on which the cost per entry is measured.
LARGE = ("chain of 10^5", "grid 316x316", "star of 10^4", "4,000 clauses' variables", "40 factors of 12", "K300")
# How much longer a call may take, and the seconds that presolve may take for each entry of a model's tables.
SLOWER, SECONDS_PER_ENTRY = 1.1, 0.1 / 1e5

Found = tuple[float, float]
Call = Callable[[cz.Model], Found]


def summed(model: cz.Model) -> Found:
    estimate = cz.exact(model)
    return estimate.lower, estimate.upper


def summed_as_it_is(model: cz.Model) -> Found:
    with patch.object(plans, "_is_quick", lambda *asked: True):
        return summed(model)


def bracketed(model: cz.Model) -> Found:
    bracket = cz.bound(model, gap=1e-6, time=20.0, threads=1)
    return bracket.lower, bracket.upper


def bracketed_as_it_is(model: cz.Model) -> Found:
    with patch.object(branch_and_bound, "simplify_once", nothing), patch.object(plans, "simplify_once", nothing):
        return bracketed(model)


def nothing(model: cz.Model, **options: object) -> cz.results.Simplified:
    return unchanged(model, "sum")


CALLS: dict[str, tuple[Call, Call]] = {
    "exact": (summed_as_it_is, summed),
    "bound": (bracketed_as_it_is, bracketed),
}


def models(quick: bool) -> Iterator[tuple[str, cz.Model]]:
    for path in sorted(REFERENCE.glob("*.uai")):
        if not quick or path.name.startswith(QUICK):
            yield path.stem, cz.read(path)
    for name, model in drawn():
        if not quick or name.startswith(QUICK):
            yield name, model


def drawn() -> Iterator[tuple[str, cz.Model]]:
    """Yield a model of each of the paper's families."""
    draw = cz.generators
    for low, high in ((0, 2), (0, 6), (-6, 6), (-12, 12)):
        how, kind = {"weights": (low, high), "rng": 0}, f"[{low},{high}]"
        for side in (5, 7, 9):
            size = side * side
            yield f"grid{size}{kind}", draw.grid(side, side, **how)
            yield f"er{size}{kind}", draw.erdos_renyi(size, 4, **how)
            yield f"regular{size}{kind}", draw.regular(size, 4, **how)
        for size in (10, 15):
            yield f"complete{size}{kind}", draw.complete(size, **how)


def main(quick: bool) -> list[Claim]:
    return [*compared(quick), *cost(quick)]


def compared(quick: bool) -> list[Claim]:
    """Each call on each model, as it is and simplified first."""
    rows, ratios = [], {name: list[float]() for name in CALLS}
    for name, model in models(quick):
        left = cz.simplify(model).model
        row: list[object] = [name, model.num_variables, left.num_variables]
        for called, (call, first) in CALLS.items():
            call(model), first(model)  # compiles
            began = time.process_time()
            (lower, upper), (least, most) = call(model), first(model)
            # many short turns, on the processor's clock: load hides what a tenth of a millisecond is
            repeats = min(100, max(9, int((0.2 if quick else 1.0) / (time.process_time() - began))))
            assert lower <= most and least <= upper, f"{name}: [{lower}, {upper}] and [{least}, {most}]"
            turns = {"as it is": partial(call, model), "first": partial(first, model)}
            seconds = interleaved(turns, repeats, at_least=0.0, clock=time.process_time)
            ratios[called].append(seconds["first"] / seconds["as it is"])
            row += [1e3 * seconds["as it is"], 1e3 * seconds["first"], ratios[called][-1]]
        rows.append(row)
    header = ["model", "variables", "left"]
    header += [text for called in CALLS for text in (f"{called} ms", "simplified first", "ratio")]
    print_table("As they are, and simplified first", header, rows)
    claims = []
    for called, found in ratios.items():
        claims += [
            Claim(f"presolve: {called} simplified first / as it is, largest", max(found), "<=", SLOWER),
            Claim(f"presolve: {called} simplified first / as it is, median", statistics.median(found)),
        ]
    return claims


def cost(quick: bool) -> list[Claim]:
    """Seconds of presolve alone, per table entry."""
    rows, worst = [], 0.0
    for name in LARGE:
        model = SHAPES[name].large()
        entries = len(model.unary.flat) + len(model.pairwise.flat) + len(model.factors.flat)
        left = cz.simplify(model).model
        seconds = interleaved({name: partial(cz.simplify, model)}, 1 if quick else 3)[name]
        worst = max(worst, seconds / entries)
        rows.append([name, entries, model.num_variables, left.num_variables, seconds, 1e5 * seconds / entries])
    header = ["model", "entries", "variables", "left", "seconds", "per 10^5 entries"]
    print_table("What presolve costs", header, rows)
    return [Claim("presolve: seconds per entry / those allowed, largest", worst / SECONDS_PER_ENTRY, "<=", 1.0)]


if __name__ == "__main__":
    alone(main)
