"""Brackets: how often they are wrong (never), and how fast they close.

    python benchmarks/brackets.py [--quick] [--models N] [--seed S] [FILE.uai ...] [--times 1,10,60]

Random models of 2 to 14 variables and 2 to 4 labels, weak to |W| = 50, a quarter with hard zeros, are bracketed with
exact sums off and on, at iteration limits of 1, 2, 5 and the default, and stopped at random moments; every bracket on
the way is compared with log Z.  Files given are bracketed at each of the times.
"""

import argparse
import itertools
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

import clampz as cz
from timing import Claim, print_table

NUM_MODELS, NUM_QUICK = 20_000, 200
MOST_CONFIGURATIONS = 2e5
# The paper's kinds at sizes that no exact method reaches.
WIDE = {
    "torus 16x16, [-6,6]": lambda: cz.generators.grid(16, 16, weights=(-6, 6), rng=0),
    "random 150, [-3,3]": lambda: cz.generators.erdos_renyi(150, degree=4, weights=(-3, 3), rng=0),
    "K26, [-6,6]": lambda: cz.generators.complete(26, weights=(-6, 6), rng=0),
}


def main(quick: bool) -> list[Claim]:
    return [
        *soundness(NUM_QUICK if quick else NUM_MODELS, 0),
        *closing({name: make() for name, make in WIDE.items()}, (1.0,) if quick else (1.0, 10.0)),
    ]


def soundness(num_models: int, seed: int) -> list[Claim]:
    """Every bracket of every run against exact."""
    began = time.perf_counter()
    wrong = wider = wide = brackets = 0
    reasons: Counter[tuple[bool, str]] = Counter()
    for number in range(num_models):
        rng = np.random.default_rng([seed, number])
        model = random_model(rng)
        truth = cz.exact(model)
        for exact in (False, True):
            leaves, max_iter = int(rng.integers(1, 40)), int(rng.choice([1, 2, 5, 300]))
            before: cz.results.Bracket | None = None
            for bracket in cz.iter_bounds(
                model, gap=1e-9, time=0.5, leaves=leaves, exact=exact, max_iter=max_iter, threads=1
            ):
                brackets += 1
                wrong += not (bracket.lower <= truth.upper and truth.lower <= bracket.upper)
                wider += before is not None and (bracket.lower < before.lower or bracket.upper > before.upper)
                before = bracket
                if rng.random() < 0.1:
                    break
            assert before is not None
            wide += before.gap > 0.01
            reasons[exact, before.stopped_by] += 1
        if number % 1000 == 999:
            found = f"{brackets} brackets, {wrong} wrong, {wider} wider than the one before"
            print(f"  {number + 1} models, {found}, {time.perf_counter() - began:.0f} s", flush=True)
    rows = [
        ["exact sums" if exact else "bounds only", reason, count] for (exact, reason), count in sorted(reasons.items())
    ]
    print_table(
        f"{num_models} models, each twice: {brackets} brackets, {wide} runs stopped with a gap above 0.01",
        ["", "stopped by", "runs"],
        rows,
    )
    return [
        Claim("brackets: wrong", float(wrong), "<=", 0.0),
        Claim("brackets: wider than the one before", float(wider), "<=", 0.0),
    ]


def random_model(rng: np.random.Generator) -> cz.Model:
    n, labels = int(rng.integers(2, 15)), int(rng.integers(2, 5))
    while labels**n > MOST_CONFIGURATIONS:
        n -= 1
    num_states = rng.integers(2, labels + 1, size=n)
    density, strength, hard = rng.random(), float(rng.choice([0.3, 1.0, 3.0, 10.0, 50.0])), rng.random() < 0.25
    pairwise: dict[tuple[int, int], Any] = {}
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < density:
            table = rng.uniform(-strength, strength, size=(num_states[i], num_states[j]))
            pairwise[i, j] = np.where(rng.random(table.shape) < 0.2, -np.inf, table) if hard else table
    return cz.Model([rng.uniform(-2, 2, size=k) for k in num_states], pairwise)


def closing(models: dict[str, cz.Model], times: tuple[float, ...]) -> list[Claim]:
    """The bracket at each of these times, from runs of their own."""
    rows = []
    for name, model in models.items():
        for limit in times:
            began = time.perf_counter()
            bracket = cz.bound(model, gap=1e-6, time=limit)
            rows.append(
                [
                    name,
                    limit,
                    time.perf_counter() - began,
                    bracket.lower,
                    bracket.upper,
                    bracket.gap,
                    bracket.estimate,
                    bracket.num_leaves,
                    bracket.stopped_by,
                ]
            )
    print_table(
        "Brackets over time",
        ["model", "limit, s", "took, s", "lower", "upper", "gap", "estimate", "leaves", "stopped by"],
        rows,
    )
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--models", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", default="1,10,60")
    args = parser.parse_args()
    if args.files:
        closing({path: cz.read(path) for path in args.files}, tuple(map(float, args.times.split(","))))
    elif args.models:
        sys.exit(any(claim.verdict != "holds" for claim in soundness(args.models, args.seed)))
    else:
        main(args.quick)
