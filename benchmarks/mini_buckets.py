"""Weighted mini-buckets: time per table entry and evaluation, and bounds after one and after ten seconds.

    python benchmarks/mini_buckets.py [--quick]

A 20 x 20 torus of strong couplings.  The bare loop, one exponential and one logarithm for every two entries, takes
turns with the passes: what they take beside it is additions, and memory.  Lanes of small tables are bounded one by one,
and together.  Bounds are those of `cz.mini_buckets` with default options, and under limits of size and time, beside
TRW's with optimized weights and mean field's.
"""

import itertools
from functools import partial
from time import process_time
from typing import Any

import numpy as np

import clampz as cz
from clampz._kernels.jit import kernel
from clampz._kernels.mini_buckets import passes
from clampz._kernels.mini_buckets.layout import AS_THEY_ARE
from clampz._kernels.simd_math import exp, log
from clampz.approximations.mini_buckets.batched import optimise_together
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.structure import Structure
from clampz.runtime.budget import NEVER, UNLIMITED
from timing import Claim, alone, interleaved, print_table

LIMITS = (2**11, 2**14)
# Lanes of small tables, and the share of the time that they may take together.
LANES, LANE_EVALUATIONS, SMALL_LIMITS = 64, 30, {2**3: 0.4, 2**4: 0.4, 2**6: 0.7, 2**8: 0.9}


@kernel
def bare(values, out):
    for j in range(out.size):
        out[j] = log(1.0 + exp(-abs(values[j])))


def speed(model: cz.Model, max_table: int, repeats: int) -> dict[str, float]:
    """Nanoseconds per entry."""
    tables = Tables.of(model, Structure.of(model, max_table, budget=UNLIMITED), budget=UNLIMITED)
    state = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
    optimise(state, 2, budget=UNLIMITED)
    work, gradient = tables.new_pass(), np.empty_like(state.x)
    num_entries = tables.structure.num_entries
    values, out = np.random.default_rng(0).normal(size=num_entries // 2), np.empty(num_entries // 2)
    forwards = (tables.layout, state.theta, state.size, tables.roundings, state.x, state.main, AS_THEY_ARE, work, NEVER)
    runs = {
        "forwards": partial(passes.forwards, *forwards),
        "backwards": partial(passes.backwards, tables.layout, state.x, state.main, work, gradient, NEVER),
        "bare": partial(bare, values, out),
    }
    return {name: 1e9 * taken / num_entries for name, taken in interleaved(runs, repeats).items()}


def lanes(model: cz.Model, max_table: int, repeats: int) -> dict[str, float]:
    """Seconds that lanes of one thread take, one by one and together: processor's time."""
    tables, rng = (
        Tables.of(model, Structure.of(model, max_table, budget=UNLIMITED), budget=UNLIMITED),
        np.random.default_rng(0),
    )
    unary = [model.unary.flat + rng.normal(size=len(model.unary.flat)) for _ in range(LANES)]

    def one_by_one() -> None:
        for lane in unary:
            optimise(BoundState.upper(tables, lane, budget=UNLIMITED), LANE_EVALUATIONS, budget=UNLIMITED)

    def together() -> None:
        optimise_together(
            [BoundState.upper(tables, lane, budget=UNLIMITED) for lane in unary], LANE_EVALUATIONS, budget=UNLIMITED
        )

    return interleaved({"one by one": one_by_one, "together": together}, repeats, clock=process_time)


def main(quick: bool) -> list[Claim]:
    model = cz.generators.grid(20, 20, weights=(-6, 6), rng=0)
    rows: list[list[Any]] = []
    claims = []
    for max_table in LIMITS:
        took = speed(model, max_table, 10 if quick else 50)
        ratio = (took["forwards"] + took["backwards"]) / took["bare"]
        rows.append([f"{max_table:,}", *took.values(), ratio])
        claims.append(Claim(f"mini-buckets: both passes / bare exp and log, tables of {max_table:,}", ratio, "<=", 3.0))
    print_table("Nanoseconds per entry", ["max_table", "forwards", "backwards", "bare exp and log", "ratio"], rows)
    rows = []
    for max_table, most in SMALL_LIMITS.items():
        took = lanes(model, max_table, 2 if quick else 5)
        ratio = took["together"] / took["one by one"]
        rows.append([f"{max_table:,}", *took.values(), ratio])
        claims.append(
            Claim(f"mini-buckets: {LANES} lanes together / one by one, tables of {max_table:,}", ratio, "<=", most)
        )
    print_table(
        f"Seconds of {LANES} lanes, {LANE_EVALUATIONS} evaluations", ["max_table", "alone", "together", "ratio"], rows
    )
    trw, field = cz.trw(model, edge_weights="optimized"), cz.mean_field(model)
    rows = [["TRW, optimized", trw.upper, ""], ["mean field", "", field.lower]]
    asked: dict[str, dict[str, Any]] = {"mini-buckets, default options": {}}
    for max_table, seconds in itertools.product(LIMITS, (1.0,) if quick else (1.0, 10.0)):
        asked[f"mini-buckets of {max_table:,}, {seconds:g} s"] = {
            "max_table": max_table,
            "time": seconds,
            "tol": 0.0,
            "max_iter": 10**6,
        }
    for name, options in asked.items():
        found = cz.mini_buckets(model, **options)
        rows.append([name, found.upper, found.lower])
        claims += [
            Claim(f"mini-buckets: {name}, nats, upper bound - TRW's", found.upper - trw.upper, "<=", 0.0),
            Claim(f"mini-buckets: {name}, nats, lower bound - mean field's", found.lower - field.lower, ">=", 0.0),
        ]
    print_table("Bounds", ["", "upper", "lower"], rows)
    return claims


if __name__ == "__main__":
    alone(main)
