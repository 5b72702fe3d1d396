"""Clamping: against libDAI's figures for the same clamps, against one batch of the same lanes, and against one branch
after another.

    python benchmarks/clamping.py [--quick]

tests/data/reference/clamping.json has, for four models, libDAI's log Z and CPU seconds for 0 to 5 clamps chosen by maxW
on the core (1 to 32 branches), stored on another day on a machine of this kind: libDAI itself is not run.  Our CPU time
is that of one call with k=5, which gives all six steps, on one thread and with the kernels compiled.
"""

import json
import time
from typing import Any

import numpy as np

import clampz as cz
from clampz.clamping import clamping
from clampz.method import ForestWeights
from clampz.numerics import log_sum_exp
from timing import REFERENCE, Claim, alone, interleaved, print_table, worst

NUM_CLAMPS = 5
# libDAI's name, ours, what it is called here, our options, and how many times quicker this should be on all models
# together and on every one.  libDAI computes the edge weights anew in every branch, and so does this: by default ten
# steps of optimization each, or two, and slack of 0.01 nats where the weights gain more than one.
RIVALS: tuple[tuple[str, str, str, dict[str, Any], float, float], ...] = (
    ("TRWBP", "trw", "trw", {}, 25.0, 10.0),
    ("TRWBP", "trw", "trw in two steps", {"num_steps": 2, "tol": 0.01}, 200.0, 100.0),
    ("HAK", "bethe", "bethe", {}, 200.0, 50.0),
    ("MF", "mf", "mf", {}, 20.0, 5.0),
)


def main(quick: bool) -> list[Claim]:
    return [
        *against_libdai(1 if quick else 3),
        *selecting(1 if quick else 3, 2 if quick else 3),
        *batching(1 if quick else 3),
    ]


# -- libDAI -----------------------------------------------------------------------------------------------------------


def against_libdai(repeats: int) -> list[Claim]:
    libdai = json.loads((REFERENCE / "clamping.json").read_text())
    models = {name: cz.read(REFERENCE / f"{name}.uai") for name in libdai}
    claims, times, differences = [], [], []
    for theirs, ours, name_of_ours, options, target, of_each in RIVALS:
        found, seconds = {}, {}
        for name, model in models.items():

            def run(model: cz.Model = model, ours: str = ours, options: dict[str, Any] = options) -> cz.results.Clamped:
                return cz.clamp(model, ours, k=NUM_CLAMPS, select="maxW", threads=1, **options)

            found[name] = run()
            seconds[name] = interleaved({name: run}, repeats, clock=time.process_time)[name]
            if list(found[name].variables) != libdai[name]["variables"]:
                print(f"  {name}: clamped {list(found[name].variables)}, libDAI {libdai[name]['variables']}")
        stored = {name: sum(libdai[name][theirs]["cpu_seconds"]) for name in models}
        ratios = {name: stored[name] / seconds[name] for name in models}
        ratio = sum(stored.values()) / sum(seconds.values())
        pair = f"{name_of_ours} / {theirs}"
        for name in models:
            not_converged = sum(not step.converged for step in found[name].steps)
            times.append([pair, name, seconds[name], stored[name], ratios[name], not_converged])
        times.append([pair, "all four", sum(seconds.values()), sum(stored.values()), ratio, ""])
        what = f"clamping: stored CPU seconds of libDAI's {theirs} / ours of {name_of_ours}, six steps"
        claims += [Claim(f"{what}, summed", ratio, ">=", target), *worst(what, ratios, ">=", of_each)]
        change = np.array(
            [[s.log_z for s in found[name].steps] - np.array(libdai[name][theirs]["log_z"]) for name in models]
        )
        differences += [[f"{name_of_ours} - {theirs}", name, *row] for name, row in zip(models, change, strict=True)]
        differences.append([f"{name_of_ours} - {theirs}", "mean", *change.mean(axis=0)])
        by_step = {f"{name}, k = {k}": by for name, row in zip(models, change, strict=True) for k, by in enumerate(row)}
        sense, target = ("<=", 0.0) if ours == "trw" else (">=", -1e-3)
        claims += worst(f"clamping: {name_of_ours} - {theirs}, nats", by_step, sense, target)
    print_table(
        "Five clamps by maxW, all steps: CPU seconds, one thread",
        ["method", "model", "clampz", "libDAI, stored", "ratio", "steps not converged"],
        times,
    )
    print_table(
        "Difference of log Z after k clamps, nats",
        ["method", "model", *(f"k = {k}" for k in range(NUM_CLAMPS + 1))],
        differences,
    )
    return claims


# -- selectors that try candidates ------------------------------------------------------------------------------------


def selecting(repeats: int, greedy_clamps: int) -> list[Claim]:
    """What choosing costs beside solving the lanes that were looked at, every one once and all in one batch; under
    uniform edge weights, which all lanes share; and under the default ones, which are optimized."""
    model = cz.generators.grid(9, 9, weights=(-6, 6), rng=0)
    rho = ForestWeights(cz.trw(model).state.rho)
    rows, claims = [], []
    for select, k in (("pseudo-greedy", NUM_CLAMPS), ("greedy", greedy_clamps)):
        lanes, num_solved = lanes_looked_at(model, select, k)
        best = interleaved(
            {
                "clamp": lambda select=select, k=k: cz.clamp(model, "trw", k=k, select=select, edge_weights="uniform"),
                "default": lambda select=select, k=k: cz.clamp(model, "trw", k=k, select=select),
                "one batch": lambda lanes=lanes: cz.trw.solve(lanes, cz.options.TRWOptions(), weights=rho),
            },
            repeats,
        )
        ratio = best["clamp"] / best["one batch"]
        rows.append([select, k, lanes.num_lanes, num_solved, best["default"], best["clamp"], best["one batch"], ratio])
        claims.append(
            Claim(
                f"clamping: {select} to {k} clamps / its distinct lanes in one batch",
                ratio,
                "<=",
                3.0,
            )
        )
    print_table(
        "Choosing by trying, TRW on a 9x9 torus, W in [-6, 6], all cores",
        ["selector", "clamps", "distinct lanes", "lanes solved", "s, default", "s, uniform", "in one batch", "ratio"],
        rows,
    )
    return claims


def lanes_looked_at(model: cz.Model, select: str, k: int) -> tuple[cz.Batch, int]:
    """The distinct lanes that a clamping with TRW solves, as one batch; and how many it solves, repeats included."""
    seen: list[np.ndarray[Any, Any]] = []
    run = clamping.Clamping._run

    def watched(self: Any, method: Any, batch: cz.Batch, *rest: Any) -> Any:
        seen.append(batch.unary)
        return run(self, method, batch, *rest)

    clamping.Clamping._run = watched  # type: ignore[method-assign]
    try:
        cz.clamp(model, "trw", k=k, select=select, edge_weights="uniform")
    finally:
        clamping.Clamping._run = run  # type: ignore[method-assign]
    every = np.concatenate(seen, axis=1)
    return cz.Batch(model, np.unique(every, axis=1)), every.shape[1]


# -- one batch against one branch after another -----------------------------------------------------------------------


def batching(repeats: int) -> list[Claim]:
    model = cz.generators.grid(9, 9, weights=(-6, 6), rng=0)
    variables = cz.clamp(model, "mf", k=NUM_CLAMPS, select="maxW", num_starts=1).variables
    batch = cz.branches(model, variables)
    lanes = [batch.take(np.array([b])) for b in range(batch.num_lanes)]
    rows, claims = [], []
    for name, method in (("trw", cz.trw), ("bethe", cz.bethe), ("mf", cz.mean_field)):
        best = interleaved(
            {
                "batch": lambda method=method: method(batch, threads=1),
                "one by one": lambda method=method: [method(lane, threads=1) for lane in lanes],
            },
            repeats,
        )
        together, apart = (
            log_sum_exp(method(batch, threads=1).log_z),
            log_sum_exp(np.array([method(lane, threads=1)[0].log_z for lane in lanes])),
        )
        ratio = best["one by one"] / best["batch"]
        rows.append([name, best["batch"], best["one by one"], ratio, together - apart])
        claims.append(
            Claim(f"clamping: {name}, 32 branches one after another / as a batch, one thread", ratio, ">=", 4.0)
        )
    print_table(
        "32 branches of a 9x9 torus, W in [-6, 6], one thread, seconds",
        ["method", "one batch", "one after another", "ratio", "log Z differs by"],
        rows,
    )
    return claims


if __name__ == "__main__":
    alone(main)
