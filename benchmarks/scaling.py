"""Time per sweep and peak memory on open grids of 10^4 to 10^6 variables, each size in a process of its own.

    python benchmarks/scaling.py [--quick]

The sweeps are timed between the first and the last report to the progress callback, so looks at the bound are part of
them and the set-up is not: the set-up (starts, edge weights, first sweep) and the edge weights are stated apart.  Mean
field runs 16 starts as lanes and Bethe four, as they do by default.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from clampz.runtime.budget import UNLIMITED
from timing import Claim, in_fresh_process, peak_megabytes, print_claims, print_table

NUM_SWEEPS = 20
# Lanes that the default options make of one model.
LANES = {"mean_field": 16, "bethe": 4, "trw": 1}
LIMIT_MEGABYTES = 2048


def measure(method: str, side: int, repeats: int) -> dict[str, float]:
    """A method on a grid, in this process: what each stage takes, and the most memory held by its end."""
    import clampz as cz
    from clampz.approximations.edge_weights import uniform_weights

    result = {}

    def stage(name: str, run: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        value = run()
        result[f"{name} seconds"], result[f"{name} MB"] = time.perf_counter() - began, peak_megabytes()
        return value

    def solve(model: cz.Model, threads: int) -> tuple[float, float]:
        reports: list[cz.results.Progress] = []
        getattr(cz, method)(model, tol=0, max_iter=NUM_SWEEPS, threads=threads, progress=reports.append)
        first, last = reports[0], reports[-1]
        return first.seconds, (last.seconds - first.seconds) / (last.num_iter - first.num_iter)

    stage(
        "kernels", lambda: [solve(cz.generators.grid(250, 250, toroidal=False, rng=0), threads) for threads in (1, 2)]
    )
    model = stage("model", lambda: cz.generators.grid(side, side, toroidal=False, rng=0))
    stage("topology", lambda: model.topology)
    stage("weights", lambda: uniform_weights(model.topology, budget=UNLIMITED))
    set_up, two = stage("run", lambda: solve(model, 2))
    one = float("inf")
    for _ in range(repeats):  # turn by turn
        one = min(one, solve(model, 1)[1])
        two = min(two, solve(model, 2)[1])
    return result | {"set-up": set_up, "one": one, "two": two}


def main(quick: bool) -> list[Claim]:
    sides = (100, 316) if quick else (100, 316, 1000)
    rows: list[list[Any]] = []
    memory: list[list[Any]] = []
    claims = []
    for method, lanes in LANES.items():
        small = 0.0
        for side in sides:
            found = in_fresh_process(__file__, "--measure", method, str(side), "1" if quick else "2")
            per_variable = found["one"] / (side * side * lanes)
            small = small or per_variable
            ratio, speed_up = per_variable / small, found["one"] / found["two"]
            apart = [
                found["set-up"],
                found["weights seconds"],
                found["weights seconds"] / found["two"],
                found["run seconds"],
            ]
            rows.append(
                [
                    method,
                    f"{side**2:,}",
                    lanes,
                    1e3 * found["one"],
                    1e9 * per_variable,
                    ratio,
                    speed_up,
                    *apart,
                    found["run MB"],
                ]
            )
            if side == sides[-1]:
                stages = [found[f"{name} MB"] for name in ("kernels", "model", "topology", "weights", "run")]
                memory.append([method, f"{side**2:,}", *stages, 2**20 * (stages[-1] - stages[0]) / side**2])
                claims += [
                    Claim(
                        f"{method}: time per variable, lane and sweep at {side**2:,} / at {sides[0] ** 2:,} variables",
                        ratio,
                        "<=",
                        2.0,
                    ),
                    Claim(f"{method}: one thread / two threads at {side**2:,} variables", speed_up, ">=", 1.3),
                    Claim(
                        f"{method}: peak memory at {side**2:,} variables / {LIMIT_MEGABYTES} MB",
                        found["run MB"] / LIMIT_MEGABYTES,
                        "<=",
                        1.0,
                    ),
                ]
    print_table(
        f"Open grids, {NUM_SWEEPS} sweeps: a sweep on one thread, and what two threads gain; "
        "set-up, weights, whole run and peak with two threads",
        [
            "method",
            "variables",
            "lanes",
            "ms/sweep",
            "ns/variable, lane",
            "/smallest",
            "2 threads",
            "set-up s",
            "weights s",
            "/sweep",
            "run s",
            "peak MB",
        ],
        rows,
    )
    print_table(
        "Peak memory in MB after each stage",
        ["method", "variables", "kernels", "model", "topology", "weights", "run", "bytes/variable"],
        memory,
    )
    return claims


if __name__ == "__main__":
    if "--measure" in sys.argv:
        method, side, repeats = sys.argv[-3:]
        print(json.dumps(measure(method, int(side), int(repeats))))
    else:
        print_claims(main("--quick" in sys.argv))
