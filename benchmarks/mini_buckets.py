"""Weighted mini-buckets: time per table entry and evaluation, and bounds on a model after one and after ten seconds.

    python benchmarks/mini_buckets.py [model.uai [log2 of the limit ...]]

Without a model, a 20 x 20 torus of strong couplings.  The bare loop, one exponential and one logarithm for every two
entries, runs in turns with the passes: what they take beside it is additions, and memory.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

import clampz as cz
from clampz._kernels import mini_buckets_passes as passes
from clampz._kernels.jit import kernel
from clampz._kernels.mini_buckets_layout import AS_THEY_ARE
from clampz._kernels.simd_math import exp, log
from clampz.mini_buckets.descent import State, optimise
from clampz.mini_buckets.structure import Structure
from clampz.mini_buckets.tables import Tables
from clampz.watch import NEVER, Watch

REPEATS = 50
SECONDS = (1.0, 10.0)


@kernel
def bare(values, out):
    for j in range(out.size):
        out[j] = log(1.0 + exp(-abs(values[j])))


def best(*works: Callable[[], object]) -> list[float]:
    """Least seconds of each, taking turns."""
    found = [np.inf] * len(works)
    for _ in range(REPEATS + 1):
        for k, work in enumerate(works):
            began = time.perf_counter()
            work()
            found[k] = min(found[k], time.perf_counter() - began)
    return found


def speed(model: cz.Model, limit: int) -> None:
    """Nanoseconds per entry."""
    tables = Tables.of(model, Structure.of(model, limit))
    state = State.upper(tables, model.unary.flat)
    optimise(state, 2)
    work, gradient = tables.new_pass(), np.empty_like(state.x)
    values, out = np.random.default_rng(0).normal(size=len(tables.theta) // 2), np.empty(len(tables.theta) // 2)
    forwards = (tables.layout, state.theta, state.size, tables.roundings, state.x, state.main, AS_THEY_ARE, work, NEVER)
    there, back, alone = best(
        lambda: passes.forwards(*forwards),
        lambda: passes.backwards(tables.layout, state.x, state.main, work, gradient, NEVER),
        lambda: bare(values, out),
    )
    each = 1e9 / len(tables.theta)
    print(
        f"limit {limit:8d}: {len(tables.theta):9d} entries, ns per entry: forwards {there * each:5.2f}, "
        f"backwards {back * each:5.2f}, in all {(there + back) * each:5.2f}; bare exp and log {alone * each:5.2f}"
    )


def bounds(model: cz.Model, limit: int) -> None:
    """Upper and lower bounds after some seconds each; building the structure included."""
    for seconds in SECONDS:
        watch = Watch(seconds)
        tables = Tables.of(model, Structure.of(model, limit))
        upper = State.upper(tables, model.unary.flat)
        optimise(upper, 10**6, watch)
        below = Tables.of(model, Structure.of(model, limit, grow=False))
        start = State.upper(below, model.unary.flat)
        optimise(start, 60)
        watch = Watch(seconds)
        lower = State.lower(below, model.unary.flat, start.x)
        optimise(lower, 10**6, watch)
        print(
            f"limit {limit:8d}, {seconds:4.0f} s each: upper {upper.bound:.4f} ({upper.num_evaluations} evaluations), "
            f"lower {lower.bound:.4f} ({lower.num_evaluations} evaluations from {start.num_evaluations} from above)"
        )


def main() -> None:
    arguments = sys.argv[1:]
    model = cz.read(arguments[0]) if arguments else cz.generators.grid(20, 20, weights=(-6, 6), rng=0)
    for exponent in map(int, arguments[1:] or ["11", "14"]):
        speed(model, 2**exponent)
        bounds(model, 2**exponent)


if __name__ == "__main__":
    main()
