"""Lanes against one after another: 32 evidence sets (five variables clamped to all their joint states) on a 9x9 grid,
one thread.

    python benchmarks/batching.py [--quick]

To tolerance, a lane may stop sooner than its neighbours; with a fixed number of sweeps both ways do the same work.  The
third way conditions the model on the evidence first, so that it has no clamped variables to carry along: what a mask
costs shows there.
"""

from itertools import product

import clampz as cz
from clampz.model.conditioning import without_known
from timing import Claim, alone, interleaved, print_table

CLAMPED = (0, 13, 40, 56, 74)
WORK = {"to tolerance": {}, "200 sweeps": {"tol": 0.0, "max_iter": 200}}


def main(quick: bool) -> list[Claim]:
    model = cz.generators.grid(9, 9, weights=(-6, 6), rng=0)
    sets = [dict(zip(CLAMPED, states, strict=True)) for states in product((0, 1), repeat=len(CLAMPED))]
    conditioned = [without_known(model, evidence) for evidence in sets]
    rows, claims = [], []
    for method in (cz.trw, cz.bethe, cz.mean_field):
        for work, limits in WORK.items():
            options = {"threads": 1, **limits}
            best = interleaved(
                {
                    "batch": lambda method=method, options=options: method(model, evidence=sets, **options),
                    "singles": lambda method=method, options=options: [
                        method(model, evidence=evidence, **options) for evidence in sets
                    ],
                    "conditioned": lambda method=method, options=options: [
                        method(one, **options) for one in conditioned
                    ],
                },
                1 if quick else 5,
            )
            gain = best["singles"] / best["batch"]
            rows.append(
                [
                    method.name,
                    work,
                    *(1e3 * seconds for seconds in best.values()),
                    gain,
                    best["conditioned"] / best["batch"],
                ]
            )
            claims.append(Claim(f"{method.name}: 32 lanes one after another / in one batch, {work}", gain, ">=", 4.0))
    print_table(
        "32 evidence sets on a 9x9 toroidal grid, ms",
        ["method", "work", "one batch", "one by one", "conditioned", "gain", "gain"],
        rows,
    )
    return claims


if __name__ == "__main__":
    alone(main)
