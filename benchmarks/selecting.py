"""Scores of all variables on graphs of 10^4 and 10^5 variables: each heuristic, and the entropies of the +TRE ones.

    python benchmarks/selecting.py [--quick]

The unit beside the milliseconds is a sweep of TRW over the same graph on one thread: what a score costs next to the
approximation it serves. (A file named like the package it measures would hide the module `selectors` of the standard
library.)
"""

from collections.abc import Callable

import clampz as cz
from clampz.clamping.selectors.entropy import trw_entropies
from timing import Claim, alone, interleaved, print_table, worst

SIZES = (10_000, 100_000)
SIDES = {10_000: 100, 100_000: 316}
NUM_SWEEPS = 20
# What a person waits for without asking what it does.
LIMIT_SECONDS = 5.0


def families(n: int) -> dict[str, Callable[[], cz.Model]]:
    side = SIDES[n]
    return {
        f"{side}x{side} torus": lambda: cz.generators.grid(side, side, rng=0),
        "Erdos-Renyi, degree 4": lambda: cz.generators.erdos_renyi(n, 4.0, rng=0),
        "4-regular": lambda: cz.generators.regular(n, 4, rng=0),
    }


def seconds_per_sweep(model: cz.Model) -> float:
    reports: list[cz.results.Progress] = []
    cz.trw(model, tol=0, max_iter=NUM_SWEEPS, threads=1, progress=reports.append)
    return (reports[-1].seconds - reports[0].seconds) / (reports[-1].num_iter - reports[0].num_iter)


def main(quick: bool) -> list[Claim]:
    plain = [name for name in cz.selectors() if "+TRE" not in name]
    rows, slowest, growth = [], dict.fromkeys(plain, 0.0), dict.fromkeys(plain, 0.0)
    entropy_rows, slowest_entropy = [], 0.0
    for family in range(3):
        per_variable: dict[str, float] = {}
        for n in SIZES:
            name, build = list(families(n).items())[family]
            model = build()
            model.strength  # noqa: B018 (computed once per model, not once per score)
            sweep = min(seconds_per_sweep(model) for _ in range(1 if quick else 3))
            best = interleaved(
                {selector: lambda model=model, selector=selector: cz.scores(model, selector) for selector in plain},
                1 if quick else 5,
            )
            for selector, seconds in best.items():
                ratio = seconds / model.num_variables / per_variable.setdefault(selector, seconds / model.num_variables)
                rows.append([name, f"{model.num_variables:,}", selector, 1e3 * seconds, seconds / sweep, ratio])
                if n == SIZES[-1]:
                    slowest[selector] = max(slowest[selector], seconds)
                    growth[selector] = max(growth[selector], ratio)
        seconds = min(interleaved({"entropies": lambda model=model: trw_entropies(model)}, 1).values())
        slowest_entropy = max(slowest_entropy, seconds)
        entropy_rows.append([name, f"{model.num_variables:,}", seconds, seconds / sweep])
    print_table(
        "Scores of all variables",
        ["graph", "variables", "selector", "ms", "TRW sweeps", "per variable / smaller"],
        rows,
    )
    print_table(
        "Entropies of the +TRE selectors, weights in [-6, 6]", ["graph", "variables", "s", "TRW sweeps"], entropy_rows
    )
    claims = [
        Claim(
            f"{selector}: slowest of three graphs of 10^5 variables / {LIMIT_SECONDS:g} s",
            slowest[selector] / LIMIT_SECONDS,
            "<=",
            1.0,
        )
        for selector in plain
    ]
    claims.append(
        Claim(
            f"+TRE entropies: slowest of three graphs of 10^5 variables / {2 * LIMIT_SECONDS:g} s",
            slowest_entropy / (2 * LIMIT_SECONDS),
            "<=",
            1.0,
        )
    )
    return claims + worst("scores: time per variable at 10^5 / at 10^4 variables", growth, "<=", 3.0)


if __name__ == "__main__":
    alone(main)
