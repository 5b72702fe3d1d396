"""Time per sweep and peak memory on open grids of 10^4 to 10^6 variables, each measured in a process of its own.

    python benchmarks/scaling.py [--quick]

The sweeps are timed between the first and the last report to the progress callback, so looks at the bound are part of them and the set-up is not:
the set-up (starts, edge weights, first sweep) and the edge weights are stated apart.  Mean field runs 16 starts as lanes and Bethe four, as they do by default.
"""

import json
import sys
import time
from typing import Any

from timing import Claim, in_fresh_process, median, peak_megabytes, print_claims, print_table

NUM_SWEEPS = 20
# Lanes that the default options make of one model.
LANES = {"mean_field": 16, "bethe": 4, "trw": 1}
LIMIT_MEGABYTES = 2048


def measure(method: str, side: int, threads: int) -> dict[str, float]:
    """One run of a method on a grid, in this process."""
    import clampz as cz
    from clampz.approximations.edge_weights import uniform_weights

    solve = getattr(cz, method)
    solve(cz.generators.grid(60, 60, toroidal=False, rng=0), tol=0, max_iter=NUM_SWEEPS, threads=threads)  # loads the kernels
    result = {"imported": peak_megabytes()}
    began = time.perf_counter()
    model = cz.generators.grid(side, side, toroidal=False, rng=0)
    result |= {"model seconds": time.perf_counter() - began, "model": peak_megabytes()}
    began = time.perf_counter()
    topology = model.topology
    result |= {"topology seconds": time.perf_counter() - began, "topology": peak_megabytes()}
    began = time.perf_counter()
    uniform_weights(topology)
    result |= {"weights seconds": time.perf_counter() - began, "weights": peak_megabytes()}
    reports: list[cz.Progress] = []
    began = time.perf_counter()
    solve(model, tol=0, max_iter=NUM_SWEEPS, threads=threads, progress=reports.append)
    first, last = reports[0], reports[-1]
    per_sweep = (last.seconds - first.seconds) / (last.num_iter - first.num_iter)
    return result | {"total": time.perf_counter() - began, "set-up": first.seconds, "sweep": per_sweep, "peak": peak_megabytes()}


def fresh(method: str, side: int, threads: int, repeats: int) -> dict[str, float]:
    """The medians of some runs, each in a process of its own."""
    runs = [in_fresh_process(__file__, "--measure", method, str(side), str(threads)) for _ in range(repeats)]
    return {name: median(run[name] for run in runs) for name in runs[0]}


def main(quick: bool) -> list[Claim]:
    sides = (100, 316) if quick else (100, 316, 1000)
    repeats = 1 if quick else 3
    rows: list[list[Any]] = []
    memory: list[list[Any]] = []
    claims = []
    for method, lanes in LANES.items():
        small = 0.0
        for side in sides:
            count = side * side * lanes
            two = fresh(method, side, 2, repeats)
            one = fresh(method, side, 1, repeats)
            small = small or one["sweep"] / count
            ratio, speed_up = one["sweep"] / count / small, one["sweep"] / two["sweep"]
            times = [1e3 * one["sweep"], 1e9 * one["sweep"] / count, ratio, speed_up, two["set-up"], two["weights seconds"], two["total"]]
            rows.append([method, f"{side**2:,}", lanes, *times, two["peak"]])
            if side == sides[-1]:
                stages = ("imported", "model", "topology", "weights", "peak")
                memory.append([method, f"{side**2:,}", *(two[stage] for stage in stages), 2**20 * (two["peak"] - two["imported"]) / side**2])
                claims += [
                    Claim(f"{method}: time per variable, lane and sweep at {side**2:,} / at {sides[0] ** 2:,} variables, one thread", ratio),
                    Claim(f"{method}: one thread / two threads at {side**2:,} variables", speed_up),
                    Claim(f"{method}: peak memory at {side**2:,} variables / {LIMIT_MEGABYTES} MB", two["peak"] / LIMIT_MEGABYTES, "<=", 1.0),
                ]
    print_table(
        f"Open grids, {NUM_SWEEPS} sweeps: a sweep on one thread, and what two threads gain; set-up, weights, total and peak with two threads",
        ["method", "variables", "lanes", "ms/sweep", "ns/variable, lane", "/smallest", "2 threads", "set-up s", "weights s", "total s", "peak MB"],
        rows,
    )
    print_table("Peak memory in MB after each stage", ["method", "variables", "import", "model", "topology", "weights", "run", "bytes/variable"], memory)
    return claims


if __name__ == "__main__":
    if "--measure" in sys.argv:
        method, side, threads = sys.argv[-3:]
        print(json.dumps(measure(method, int(side), int(threads))))
    else:
        print_claims(main("--quick" in sys.argv))
